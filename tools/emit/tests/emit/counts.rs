//! Emitted C in memory levels decides what the library decides, and counts, when
//! told to, the record words that a replay predicts: level by level, word by word.
//!
//! `METES_EMIT_CASES=100` compares a hundred sampled heaps with real runs.

use std::process::Command;

use metes_emit::build_preload_with;
use metes_explore::{Arena, Replay};
use metes_heap::description::{Description, IndexKind};

use crate::decisions::drawn;
use crate::prediction::{build_asker, operations, words};
use crate::reference::{self, Placed};
use crate::sample::{self, Operation};
use crate::support::{build_driver, drive, emitted_in, replayed, succeed};

/// Where random heaps in levels begin to be drawn.
const SEED: u64 = 1_000;

impl sample::Level {
    fn place(&self) -> Placed<'_> {
        Placed {
            description: &self.description,
            sizes: self.sizes,
            increment: self.increment,
        }
    }
}

/// Heaps with and without memory levels.
fn all() -> Vec<sample::Level> {
    let whole = |(name, description): (&str, _)| {
        let Placed {
            sizes, increment, ..
        } = Placed::of(&description);
        sample::Level {
            name: name.to_string(),
            description,
            sizes,
            increment,
        }
    };
    let mut all: Vec<sample::Level> = sample::named().into_iter().map(whole).collect();
    all.extend(sample::placed());
    all
}

/// Whether a heap finds its blocks by a tree, which over records outside the memory reads and writes other words; a
/// replay keeps those of boundary tags.
fn has_tree(description: &Description) -> bool {
    (description.general.iter()).any(|pool| matches!(pool.index, IndexKind::FirstFit { .. }))
}

/// What a replay predicts for operations none of which fails.
fn predict(level: &sample::Level, operations: &[Operation]) -> Replay {
    let arena = Arena {
        increment: level.increment,
        levels: level.sizes,
        ..Arena::HOST
    };
    let replay = replayed(&level.description, operations, arena);
    assert_eq!(replay.failed, 0, "{}", level.name);
    replay
}

/// Decisions, statistics and counts of sequences that fill the memory, and where
/// requests fail.
#[test]
fn levels_decide_and_count_alike() {
    let mut spilled = 0;
    for level in all() {
        let directory = emitted_in(level.place());
        let program = build_driver(directory.path(), &["-O1", "-DHEAP_COUNT"]);
        let operations = sample::operations(41, 4_000);
        let driven = drive(&program, &operations);
        let tagged = reference::tagged_in(level.place(), &operations);
        let ledger = reference::ledger_in(level.place(), &operations);
        let name = &level.name;
        let lines = tagged.lines();
        for (number, operation) in operations.iter().enumerate() {
            let (inside, outside) = (tagged.decisions[number], ledger.decisions[number]);
            assert_eq!(inside, outside, "{name}, operation {number}: {operation:?}");
            assert_eq!(
                driven[number], lines[number],
                "{name}, operation {number}: {operation:?}"
            );
        }
        assert_eq!(driven[operations.len()], "check 0", "{name}");
        spilled += u64::from(tagged.spilled > 0);
        if !level.description.slabs().is_empty() {
            // What object pools touch is not counted by a store.
            continue;
        }
        let counts = &driven[operations.len() + 2..];
        assert!(!counts.is_empty(), "{name}");
        // A tree over records outside has lists in the place of bits.
        let touched = match has_tree(&level.description) {
            true => tagged.touched,
            false => ledger.touched,
        };
        for (number, line) in counts.iter().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            let (reads, writes) = touched[number];
            assert_eq!(
                words[2..],
                [reads.to_string(), writes.to_string()],
                "{name}, level {number}"
            );
        }
    }
    assert!(spilled >= 5, "{spilled} of the samples spill");
}

/// A real run under an emitted heap that counts is what a replay predicts,
/// metric by metric.
#[test]
fn runs_count_what_was_predicted() {
    let around = tempfile::tempdir().unwrap();
    let asker = build_asker(around.path());
    let sampled = (0..drawn()).map(|seed| sample::level(SEED + seed));
    for (number, level) in all().into_iter().chain(sampled).enumerate() {
        let directory = emitted_in(level.place());
        let library = build_preload_with(directory.path(), "cc -DHEAP_COUNT").unwrap();
        let operations = operations(51 + number as u64);
        let script = directory.path().join("script");
        let report = directory.path().join("report.json");
        std::fs::write(&script, words(&operations)).unwrap();
        succeed(
            Command::new(&asker)
                .arg(&script)
                .env("LD_PRELOAD", library)
                .env("METES_REPORT", &report),
        );
        let text = std::fs::read_to_string(&report).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let predicted = predict(&level, &operations);
        let name = &level.name;
        assert_eq!(report["failures"], 0, "{name}");
        assert_eq!(report["placements"], predicted.placements, "{name}");
        assert_eq!(report["requests"], predicted.requests, "{name}");
        assert_eq!(report["peak_live"], predicted.peak_live, "{name}");
        assert_eq!(report["footprint"], predicted.footprint, "{name}");
        for (number, level) in report["levels"].as_array().unwrap().iter().enumerate() {
            let counts = predicted.levels[number];
            assert_eq!(level["footprint"], counts.footprint, "{name}: {text}");
            assert_eq!(level["record_reads"], counts.record_reads, "{name}: {text}");
            assert_eq!(
                level["record_writes"], counts.record_writes,
                "{name}: {text}"
            );
        }
        assert_eq!(report["record_reads"], predicted.record_reads, "{name}");
        assert_eq!(report["record_writes"], predicted.record_writes, "{name}");
    }
}

/// Without the macro, no counting is compiled.
#[test]
fn nothing_is_counted_unless_asked() {
    let level = sample::placed().remove(0);
    let directory = emitted_in(level.place());
    let source = directory.path().join("c/heap.c");
    let compile = |output: &str, flags: &[&str]| {
        let object = directory.path().join(output);
        succeed(
            Command::new("cc")
                .args(["-std=c99", "-O2", "-c", "-o"])
                .args([&object, &source])
                .args(flags),
        );
        object
    };
    let symbols = |object: &std::path::Path| {
        let output = succeed(Command::new("nm").arg(object));
        String::from_utf8(output.stdout).unwrap()
    };
    let counted = compile("counted.o", &["-DHEAP_COUNT"]);
    assert!(symbols(&counted).contains("heap_counts"));
    let plain = compile("plain.o", &[]);
    assert!(!symbols(&plain).contains("heap_counts"));
    // The very same code as without a trace of counting in the source.
    let mut counting = 0;
    for file in std::fs::read_dir(directory.path().join("c")).unwrap() {
        let file = file.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let kept = |line: &&str| !line.trim_start().starts_with("COUNT");
        let bare: String = text
            .lines()
            .filter(kept)
            .map(|line| format!("{}\n", line.replace("COUNT(1U, 0U), ", "")))
            .collect();
        counting += usize::from(bare != text);
        std::fs::write(&file, bare).unwrap();
    }
    assert!(counting >= 3, "{counting} files count");
    let bare = compile("bare.o", &[]);
    assert_eq!(
        std::fs::read(plain).unwrap(),
        std::fs::read(bare).unwrap(),
        "not a byte of code changes"
    );
}
