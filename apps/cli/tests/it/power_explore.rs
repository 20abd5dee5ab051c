//! `metes power explore`: each heap at each pair against `metes replay` and `metes power check`, one by one.

use serde_json::Value;

use crate::support::{Place, refused, status, stderr, stdout};

const LEVELS: &str = "[run]
clock_mhz = 100
[[level]]
name = \"main\"
size = \"1 MiB\"
read_nj = 5
write_nj = 6
latency_ns = 20
leakage_mw = 3
";

const SYSTEM: &str = "scheduler = \"fixed-priority\"
units = { time = \"us\", frequency = \"MHz\", power = \"mW\" }
[processor]
cpu = [20, 40, 80]
memory = [20, 40]
power = { floor = 10, cpu_cubed = 0.001, memory = 1 }
[[task]]
name = \"control\"
priority = 1
period = 500
constant = 50
[[task]]
name = \"store\"
priority = 2
period = 5000
deadline = 340
cpu = CPU
memory = MEMORY
";

const HEAPS: [&str; 4] = ["first-fit", "kingsley", "best-fit", "half-fit"];

fn system(cpu: u64, memory: u64) -> String {
    let text = SYSTEM.replace("CPU", &cpu.to_string());
    text.replace("MEMORY", &memory.to_string())
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn prepared() -> Place {
    let place = Place::new();
    place.write("levels.toml", LEVELS);
    place.write("system.toml", &system(1000, 0));
    // Every third block goes at once, others when some have come.
    let mut trace = String::new();
    let mut live = std::collections::VecDeque::new();
    for block in 0..120 {
        trace += &format!("a,{block},{}\n", 24 + block * 37 % 700);
        live.push_back(block);
        if block % 3 == 2 {
            live.retain(|own| *own != block - 1);
            trace += &format!("f,{}\n", block - 1);
        }
        if block % 8 == 7
            && let Some(oldest) = live.pop_front()
        {
            trace += &format!("f,{oldest}\n");
        }
    }
    place.write("t.csv", &trace);
    let imported = place.metes(&["trace", "import", "t.csv", "-o", "t.parquet"]);
    assert_eq!(status(&imported), 0, "{}", stderr(&imported));
    place
}

const EXPLORE: [&str; 12] = [
    "power",
    "explore",
    "system.toml",
    "--trace",
    "t.parquet",
    "--task",
    "store",
    "--levels",
    "levels.toml",
    "--nominal",
    "100,50",
    "--records-only",
];

#[test]
fn what_is_found_is_what_each_combination_says_by_itself() {
    let place = prepared();
    let mut all: Vec<(u64, f64, String)> = Vec::new();
    let mut words = EXPLORE.to_vec();
    for heap in HEAPS {
        words.extend(["--heap", heap]);
        let replay = [
            "replay",
            "t.parquet",
            "--heap",
            heap,
            "--levels",
            "levels.toml",
            "--records-only",
        ];
        let (status, replay) = place.json(&replay);
        assert_eq!(status, 0);
        let price = &replay["price"];
        let level = |key: &str| number(&price["levels"][0][key]);
        // 20 ns are one cycle of 50 MHz.
        let cpu = number(&price["compute_time"]) * 100e6;
        let memory = level("reads") + level("writes");
        let (cpu, memory) = (cpu.round() as u64, memory.round() as u64);
        place.write("one.toml", &system(1000 + cpu, memory));
        for fp in [20, 40, 80] {
            for fm in [20, 40] {
                let pair = [
                    "--cpu".to_owned(),
                    fp.to_string(),
                    "--memory".to_owned(),
                    fm.to_string(),
                ];
                let pair: Vec<&str> = pair.iter().map(String::as_str).collect();
                let (status, verdict) =
                    place.json(&[&["power", "check", "one.toml"], &pair[..]].concat());
                assert_eq!(verdict["schedulable"], status == 0);
                if status == 0 {
                    let (f, m) = (f64::from(fp), f64::from(fm));
                    let busy = 500.0 + (1000.0 + cpu as f64) / f + memory as f64 / m;
                    let running = 0.001 * f * f * f + m;
                    // mW us are nJ.
                    let energy = 13.0 * 5000.0 + running * busy + number(&price["energy"]) * 1e9;
                    let footprint = replay["footprint"].as_u64().expect("bytes");
                    all.push((footprint, energy, format!("{heap} {fp} {fm}")));
                }
            }
        }
    }
    assert!(all.len() > 4 && all.len() < 24, "{all:?}");
    let least = |footprint: u64| {
        let no_larger = all.iter().filter(|one| one.0 <= footprint);
        no_larger.map(|one| one.1).fold(f64::INFINITY, f64::min)
    };
    let mut front: Vec<(u64, f64)> = all
        .iter()
        .filter(|one| one.1 <= least(one.0) && (one.0 == 0 || one.1 < least(one.0 - 1)))
        .map(|one| (one.0, one.1))
        .collect();
    front.sort_by_key(|left| left.0);
    front.dedup_by(|left, right| left.0 == right.0);
    let (status, answer) = place.json(&[&words[..], &["--csv", "all.csv"]].concat());
    assert_eq!(status, 0);
    let found = answer["pareto"].as_array().expect("a front");
    assert_eq!(found.len(), front.len(), "{answer}\n{front:?}");
    for (at, (footprint, energy)) in found.iter().zip(&front) {
        assert_eq!(at["footprint"].as_u64(), Some(*footprint));
        let nearly = number(&at["energy_nearly"]);
        assert!((nearly / energy - 1.0).abs() < 1e-9, "{nearly} {energy}");
        assert!(at["response"].is_string() && at["run"].is_string());
        place.write("chosen.toml", at["toml"].as_str().expect("a heap"));
        let again = [
            "replay",
            "t.parquet",
            "--heap",
            "chosen.toml",
            "--levels",
            "levels.toml",
            "--records-only",
        ];
        assert_eq!(place.json(&again).1["footprint"], at["footprint"]);
    }
    let feasible = place
        .read("all.csv")
        .lines()
        .filter(|line| line.contains(",true,"))
        .count();
    assert_eq!(Some(feasible as u64), answer["feasible"].as_u64());
    let said = stdout(&place.metes(&words));
    assert!(
        said.contains("least energy") && said.contains("checked"),
        "{said}"
    );
}

/// A heap that makes the system late at any pair: who is late, and status 1.
#[test]
fn no_heap_is_fast_enough() {
    let place = prepared();
    place.write("system.toml", &system(1_000_000, 0));
    let (status, answer) = place.json(&EXPLORE);
    assert_eq!(status, 1);
    assert_eq!(answer["pareto"].as_array().map(Vec::len), Some(0));
    assert_eq!(answer["miss"]["name"], "store");
    assert!(stdout(&place.metes(&EXPLORE)).contains("not feasible"));
}

#[test]
fn what_is_missing_is_said() {
    let place = prepared();
    let without = |option: usize, count: usize| {
        let mut words = EXPLORE.to_vec();
        words.drain(option..option + count);
        words
    };
    refused(&place.metes(&without(5, 2)), &["control, store"]);
    refused(&place.metes(&without(11, 1)), &["metes record --accesses"]);
    let other = [&EXPLORE[..], &["--holds-up", "x"]].concat();
    refused(&place.metes(&other), &["no task `x`"]);
    place.write("system.toml", &system(1000, 0).replace("units", "# units"));
    refused(&place.metes(&EXPLORE), &["units = {"]);
}
