//! `metes worst` from outside: its document, its traces, its refusals.

use std::process::{Command, Output};

use serde_json::Value;

fn metes(directory: &tempfile::TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_metes"))
        .args(arguments)
        .current_dir(directory.path())
        .output()
        .expect("metes runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_saved_trace_replays_to_the_footprint_that_was_found() {
    let place = tempfile::tempdir().expect("a directory");
    let demand = ["--live", "64k", "--max-block", "2k", "--min-block", "32"];
    for heap in [
        "tlsf",
        "next-fit",
        "kingsley",
        "compact-fit",
        "compact-fit:kappa=inf",
        "compact-fit:moving=table",
        "compact-fit:moving=no",
        "fragmented",
        "fragmented:shape=chain",
    ] {
        let mut arguments = vec!["--json", "worst", "--heap", heap, "-o", "out"];
        arguments.extend(demand);
        arguments.extend(["--operations", "300000", "--counted", "3000"]);
        let output = metes(&place, &arguments);
        assert_eq!(output.status.code(), Some(0));
        let found = json(&output);
        assert_eq!(found["heap"], heap);
        assert_eq!(found["holds"], true);
        for key in ["arena_ratio", "bound_ratio", "tightness"] {
            assert!(
                found[key].as_f64().is_some_and(|value| value > 0.0),
                "{key}"
            );
        }
        assert!(found["operations"].as_u64() >= Some(300_000));
        if cfg!(target_arch = "x86_64") {
            assert!(found["instructions"]["allocate"].as_u64() > Some(10));
            assert!(found["instructions"]["free"].as_u64() > Some(10));
        }
        let replay = json(&metes(
            &place,
            &[
                "--json",
                "replay",
                "out/space.trace.parquet",
                "--heap",
                heap,
            ],
        ));
        for key in ["footprint", "peak_live", "smallest_arena"] {
            assert_eq!(replay[key], found[key], "{heap} {key}");
        }
        // The bound is the one that `metes bounds` prints.
        let mut arguments = vec!["--json", "bounds", "--heap", heap];
        arguments.extend(demand);
        let bounds = json(&metes(&place, &arguments));
        assert_eq!(bounds["heap_bytes"], found["bound_bytes"]);
    }
}

#[test]
fn bad_input_is_one_clear_error() {
    let place = tempfile::tempdir().expect("a directory");
    for (arguments, wanted) in [
        (&[][..], &["--heap"][..]),
        (&["--heap", "tslf"], &["tslf", "did you mean `tlsf`"]),
        (
            &["--heap", "tlsf:store=ledger"],
            &["records outside", "leave out `store`", "metes bounds"],
        ),
        (
            &["--heap", "compact-fit:moving=table,granule=24"],
            &["granule of 24 bytes", "power of two"],
        ),
        (
            &[
                "--heap",
                "compact-fit",
                "--max-block",
                "16k",
                "--live",
                "1M",
            ],
            &["16384", "larger page"],
        ),
        (
            &["--heap", "compact-fit", "--target", "cortex-m3"],
            &["not built", "compact-fit:page=4KiB,largest=2KiB"],
        ),
        (&["--heap", "tlsf", "--live", "0"], &["zero bytes"]),
        (&["--heap", "tlsf", "--operations", "0"], &["operations"]),
        (
            &["--heap", "tlsf", "--live", "1000"],
            &["1000", "4096", "--max-block"],
        ),
        (
            &["--heap", "tlsf", "--min-block", "5000"],
            &["5000", "--min-block"],
        ),
        (&["--heap", "tlsf", "--live", "1TiB"], &["smaller --live"]),
        (
            &["--heap", "tlsf", "--live", "1GiB", "--min-block", "1"],
            &["larger --min-block"],
        ),
        (&["--heap", "tlsf", "--target", "avr"], &["avr", "leon3"]),
        (
            &["--heap", "tlsf", "--target", "leon3"],
            &["source", "--boards"],
        ),
        (
            &["--heap", "lea", "--target", "leon3"],
            &["lea is not built", "tlsf"],
        ),
        (
            &["--heap", "tlsf", "--target", "leon3", "--live", "1MiB"],
            &["32768", "smaller --live"],
        ),
        (
            &["--heap", "tlsf", "--target", "leon3", "-o", "out"],
            &["leave out --output"],
        ),
        (
            &[
                "--heap",
                "tlsf",
                "--operations",
                "1",
                "--counted",
                "0",
                "-o",
                "/proc/no",
            ],
            &["/proc/no"],
        ),
    ] {
        let output = metes(&place, &[&["worst"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
        for fragment in wanted {
            assert!(text.contains(fragment), "{arguments:?}: {text}");
        }
    }
}
