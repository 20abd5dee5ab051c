//! Emitted C decides what `metes_heap` decides, offset for offset.

use metes_heap::description::Description;

use crate::reference::Placed;
use crate::sample::{self, Operation};
use crate::support::{build_driver, drive, emitted, emitted_in};
use crate::{reference, support};

/// Descriptions drawn at random beside the named ones; more by environment.
pub(crate) fn drawn() -> u64 {
    match std::env::var("METES_EMIT_CASES") {
        Ok(text) => text.parse().expect("METES_EMIT_CASES is a number"),
        Err(_) => 5,
    }
}

#[track_caller]
fn compare(name: &str, description: &Description, program: &std::path::Path, seed: u64) {
    let operations = sample::operations(seed, 4_000);
    let tagged = reference::tagged(description, &operations);
    let ledger = reference::ledger(description, &operations);
    let driven = drive(program, &operations);
    let lines = tagged.lines();
    assert_eq!(driven.len(), operations.len() + 2, "{name}, seed {seed}");
    for (number, operation) in operations.iter().enumerate() {
        let context = || format!("{name}, seed {seed}, operation {number}: {operation:?}");
        let (inside, outside) = (tagged.decisions[number], ledger.decisions[number]);
        assert_eq!(inside, outside, "{}", context());
        assert_eq!(driven[number], lines[number], "{}", context());
    }
    assert_eq!(driven[operations.len()], "check 0", "{name}, seed {seed}");
    let s = tagged.statistics;
    assert_eq!(
        driven[operations.len() + 1],
        format!(
            "statistics {} {} {} {} {} {} {} {} {} {} {} {} {}",
            s.live,
            s.peak_live,
            s.blocks,
            s.peak_blocks,
            s.allocations,
            s.frees,
            s.resizes,
            s.failures,
            s.largest_free,
            s.free_blocks,
            s.free_bytes,
            s.footprint,
            s.record_bytes
        ),
        "{name}, seed {seed}"
    );
    assert_eq!(ledger.statistics.footprint, s.footprint);
    assert!(
        s.failures > 0 && s.resizes > 0,
        "the sequence tries failure"
    );
}

#[test]
fn named_heaps_decide_alike_in_c_and_rust() {
    for (name, description) in sample::named() {
        let directory = emitted(&description);
        let program = build_driver(directory.path(), &["-O2"]);
        for seed in 0..3 {
            compare(name, &description, &program, seed);
        }
    }
}

/// Under the sanitizers, and with what the code relies on verified.
#[test]
fn drawn_heaps_decide_alike_in_c_and_rust() {
    for seed in 0..drawn() {
        let description = sample::description(seed);
        let name = format!("{description:?}");
        let directory = emitted(&description);
        let program = build_driver(directory.path(), &[&SANITIZED[..], &ASSERTED].concat());
        compare(&name, &description, &program, 100 + seed);
        compare(&name, &description, &program, 200 + seed);
    }
}

#[test]
fn increments_of_half_a_block_decide_alike() {
    for lowest in [false, true] {
        let description = Description::of(metes_heap::IndexKind::Buddy { lowest });
        for increment in [48, 4_112] {
            let place = Placed {
                increment,
                ..Placed::of(&description)
            };
            let directory = emitted_in(place);
            let program = build_driver(directory.path(), &["-O1"]);
            let operations = sample::operations(increment as u64, 3_000);
            let tagged = reference::tagged_in(place, &operations);
            let ledger = reference::ledger_in(place, &operations);
            assert_eq!(tagged.decisions, ledger.decisions, "{increment}");
            let driven = drive(&program, &operations);
            assert_eq!(
                driven[..=operations.len()],
                tagged.lines()[..],
                "{increment}"
            );
        }
    }
}

const SANITIZED: [&str; 4] = [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
];

/// Preconditions and what the code relies on, verified.
const ASSERTED: [&str; 3] = ["-include", "assert.h", "-DHEAP_ASSERT=assert"];

#[test]
fn memory_is_handed_over_in_pieces() {
    // Not next-fit, whose limit on the fit passes over a region much larger
    // than the request, and not the dedicated lists of small blocks, which keep
    // all the memory once small blocks have had it.
    let names = ["tlsf", "segregated-fit", "buddy", "everything"];
    for (_, description) in sample::some(&names) {
        let directory = emitted(&description);
        let program = support::build_program(directory.path(), "regions", &SANITIZED);
        support::succeed(&mut std::process::Command::new(program));
    }
}

#[test]
fn emitted_code_is_sound_under_the_sanitizers() {
    for (_, description) in sample::named() {
        let directory = emitted(&description);
        let program = build_driver(directory.path(), &[&SANITIZED[..], &ASSERTED].concat());
        let operations: Vec<Operation> = sample::operations(7, 3_000);
        let driven = support::drive(&program, &operations);
        let tagged = reference::tagged(&description, &operations);
        assert_eq!(driven[..=operations.len()], tagged.lines()[..]);
    }
}
