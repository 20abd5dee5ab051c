//! The churn benchmark: the workload of an embedded program, counted operation by
//! operation.
//!
//! Ten sizes from 24 to 1536 bytes, small ones common; up to [`LIVE`] blocks live;
//! fill, then replace a random block again and again, then resize, then free all.
//! Invariant: only the heap's own code (call and return included) runs between the
//! two readings of the counter; contents and records are checked outside.

use core::ptr::NonNull;

use crate::Arena;
use crate::board::{Board, Tenths, count};
use crate::random::Random;
use crate::report::Report;
use crate::subject::Subject;

/// Most blocks live at once.
pub const LIVE: usize = 330;
/// Replacements: each is one free and one allocation.
pub const REPLACEMENTS: usize = 2400;
/// Resizes.
pub const RESIZES: usize = 600;

/// Sizes in bytes with their weights; 330 of them are about 26 KB.
const SIZES: [(usize, usize); 10] = [
    (24, 60),
    (32, 50),
    (48, 30),
    (64, 20),
    (96, 14),
    (128, 10),
    (256, 8),
    (512, 4),
    (1024, 2),
    (1536, 1),
];

/// Cost of one kind of operation.
#[derive(Clone, Copy, Default)]
struct Cost {
    operations: u32,
    sum: u64,
    max: u32,
}

impl Cost {
    fn enter(&mut self, instructions: u32) {
        self.operations += 1;
        self.sum += u64::from(instructions);
        self.max = self.max.max(instructions);
    }

    fn mean(&self) -> Tenths {
        Tenths::mean(self.sum, u64::from(self.operations))
    }
}

/// What a churn found.
#[derive(Default)]
struct Outcome {
    allocate: Cost,
    free: Cost,
    resize: Cost,
    refused: u32,
    peak: usize,
    wrong: u32,
}

/// Prints the head of the table whose rows [`measure`] prints.
pub fn head(report: &mut Report<'_>) {
    report.line(format_args!(
        "\n{:<24} {:>8} {:>6} {:>8} {:>6} {:>8} {:>6} {:>7} {:>7}",
        "instructions", "allocate", "max", "free", "max", "resize", "max", "refused", "peak"
    ));
}

/// Runs the churn on a heap of type `S` and prints its row. `overhead` is what
/// reading the counter costs.
pub fn measure<S: Subject>(
    arena: &mut Arena,
    board: &mut impl Board,
    overhead: u32,
    report: &mut Report<'_>,
) {
    let mut heap = S::create();
    let all = arena.len();
    // SAFETY: earlier heaps are dead.
    if !heap.add_region(unsafe { arena.lend(0, all) }) {
        report.fail(S::NAME, format_args!("the heap did not take the region"));
        return;
    }
    let outcome = churn(&mut heap, board, overhead);
    let sound = heap.sound() && heap.live().unwrap_or(0) == 0 && outcome.wrong == 0;
    report.check(
        S::NAME,
        "churn leaves contents and records intact",
        if sound { Ok(()) } else { Err("it does not") },
    );
    let [allocate, free, resize] = [outcome.allocate, outcome.free, outcome.resize];
    report.line(format_args!(
        "{:<24} {:>8} {:>6} {:>8} {:>6} {:>8} {:>6} {:>7} {:>7}",
        S::NAME,
        allocate.mean(),
        allocate.max,
        free.mean(),
        free.max,
        resize.mean(),
        resize.max,
        outcome.refused,
        outcome.peak
    ));
}

/// A live block: where, how large, and the byte at both of its ends.
#[derive(Clone, Copy)]
struct Live {
    at: NonNull<u8>,
    size: usize,
    mark: u8,
}

fn churn<S: Subject>(heap: &mut S, board: &mut impl Board, overhead: u32) -> Outcome {
    let mut random = Random::new(0x656D_6221);
    let mut live: [Option<Live>; LIVE] = [None; LIVE];
    let mut out = Outcome::default();
    let mut now = 0;
    for operation in 0..LIVE + REPLACEMENTS {
        let slot = if operation < LIVE {
            operation
        } else {
            random.below(LIVE)
        };
        if let Some(old) = live[slot].take() {
            out.wrong += u32::from(!old.marked());
            // SAFETY: taken out of the live blocks.
            let (cost, ()) = unsafe { counted_free(heap, board, old.at) };
            out.free.enter(cost - overhead);
            now -= old.size;
        }
        let size = size(&mut random);
        let (cost, block) = counted_allocate(heap, board, size);
        match block {
            Some(at) => {
                out.allocate.enter(cost - overhead);
                live[slot] = Some(Live::new(at, size, operation as u8));
                now += size;
                out.peak = out.peak.max(now);
            }
            None => out.refused += 1,
        }
        if operation % 256 == 0 {
            out.wrong += u32::from(!heap.sound());
        }
    }
    for operation in 0..RESIZES {
        let slot = random.below(LIVE);
        let Some(old) = live[slot] else { continue };
        let size = size(&mut random);
        // SAFETY: the block is live.
        let (cost, block) = unsafe { counted_resize(heap, board, old.at, size) };
        match block {
            Some(at) => {
                out.resize.enter(cost - overhead);
                // SAFETY: a block of `size` bytes that was resized.
                out.wrong += u32::from(unsafe { at.read() } != old.mark);
                live[slot] = Some(Live::new(at, size, operation as u8));
                now = now - old.size + size;
                out.peak = out.peak.max(now);
            }
            None => out.refused += 1,
        }
    }
    out.wrong += u32::from(!heap.sound());
    for old in live.into_iter().flatten() {
        out.wrong += u32::from(!old.marked());
        // SAFETY: taken out of the live blocks.
        let (cost, ()) = unsafe { counted_free(heap, board, old.at) };
        out.free.enter(cost - overhead);
    }
    out
}

impl Live {
    fn new(at: NonNull<u8>, size: usize, mark: u8) -> Self {
        // SAFETY: the heap gave `size` bytes at `at`; a heap that does not own them
        // is what the cases before the churn look for.
        unsafe {
            at.write(mark);
            at.add(size - 1).write(mark);
        }
        Self { at, size, mark }
    }

    fn marked(&self) -> bool {
        // SAFETY: as in `new`.
        unsafe { self.at.read() == self.mark && self.at.add(self.size - 1).read() == self.mark }
    }
}

fn size(random: &mut Random) -> usize {
    const TOTAL: usize = {
        let (mut sum, mut index) = (0, 0);
        while index < SIZES.len() {
            sum += SIZES[index].1;
            index += 1;
        }
        sum
    };
    let mut ticket = random.below(TOTAL);
    for (size, weight) in SIZES {
        if ticket < weight {
            return size;
        }
        ticket -= weight;
    }
    SIZES[0].0
}

// Each counted call in a function of its own, and what is called out of line too, so
// that what is counted is one call as a program would make it.

#[inline(never)]
pub(crate) fn counted_allocate<S: Subject>(
    heap: &mut S,
    board: &mut impl Board,
    size: usize,
) -> (u32, Option<NonNull<u8>>) {
    count(board, || allocate(heap, size))
}

/// # Safety
/// As for [`Subject::free`].
#[inline(never)]
pub(crate) unsafe fn counted_free<S: Subject>(
    heap: &mut S,
    board: &mut impl Board,
    block: NonNull<u8>,
) -> (u32, ()) {
    // SAFETY: the caller's promise is the same.
    count(board, || unsafe { free(heap, block) })
}

/// # Safety
/// As for [`Subject::resize`].
#[inline(never)]
unsafe fn counted_resize<S: Subject>(
    heap: &mut S,
    board: &mut impl Board,
    block: NonNull<u8>,
    size: usize,
) -> (u32, Option<NonNull<u8>>) {
    // SAFETY: the caller's promise is the same.
    count(board, || unsafe { resize(heap, block, size) })
}

#[inline(never)]
fn allocate<S: Subject>(heap: &mut S, size: usize) -> Option<NonNull<u8>> {
    heap.allocate(size, ALIGN)
}

#[inline(never)]
unsafe fn free<S: Subject>(heap: &mut S, block: NonNull<u8>) {
    // SAFETY: the caller's promise is the same.
    unsafe { heap.free(block, ALIGN) }
}

#[inline(never)]
unsafe fn resize<S: Subject>(heap: &mut S, block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    // SAFETY: the caller's promise is the same.
    unsafe { heap.resize(block, size, ALIGN) }
}

/// The alignment every block of the heap has anyway.
const ALIGN: usize = 8;
