//! `metes bounds --trace` and `--tandem`: what they print, and what they refuse.

use std::path::Path;

use serde_json::Value;

use crate::support::{Place, has_keys, refused, status, stdout};

/// A place with a trace of the benchmarks.
fn with_trace(name: &str) -> Place {
    let place = Place::new();
    let csv = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../bench/traces")
        .join(name);
    let csv = csv.to_str().expect("text").to_owned();
    let imported = place.metes(&["trace", "import", &csv, "-o", "t.trace.parquet"]);
    assert_eq!(status(&imported), 0);
    place
}

fn number(document: &Value, key: &str) -> u64 {
    let found = document[key].as_u64();
    found.unwrap_or_else(|| panic!("{key}: {document}"))
}

#[test]
fn a_trace_is_bounded_and_never_below_its_peak() {
    for name in ["sqlite.csv", "perl.csv", "python.csv", "cc1.csv"] {
        let place = with_trace(name);
        let (code, document) = place.json(&["bounds", "--trace", "t.trace.parquet"]);
        assert_eq!(code, 0, "{document}");
        has_keys(
            &document,
            &[
                "trace",
                "events",
                "axis",
                "peak_live",
                "bound",
                "method",
                "standing",
                "reclaim",
                "bound_in_blocks",
                "total",
                "classes",
                "declared",
                "heap",
            ],
        );
        assert_eq!(document["standing"], "observed");
        let (_, profile) = place.json(&["profile", "t.trace.parquet"]);
        assert_eq!(document["peak_live"], profile["peak_live"]);
        assert!(number(&document, "bound") >= number(&profile, "peak_live"));
        for class in document["classes"].as_array().expect("a list") {
            assert!(
                number(class, "bound") >= number(class, "peak_live"),
                "{class}"
            );
            has_keys(
                class,
                &["largest", "rate", "burst", "lifetime", "bounds", "cause"],
            );
        }
    }
}

#[test]
fn a_heap_is_sized_for_the_bound() {
    let place = with_trace("sqlite.csv");
    let arguments = ["bounds", "--trace", "t.trace.parquet", "--heap", "tlsf"];
    let (code, document) = place.json(&arguments);
    assert_eq!(code, 0, "{document}");
    let heap = &document["heap"]["observed"];
    assert!(
        number(heap, "heap_bytes") > number(&document, "bound"),
        "{heap}"
    );
    let text = stdout(&place.metes(&arguments));
    for part in [
        "it holds for this trace",
        "what makes it",
        "suffices",
        "tlsf",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Exact fit has no bound, whatever is live.
    let (code, document) = place.json(&[
        "bounds",
        "--trace",
        "t.trace.parquet",
        "--heap",
        "exact-fit",
    ]);
    assert_eq!(
        (code, &document["heap"]["observed"]["heap_bytes"]),
        (1, &Value::Null)
    );
}

#[test]
fn a_contract_is_written_kept_and_broken() {
    let place = with_trace("python.csv");
    let trace = ["bounds", "--trace", "t.trace.parquet"];
    let run = |more: &[&str]| place.json(&[&trace, more].concat());
    let (code, _) = run(&["--declare", "own.toml", "--curves", "curves.json"]);
    assert_eq!(code, 0);
    let curves: Value = serde_json::from_str(&place.read("curves.json")).expect("JSON");
    has_keys(&curves["total"], &["arrival", "release", "exact"]);
    let (code, document) = run(&["--declared", "own.toml", "--heap", "first-fit"]);
    assert_eq!(
        (code, &document["declared"]["keeps"]),
        (0, &Value::Bool(true)),
        "{document}"
    );
    let declared = &document["declared"];
    assert!(number(declared, "bound") >= number(&document, "peak_live"));
    let heaps =
        ["observed", "declared"].map(|standing| number(&document["heap"][standing], "heap_bytes"));
    assert!(heaps[0] > number(&document, "bound") && heaps[1] > number(declared, "bound"));
    // Half of a burst, and nothing above 64 bytes.
    place.write(
        "tight.toml",
        "[[class]]\nlargest = 64\nburst = 3000\nrate = \"2452/299\"\nlifetime = 1777\n",
    );
    let (code, document) = run(&["--declared", "tight.toml"]);
    assert_eq!(
        (code, &document["declared"]["keeps"]),
        (1, &Value::Bool(false))
    );
    assert!(
        document["declared"]["breach"]
            .as_str()
            .expect("text")
            .contains("event")
    );
    let text = stdout(&place.metes(&[&trace[..], &["--declared", "tight.toml"]].concat()));
    assert!(text.contains("the trace breaks it"), "{text}");
    // A class that goes on and has no lifetime.
    place.write(
        "open.toml",
        "[[class]]\nlargest = 9999999\nburst = 99999999\nrate = 1\n",
    );
    let (code, document) = run(&["--declared", "open.toml"]);
    assert_eq!((code, &document["declared"]["bound"]), (1, &Value::Null));
}

const TANDEM: &str = r#"
[[server]]
name = "interface"
service = "ratency(4, 2)"
[[server]]
name = "router"
service = "ratency(3, 3)"
[[flow]]
name = "request"
arrival = "bucket(1, 8)"
path = ["interface", "router"]
[[flow]]
name = "other"
arrival = "bucket(1, 4)"
path = ["router"]
"#;

#[test]
fn a_tandem_is_bounded_by_each_method() {
    let place = Place::new();
    place.write("net.toml", TANDEM);
    let (code, document) = place.json(&["bounds", "--tandem", "net.toml"]);
    assert_eq!(code, 0, "{document}");
    let flow = &document["flows"][0];
    // By hand, in docs/curve-bounds.md.
    assert_eq!(flow["delay"]["once"], "25/2", "{flow}");
    assert_eq!(flow["delay"]["hop_by_hop"], "31/2");
    assert_eq!(flow["delay"]["total_flow"], Value::Null);
    assert_eq!(flow["ratio"]["hop_by_hop"], 1.24);
    has_keys(
        &flow["hops"][0],
        &["server", "delay", "backlog", "arrival", "service"],
    );
    let text = stdout(&place.metes(&["bounds", "--tandem", "net.toml"]));
    assert!(
        text.contains("25/2 = 12.500") && text.contains("at router"),
        "{text}"
    );
    // Too much traffic is an answer, and no bound.
    place.write("full.toml", &TANDEM.replace("bucket(1, 4)", "bucket(3, 4)"));
    let (code, document) = place.json(&["bounds", "--tandem", "full.toml"]);
    assert_eq!(
        (code, &document["flows"][0]["delay"]["once"]),
        (1, &Value::Null)
    );
}

#[test]
fn bad_traces_contracts_and_tandems_are_refused() {
    let place = with_trace("perl.csv");
    let bounds = |arguments: &[&str]| place.metes(&[&["bounds"], arguments].concat());
    let trace = ["--trace", "t.trace.parquet"];
    let traced = |more: &[&str]| bounds(&[&trace[..], more].concat());
    refused(&bounds(&["--trace", "no"]), &["no", "check the path"]);
    refused(&traced(&["--live", "1k"]), &["--live", "--trace"]);
    refused(&traced(&["--axis", "nanoseconds"]), &["no times", "events"]);
    refused(&traced(&["--axis", "days"]), &["events", "nanoseconds"]);
    refused(&traced(&["--heap", "tslf"]), &["tlsf"]);
    refused(&traced(&["--resolution", "0"]), &["1..=1024"]);
    refused(
        &traced(&["--declared", "no.toml"]),
        &["no.toml", "check the path"],
    );
    place.write("c.toml", "[[class]]\nlargest = 1\nburst = 1\nrate = 0.5\n");
    refused(
        &traced(&["--declared", "c.toml"]),
        &["c.toml", "class 1", "22/7"],
    );
    place.write(
        "n.toml",
        "axis = \"nanoseconds\"\n[[class]]\nlargest = 1\nburst = 1\nrate = 1\n",
    );
    refused(
        &traced(&["--declared", "n.toml", "--axis", "events"]),
        &["leave --axis out"],
    );
    refused(&traced(&["--declared", "n.toml"]), &["no times"]);
    refused(&bounds(&["--declared", "c.toml"]), &["--trace"]);
    refused(
        &bounds(&["--tandem", "no.toml"]),
        &["no.toml", "check the path"],
    );
    refused(
        &bounds(&["--tandem", "c.toml", "--heap", "tlsf"]),
        &["--tandem"],
    );
    for (text, parts) in [
        (
            TANDEM.replace("ratency(3, 3)", "ratency(3"),
            ["router", "ratency(rate, latency)"],
        ),
        (
            TANDEM.replace("ratency(3, 3)", "affine(1, -5)"),
            ["router", "negative"],
        ),
        (
            TANDEM.replace("[\"router\"]", "[\"route\"]"),
            ["route,", "interface, router"],
        ),
        (
            TANDEM.replace("[\"router\"]", "[\"router\", \"interface\"]"),
            ["come back", "one way"],
        ),
    ] {
        place.write("bad.toml", &text);
        refused(
            &bounds(&["--tandem", "bad.toml"]),
            &[&["bad.toml"], &parts[..]].concat(),
        );
    }
}
