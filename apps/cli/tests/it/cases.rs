//! The scripts of the case studies run, and record what their notes say.

use std::path::{Path, PathBuf};
use std::process::Command;

use metes_cases::touches::recorded;
use metes_trace::TouchProfile;
use serde_json::Value;

use crate::support::{Place, parsed, refused};

/// A file of the case studies.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/cases")
        .join(name)
}

/// Runs a script without exploration.
fn study(case: &str) -> Place {
    study_with(case, &[])
}

/// Runs a script without exploration, on short vectors, with further arguments.
fn study_with(case: &str, arguments: &[&str]) -> Place {
    let place = Place::new();
    let output = place
        .script(&file(&format!("{case}/run")))
        .env("CONFIGURATIONS", "0")
        .env("ELEMENTS", "4096")
        .args(arguments)
        .arg(place.path("out"))
        .output()
        .expect("the script can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {said}");
    place
}

fn profile(place: &Place, name: &str) -> Value {
    let trace = format!("out/{name}.trace.parquet");
    let (status, profile) = parsed(&place.metes(&["--json", "profile", &trace]));
    assert_eq!(status, 0);
    profile
}

fn number(profile: &Value, key: &str) -> u64 {
    profile[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {profile}"))
}

#[test]
fn packets_are_forwarded_as_generated() {
    // The script itself compares recording and generated trace.
    let place = study("packets");
    let profile = profile(&place, "packets");
    assert_eq!(number(&profile, "peak_blocks"), 647);
    assert_eq!(number(&profile, "allocations"), 12_000);
}

#[test]
fn images_are_decoded() {
    let place = study("texture");
    let peaks = ["texture-256", "texture-512", "texture-1024"]
        .map(|name| number(&profile(&place, name), "peak_live"));
    // Four times the pixels, and a stream buffer of 1 MiB in each.
    assert!(
        peaks[1] > 2 * peaks[0] && peaks[2] > 3 * peaks[1],
        "{peaks:?}"
    );
}

#[test]
fn documents_are_queried() {
    let profile = profile(&study("json"), "json");
    let peak = number(&profile, "peak_blocks");
    // Most values of the document are live together.
    assert!(peak * 2 > number(&profile, "allocations"), "{peak}");
}

#[test]
fn a_formula_is_decided() {
    let profile = profile(&study("sat"), "sat");
    assert!(number(&profile, "allocations") > 10_000);
    assert!(
        profile["sizes"]
            .as_array()
            .is_some_and(|sizes| sizes.len() > 100)
    );
}

#[test]
fn a_broker_keeps_messages() {
    let place = study("mqtt");
    assert_eq!(place.read("out/received.txt").lines().count(), 1007);
    let profile = profile(&place, "mqtt");
    // The queue is gone at the end: the recording is whole.
    assert!(number(&profile, "final_blocks") < 100, "{profile}");
    assert!(number(&profile, "peak_blocks") > 4 * 1007);
}

#[test]
fn programs_touch_what_is_kept_of_them() {
    let place = study_with("touches", &["--own"]);
    let recorded_now = |name: &str| {
        let trace = format!("out/{name}.touches");
        let (status, read) = place.json(&["trace", "touches", &trace]);
        assert_eq!(status, 0);
        read["profile"].clone()
    };
    for name in ["mc", "models"] {
        let mut kept = TouchProfile::default();
        for operation in recorded(name).expect("kept").operations().expect("memory") {
            kept.take(&operation.expect("an operation"));
        }
        let kept = serde_json::to_value(&kept).expect("JSON");
        assert_eq!(recorded_now(name), kept, "{name}");
    }
    // There and back: a tree of arrays each, of 128 elements at its leaves.
    let parts = 4096 / 128 * 2 - 1;
    let blocks = number(&recorded_now("fft"), "allocations");
    assert!(
        (2 * (2 * parts - 1)..2 * (2 * parts - 1) + 10).contains(&blocks),
        "{blocks}"
    );
}

#[test]
fn models_are_counted_as_by_trying_all() {
    let place = Place::new();
    let source = std::fs::read_to_string(file("touches/models.c")).expect("the program");
    let program = place.compile("models", &source, &["-O2", "-std=c99"]);
    for (variables, clauses) in [(6, 9), (9, 20), (12, 30), (12, 70)] {
        let formula = place.path("f.cnf");
        let (variables, clauses) = (variables.to_string(), clauses.to_string());
        let made = Command::new("python3")
            .arg(file("sat/formula.py"))
            .args([&variables, &clauses, "3"])
            .arg(&formula)
            .status();
        assert!(made.expect("python3").success());
        let text = place.read("f.cnf");
        let clauses: Vec<Vec<i32>> = text
            .lines()
            .skip(1)
            .map(|line| {
                line.split(' ')
                    .map(|word| word.parse().expect("a literal"))
                    .collect()
            })
            .collect();
        let holds = |values: u32| {
            clauses.iter().all(|clause| {
                let literals = clause.iter().filter(|literal| **literal != 0);
                let mut met =
                    literals.map(|own| (values >> (own.abs() - 1) & 1 == 1) == (*own > 0));
                met.any(|met| met)
            })
        };
        let models = (0..1_u32 << variables_of(&text))
            .filter(|values| holds(*values))
            .count();
        let output = Command::new(&program)
            .arg(&formula)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            said.starts_with(&format!("{models} models, ")),
            "{models}: {said}"
        );
    }
}

/// The variables of a formula in DIMACS.
fn variables_of(text: &str) -> u32 {
    let header = text.lines().next().and_then(|line| line.split(' ').nth(2));
    header
        .and_then(|word| word.parse().ok())
        .expect("p cnf VARIABLES CLAUSES")
}

#[test]
fn impossible_workloads_are_refused() {
    let place = Place::new();
    let generate = ["trace", "generate"];
    let with = |more: &[&str]| place.metes(&[&generate, more].concat());
    let output = with(&["texture", "-o", "t.trace.parquet", "--capture", "c.pcap"]);
    refused(&output, &["only packets", "--capture"]);
    let output = with(&[
        "packets",
        "-o",
        "t.trace.parquet",
        "--capture",
        "none/c.pcap",
    ]);
    refused(&output, &["none/c.pcap"]);
    refused(
        &with(&["packets", "-o", "t.trace.parquet", "--packets", "0"]),
        &["packets"],
    );
    refused(&with(&["voice", "-o", "t.trace.parquet"]), &["voice"]);
}

#[test]
fn a_study_prints_its_rows_beside_the_papers() {
    let place = Place::new();
    let (status, report) = parsed(&place.metes(&["--json", "reproduce", "dm-vtc"]));
    assert_eq!(status, 0, "{report}");
    assert_eq!(report["experiment"], "dm-vtc");
    assert_eq!(report["holds"], true);
    let rows = report["rows"].as_array().expect("rows");
    let energy = rows
        .iter()
        .find(|row| row["paper"] == -82.9)
        .expect("the paper's figure");
    let (ours, ratio) = (&energy["ours"], &energy["ratio"]);
    let ours = ours.as_f64().expect("computed in this run");
    assert!((ours / -82.9 - ratio.as_f64().expect("a number")).abs() < 1e-9);
    assert!(
        energy["note"]
            .as_str()
            .is_some_and(|note| note.contains("mJ"))
    );
    assert!(!report["assumptions"].as_array().expect("some").is_empty());
    let text = place.metes(&["reproduce", "dm-vtc"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("against Kingsley"));
    refused(
        &place.metes(&["reproduce", "dm-vtc", "--quick", "--full"]),
        &["--quick", "--full"],
    );
    refused(
        &place.metes(&["reproduce", "dm-voice"]),
        &["dm-voice", "dm-vtc"],
    );
}

#[test]
fn a_study_is_written_as_a_page() {
    let place = Place::new();
    let arguments = [
        "reproduce",
        "compact-fit-transient",
        "--quick",
        "-o",
        "t.html",
    ];
    let (status, report) = parsed(&place.metes(&[&["--json"], &arguments[..]].concat()));
    assert_eq!(status, 0, "{report}");
    assert_eq!(
        (&report["holds"], &report["page"]),
        (&true.into(), &"t.html".into())
    );
    let ours = |what: &str| {
        let rows = report["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["what"] == what);
        row.expect(what)["ours"].as_f64().expect("bytes")
    };
    assert_eq!(ours("ι = ∞: transient, most"), 0.0);
    assert!(ours("ι = 64: transient, mean") > ours("ι = 512: transient, mean"));
    let page = std::fs::read_to_string(place.path("t.html")).expect("the page");
    for part in [
        "Kirsch and Sokolova",
        "ι in bytes",
        "compact-fit-transient",
        "prefers-color-scheme",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        !page.contains("http:") && !page.contains("https:"),
        "nothing is fetched"
    );
}

#[test]
fn a_page_is_refused_before_anything_is_measured() {
    let place = Place::new();
    refused(
        &place.metes(&["reproduce", "-o", "t.html"]),
        &["--output", "name one"],
    );
    refused(
        &place.metes(&["reproduce", "small-heaps", "-o", "t.html"]),
        &["small-heaps", "--output"],
    );
    refused(
        &place.metes(&["reproduce", "compact-fit-speed", "-o", "t.html"]),
        &["compact-fit-speed", "compact-fit-throughput"],
    );
    refused(
        &place.metes(&["reproduce", "compact-fit-scalability", "-o", "none/t.html"]),
        &["none/t.html"],
    );
    refused(
        &place.metes(&["reproduce", "compact-fit-scalability", "-o", "."]),
        &["directory"],
    );
}

#[test]
fn throughput_is_measured_and_decides_nothing() {
    let place = Place::new();
    let (status, report) =
        parsed(&place.metes(&["--json", "reproduce", "compact-fit-throughput", "--quick"]));
    assert_eq!((status, &report["holds"]), (0, &true.into()), "{report}");
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["ours"].as_f64() > Some(0.0)));
    let plot = &report["plots"][0];
    assert_eq!(plot["names"], serde_json::json!(["1", "2", "4", "∞"]));
    assert_eq!(plot["series"].as_array().map(Vec::len), Some(4));
}

#[test]
fn an_editor_and_a_browser_are_recorded_and_counted() {
    let place = Place::new();
    let output = place.metes(&["--json", "reproduce", "compact-fit-tlsf", "--quick"]);
    let (_, report) = parsed(&output);
    let rows = report["rows"].as_array().expect("rows");
    for program in ["emacs", "lynx"] {
        let mean = rows
            .iter()
            .find(|row| row["what"] == format!("{program}, malloc, mean: compact-fit over TLSF"));
        assert!(
            mean.expect(program)["ours"].as_f64() > Some(0.0),
            "{report}"
        );
    }
    let contradicted = report["contradicted"].as_array().expect("a list");
    assert!(
        contradicted
            .iter()
            .all(|what| !what.as_str().is_some_and(|what| what.contains("refused")))
    );
}
