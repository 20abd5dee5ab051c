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
