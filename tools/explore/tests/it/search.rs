//! The search finds the same whatever the machine, and loses nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metes_explore::engine::{
    EXPLORATION, Evaluator, Folder, ObjectiveSet, RESULTS, Source, finish,
};
use metes_explore::{
    Budget, Events, EventsBuilder, Exploration, Observer, Operation, Options, Outcome, Replayer,
    Space, SystemClock, Timer, explore,
};
use proptest::prelude::*;

/// A program with dominant sizes, phases and a long tail; no randomness.
fn program() -> Events {
    let mut builder = EventsBuilder::new();
    let mut live = std::collections::VecDeque::new();
    for serial in 0..6000_u64 {
        let size = match serial % 16 {
            0..6 => 24,
            6..10 => 48 + serial % 3 * 8,
            10..14 => 1514,
            _ => 100 + serial * 7919 % 9000,
        };
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
        live.push_back(serial);
        if serial % 5 == 0
            && let Some(&block) = live.get(live.len() / 2)
        {
            builder
                .push(Operation::Resize, block, 60 + serial % 300, 0)
                .unwrap();
        }
        let most = 100 + (serial / 1000) % 3 * 150;
        while live.len() > most as usize {
            let at = serial as usize * 31 % live.len();
            let block = if serial % 3 == 0 {
                live.remove(at)
            } else {
                live.pop_front()
            };
            builder.push(Operation::Free, block.unwrap(), 0, 0).unwrap();
        }
    }
    builder.finish()
}

fn search(budget: &Budget) -> Exploration {
    search_with(&Options::default(), budget)
}

/// Blocks of 1500 bytes and more, of which the program has many, are mapped.
fn mapping() -> Options {
    let mut options = Options::default();
    options.arena.mapped = Some(1500);
    options
}

fn search_with(options: &Options, budget: &Budget) -> Exploration {
    let stop = AtomicBool::new(false);
    search_into(options, budget, None, &stop, &mut ())
}

fn search_into(
    options: &Options,
    budget: &Budget,
    directory: Option<&Path>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Exploration {
    let (events, clock) = (program(), SystemClock::start());
    let space = Space::suggested(&events, &options.arena);
    let evaluator = Evaluator::new(&space, &events, options, ObjectiveSet::HOST);
    let manifest = evaluator.manifest(budget.method(), budget.end_early);
    let folder = directory.map(|at| Folder::open_suggested(at, &manifest, false).unwrap());
    let timer = Timer::begin(&clock, budget.time, stop);
    let found = explore(&evaluator, budget, folder.as_ref(), &timer, observer).unwrap();
    if let Some(directory) = directory {
        finish(directory, &manifest, &evaluator, Source::Rows(&found.rows)).unwrap();
    }
    found
}

fn fixed(evaluations: u64, workers: usize) -> Budget {
    Budget {
        time: None,
        evaluations: Some(evaluations),
        workers,
        ..Budget::default()
    }
}

#[test]
fn any_number_of_workers_finds_the_same() {
    let one = search(&fixed(150, 1));
    for workers in [2, 3, 8] {
        let many = search(&fixed(150, workers));
        assert_eq!(many.outcomes, one.outcomes);
        assert_eq!(many.pareto, one.pareto);
        assert_eq!((many.beaten, many.slow), (one.beaten, one.slow));
    }
    let named = metes_explore::catalogue().len() as u64;
    assert_eq!(
        one.configurations,
        named + 150,
        "named heaps and the budget"
    );
    let other = search(&Budget {
        seed: 2,
        ..fixed(150, 2)
    });
    assert_ne!(other.outcomes, one.outcomes, "the seed matters");
}

#[test]
fn ending_replays_early_loses_no_point_of_the_front() {
    for options in [Options::default(), mapping()] {
        ends_early_without_loss(&options);
    }
}

fn ends_early_without_loss(options: &Options) {
    let patient = Budget {
        patience: u64::MAX,
        ..fixed(250, 2)
    };
    let early = search_with(options, &patient);
    let full = search_with(
        options,
        &Budget {
            end_early: false,
            ..patient
        },
    );
    assert!(early.beaten > 0, "the test would show nothing");
    assert_eq!((full.beaten, full.slow), (0, 0));
    let heaps = |front: &[Outcome]| -> Vec<_> {
        front
            .iter()
            .map(|outcome| (outcome.objectives(), outcome.heap.clone()))
            .collect()
    };
    assert_eq!(heaps(&early.pareto), heaps(&full.pareto));
    assert_eq!(heaps(&early.constant_time), heaps(&full.constant_time));
    assert_eq!(full.outcomes.len() as u64, full.configurations);
}

/// What ending early rests on where blocks are mapped: a heap with none of its own cost is no
/// cheaper than what is said of the rest at least.
#[test]
fn mapped_blocks_are_searched_as_they_are_replayed() {
    let options = mapping();
    let found = search_with(&options, &fixed(40, 2));
    let without = search(&fixed(40, 2));
    let mut differ = 0;
    for (outcome, without) in found.named.iter().zip(&without.named) {
        let (replay, _) = Replayer::new().replay("", &outcome.description, &program(), &options);
        assert_eq!(outcome.footprint, replay.footprint, "{}", outcome.heap);
        assert_eq!(outcome.cycles, replay.cycles, "{}", outcome.heap);
        differ += u32::from(outcome.footprint != without.footprint);
    }
    assert!(differ > 0, "the test would show nothing");
}

/// Mapped blocks have an entry in a table, and no header in a pool.
#[test]
fn records_of_mapped_blocks_are_counted() {
    let mut builder = EventsBuilder::new();
    for (block, size) in [100, 2000, 300, 9000, 200].into_iter().enumerate() {
        builder
            .push(Operation::Allocate, block as u64, size, 0)
            .unwrap();
    }
    // One grows into a mapping, and one becomes small enough for a pool.
    builder.push(Operation::Resize, 2, 5000, 0).unwrap();
    builder.push(Operation::Resize, 3, 100, 0).unwrap();
    let events = builder.finish();
    for named in metes_explore::catalogue() {
        let mut replayer = Replayer::new();
        let (replay, _) = replayer.replay("", &named.description, &events, &mapping());
        let records = replay.record_bytes - replay.control_bytes;
        assert_eq!(records, 3 * 8 + 4096, "{}", named.name);
        let (without, _) = replayer.replay("", &named.description, &events, &Options::default());
        assert_eq!(without.record_bytes - without.control_bytes, 5 * 8);
    }
}

#[test]
fn the_search_beats_every_named_heap_somewhere() {
    let found = search(&fixed(1500, 2));
    assert_eq!(found.named.len(), metes_explore::catalogue().len());
    let named = found.named.iter().filter(|outcome| outcome.failed == 0);
    let smallest = named
        .clone()
        .map(|outcome| outcome.footprint)
        .min()
        .unwrap();
    let fastest = named.map(|outcome| outcome.cycles).min().unwrap();
    assert!(
        found
            .pareto
            .iter()
            .any(|outcome| outcome.footprint < smallest)
    );
    assert!(found.pareto.iter().any(|outcome| outcome.cycles < fastest));
}

/// Stops the search as soon as something was found.
struct Impatient<'s> {
    stop: &'s AtomicBool,
    heard: Vec<Outcome>,
    most: usize,
}

impl Observer for Impatient<'_> {
    fn outcome(&mut self, outcome: &Outcome) {
        self.heard.push(outcome.clone());
        if self.heard.len() == self.most {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn stopping_keeps_what_was_found_and_told() {
    let stop = AtomicBool::new(false);
    let mut observer = Impatient {
        stop: &stop,
        heard: Vec::new(),
        most: 12,
    };
    let budget = Budget {
        time: None,
        ..Budget::default()
    };
    let found = search_into(&Options::default(), &budget, None, &stop, &mut observer);
    assert!(found.interrupted);
    assert!(!found.pareto.is_empty());
    assert_eq!(found.outcomes, observer.heard);
}

/// Of an outcome all but how its costs divide up, which a row does not have.
fn known(outcomes: &[Outcome]) -> Vec<(u64, String, [u64; 3])> {
    let known = |own: &Outcome| (own.number, own.heap.clone(), own.objectives());
    outcomes.iter().map(known).collect()
}

#[test]
fn an_interrupted_search_goes_on_to_the_same_results() {
    let (options, budget) = (Options::default(), fixed(150, 2));
    let [one, many] = ["one", "many"].map(|name| {
        let name = format!("metes-search-{}-{name}", std::process::id());
        std::env::temp_dir().join(name)
    });
    let whole = search_into(
        &options,
        &budget,
        Some(&one),
        &AtomicBool::new(false),
        &mut (),
    );
    let mut replays = 0;
    let last = loop {
        let stop = AtomicBool::new(false);
        let mut observer = Impatient {
            stop: &stop,
            heard: Vec::new(),
            most: 12 + replays * 20,
        };
        replays += 1;
        let found = search_into(&options, &budget, Some(&many), &stop, &mut observer);
        if !found.interrupted {
            break found;
        }
    };
    assert!(replays > 3, "the test would show nothing");
    assert_eq!(last.rows, whole.rows);
    assert_eq!(known(&last.outcomes), known(&whole.outcomes));
    // What counts has been replayed once more.
    assert_eq!(last.pareto, whole.pareto);
    assert_eq!(last.constant_time, whole.constant_time);
    assert_eq!(last.named, whole.named);
    for file in [RESULTS, EXPLORATION, "pareto/001.toml"] {
        let [one, many] = [&one, &many].map(|place| std::fs::read(place.join(file)).unwrap());
        assert!(one == many, "{file}");
    }
    for place in [one, many] {
        std::fs::remove_dir_all(place).unwrap();
    }
}

#[test]
fn by_the_clock_what_an_earlier_run_found_counts() {
    let name = format!("metes-search-{}-clock", std::process::id());
    let place = std::env::temp_dir().join(name);
    let stop = AtomicBool::new(false);
    let mut observer = Impatient {
        stop: &stop,
        heard: Vec::new(),
        most: 100,
    };
    let endless = Budget {
        time: None,
        ..Budget::default()
    };
    let options = Options::default();
    let before = search_into(&options, &endless, Some(&place), &stop, &mut observer);
    let none = Budget {
        time: Some(Duration::ZERO),
        ..Budget::default()
    };
    let after = search_into(
        &options,
        &none,
        Some(&place),
        &AtomicBool::new(false),
        &mut (),
    );
    std::fs::remove_dir_all(place).unwrap();
    assert!(before.rows.len() >= 100);
    let numbers = |found: &Exploration| {
        let mut numbers: Vec<u64> = found.rows.iter().map(|row| row.number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(&after), numbers(&before));
    assert_eq!(after.unfinished, Vec::new());
    let objectives = |front: &[Outcome]| front.iter().map(Outcome::objectives).collect::<Vec<_>>();
    assert_eq!(objectives(&after.pareto), objectives(&before.pareto));
}

#[test]
fn a_budget_of_no_time_still_gives_a_heap() {
    let found = search(&Budget {
        time: Some(Duration::ZERO),
        ..Budget::default()
    });
    assert!(!found.pareto.is_empty() && !found.constant_time.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// What ending early rests on: no heap allocates or frees with fewer
    /// accesses than the bound says. Every prefix is a trace of its own.
    #[test]
    fn the_least_cost_of_an_operation_is_one(
        description in crate::support::heap(),
        steps in crate::support::steps(60),
    ) {
        prop_assume!(description.validate(16, 8).is_ok());
        let steps: Vec<_> = steps.into_iter().map(crate::support::Step::unaligned).collect();
        let mut replayer = Replayer::new();
        let mut before = (0, 0);
        for length in 1..=steps.len() {
            let events = crate::support::trace(&steps[..length]);
            let outcome = replayer.outcome(&description, &events, &Options::default());
            let now = (outcome.record_reads, outcome.record_writes);
            let (reads, writes) = (now.0 - before.0, now.1 - before.1);
            let last = events.as_slice().last().map(|event| event.operation());
            let grew = events.len() == crate::support::trace(&steps[..length - 1]).len() + 1;
            match last {
                Some(Operation::Allocate) if grew => prop_assert!(reads >= 3 && writes >= 2, "{reads} {writes}"),
                Some(Operation::Free) if grew => prop_assert!(reads >= 2 && writes >= 2),
                _ => {}
            }
            before = now;
        }
    }
}
