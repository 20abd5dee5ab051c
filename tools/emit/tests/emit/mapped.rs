//! Large blocks of the emitted library are mappings of their own, by the rule of the library.
//!
//! Invariant: what the report says is what a replay by the rule of `metes_heap` predicts, block by
//! block, and what is in the blocks is what was written there.

use std::path::Path;
use std::process::Command;

use metes_emit::build_preload;
use metes_explore::Arena;
use metes_heap::{Description, IndexKind};
use serde_json::Value;

use crate::prediction::{build_asker, words};
use crate::sample::{self, Operation};
use crate::support::{emitted_mapped, replayed, succeed};

/// Operations that `malloc` and its family know how to ask for, with sizes on both sides of a
/// threshold, and of quarters of it.
fn operations(seed: u64, threshold: usize) -> Vec<Operation> {
    let scale = threshold / 4096;
    let served = |size: usize| match size {
        0 | 1 => 1,
        size if size >= 1 << 40 => threshold + size % 5000,
        size if size > 50 => (size * scale).min(8 << 20),
        size => size,
    };
    let tame = |operation| match operation {
        Operation::Allocate { id, size, align } => Operation::Allocate {
            id,
            size: served(size),
            align,
        },
        Operation::Resize { id, size, .. } => Operation::Resize {
            id,
            size: served(size),
            align: 16,
        },
        free => free,
    };
    let drawn = sample::operations(seed, 3_000);
    drawn.into_iter().map(tame).collect()
}

/// What the emitted library reports of operations.
fn measured(description: &Description, threshold: usize, operations: &[Operation]) -> Value {
    let directory = emitted_mapped(description, threshold);
    let library = build_preload(directory.path()).unwrap();
    let asker = build_asker(directory.path());
    let script = directory.path().join("script");
    let report = directory.path().join("report.json");
    std::fs::write(&script, words(operations)).unwrap();
    succeed(
        Command::new(asker)
            .arg(&script)
            .env("LD_PRELOAD", library)
            .env("METES_REPORT", &report),
    );
    serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap()
}

#[test]
fn measured_is_predicted() {
    let thresholds = [(4 << 10, 51), (20 << 10, 52), (128 << 10, 53)];
    let heaps = sample::some(&["tlsf", "next-fit", "lea", "everything"]);
    for (number, (name, description)) in heaps.into_iter().enumerate() {
        // A heap of every kind of pool has them all, of the others each has one; where more is asked for, all.
        let many = name == "everything" || std::env::var_os("METES_EMIT_CASES").is_some();
        let own = |place: &usize| many || place % thresholds.len() == number % thresholds.len();
        for place in (0..thresholds.len()).filter(own) {
            let (threshold, seed) = thresholds[place];
            let operations = operations(seed, threshold);
            let arena = Arena {
                mapped: Some(threshold),
                ..Arena::HOST
            };
            let predicted = replayed(&description, &operations, arena);
            let without = replayed(&description, &operations, Arena::HOST);
            // Blocks were mapped, and blocks were not.
            assert_ne!(predicted.placements, without.placements, "{name}");
            assert_ne!(predicted.record_writes, 0, "{name}");
            let report = measured(&description, threshold, &operations);
            let predicted = serde_json::to_value(&predicted).unwrap();
            for figure in [
                "requests",
                "placements",
                "footprint",
                "peak_live",
                "allocations",
                "frees",
                "resizes",
                "events",
            ] {
                assert_eq!(
                    report[figure], predicted[figure],
                    "{figure} of {name} from {threshold}: {report}"
                );
            }
            assert_eq!(report["failures"], 0);
            assert_eq!(report["levels"][0]["footprint"], report["footprint"]);
        }
    }
}

/// Blocks that threads share, and that one resizes and another frees.
#[test]
fn threads_share_mapped_blocks() {
    let (_, description) = sample::some(&["tlsf"]).remove(0);
    let directory = emitted_mapped(&description, 32 << 10);
    let library = build_preload(directory.path()).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emit/shared.c");
    let program = directory.path().join("shared");
    succeed(
        Command::new("cc")
            .args(["-std=gnu11", "-O1", "-fno-builtin", "-pthread", "-Wall"])
            .args(["-Werror", "-o"])
            .args([&program, &source]),
    );
    let report = directory.path().join("report.json");
    let run = |limit: &str| {
        let script = format!("{limit} export LD_PRELOAD=$LIBRARY; exec \"$PROGRAM\"");
        let _ = std::fs::remove_file(&report);
        succeed(
            Command::new("sh")
                .args(["-c", &script])
                .env("LIBRARY", &library)
                .env("PROGRAM", &program)
                .env("METES_REPORT", &report),
        );
        let text = std::fs::read_to_string(&report).unwrap();
        let last = text.lines().last().unwrap();
        let report: Value = serde_json::from_str(last).unwrap();
        let number = |key: &str| report[key].as_u64().unwrap();
        assert!(number("allocations") > 10_000, "{report}");
        assert!(number("footprint") >= number("peak_live"), "{report}");
        // What the threads had is freed; the C library keeps a little.
        assert!(number("live") < 100_000, "{report}");
        number("failures")
    };
    assert_eq!(run(""), 0);
    // Where addresses are few, requests fail, and nothing else does.
    assert_ne!(run("ulimit -v 13000;"), 0);
}

/// A tree is laid out for what a program was seen to need; another run of it may need more.
#[test]
fn what_a_tree_is_not_laid_out_for_is_mapped() {
    let tree = Description::of(IndexKind::FirstFit {
        by_class: false,
        span: Some(128 << 10),
    });
    let directory = emitted_mapped(&tree, 128 << 10);
    let library = build_preload(directory.path()).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ffi/preload/tests/c/overflow.c");
    let program = directory.path().join("overflow");
    succeed(
        Command::new("cc")
            .args(["-std=gnu11", "-O1", "-fno-builtin", "-Wall", "-Werror"])
            .arg("-o")
            .args([&program, &source]),
    );
    let report = directory.path().join("report.json");
    succeed(
        Command::new(program)
            .env("LD_PRELOAD", library)
            .env("METES_REPORT", &report),
    );
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert!(report["peak_live"].as_u64().unwrap() > 1 << 20, "{report}");
    assert_eq!(report["failures"], 0, "{report}");
}
