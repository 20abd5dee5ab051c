//! Emitted C on a target of 32-bit words decides what a ledger of that
//! geometry decides. Needs a compiler that knows `-m32` (no library) and a
//! kernel that runs such programs.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::reference;
use crate::sample::{self, Operation};
use crate::support::{ARENA, STRICT, emitted, succeed};

/// Bytes of a slab's record where words have 32 bits, and where they have 64: links,
/// count and pool, the bitmap, its summary.
fn slab_records(slabs: &metes_heap::Slabs) -> (usize, usize) {
    let narrow = slabs.slots().div_ceil(32) + usize::from(slabs.summarised());
    (12 + 4 * narrow, slabs.record_bytes())
}

const SPAN: usize = 1 << 27;

/// Operations whose sizes are numbers of 32 bits.
fn operations(seed: u64) -> Vec<Operation> {
    let cut = |size: usize| size.min(u32::MAX as usize);
    let narrow = |operation| match operation {
        Operation::Allocate { id, size, align } => Operation::Allocate {
            id,
            size: cut(size),
            align,
        },
        Operation::Resize { id, size, align } => Operation::Resize {
            id,
            size: cut(size),
            align,
        },
        free => free,
    };
    sample::operations(seed, 3_000)
        .into_iter()
        .map(narrow)
        .collect()
}

fn words(operations: &[Operation]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &operation in operations {
        let words = match operation {
            Operation::Allocate { id, size, align } => [1, id, size, align],
            Operation::Free { id } => [2, id, 0, 0],
            Operation::Resize { id, size, align } => [3, id, size, align],
        };
        for word in words {
            bytes.extend((word as u32).to_ne_bytes());
        }
    }
    bytes
}

/// What the program writes, as triples of words.
fn drive(program: &Path, operations: &[Operation]) -> Vec<[u32; 3]> {
    let input = words(operations);
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|cause| panic!("this kernel does not run 32-bit programs: {cause}"));
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().unwrap());
    output
        .stdout
        .chunks_exact(12)
        .map(|line| [word(&line[..4]), word(&line[4..8]), word(&line[8..])])
        .collect()
}

#[test]
fn named_heaps_decide_alike_at_32_bits() {
    for (name, description) in sample::named() {
        let directory = emitted(&description);
        let program = directory.path().join("bare");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emit/bare.c");
        succeed(
            Command::new("gcc")
                .args(STRICT)
                .args(["-O1", "-m32", "-ffreestanding", "-fno-stack-protector"])
                .args(["-nostdlib", "-static", "-fno-pie", "-no-pie"])
                .arg(format!("-DDRIVER_ARENA={ARENA}"))
                .arg("-I")
                .arg(directory.path().join("c"))
                .arg("-o")
                .arg(&program)
                .arg(source)
                .arg(directory.path().join("c/heap.c")),
        );
        let operations = operations(21);
        let driven = drive(&program, &operations);
        let predicted = reference::ledger_of(&description, &operations, 4, SPAN);
        assert_eq!(driven.len(), operations.len() + 1, "{name}");
        let records = slab_records(&description.slabs());
        for (number, decision) in predicted.decisions.iter().enumerate() {
            let slabs = decision.slab_records / records.1;
            let footprint = decision.footprint - decision.slab_records + slabs * records.0;
            let [low, high] = match decision.offset {
                Some(offset) => [offset as u32, (offset >> 44) as u32],
                None => [u32::MAX; 2],
            };
            // Slots: bit 60 less the 44 of the shift.
            let high = if high == 1 << 16 { 0x1000_0000 } else { high };
            let operation = operations[number];
            let line = [low, high, footprint as u32];
            assert_eq!(
                driven[number], line,
                "{name}, operation {number}: {operation:?}"
            );
        }
        let [peak_live, live, _] = driven[operations.len()];
        assert_eq!(peak_live as usize, predicted.statistics.peak_live, "{name}");
        assert_eq!(live as usize, predicted.statistics.live, "{name}");
    }
}
