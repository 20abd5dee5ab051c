//! The scripts of the case studies run, and record what their notes say.

use std::path::Path;

use serde_json::Value;

use crate::support::{Place, parsed, refused};

/// Runs a script without exploration.
fn study(case: &str) -> Place {
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/cases")
        .join(case)
        .join("run");
    let output = place
        .script(&script)
        .env("CONFIGURATIONS", "0")
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
