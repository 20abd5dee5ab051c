//! Counts of what threads have to do with each other.

use metes_interleave::{Threads, WINDOWS_NS, sharing, thread_figures};
use metes_trace::{Provenance, TraceBuilder};
use proptest::prelude::*;

use crate::naive::{recording, small};

#[test]
fn switches_and_blocks_of_others_are_counted() {
    let threads = recording("0+100 0+50 1-0 1:1=70 0-1 1+5 1-2");
    let found = sharing(&threads);
    assert_eq!(found.switches, 3);
    assert_eq!(
        (found.freed_elsewhere, found.freed_elsewhere_bytes),
        (1, 100)
    );
    assert_eq!(found.resized_elsewhere, 1);
    let figures = thread_figures(&threads);
    assert_eq!((figures[0].allocations, figures[0].frees), (2, 1));
    assert_eq!(
        (figures[0].freed_by_others, figures[1].freed_of_others),
        (1, 1)
    );
    assert_eq!((figures[0].peak_live, figures[1].peak_live), (150, 5));
    assert_eq!((figures[1].events, figures[1].resizes), (4, 1));
}

#[test]
fn a_lock_is_taken_while_another_thread_holds_it() {
    let mut builder = TraceBuilder::new();
    // At 0 and 40 thread 0, at 60 thread 1, at 5000 thread 0 again.
    for (time, thread) in [(0, 0), (40, 0), (60, 1), (5000, 0)] {
        builder.alloc(time, thread, 8, 16).expect("fresh");
    }
    let threads = Threads::of(&builder.finish(Provenance::default())).expect("a recording");
    let taken: Vec<u64> = sharing(&threads)
        .taken
        .iter()
        .map(|one| one.operations)
        .collect();
    assert_eq!(WINDOWS_NS, [50, 200, 1000, 10_000]);
    assert_eq!(taken, [1, 1, 1, 2]);
}

#[test]
fn a_trace_without_times_says_nothing_of_a_lock() {
    let mut builder = TraceBuilder::new();
    builder.alloc(0, 0, 8, 16).expect("fresh");
    builder.alloc(0, 1, 8, 16).expect("fresh");
    let threads = Threads::of(&builder.finish(Provenance::default())).expect("a recording");
    assert!(sharing(&threads).taken.is_empty());
}

proptest! {
    /// Beside looking at every pair.
    #[test]
    fn windows_are_those_of_all_pairs(trace in small(40)) {
        let threads = Threads::of(&trace).expect("a recording");
        let steps = threads.steps();
        for taken in sharing(&threads).taken {
            let naive = steps.iter().enumerate().filter(|(at, step)| {
                steps.iter().enumerate().any(|(other_at, other)| {
                    let before = (other.time_ns, other_at) < (step.time_ns, *at);
                    before && other.thread != step.thread && other.time_ns + taken.held_ns > step.time_ns
                })
            });
            prop_assert_eq!(taken.operations, naive.count() as u64);
        }
        let figures = thread_figures(&threads);
        let events: u64 = figures.iter().map(|thread| thread.events).sum();
        prop_assert_eq!(events, steps.len() as u64);
    }
}
