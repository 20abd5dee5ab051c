//! The tester tested: heaps that are broken on purpose must fail, each for its own
//! reason, and a counter that does not count must fail too.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use metes_selftest::board::{Sequence, calibrate};
use metes_selftest::naive::Naive;
use metes_selftest::subject::Subject;
use metes_selftest::{Arena, Board, Report, SMALLEST_ARENA, cases, churn};

/// Where the heap under test goes wrong. From the second half of the operations on,
/// so that a check that only looks at the beginning does not help.
const GOOD: u8 = 0;
const OVERLAPS: u8 = 1;
const MISALIGNS: u8 = 2;
const LEAKS: u8 = 3;
const MISCOUNTS: u8 = 4;
const FORGETS_ZERO: u8 = 5;
const RESIZES_WITHOUT_COPY: u8 = 6;
const SCRIBBLES: u8 = 7;
const UNSOUND: u8 = 8;
const LEAVES_REGION: u8 = 9;
const OVERFLOWS_SIZE: u8 = 10;
const MOVES_ON_REFUSAL: u8 = 11;

/// A correct heap with one fault.
struct Broken<const FAULT: u8> {
    heap: Naive,
    last: Option<NonNull<u8>>,
    operations: usize,
}

impl<const FAULT: u8> Broken<FAULT> {
    fn now(&mut self, fault: u8) -> bool {
        self.operations += 1;
        FAULT == fault && self.operations.is_multiple_of(7)
    }
}

impl<const FAULT: u8> Subject for Broken<FAULT> {
    const NAME: &'static str = "broken";
    const COALESCES: bool = true;

    fn create() -> Self {
        Self {
            heap: Naive::create(),
            last: None,
            operations: 0,
        }
    }

    fn add_region(&mut self, region: &'static mut [MaybeUninit<u8>]) -> bool {
        self.heap.add_region(region)
    }

    fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if FAULT == OVERFLOWS_SIZE && size > usize::MAX / 2 {
            return self.heap.allocate(size.wrapping_add(64) % 1024, 1);
        }
        if self.now(OVERLAPS) && self.last.is_some() {
            return self.last;
        }
        let block = self.heap.allocate(size, align)?;
        self.last = Some(block);
        if self.now(MISALIGNS) && align > 1 {
            return NonNull::new(block.as_ptr().wrapping_add(1));
        }
        if self.now(LEAVES_REGION) {
            return NonNull::new(block.as_ptr().wrapping_add(1 << 20));
        }
        Some(block)
    }

    fn allocate_zeroed(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if self.now(FORGETS_ZERO) {
            self.heap.allocate(size, align)
        } else {
            self.heap.allocate_zeroed(size, align)
        }
    }

    unsafe fn free(&mut self, block: NonNull<u8>, align: usize) {
        if self.last == Some(block) {
            self.last = None;
        }
        if self.now(LEAKS) {
            return;
        }
        if self.now(SCRIBBLES)
            && let Some(other) = self.last
        {
            // SAFETY: the start of a live block of the arena.
            unsafe { other.write(!other.read()) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.heap.free(block, align) }
    }

    unsafe fn resize(
        &mut self,
        block: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        if FAULT == MOVES_ON_REFUSAL {
            // SAFETY: a live block has at least one byte.
            unsafe { block.write(0) };
        }
        if self.now(RESIZES_WITHOUT_COPY) {
            let new = self.heap.allocate(size, align)?;
            // SAFETY: the caller's promise.
            unsafe { self.heap.free(block, align) };
            return Some(new);
        }
        // SAFETY: the caller's promise.
        unsafe { self.heap.resize(block, size, align) }
    }

    fn sound(&self) -> bool {
        self.heap.sound() && !(FAULT == UNSOUND && self.operations > 50)
    }

    fn live(&self) -> usize {
        self.heap.live() + usize::from(FAULT == MISCOUNTS && self.operations > 50)
    }
}

fn arena() -> Arena {
    let memory = vec![0_u128; SMALLEST_ARENA / 16].leak();
    // SAFETY: the same bytes, leaked, named by nobody else.
    Arena::new(unsafe {
        std::slice::from_raw_parts_mut(
            memory.as_mut_ptr().cast::<MaybeUninit<u8>>(),
            SMALLEST_ARENA,
        )
    })
}

/// Runs the cases; the number of failures and the text.
fn tried<S: Subject>() -> (u32, String) {
    let mut text = String::new();
    let mut report = Report::new(&mut text);
    cases::all::<S>(&mut arena(), &mut report);
    let failed = report.tally().1;
    assert_eq!(report.finish(), failed == 0);
    (failed, text)
}

fn must_fail<const FAULT: u8>(reason: &str) {
    let (failed, text) = tried::<Broken<FAULT>>();
    assert!(failed > 0, "the fault was not found:\n{text}");
    assert!(text.contains(reason), "no '{reason}' in:\n{text}");
    assert!(text.ends_with(&format!("{failed} failed\n")), "{text}");
}

#[test]
fn a_correct_heap_passes() {
    let (failed, text) = tried::<Broken<GOOD>>();
    assert_eq!(failed, 0, "{text}");
}

#[test]
fn overlapping_blocks_are_found() {
    must_fail::<OVERLAPS>("overlaps the live block");
}

#[test]
fn misaligned_blocks_are_found() {
    must_fail::<MISALIGNS>("is not aligned to");
}

#[test]
fn leaked_blocks_are_found() {
    must_fail::<LEAKS>("bytes are live, the heap says");
}

#[test]
fn wrong_accounting_is_found() {
    must_fail::<MISCOUNTS>("bytes are live, the heap says");
}

#[test]
fn dirty_zeroed_memory_is_found() {
    must_fail::<FORGETS_ZERO>("is not zero");
}

#[test]
fn lost_contents_are_found() {
    must_fail::<RESIZES_WITHOUT_COPY>("changed");
}

#[test]
fn writes_into_live_blocks_are_found() {
    must_fail::<SCRIBBLES>("changed");
}

#[test]
fn broken_records_are_found() {
    must_fail::<UNSOUND>("check() failed after");
}

#[test]
fn blocks_outside_the_region_are_found() {
    must_fail::<LEAVES_REGION>("outside its region");
}

#[test]
fn sizes_that_wrap_are_found() {
    must_fail::<OVERFLOWS_SIZE>("impossible requests: block of");
}

#[test]
fn a_refused_resize_that_changes_the_block_is_found() {
    must_fail::<MOVES_ON_REFUSAL>("changed");
}

static TIME: AtomicU32 = AtomicU32::new(0);

extern "C" fn takes_3() {
    TIME.fetch_add(3, Relaxed);
}

extern "C" fn takes_40() {
    TIME.fetch_add(40, Relaxed);
}

/// A counter that only the sequences move; `claimed` is what it says of the second.
struct Clock {
    sequences: &'static [Sequence],
    drift: u32,
}

impl Board for Clock {
    fn name(&self) -> &'static str {
        "host"
    }

    fn counting(&self) -> &'static str {
        "a counter that the test moves"
    }

    fn read(&mut self) -> u32 {
        TIME.fetch_add(self.drift, Relaxed)
    }

    fn instructions(&self, before: u32, after: u32) -> u32 {
        after.wrapping_sub(before)
    }

    fn sequences(&self) -> &'static [Sequence] {
        self.sequences
    }
}

fn calibrated(sequences: &'static [Sequence]) -> u32 {
    let mut text = String::new();
    let mut report = Report::new(&mut text);
    calibrate(
        &mut Clock {
            sequences,
            drift: 1,
        },
        &mut report,
    );
    report.tally().1
}

/// One test, as the clock is shared.
#[test]
fn only_an_exact_counter_passes() {
    assert_eq!(calibrated(&[(0, takes_3), (37, takes_40)]), 0);
    assert_eq!(calibrated(&[(0, takes_3), (36, takes_40)]), 1);
    assert_eq!(calibrated(&[(0, takes_3)]), 1, "nothing to compare with");
    assert_eq!(calibrated(&[]), 1);
}

#[test]
fn churn_of_a_broken_heap_fails() {
    let mut clock = Clock {
        sequences: &[],
        drift: 0,
    };
    for (name, expected, run) in [
        (
            "good",
            0,
            churn::measure::<Broken<GOOD>> as fn(&mut Arena, &mut Clock, u32, &mut Report<'_>),
        ),
        ("leaks", 1, churn::measure::<Broken<LEAKS>>),
        ("scribbles", 1, churn::measure::<Broken<SCRIBBLES>>),
        (
            "loses contents",
            1,
            churn::measure::<Broken<RESIZES_WITHOUT_COPY>>,
        ),
    ] {
        let mut text = String::new();
        let mut report = Report::new(&mut text);
        run(&mut arena(), &mut clock, 0, &mut report);
        assert_eq!(report.tally().1, expected, "{name}:\n{text}");
    }
}

#[test]
fn a_small_arena_is_refused() {
    let memory = vec![MaybeUninit::uninit(); SMALLEST_ARENA - 1].leak();
    let mut text = String::new();
    let mut clock = Clock {
        sequences: &[],
        drift: 0,
    };
    assert!(!metes_selftest::run(&mut text, memory, &mut clock));
    assert!(text.contains("98303 bytes given, 98304 needed"), "{text}");
    assert!(text.ends_with("0 passed, 1 failed\n"));
}
