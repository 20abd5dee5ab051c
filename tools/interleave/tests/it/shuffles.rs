//! What is drawn is an interleaving, and every one is drawn.

use std::collections::HashSet;

use metes_config::spec;
use metes_explore::report::DemandFigures;
use metes_explore::{Options, Replayer};
use metes_interleave::{Effort, Order, Plan, Threads, Within, interleaved, shuffled};
use proptest::prelude::*;

use crate::naive::{all, peak, recording, small, trace};

#[test]
fn every_interleaving_is_drawn() {
    for text in [
        "0+1 0+2 1+3 1+4",
        "0+1 1+2 2+3 2-0 1-2",
        "0+8 1:0=9 0-0 1+7 1+6",
        "0+1 0-0 0+2 1-1 1+5",
    ] {
        let threads = recording(text);
        let all = all(&threads);
        let drawn: HashSet<Order> = (0..4000)
            .map(|seed| shuffled(&threads, seed, Within::All))
            .collect();
        assert_eq!(drawn, all, "{text}");
        let near: HashSet<Order> = (0..4000)
            .map(|seed| shuffled(&threads, seed, Within::Events(1)))
            .collect();
        // Nothing is put before what was recorded more than one event earlier.
        let within = |order: &&Order| {
            (0..order.len()).all(|at| order[at + 1..].iter().all(|&later| later + 1 >= order[at]))
        };
        let near_ones: HashSet<Order> = all.iter().filter(within).cloned().collect();
        assert_eq!(near, near_ones, "{text}");
        let none = shuffled(&threads, 5, Within::Events(0));
        assert_eq!(none, threads.recorded());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_shuffle_keeps_what_must_be_kept(trace in small(60), seed: u64, reach in prop::option::of(0_u64..20)) {
        let threads = Threads::of(&trace).expect("a recording");
        let within = reach.map_or(Within::All, Within::Events);
        let order = shuffled(&threads, seed, within);
        // Each event once.
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, threads.recorded());
        // Each thread's and each block's events as recorded.
        let steps = threads.steps();
        for (at, &event) in order.iter().enumerate() {
            for &later in &order[at + 1..] {
                let (one, other) = (&steps[event as usize], &steps[later as usize]);
                prop_assert!(later > event || one.thread != other.thread && one.block != other.block);
                prop_assert!(reach.is_none_or(|reach| u64::from(later) + reach >= u64::from(event)));
            }
        }
        // A consistent trace, with as many live bytes as a table of blocks says.
        let events = threads.events(&order).expect("consistent");
        prop_assert_eq!(events.len(), order.len());
        prop_assert_eq!(events.peak_live(), peak(&threads, &order));
        prop_assert_eq!(threads.peak_live(&order), peak(&threads, &order));
        prop_assert_eq!(order, shuffled(&threads, seed, within));
    }

    #[test]
    fn what_was_drawn_is_within_what_holds_for_all(trace in small(40), seed: u64) {
        let threads = Threads::of(&trace).expect("a recording");
        let heaps = ["tlsf", "best-fit", "half-fit"].map(|heap| spec(heap).expect("a heap"));
        let plan = Plan { heaps: &heaps, per_thread: true, shuffles: 8, seed, within: Within::All, effort: Effort::default() };
        let demand = DemandFigures::of(&metes_trace::profile(&trace));
        let found = interleaved(&threads, demand, &plan, &|| true).expect("a recording");
        let live = found.live.drawn.expect("some were drawn");
        prop_assert!(live.least <= live.median && live.median <= live.most);
        prop_assert!(live.most <= found.live.bound && found.live.recorded <= found.live.bound);
        prop_assert_eq!(found.heaps.last().map(|heap| heap.heap.as_str()), Some("per-thread"));
        for (heap, config) in found.heaps.iter().zip(&heaps) {
            prop_assert_eq!(heap.failed, 0);
            // What suffices in any order does in each that is drawn.
            let Some(guarantee) = heap.guarantee else { continue };
            let mut options = Options::of(config);
            options.arena.fixed[0] = Some(usize::try_from(guarantee).expect("an address"));
            for seed in seed..seed.saturating_add(8) {
                let events = threads.events(&shuffled(&threads, seed, Within::All)).expect("consistent");
                let outcome = Replayer::new().outcome(&config.heap, &events, &options);
                prop_assert_eq!(outcome.failed, 0, "{} in {}", &heap.heap, guarantee);
            }
        }
        for heap in &found.heaps {
            let drawn = heap.drawn.expect("some were drawn");
            prop_assert!(drawn.least <= drawn.median && drawn.median <= drawn.most);
        }
        // By its seed each is found again.
        let again = Plan { shuffles: 1, seed: live.most_seed, ..plan };
        let again = interleaved(&threads, demand, &again, &|| true).expect("a recording");
        prop_assert_eq!(again.live.drawn.map(|drawn| drawn.most), Some(live.most));
    }
}

/// What is said to be reached is no less than what was drawn, also where the bound is too large.
#[test]
fn a_drawn_order_may_have_more_than_what_the_bound_left() {
    let trace = trace("0+100 0-0 1+100 1-1 2+100 2-2");
    let threads = Threads::of(&trace).expect("a recording");
    let demand = DemandFigures::of(&metes_trace::profile(&trace));
    let nothing = Effort { pairs: 0, work: 0 };
    let plan = Plan {
        heaps: &[],
        per_thread: false,
        shuffles: 200,
        seed: 1,
        within: Within::All,
        effort: nothing,
    };
    let live = interleaved(&threads, demand, &plan, &|| true)
        .expect("a recording")
        .live;
    let drawn = live.drawn.expect("some were drawn");
    assert!(live.reached >= drawn.most, "{live:?}");
    assert_eq!(live.exact, live.reached == live.bound);
}

#[test]
fn who_is_told_to_end_says_how_many_were_drawn() {
    let trace = trace("0+100 1+100 0-0 1-1");
    let threads = Threads::of(&trace).expect("a recording");
    let demand = DemandFigures::of(&metes_trace::profile(&trace));
    let plan = Plan {
        heaps: &[],
        per_thread: false,
        shuffles: 1000,
        seed: 1,
        within: Within::All,
        effort: Effort::default(),
    };
    let found = interleaved(&threads, demand, &plan, &|| false).expect("a recording");
    assert_eq!((found.shuffles, found.live.drawn), (0, None));
    assert_eq!((found.live.recorded, found.live.bound), (200, 200));
}
