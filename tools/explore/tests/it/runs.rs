//! One heap for many runs: neither order nor repetition of the runs matters, and every figure is that of each run by
//! itself.

use std::sync::atomic::AtomicBool;

use metes_explore::engine::{Evaluator, ObjectiveSet};
use metes_explore::{
    Budget, Events, EventsBuilder, Exploration, Operation, Options, Outcome, Over, Preference,
    Replayer, Runs, Space, SystemClock, Timer, choose, explore,
};
use proptest::prelude::*;

/// A run of so many rounds, each with blocks of sizes around one.
fn run(rounds: u64, size: u64) -> Events {
    let mut builder = EventsBuilder::new();
    for round in 0..rounds {
        for block in 0..40 {
            let own = size + block * 37 % 91 * (round % 3);
            let serial = round * 100 + block;
            builder.push(Operation::Allocate, serial, own, 0).unwrap();
        }
        for block in 0..40 {
            // One in ten stays for a round more.
            let of = if block % 10 == 3 {
                round.checked_sub(1)
            } else {
                Some(round)
            };
            if let Some(of) = of {
                builder
                    .push(Operation::Free, of * 100 + block, 0, 0)
                    .unwrap();
            }
        }
    }
    builder.finish()
}

fn search(given: &[Events], budget: &Budget) -> Exploration {
    let runs = Runs::new(given.to_vec()).unwrap();
    let (options, clock, stop) = (
        Options::default(),
        SystemClock::start(),
        AtomicBool::new(false),
    );
    let space = Space::suggested_by_runs(&runs, &options.arena);
    let evaluator = Evaluator::over(&space, &runs, &options, ObjectiveSet::RUNS).unwrap();
    let timer = Timer::begin(&clock, budget.time, &stop);
    explore(&evaluator, budget, None, &timer, &mut ()).unwrap()
}

fn alone(events: &Events, budget: &Budget) -> Exploration {
    let (options, clock, stop) = (
        Options::default(),
        SystemClock::start(),
        AtomicBool::new(false),
    );
    let space = Space::suggested(events, &options.arena);
    let evaluator = Evaluator::new(&space, events, &options, ObjectiveSet::HOST);
    let timer = Timer::begin(&clock, budget.time, &stop);
    explore(&evaluator, budget, None, &timer, &mut ()).unwrap()
}

fn fixed(evaluations: u64) -> Budget {
    Budget {
        time: None,
        evaluations: Some(evaluations),
        workers: 2,
        ..Budget::default()
    }
}

/// What is found, without what depends on the clock.
fn found(exploration: &Exploration) -> (Vec<Outcome>, Vec<Outcome>, Vec<Outcome>) {
    let Exploration {
        outcomes,
        pareto,
        constant_time,
        ..
    } = exploration.clone();
    (outcomes, pareto, constant_time)
}

#[test]
fn a_run_given_many_times_is_that_run() {
    let one = run(20, 30);
    let by_itself = alone(&one, &fixed(120));
    for times in [1, 2, 7] {
        let many = search(&vec![one.clone(); times], &fixed(120));
        assert_eq!(found(&many), found(&by_itself), "{times} times");
        for preference in [
            Preference::Balanced,
            Preference::Footprint,
            Preference::Speed,
        ] {
            let of = |found: &Exploration| choose(found, preference).unwrap().outcome.heap;
            assert_eq!(of(&many), of(&by_itself));
        }
    }
}

#[test]
fn the_order_of_runs_does_not_matter() {
    let (a, b, c) = (run(4, 20), run(15, 300), run(9, 1500));
    let one = search(&[a.clone(), b.clone(), c.clone(), b.clone()], &fixed(100));
    let other = search(&[b.clone(), c, b, a], &fixed(100));
    assert_eq!(found(&one), found(&other));
}

#[test]
fn figures_are_those_of_each_run_by_itself() {
    let given = [run(4, 20), run(15, 300), run(15, 300), run(9, 1500)];
    let many = search(&given, &fixed(60));
    let options = Options::default();
    for outcome in many.outcomes.iter().take(25) {
        let mut replayer = Replayer::new();
        let each: Vec<Outcome> = given
            .iter()
            .map(|events| replayer.outcome(&outcome.description, events, &options))
            .collect();
        let footprints = each.iter().map(|own| own.footprint);
        assert_eq!(outcome.footprint, footprints.clone().max().unwrap());
        assert_eq!(outcome.footprint_sum, footprints.sum::<u64>());
        assert_eq!(
            outcome.cycles,
            each.iter().map(|own| own.cycles).sum::<u64>()
        );
        let most = each.iter().map(|own| own.cycles_max).max();
        assert_eq!(Some(outcome.cycles_max), most);
        assert_eq!(
            outcome.failed,
            each.iter().map(|own| own.failed).sum::<u64>()
        );
    }
}

#[test]
fn ending_replays_early_loses_no_point_of_the_front_of_runs() {
    let given = [run(30, 20), run(40, 300), run(35, 1500), run(35, 1500)];
    let patient = Budget {
        patience: u64::MAX,
        ..fixed(200)
    };
    let early = search(&given, &patient);
    let full = search(
        &given,
        &Budget {
            end_early: false,
            ..patient
        },
    );
    assert!(early.beaten > 0, "the test would show nothing");
    assert_eq!(early.pareto, full.pareto);
    assert_eq!(early.constant_time, full.constant_time);
}

#[test]
fn what_counts_of_the_memory_decides_which_heap_is_chosen() {
    let given = [run(4, 20), run(15, 300), run(9, 1500)];
    let of = |over: Over| {
        let budget = Budget { over, ..fixed(200) };
        let found = search(&given, &budget);
        let choice = choose(&found, Preference::Footprint).unwrap();
        (found, choice)
    };
    let (found, worst) = of(Over::Worst);
    let (_, mean) = of(Over::Mean);
    let (_, both) = of(Over::Both);
    let least = found.pareto.iter().map(|one| one.footprint).min().unwrap();
    assert_eq!(worst.outcome.footprint, least);
    let sums = found.pareto.iter().map(|one| one.footprint_sum);
    assert_eq!(Some(mean.outcome.footprint_sum), sums.min());
    assert!(both.outcome.footprint <= least + least / 20);
    assert!(both.outcome.footprint_sum <= worst.outcome.footprint_sum);
    assert!(
        mean.why.contains("mean") && worst.why.contains("largest"),
        "{}",
        worst.why
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn shuffled_and_repeated_runs_find_the_same(
        shape in prop::collection::vec((1_u64..8, 1_u64..2000), 1..5),
        times in 1_usize..4,
        turn in 0_usize..5,
    ) {
        let given: Vec<Events> = shape.iter().map(|&(rounds, size)| run(rounds, size)).collect();
        let mut other: Vec<Events> = (0..times).flat_map(|_| given.clone()).collect();
        other.reverse();
        let turn = turn % other.len();
        other.rotate_left(turn);
        prop_assert_eq!(found(&search(&given, &fixed(20))), found(&search(&other, &fixed(20))));
    }
}
