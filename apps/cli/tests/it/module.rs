//! `tune` on a WebAssembly module: the keys of any tuning, predicted = measured, and the module handed back.

use std::process::Command;

use crate::support::{Place, has_keys, refused, status, stderr, stdout};

/// Keys that a tuning of a program has, all of them.
const KEYS: [&str; 32] = [
    "heap",
    "mapped",
    "pages",
    "why",
    "predicted",
    "measured",
    "equal",
    "requests_equal",
    "placements_equal",
    "deterministic",
    "difference",
    "output_unchanged",
    "status",
    "process",
    "events",
    "bounds",
    "bounded",
    "cycles_max",
    "own_cycles_max",
    "copy_cycles_max",
    "threads",
    "per_thread",
    "pareto",
    "sampled",
    "unfinished",
    "configurations",
    "distinct",
    "seconds",
    "replaced_by",
    "report",
    "emitted",
    "memory",
];

const PROGRAM: &str = "
fn main() {
    let count = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0_u32);
    if count == 0 {
        eprintln!(\"a number is missing\");
        std::process::abort();
    }
    let mut kept: Vec<String> = Vec::new();
    for number in 0..count {
        kept.push(\"x\".repeat(number as usize % 90 + 1));
        if number % 3 == 0 {
            kept.swap_remove(number as usize % kept.len());
        }
    }
    println!(\"{}\", kept.iter().map(String::len).sum::<usize>());
}
";

/// A place with `program.wasm`, and without names in `stripped.wasm`.
fn prepared() -> Place {
    let place = Place::new();
    let source = place.write("program.rs", PROGRAM);
    for (name, strip) in [("program.wasm", "none"), ("stripped.wasm", "symbols")] {
        let status = Command::new("rustc")
            .args(["--edition=2024", "-O", "--target=wasm32-wasip1"])
            .arg(format!("-Cstrip={strip}"))
            .arg(&source)
            .arg("-o")
            .arg(place.path(name))
            .status();
        let built = status.is_ok_and(|status| status.success());
        assert!(built, "rustc for wasm32-wasip1: run scripts/setup");
    }
    place
}

#[test]
fn a_module_is_tuned_as_a_program_is() {
    let place = prepared();
    let tune = [
        "tune",
        "--budget",
        "1",
        "-o",
        "out",
        "--",
        "program.wasm",
        "400",
    ];
    let (code, document) = place.json(&tune);
    assert_eq!(code, 0, "{document}");
    has_keys(&document, &KEYS);
    assert_eq!(document["predicted"], document["measured"]);
    for what in [
        "equal",
        "requests_equal",
        "placements_equal",
        "output_unchanged",
    ] {
        assert_eq!(document[what], true, "{document}");
    }
    assert_eq!(document["process"], "program.wasm");
    let mut files: Vec<&str> = Vec::new();
    files.extend(
        document["emitted"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|file| file.as_str()),
    );
    files.extend(["report", "module"].map(|key| document[key].as_str().expect("a path")));
    assert!(
        files.contains(&"out/tuned.wasm") && files.contains(&"out/c/wasi.c"),
        "{files:?}"
    );
    for file in files {
        assert!(place.path(file).exists(), "{file}");
    }
    // In words.
    let again = [
        "tune",
        "--budget",
        "1",
        "-o",
        "again",
        "--",
        "program.wasm",
        "400",
    ];
    let again = place.metes(&again);
    assert_eq!(status(&again), 0, "{}", stderr(&again));
    let said = stdout(&again);
    assert!(
        said.contains("predicted = measured") && said.contains("output unchanged"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_tuned_is_told_and_leaves_nothing() {
    let place = prepared();
    let stripped = (&["stripped.wasm", "4"][..], ["malloc", "strip"]);
    let aborts = (&["program.wasm"][..], ["trapped", "a number is missing"]);
    for (command, fragments) in [stripped, aborts] {
        let mut arguments = vec!["tune", "--budget", "1", "-o", "out", "--"];
        arguments.extend(command);
        refused(&place.metes(&arguments), &fragments);
        assert!(!place.path("out").exists());
    }
}
