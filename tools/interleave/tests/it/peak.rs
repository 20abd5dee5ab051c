//! The bound on live bytes beside the most of all interleavings.

use metes_interleave::{Effort, Peak, Threads};
use proptest::prelude::*;

use crate::naive::{all, peak, recording, small};

fn most(threads: &Threads) -> u64 {
    let orders = all(threads);
    let peaks = orders.iter().map(|order| peak(threads, order));
    peaks.max().expect("the recorded order is one")
}

#[test]
fn threads_at_their_worst_moments_at_once() {
    // Each has 100 bytes for a moment; as recorded one after the other.
    let threads = recording("0+100 0-0 1+100 1-1 2+100 2-2");
    let found = Peak::of(&threads, &Effort::default());
    assert_eq!(
        (found.bytes, found.of_threads, found.reached),
        (300, 300, 300)
    );
    assert!(found.is_exact());
    assert_eq!(peak(&threads, &found.order), 300);
}

#[test]
fn a_block_is_freed_after_it_was_allocated() {
    // Thread 1 frees what thread 0 allocates, and allocates more only then: all four are never live at once.
    let threads = recording("0+100 1-0 1+100 1-1 0+10");
    let found = Peak::of(&threads, &Effort::default());
    assert_eq!(found.bytes, most(&threads));
    assert_eq!((found.bytes, found.is_exact()), (110, true));
    // Each alone: 110, and 0, as thread 1 is never above what it took off.
    assert_eq!(found.of_threads, 110);
}

#[test]
fn what_must_come_before_tightens_the_bound() {
    // Thread 0 needs thread 1's block gone before its own second one: 0's worst moment excludes 1's.
    let threads = recording("1+80 0-0 0+70 0-1 1+60 1-2");
    let found = Peak::of(&threads, &Effort::default());
    assert_eq!(found.bytes, most(&threads));
    assert!(found.is_exact());
}

#[test]
fn without_pairs_the_bound_is_that_of_threads_alone() {
    let threads = recording("0+100 0+50 1-0 1+100 1-2 0-1");
    let nothing = Effort {
        pairs: 0,
        work: u64::MAX,
    };
    let found = Peak::of(&threads, &nothing);
    assert_eq!(found.bytes, found.of_threads);
    assert!(found.bytes >= most(&threads));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_bound_is_the_most_of_all_interleavings(trace in small(9)) {
        let threads = Threads::of(&trace).expect("a recording");
        let found = Peak::of(&threads, &Effort::default());
        let most = most(&threads);
        prop_assert_eq!(found.bytes, most);
        prop_assert_eq!(found.reached, most);
        prop_assert_eq!(peak(&threads, &found.order), most);
        prop_assert!(all(&threads).contains(&found.order));
        prop_assert!(found.of_threads >= most);
    }

    #[test]
    fn less_effort_never_gives_less_than_the_most(trace in small(9), pairs in 0_usize..4, work in 0_u64..60) {
        let threads = Threads::of(&trace).expect("a recording");
        let found = Peak::of(&threads, &Effort { pairs, work });
        prop_assert!(found.bytes >= most(&threads), "{} of {}", found.bytes, most(&threads));
        prop_assert!(found.reached <= found.bytes);
        prop_assert_eq!(peak(&threads, &found.order), found.reached);
        prop_assert!(all(&threads).contains(&found.order));
    }
}
