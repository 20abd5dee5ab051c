//! A program under an emitted heap does what a replay over a ledger predicts:
//! every block lies where it was predicted, and the report says so.

use std::path::Path;
use std::process::Command;

use metes_emit::build_preload;

use crate::reference::{self, Decision};
use crate::sample::{self, Operation};
use crate::support::{emitted, succeed};

/// The hash of the reports.
fn fold(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x100_0000_01b3);
    hash ^ hash >> 29
}

/// Operations that fit into the memory of the reference and that `malloc` and
/// its family know how to ask for.
pub(crate) fn operations(seed: u64) -> Vec<Operation> {
    let served = |size: usize| if size > 7_000 { 77 } else { size.max(1) };
    let tame = |operation| match operation {
        Operation::Allocate { id, size, align } => Operation::Allocate {
            id,
            size: served(size),
            // Buddies are aligned to a page at the most.
            align: align.min(4096),
        },
        // `realloc` asks for the alignment of `malloc`.
        Operation::Resize { id, size, .. } => Operation::Resize {
            id,
            size: served(size),
            align: 16,
        },
        free => free,
    };
    sample::operations(seed, 3_000)
        .into_iter()
        .map(tame)
        .collect()
}

pub(crate) fn words(operations: &[Operation]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, &operation) in operations.iter().enumerate() {
        let words = match operation {
            // Every other small alignment by `calloc`, the rest by `malloc`.
            Operation::Allocate { id, size, align } if align <= 16 => {
                [if number % 2 == 0 { 4 } else { 1 }, id, size, 0]
            }
            Operation::Allocate { id, size, align } => [1, id, size, align],
            Operation::Free { id } => [2, id, 0, 0],
            Operation::Resize { id, size, .. } => [3, id, size, 0],
        };
        for word in words {
            bytes.extend((word as u64).to_ne_bytes());
        }
    }
    bytes
}

/// Both hashes and the number of events that a report must name.
fn hashes(operations: &[Operation], decisions: &[Decision]) -> (u64, u64, u64) {
    let (mut placements, mut requests) = (0xcbf2_9ce4_8422_2325, 0xcbf2_9ce4_8422_2325);
    let mut places = vec![0; operations.len()];
    for (operation, decision) in operations.iter().zip(decisions) {
        let (code, id, size) = match *operation {
            Operation::Allocate { id, size, .. } => (1, id, size),
            Operation::Free { id } => (2, id, 0),
            Operation::Resize { id, size, .. } => (3, id, size),
        };
        if code != 2 {
            places[id] = decision.offset.expect("nothing is refused");
        }
        placements = fold(fold(fold(placements, code), places[id]), size as u64);
        requests = fold(fold(requests, code), size as u64);
    }
    (placements, requests, operations.len() as u64)
}

pub(crate) fn build_asker(directory: &Path) -> std::path::PathBuf {
    let program = directory.join("asker");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emit/asker.c");
    succeed(
        Command::new("cc")
            .args(["-std=c99", "-O1", "-fno-builtin", "-Wall", "-Werror", "-o"])
            .arg(&program)
            .arg(source),
    );
    program
}

#[test]
fn measured_is_predicted() {
    for (name, description) in sample::some(&["tlsf", "next-fit", "buddy", "everything"]) {
        let directory = emitted(&description);
        let library = build_preload(directory.path()).unwrap();
        let asker = build_asker(directory.path());
        let operations = operations(31);
        let script = directory.path().join("script");
        let report = directory.path().join("report.json");
        std::fs::write(&script, words(&operations)).unwrap();
        succeed(
            Command::new(asker)
                .arg(&script)
                .env("LD_PRELOAD", library)
                .env("METES_REPORT", &report),
        );
        let text = std::fs::read_to_string(&report).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let predicted = reference::ledger(&description, &operations);
        let (placements, requests, events) = hashes(&operations, &predicted.decisions);
        let s = predicted.statistics;
        assert_eq!(report["events"], events, "{name}: {text}");
        assert_eq!(report["requests"], format!("{requests:016x}"), "{name}");
        assert_eq!(report["placements"], format!("{placements:016x}"), "{name}");
        assert_eq!(report["peak_live"], s.peak_live, "{name}");
        assert_eq!(report["live"], s.live, "{name}");
        assert_eq!(report["footprint"], s.footprint, "{name}");
        assert_eq!(report["allocations"], s.allocations, "{name}");
        assert_eq!(report["frees"], s.frees, "{name}");
        assert_eq!(report["resizes"], s.resizes, "{name}");
        assert_eq!(report["failures"], 0, "{name}");
    }
}
