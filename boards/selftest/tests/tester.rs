//! The tester tested: heaps that are broken on purpose must fail, each for its own
//! reason, and a counter that does not count must fail too.

use std::cell::Cell;
use std::mem::MaybeUninit;

use metes_heap::compact::{BadHandle, Handle};
use metes_selftest::board::{Sequence, calibrate};
use metes_selftest::broken::*;
use metes_selftest::handles::{self, HandleSubject, Pieces};
use metes_selftest::requests::Requests;
use metes_selftest::subject::Subject;
use metes_selftest::{Arena, Board, Report, SMALLEST_ARENA, cases, churn, run_requests};

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

thread_local! {
    static TIME: Cell<u32> = const { Cell::new(0) };
}

fn pass(time: u32) -> u32 {
    TIME.replace(TIME.get() + time)
}

extern "C" fn takes_3() {
    pass(3);
}

extern "C" fn takes_40() {
    pass(40);
}

/// A counter that only the sequences move, and `drift` by each reading.
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
        pass(self.drift)
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
fn the_run_that_must_fail_fails() {
    let memory = vec![MaybeUninit::uninit(); SMALLEST_ARENA].leak();
    let mut text = String::new();
    assert!(!metes_selftest::run_broken(&mut text, memory));
    assert!(!text.ends_with(" 0 failed\n"), "{text}");
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
    assert!(text.contains("131071 bytes given, 131072 needed"), "{text}");
    assert!(text.ends_with("0 passed, 1 failed\n"));
}

/// The whole run on the host, where pointers have 64 bits; figures are zero.
#[test]
fn every_heap_passes_on_the_host() {
    let memory = vec![MaybeUninit::uninit(); SMALLEST_ARENA].leak();
    let mut text = String::new();
    let mut clock = Clock {
        sequences: &[],
        drift: 0,
    };
    metes_selftest::run(&mut text, memory, &mut clock);
    // Only the calibration fails, as this clock has nothing to be compared with.
    assert!(text.ends_with(" passed, 1 failed\n"), "{text}");
}

/// A heap of handles with one fault.
struct BrokenPieces<const FAULT: u8> {
    heap: Pieces<true>,
    operations: Cell<usize>,
}

/// Every so often a write does not arrive.
const LOSES_WRITES: u8 = 0;
/// A handle that was freed is freed again.
const OBEYS_STALE: u8 = 1;
/// Every so often a block is kept although it was freed.
const KEEPS: u8 = 2;

impl<const FAULT: u8> HandleSubject for BrokenPieces<FAULT> {
    const NAME: &'static str = "broken";

    fn create(region: &'static mut [MaybeUninit<u8>]) -> Option<Self> {
        Some(BrokenPieces {
            heap: Pieces::create(region)?,
            operations: Cell::new(0),
        })
    }

    fn allocate(&mut self, size: usize) -> Option<Handle> {
        self.heap.allocate(size)
    }

    fn free(&mut self, handle: Handle) -> Result<(), BadHandle> {
        self.operations.set(self.operations.get() + 1);
        match self.heap.free(handle) {
            Err(BadHandle::Stale) if FAULT == OBEYS_STALE => Ok(()),
            done => {
                if FAULT == KEEPS && self.operations.get().is_multiple_of(50) {
                    self.heap.allocate(8);
                }
                done
            }
        }
    }

    fn resize(&mut self, handle: Handle, size: usize) -> bool {
        self.heap.resize(handle, size)
    }

    fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        self.heap.read(handle, offset, bytes)
    }

    fn write(&mut self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        self.operations.set(self.operations.get() + 1);
        match FAULT == LOSES_WRITES && self.operations.get().is_multiple_of(500) {
            true => Ok(()),
            false => self.heap.write(handle, offset, bytes),
        }
    }

    fn sound(&self) -> bool {
        self.heap.sound()
    }

    fn live(&self) -> usize {
        self.heap.live()
    }

    fn held(&self) -> usize {
        self.heap.held()
    }
}

#[test]
fn broken_heaps_of_handles_are_found() {
    fn tried<S: HandleSubject>() -> String {
        let mut text = String::new();
        handles::all::<S>(&mut arena(), &mut Report::new(&mut text));
        text
    }
    let text = tried::<BrokenPieces<LOSES_WRITES>>();
    assert!(text.contains("changed"), "{text}");
    let text = tried::<BrokenPieces<OBEYS_STALE>>();
    assert!(text.contains("was freed without an error"), "{text}");
    let text = tried::<BrokenPieces<KEEPS>>();
    assert!(text.contains("bytes are live, the heap says"), "{text}");
    let text = tried::<Pieces<false>>();
    assert!(text.starts_with("ok "), "{text}");
}

/// Plays requests on a heap of the boards; whether all went well, and the text.
fn played(heap: &'static str, words: &'static [u32]) -> (bool, String) {
    let mut text = String::new();
    let memory = vec![MaybeUninit::uninit(); SMALLEST_ARENA].leak();
    let mut clock = Clock {
        sequences: &[(0, takes_3), (37, takes_40)],
        drift: 1,
    };
    let passed = run_requests(&mut text, memory, &mut clock, &Requests { heap, words });
    (passed, text)
}

/// Words as `metes worst` writes them: begin anew, allocate so many bytes, free an allocation.
const BEGIN: u32 = 2;

const fn allocate(bytes: u32) -> u32 {
    bytes << 2
}

const fn free(number: u32) -> u32 {
    number << 2 | 1
}

#[test]
fn requests_are_played_on_heaps_of_either_kind() {
    static WORDS: [u32; 11] = [
        BEGIN,
        allocate(100),
        allocate(50),
        free(0),
        allocate(1500),
        free(1),
        // Nothing holds it, so there is nothing to free.
        allocate(1 << 20),
        free(3),
        free(2),
        BEGIN,
        allocate(24),
    ];
    for heap in [
        "half-fit",
        "compact-fit:kappa=1,page=4KiB,largest=2KiB",
        "fragmented:shape=tree",
        "fragmented:shape=chain",
    ] {
        let (passed, text) = played(heap, &WORDS);
        assert!(passed, "{text}");
        for kind in ["allocate", "free"] {
            let line = text
                .lines()
                .find(|line| line.contains(&format!("worst {kind}")));
            assert!(
                line.is_some_and(|line| line.ends_with("of 8 calls")),
                "{heap}: {text}"
            );
        }
    }
}

#[test]
fn requests_that_make_no_sense_fail() {
    static TOO_EARLY: [u32; 1] = [allocate(8)];
    for heap in ["half-fit", "fragmented:shape=tree"] {
        assert!(!played(heap, &TOO_EARLY).0);
    }
    let (passed, text) = played("no-such-heap", &[]);
    assert!(!passed && text.contains("no heap of that name"), "{text}");
}
