//! States in which an operation is as slow as we know how to make it, of any size.
//!
//! Each pattern builds its state at full speed, in time linear in its size also on heaps whose
//! lists are sorted, and counts a few calls there.

use metes_heap::complexity::Axis;

use super::Refused;
use super::probe::Probe;

/// A way to a slow operation, for sizes that are powers of two.
#[derive(Clone, Copy)]
pub(super) struct Pattern {
    /// Its name.
    pub(super) name: &'static str,
    /// What its size counts.
    pub(super) axis: Axis,
    /// Bytes of memory that its blocks need in any heap.
    pub(super) room: fn(usize) -> usize,
    /// Brings it about in a heap that has served nobody.
    pub(super) play: fn(&mut Probe<'_, '_>, usize) -> Result<(), Refused>,
}

/// Increments of the size that grows, of page-blocks of half a page.
pub(super) const INCREMENTS: Pattern = Pattern {
    name: "full pages",
    axis: Axis::Increment,
    room: |_| 0,
    play: |probe, _| pages(probe, PAGE / 2),
};

/// Holes between blocks that stay.
pub(super) const COMB: Pattern = Pattern {
    name: "comb",
    axis: Axis::Heap,
    room: |holes| holes * 512,
    play: comb,
};
/// Blocks side by side.
pub(super) const RUN: Pattern = Pattern {
    name: "run",
    axis: Axis::Heap,
    room: |blocks| blocks * 256,
    play: run,
};
/// All memory in small blocks, but for a quarter of it; of heaps whose blocks are addresses.
pub(super) const QUARTER: Pattern = Pattern {
    name: "full but a quarter",
    axis: Axis::Heap,
    room: |blocks| blocks * 64,
    play: quarter,
};
/// Holes of one sorted bin, smaller than the request and larger than what is freed.
pub(super) const BIN: Pattern = Pattern {
    name: "sorted bin",
    axis: Axis::Heap,
    room: |holes| holes * 2048,
    play: bin,
};
/// Blocks kept aside that a large request merges into a sorted bin.
pub(super) const KEPT: Pattern = Pattern {
    name: "kept aside",
    axis: Axis::Heap,
    room: |holes| holes * 2048,
    play: kept,
};
/// Blocks of the size that grows.
pub(super) const LARGE: Pattern = Pattern {
    name: "large blocks",
    axis: Axis::Block,
    room: |bytes| bytes * 32,
    play: large,
};
/// Page-blocks of the size that grows, in full pages.
pub(super) const PAGES: Pattern = Pattern {
    name: "full pages",
    axis: Axis::Block,
    room: |_| 0,
    play: pages,
};

/// Blocks of 80 bytes, with a record of boundary tags.
const HOLE: usize = 72;
/// The smallest.
const PIN: usize = 24;
/// A size of the same class of a doubling as [`HOLE`], and larger.
const LARGER: usize = 88;
/// Large enough for what is kept aside to be merged first.
const GATHERING: usize = 4000;

fn comb(probe: &mut Probe<'_, '_>, holes: usize) -> Result<(), Refused> {
    let (mut between, mut pins) = (Vec::with_capacity(holes), Vec::with_capacity(holes));
    for _ in 0..holes {
        between.push(probe.allocate(HOLE)?);
        pins.push(probe.allocate(PIN)?);
    }
    let last = between.pop();
    // From the top, so that each enters a list by address at its beginning.
    while let Some(block) = between.pop() {
        probe.free(block);
    }
    let larger = probe.count_allocate(LARGER)?;
    probe.count_read(larger, LARGER - 1);
    if let Some(last) = last {
        // Behind all others.
        probe.count_free(last);
    }
    // Between two holes; and between one and what was never used.
    probe.count_free(pins[0]);
    probe.count_free(pins[holes - 1]);
    Ok(())
}

fn run(probe: &mut Probe<'_, '_>, blocks: usize) -> Result<(), Refused> {
    let mut all = Vec::with_capacity(blocks);
    for _ in 0..blocks {
        all.push(probe.allocate(PIN)?);
    }
    for at in [blocks - 1, 0, blocks / 2, blocks / 2 + 1] {
        probe.count_free(all[at]);
    }
    probe.count_read(all[blocks / 4], PIN - 1);
    for _ in 0..5 {
        probe.count_allocate(PIN)?;
    }
    Ok(())
}

fn quarter(probe: &mut Probe<'_, '_>, blocks: usize) -> Result<(), Refused> {
    let mut all = Vec::new();
    while let Ok(block) = probe.allocate(PIN) {
        all.push(block);
    }
    all.sort_unstable();
    let first = *all.first().ok_or(Refused)?;
    // A chunk of buddies: aligned to its length from the first block on, and all else is full.
    let end = first + (QUARTER.room)(blocks) / 4;
    let chunk = all.partition_point(|block| *block < end);
    for block in &all[1..chunk] {
        probe.free(*block);
    }
    probe.count_free(first);
    // Exact fit refuses, as the hole is larger; that counts, too.
    if let Ok(block) = probe.count_allocate(PIN) {
        probe.count_read(block, PIN - 1);
        probe.count_free(block);
    }
    Ok(())
}

/// Requests of one bin of Lea's: blocks of 1024 to 1264 bytes.
const IN_BIN: [usize; 3] = [1016, 1144, 1256];

fn bin(probe: &mut Probe<'_, '_>, holes: usize) -> Result<(), Refused> {
    let [smallest, between, largest] = IN_BIN;
    let freed = probe.allocate(smallest)?;
    probe.allocate(PIN)?;
    let mut all = Vec::with_capacity(holes);
    for _ in 0..holes {
        all.push(probe.allocate(between)?);
        probe.allocate(PIN)?;
    }
    while let Some(block) = all.pop() {
        probe.free(block);
    }
    let block = probe.count_allocate(largest)?;
    probe.count_read(block, largest - 1);
    probe.count_free(freed);
    Ok(())
}

fn kept(probe: &mut Probe<'_, '_>, holes: usize) -> Result<(), Refused> {
    // Eight blocks of 128 bytes merge to the smallest of the bin.
    const PARTS: usize = 8;
    const PART: usize = 120;
    let merged = holes / 8;
    let (mut parts, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..merged {
        for _ in 0..PARTS {
            parts.push(probe.allocate(PART)?);
        }
        probe.allocate(PIN)?;
    }
    for _ in merged..holes {
        direct.push(probe.allocate(IN_BIN[1])?);
        probe.allocate(PIN)?;
    }
    for block in direct.into_iter().chain(parts) {
        probe.free(block);
    }
    let block = probe.count_allocate(GATHERING)?;
    probe.count_free(block);
    Ok(())
}

fn large(probe: &mut Probe<'_, '_>, bytes: usize) -> Result<(), Refused> {
    let first = probe.count_allocate(bytes)?;
    let second = probe.allocate(bytes)?;
    let third = probe.allocate(bytes)?;
    probe.count_read(first, bytes - 1);
    probe.free(first);
    probe.free(third);
    // Both neighbours are free.
    probe.count_free(second);
    let again = probe.count_allocate(bytes)?;
    probe.free(again);
    Ok(())
}

/// Bytes of record of a page-block that moves.
const RECORD: usize = 8;
/// Bytes of a page.
const PAGE: usize = 1 << 16;

fn pages(probe: &mut Probe<'_, '_>, bytes: usize) -> Result<(), Refused> {
    let a_page = PAGE / bytes;
    let request = bytes - RECORD;
    let mut all = Vec::new();
    // The last page has a single block, and so is not full: κ is used up.
    for _ in 0..4 * a_page {
        all.push(probe.allocate(request)?);
    }
    all.push(probe.count_allocate(request)?);
    probe.count_read(all[0], request - 1);
    for page in 0..4 {
        probe.count_free(all[page * a_page]);
    }
    probe.count_allocate(request)?;
    Ok(())
}
