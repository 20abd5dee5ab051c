//! Self-test and churn benchmark of `metes-heap` for a machine without a system.
//!
//! A board crate brings a [`Board`] (text output, an instruction counter), lends an
//! arena and calls [`run`]; what it returns decides the exit status of the board.
//! Everything here is deterministic and allocates nothing: on the same target and
//! build every run prints the same figures.
//!
//! Invariant: a figure is printed only if it was counted in this run, by a counter
//! that this run has compared with instruction sequences of known length.
#![cfg_attr(not(test), no_std)]

mod arena;
pub mod board;
pub mod broken;
pub mod cases;
mod catalogue;
pub mod churn;
pub mod fault;
pub mod handles;
mod ledger;
pub mod model;
pub mod naive;
pub mod random;
pub mod report;
pub mod requests;
pub mod subject;

use core::fmt::Write;
use core::mem::MaybeUninit;

pub use arena::Arena;
pub use board::Board;
pub use report::Report;

/// Smallest arena [`run`] works in, in bytes. The churn keeps up to 30 KB of payload
/// alive; heaps that round to powers of two need twice that, tables outside the managed memory need room too.
pub const SMALLEST_ARENA: usize = 128 * 1024;

/// Runs everything on every heap of the catalogue and prints a line per check and a
/// table of instructions per operation. The last line is `N passed, M failed`.
///
/// Returns true if nothing failed. An arena below [`SMALLEST_ARENA`] is a failure
/// that names both sizes.
pub fn run(
    out: &mut dyn Write,
    arena: &'static mut [MaybeUninit<u8>],
    board: &mut impl Board,
) -> bool {
    let mut report = Report::new(out);
    report.line(format_args!("metes-heap on {}", board.name()));
    if arena.len() < SMALLEST_ARENA {
        report.fail(
            "arena",
            format_args!("{} bytes given, {SMALLEST_ARENA} needed", arena.len()),
        );
        return report.finish();
    }
    let mut arena = Arena::new(arena);
    report.line(format_args!("counted: {}", board.counting()));
    let overhead = board::calibrate(board, &mut report);
    board::bit_search(board, &mut report);
    catalogue::test_all(&mut arena, &mut report);
    handles::test_all(&mut arena, &mut report);
    catalogue::measure_all(&mut arena, board, overhead, &mut report);
    report.finish()
}

/// Plays the requests that were built in, on the heap that they name, and prints the most
/// instructions of an allocation and of a free. Returns true if nothing failed.
pub fn run_requests(
    out: &mut dyn Write,
    arena: &'static mut [MaybeUninit<u8>],
    board: &mut impl Board,
    requests: &requests::Requests,
) -> bool {
    let mut report = Report::new(out);
    let mut arena = Arena::new(arena);
    let overhead = board::calibrate(board, &mut report);
    let known = catalogue::play(requests, &mut arena, board, overhead, &mut report)
        || handles::play(requests, &mut arena, board, overhead, &mut report);
    if !known {
        report.fail(
            requests.heap,
            format_args!("no heap of that name is built in"),
        );
    }
    report.finish()
}

/// Runs the cases on heaps that are broken on purpose. Returns what [`run`] would: false
/// if the checks are worth anything. A board built with the feature `broken` calls this
/// to prove that a failure reaches whoever looks at the exit status.
pub fn run_broken(out: &mut dyn Write, arena: &'static mut [MaybeUninit<u8>]) -> bool {
    let mut report = Report::new(out);
    let mut arena = Arena::new(arena);
    cases::all::<broken::Broken<{ broken::OVERLAPS }>>(&mut arena, &mut report);
    cases::all::<broken::Broken<{ broken::LEAKS }>>(&mut arena, &mut report);
    cases::all::<broken::Broken<{ broken::SCRIBBLES }>>(&mut arena, &mut report);
    report.finish()
}

/// What `metes worst` built in.
#[cfg(feature = "requests")]
pub const REQUESTS: requests::Requests = {
    use requests::Requests;
    include!(env!("METES_REQUESTS"))
};
/// Nothing was built in.
#[cfg(not(feature = "requests"))]
pub const REQUESTS: requests::Requests = requests::Requests {
    heap: "none",
    words: &[],
};
