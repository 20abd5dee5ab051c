//! `metes power fit`, `predict`, `measure`, `apply` and `reproduce dvfs`: tables of planted models, and machines as trees
//! of files, which must be as before however it ends.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Place, has_keys, refused, status, stderr, stdout};

/// A table of the models of the public follow-up, without noise, every third pair with its energy in place of the time.
fn table() -> String {
    let mut text = String::from("cpu_mhz,memory_mhz,time_ms,power_w,energy_mj,name\n");
    for cpu in 6..=14 {
        for memory in 2..=5 {
            let (fp, fm) = (f64::from(cpu) / 10.0, f64::from(memory) / 10.0);
            let time = 1.745 / fp + 0.0978 / fm + 0.327;
            let power = 2.336 + 0.269 * fp.powi(3) + 0.210 * fm;
            let (time, energy) = match (cpu + memory) % 3 {
                0 => (String::new(), format!("{}", time * power)),
                _ => (format!("{time}"), String::new()),
            };
            text += &format!("{},{},{time},{power},{energy},x\n", cpu * 100, memory * 100);
        }
    }
    text
}

#[test]
fn planted_models_are_found_and_written_as_a_system() {
    let place = Place::new();
    place.write("data.csv", &table());
    let (status, answer) = place.json(&[
        "power",
        "fit",
        "data.csv",
        "--at",
        "1000,350",
        "--at",
        "400,200",
        "-o",
        "system.toml",
    ]);
    assert_eq!(status, 0);
    has_keys(
        &answer,
        &["rows", "ignored", "time", "power", "energy", "foretold"],
    );
    let parameter = |quantity: &str, index: usize| {
        answer[quantity]["parameters"][index]["value"]
            .as_f64()
            .expect("a number")
    };
    for (quantity, planted) in [
        ("time", [1.745, 0.0978, 0.327]),
        ("power", [2.336, 0.269, 0.210]),
    ] {
        for (index, planted) in planted.into_iter().enumerate() {
            assert!((parameter(quantity, index) - planted).abs() < 1e-9);
        }
        assert_eq!(
            answer[quantity]["suspects"].as_array().map(Vec::len),
            Some(0)
        );
    }
    assert_eq!(answer["ignored"][0], "name");
    let inside = &answer["foretold"][0];
    assert!(inside["extrapolated"].is_null());
    let time = inside["time"].as_f64().expect("seconds");
    assert!((time - (1.745 + 0.0978 / 0.35 + 0.327) / 1e3).abs() < 1e-9);
    let beyond = answer["foretold"][1]["extrapolated"]
        .as_str()
        .expect("beyond");
    assert!(beyond.contains("400 MHz"), "{beyond}");
    let system = place.read("system.toml");
    assert!(
        system.contains("cpu = \"1745\"") && system.contains("[processor]"),
        "{system}"
    );
    let said = stdout(&place.metes(&["power", "fit", "data.csv"]));
    assert!(
        said.contains("least energy measured") && said.contains("R² 1.0000"),
        "{said}"
    );
}

#[test]
fn the_paper_is_recomputed_and_held_against_a_table() {
    let place = Place::new();
    let (status, report) = place.json(&["reproduce", "dvfs"]);
    assert_eq!(status, 0, "{report}");
    assert_eq!(report["rows"][0]["ours"], 0.5);
    assert_eq!(report["rows"][2]["ours"], 700.0);
    // Of these models a faster memory takes more power everywhere, which the paper denies.
    place.write("data.csv", &table());
    let (status, report) =
        place.json(&["reproduce", "dvfs", "--data", "data.csv", "-o", "dvfs.html"]);
    assert_eq!(status, 1, "{report}");
    let contradicted = report["contradicted"].as_array().expect("a list");
    assert_eq!(contradicted.len(), 2, "{contradicted:?}");
    assert!(place.read("dvfs.html").contains("Energy of an execution"));
}

/// A machine of one policy and a memory controller; what runs is a link to the most that may.
fn machine(place: &Place) {
    let write = |path: &str, text: &str| {
        let path = place.path(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, format!("{text}\n")).expect("a file");
    };
    let policy = "sys/devices/system/cpu/cpufreq/policy0";
    write(
        &format!("{policy}/scaling_available_frequencies"),
        "600000 1200000",
    );
    write(&format!("{policy}/scaling_min_freq"), "600000");
    write(&format!("{policy}/scaling_max_freq"), "1200000");
    write(&format!("{policy}/scaling_governor"), "ondemand");
    let now = place.path(&format!("{policy}/scaling_cur_freq"));
    symlink("scaling_max_freq", now).expect("a link");
    let memory = "sys/class/devfreq/dmc0";
    write(
        &format!("{memory}/available_frequencies"),
        "200000000 500000000",
    );
    write(&format!("{memory}/min_freq"), "200000000");
    write(&format!("{memory}/max_freq"), "500000000");
    symlink("max_freq", place.path(&format!("{memory}/cur_freq"))).expect("a link");
    write("sys/class/hwmon/hwmon0/name", "ina226");
    write("sys/class/hwmon/hwmon0/power1_input", "2500000");
}

const LIMITS: [&str; 4] = [
    "sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
    "sys/class/devfreq/dmc0/min_freq",
    "sys/class/devfreq/dmc0/max_freq",
];

fn limits(place: &Place) -> BTreeMap<&'static str, String> {
    let text = |name| place.read(name).trim().to_owned();
    LIMITS.into_iter().map(|name| (name, text(name))).collect()
}

/// Marks two executions, and leaves what the machine was set to.
const TASK: &str = "import os, time
now = lambda: time.clock_gettime(time.CLOCK_MONOTONIC)
with open(os.environ['METES_MARKERS'], 'w') as marks:
    for _ in range(2):
        marks.write(f'begin {now():.9f}\\n')
        time.sleep(0.01)
        marks.write(f'end {now():.9f}\\n')
with open('seen', 'a') as seen:
    for name in os.environ['LIMITS'].split():
        seen.write(open(name).read().strip() + ' ')
    seen.write('\\n')
";

#[test]
fn a_sweep_sets_measures_and_restores() {
    let place = Place::new();
    machine(&place);
    place.write("task.py", TASK);
    let before = limits(&place);
    let mut command = place.command(&[
        "--json",
        "power",
        "measure",
        "--sysfs",
        "sys",
        "--repeats",
        "2",
        "-o",
        "runs.csv",
        "--",
        "python3",
        "task.py",
    ]);
    let output = command
        .env("LIMITS", LIMITS.join(" "))
        .output()
        .expect("metes runs");
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("a document");
    let runs = answer["runs"].as_array().expect("runs");
    // Four pairs, two runs that count, two executions marked in each.
    assert_eq!(runs.len(), 16);
    for run in runs {
        assert_eq!(
            (&run["marked"], &run["applied"]),
            (&true.into(), &true.into())
        );
        let (time, energy) = (run["time"].as_f64(), run["energy"].as_f64());
        let (time, energy) = (time.expect("seconds"), energy.expect("joules"));
        assert!(time >= 0.01);
        // 2.5 W all the time.
        assert!((energy / time - 2.5).abs() < 1e-6, "{run}");
    }
    let remarks = answer["remarks"].to_string();
    assert!(remarks.contains("no running kernel's"), "{remarks}");
    assert_eq!(limits(&place), before);
    assert!(!place.path("metes-power.saved").exists());
    let seen = place.read("seen");
    let seen: Vec<_> = seen.lines().map(str::trim).collect();
    assert_eq!(seen.len(), 12);
    assert_eq!(seen[0], "600000 600000 200000000 200000000");
    assert_eq!(seen[11], "1200000 1200000 500000000 500000000");
    // The table is one of `fit`: two frequencies of each.
    let (status, fit) = place.json(&["power", "fit", "runs.csv"]);
    assert_eq!((status, &fit["rows"]), (0, &16.into()));
}

#[test]
fn whatever_ends_it_the_machine_is_as_before() {
    let place = Place::new();
    machine(&place);
    let before = limits(&place);
    let failing = place.metes(&["power", "measure", "--sysfs", "sys", "--", "false"]);
    refused(&failing, &["status 1", "restored"]);
    assert_eq!(limits(&place), before);
    let missing = place.metes(&["power", "measure", "--sysfs", "sys", "--", "./none"]);
    refused(&missing, &["none"]);
    assert_eq!(limits(&place), before);
    let foreign = place.metes(&[
        "power", "measure", "--sysfs", "sys", "--cpu", "900", "--", "true",
    ]);
    refused(&foreign, &["does not offer 900000 kHz"]);
    assert_eq!(limits(&place), before);
    for (signal, ends) in [
        (libc::SIGTERM, 143),
        (libc::SIGINT, 130),
        (libc::SIGHUP, 129),
    ] {
        // A program that ignores SIGHUP would read its configuration again; this one ends.
        let mut command = place.command(&[
            "power",
            "measure",
            "--sysfs",
            "sys",
            "--",
            "sh",
            "-c",
            "echo here > begun; exec sleep 100",
        ]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let _ = std::fs::remove_file(place.path("begun"));
        let mut metes = command.spawn().expect("metes runs");
        let start = Instant::now();
        while !place.path("begun").exists() {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "the program begins"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_ne!(limits(&place), before);
        // SAFETY: a process that this test started.
        assert_eq!(unsafe { libc::kill(metes.id() as i32, signal) }, 0);
        let ended = metes.wait().expect("it ends");
        assert_eq!(ended.code(), Some(ends));
        assert_eq!(limits(&place), before, "after signal {signal}");
        assert!(!place.path("metes-power.saved").exists());
    }
}

#[test]
fn after_a_kill_a_file_restores_and_nothing_is_set_before() {
    let place = Place::new();
    machine(&place);
    let before = limits(&place);
    let left = place.metes(&[
        "power", "apply", "--sysfs", "sys", "--cpu", "600", "--memory", "500",
    ]);
    assert_eq!(status(&left), 0, "{}", stderr(&left));
    assert_eq!(limits(&place)[LIMITS[1]], "600000");
    let again = place.metes(&["power", "measure", "--sysfs", "sys", "--", "true"]);
    refused(&again, &["metes-power.saved", "apply --restore"]);
    assert_eq!(limits(&place)[LIMITS[1]], "600000");
    let (status, restored) = place.json(&["power", "apply", "--restore", "metes-power.saved"]);
    assert_eq!((status, &restored["restored"]), (0, &5.into()));
    assert_eq!(limits(&place), before);
    let (status, ran) = place.json(&[
        "power", "apply", "--sysfs", "sys", "--cpu", "600", "--", "sh", "-c", "exit 7",
    ]);
    assert_eq!((status, &ran["status"]), (7, &7.into()));
    assert_eq!(limits(&place), before);
}

#[test]
fn a_frequency_that_is_not_applied_is_no_success() {
    let place = Place::new();
    machine(&place);
    let now = place.path("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq");
    std::fs::remove_file(&now).expect("a link");
    std::fs::write(&now, "600000\n").expect("a file");
    let before = limits(&place);
    let (status, answer) = place.json(&["power", "apply", "--sysfs", "sys", "--cpu", "1200"]);
    assert_eq!((status, &answer["holds"]), (1, &false.into()));
    assert_eq!(limits(&place), before);
    let (status, answer) = place.json(&[
        "power",
        "measure",
        "--sysfs",
        "sys",
        "--repeats",
        "1",
        "--",
        "true",
    ]);
    assert_eq!(status, 0);
    let missed = answer["remarks"].to_string();
    assert!(
        missed.contains("in 2 runs the frequencies were not those asked for"),
        "{missed}"
    );
}

#[test]
fn an_external_meter_is_aligned_by_its_markers() {
    let place = Place::new();
    place.write(
        "runs.csv",
        "cpu_mhz,memory_mhz,time_ms,energy_mj,begin_s,end_s\n600,200,1000,,100,101\n1200,200,500,,102,102.5\n",
    );
    place.write("meter.csv", "time_s,power_w\n0,2\n2,2\n2.000001,4\n9,4\n");
    place.write("uart.log", "begin 0.5\nend 1.5\nbegin 2.5\nend 3\n");
    let arguments = [
        "power",
        "measure",
        "--runs",
        "runs.csv",
        "--meter-csv",
        "meter.csv",
        "--markers",
        "uart.log",
        "-o",
        "out.csv",
    ];
    let (status, answer) = place.json(&arguments);
    assert_eq!(
        (status, &answer["energies"]),
        (0, &serde_json::json!([2.0, 2.0]))
    );
    assert!(
        place
            .read("out.csv")
            .contains("\n600,200,1000,2000.000000,100,101\n")
    );
    // Half of the second run is missing.
    place.write("uart.log", "begin 0.5\nend 1.5\nbegin 2.5\nend 2.75\n");
    let lost = place.metes(&[
        "power",
        "measure",
        "--runs",
        "runs.csv",
        "--meter-csv",
        "meter.csv",
        "--markers",
        "uart.log",
        "-o",
        "other.csv",
    ]);
    refused(&lost, &["run 2 took 0.5 s"]);
    assert!(!place.path("other.csv").exists());
}

#[test]
fn a_replay_foretells_and_is_held_against_measurements() {
    let place = Place::new();
    place.write(
        "replay.json",
        r#"{"price": {"clock_hz": 200000000, "compute_time": 0.01, "levels": [
        {"name": "near", "reads": 600000, "writes": 400000, "latency_ns": 2, "leakage_mw": 1, "energy": 0.0001},
        {"name": "main", "reads": 100000, "writes": 0, "latency_ns": 50, "leakage_mw": 9, "energy": 0.0002}]}}"#,
    );
    place.write(
        "data.csv",
        "cpu_mhz,memory_mhz,time_ms\n1000,500,7\n1000,1000,10\n",
    );
    let (status, answer) = place.json(&[
        "power",
        "predict",
        "replay.json",
        "--nominal",
        "500,400",
        "--cpu",
        "500,1000",
        "--memory",
        "500,1000",
        "--power",
        "1,0,0",
        "--against",
        "data.csv",
    ]);
    assert_eq!(status, 0);
    assert_eq!(answer["pairs"].as_array().map(Vec::len), Some(4));
    assert_eq!(answer["pairs"][2]["time"], 0.007);
    // 5 ms foretold of 10 measured.
    assert_eq!(answer["error"]["worst_time"], 0.5);
    // A heap of less memory that takes more: at the pair of least energy both are on the Pareto set.
    let more = place.read("replay.json").replace(
        "{\"price\"",
        "{\"heap\": \"tlsf\", \"footprint\": 9, \"price\"",
    );
    place.write("more.json", &more);
    let less = more
        .replace("\"tlsf\"", "\"buddy\"")
        .replace(": 9,", ": 8,")
        .replace("600000", "900000");
    place.write("less.json", &less);
    let both = [
        "power",
        "predict",
        "more.json",
        "less.json",
        "--nominal",
        "500,400",
        "--cpu",
        "500,1000",
        "--memory",
        "500",
    ];
    let (status, answer) = place.json(&[&both[..], &["--power", "1,0,0"]].concat());
    assert_eq!(status, 0);
    let front = answer["pairs"].as_array().expect("pairs").iter();
    let front: Vec<_> = front.filter(|at| at["pareto"] == true).collect();
    assert_eq!(front.len(), 2, "{answer}");
    assert!(front.iter().all(|at| at["cpu_mhz"] == 1000.0));
    let (status, answer) = place.json(&[&both[..], &["--deadline", "1"]].concat());
    assert_eq!(
        (status, answer["pairs"].as_array().map(Vec::len)),
        (1, Some(0))
    );
}
