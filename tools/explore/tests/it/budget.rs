//! A budget of time is kept, whatever the trace and the heaps, and what it was too
//! short for is named.
//!
//! Time goes by the work done: the clock of these tests advances by a fixed amount
//! whenever it is looked at, which replays do every 1024 events. So nothing here
//! depends on the speed of a machine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use metes_explore::engine::{Evaluator, ObjectiveSet};
use metes_explore::{
    Budget, Clock, Events, EventsBuilder, Exploration, Operation, Options, Preference, Space,
    Timer, choose, compare, explore,
};

/// Advances by a tick at every look.
struct Looks {
    looks: AtomicU64,
    tick: Duration,
}

impl Clock for Looks {
    fn now(&self) -> Duration {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        self.tick * u32::try_from(looks).unwrap()
    }
}

/// Blocks of many sizes, some of which live long; `live` of them at once.
fn crowd(requests: u64, live: u64) -> Events {
    let mut builder = EventsBuilder::new();
    let mut blocks = vec![None; live as usize];
    let mut random = metes_explore::Random::new(7);
    for serial in 0..requests / 2 {
        let at = random.below(live as usize);
        if let Some(block) = blocks[at] {
            builder.push(Operation::Free, block, 0, 0).unwrap();
        }
        let size = match random.below(8) {
            0 => 1 + random.below(4000),
            1 => 24 + 8 * random.below(30),
            _ => 48,
        };
        builder
            .push(Operation::Allocate, serial, size as u64, 0)
            .unwrap();
        blocks[at] = Some(serial);
    }
    builder.finish()
}

/// Four phases, each of which builds up blocks of other sizes than the one before,
/// uses some, and gives most of them back.
fn phases(requests: u64) -> Events {
    let mut builder = EventsBuilder::new();
    let mut random = metes_explore::Random::new(11);
    let (mut live, mut serial) = (Vec::new(), 0);
    for phase in 0..4_usize {
        let end = after_quarters(requests, phase + 1);
        let mut made = after_quarters(requests, phase);
        while made < end {
            // Of the last tenth of a phase, frees alone.
            let ending = made > end - (end - after_quarters(requests, phase)) / 10;
            let full = live.len() > 900;
            if !live.is_empty() && (ending || full || random.below(5) < 2) {
                let block = live.swap_remove(random.below(live.len()));
                builder.push(Operation::Free, block, 0, 0).unwrap();
            } else {
                let size = (16 << (2 * phase)) + random.below(24 << (2 * phase));
                (builder.push(Operation::Allocate, serial, size as u64, 0)).unwrap();
                live.push(serial);
                serial += 1;
            }
            made += 1;
        }
    }
    builder.finish()
}

fn after_quarters(requests: u64, quarters: usize) -> u64 {
    requests * quarters as u64 / 4
}

/// Messages in a queue, each in a buffer that grows as it is read; and a table of
/// names beside them, which are replaced now and then.
fn buffers(requests: u64) -> Events {
    let mut builder = EventsBuilder::new();
    let mut random = metes_explore::Random::new(13);
    let mut queue = std::collections::VecDeque::new();
    let mut names = vec![None; 400];
    let mut made = 0;
    let mut serial = 0;
    while made < requests {
        builder.push(Operation::Allocate, serial, 64, 0).unwrap();
        let (block, mut size) = (serial, 64);
        serial += 1;
        for _ in 0..random.below(5) {
            size += size / 2 + random.below(64) as u64;
            builder.push(Operation::Resize, block, size, 0).unwrap();
            made += 1;
        }
        queue.push_back(block);
        if queue.len() > 150 + random.below(100) {
            let oldest = queue.pop_front().unwrap();
            builder.push(Operation::Free, oldest, 0, 0).unwrap();
            made += 1;
        }
        let name = &mut names[random.below(400)];
        if let Some(old) = name.replace(serial) {
            builder.push(Operation::Free, old, 0, 0).unwrap();
        }
        let size = 8 + random.below(40) as u64;
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
        serial += 1;
        made += 3;
    }
    builder.finish()
}

fn explored(events: &Events, budget: &Budget, timer: &Timer<'_>) -> Exploration {
    let options = Options::default();
    let space = Space::suggested(events, &options.arena);
    let evaluator = Evaluator::new(&space, events, &options, ObjectiveSet::HOST);
    explore(&evaluator, budget, None, timer, &mut ()).unwrap()
}

/// Searches with a budget of `seconds`, in which a worker replays so many
/// thousands of events a second.
fn search(events: &Events, seconds: f64, speed: f64, workers: usize) -> (Exploration, Duration) {
    let clock = Looks {
        looks: AtomicU64::new(0),
        tick: Duration::from_secs_f64(1.0 / speed),
    };
    let stop = AtomicBool::new(false);
    let budget = Budget {
        time: Some(Duration::from_secs_f64(seconds)),
        workers,
        ..Budget::default()
    };
    let timer = Timer::begin(&clock, budget.time, &stop);
    let options = Options::default();
    let found = explored(events, &budget, &timer);
    let heaps: Vec<_> = (found.named.iter())
        .map(|outcome| (outcome.heap.clone(), outcome.description))
        .collect();
    let compared = compare(&heaps, events, &options, &found.details, &timer);
    assert_eq!(compared.len(), found.named.len());
    for (compared, outcome) in compared.iter().zip(&found.named) {
        let replay = &compared.replay;
        assert_eq!(replay.footprint, outcome.footprint, "{}", outcome.heap);
        assert_eq!(replay.cycles, outcome.cycles, "{}", outcome.heap);
        assert_eq!(replay.events as usize, events.len());
    }
    (found, timer.elapsed())
}

/// Within a tenth of the budget, but for the first heap, which is always finished.
fn kept(elapsed: Duration, seconds: f64) -> bool {
    elapsed.as_secs_f64() <= seconds * 1.1
}

#[test]
fn a_long_trace_is_searched_on_windows_and_confirmed_whole() {
    let events = crowd(120_000, 3000);
    let (found, elapsed) = search(&events, 2.0, 1500.0, 1);
    assert!(kept(elapsed, 2.0), "{elapsed:?}");
    let sampled = found.sampled.expect("too long for whole replays");
    assert!(sampled.windows >= 2 && sampled.events < events.len() as u64 / 2);
    assert!(
        sampled.configurations > found.configurations,
        "{sampled:?}, {} whole",
        found.configurations
    );
    assert!(
        found.configurations >= 1 && sampled.confirmed >= 1,
        "{sampled:?}, {} whole",
        found.configurations
    );
    // Whatever is an outcome was replayed whole.
    let replayed = |outcome: &metes_explore::Outcome| {
        let whole = metes_explore::Replayer::new().outcome(
            &outcome.description,
            &events,
            &Options::default(),
        );
        (whole.footprint, whole.cycles)
    };
    for outcome in &found.pareto {
        assert_eq!(replayed(outcome), (outcome.footprint, outcome.cycles));
    }
    // Better than what is known without a search.
    let plain = found.named.iter().map(|outcome| outcome.footprint).min();
    let best = found.pareto.first().map(|outcome| outcome.footprint);
    assert!(best <= plain, "{best:?} {plain:?}");
    let why = choose(&found, Preference::Footprint).unwrap().why;
    assert!(why.contains("replayed whole"), "{why}");
    // One worker and a clock that goes by work: the same again.
    let (again, _) = search(&events, 2.0, 1500.0, 1);
    assert_eq!(again.pareto, found.pareto);
    assert_eq!(again.sampled, found.sampled);
}

/// What a preference is about, of the heap that it picks.
fn merit(found: &Exploration, preference: Preference) -> u64 {
    let outcome = choose(found, preference).unwrap().outcome;
    match preference {
        Preference::Balanced | Preference::Footprint => outcome.footprint,
        Preference::Guarantee => outcome.guarantee.unwrap_or(u64::MAX),
        Preference::Speed => outcome.cycles,
        Preference::Worst => outcome.cycles_max,
    }
}

#[test]
fn windows_choose_as_well_as_whole_replays_of_as_many_heaps() {
    let mut ratios = Vec::new();
    for (name, events) in [
        ("crowd", crowd(60_000, 1000)),
        ("phases", phases(60_000)),
        ("buffers", buffers(60_000)),
    ] {
        let (found, elapsed) = search(&events, 1.0, 8000.0, 1);
        assert!(kept(elapsed, 1.0), "{name}: {elapsed:?}");
        let sampled = found.sampled.expect("too long for whole replays");
        assert!(
            sampled.configurations >= 100 && found.configurations >= 20,
            "{name}: {sampled:?}, {} whole",
            found.configurations
        );
        let stop = AtomicBool::new(false);
        let budget = Budget {
            time: None,
            evaluations: Some(sampled.configurations),
            ..Budget::default()
        };
        let clock = Looks {
            looks: AtomicU64::new(0),
            tick: Duration::ZERO,
        };
        let timer = Timer::begin(&clock, None, &stop);
        let all = explored(&events, &budget, &timer);
        assert_eq!(all.sampled, None);
        assert!(all.configurations >= sampled.configurations);
        for preference in [
            Preference::Balanced,
            Preference::Footprint,
            Preference::Speed,
            Preference::Worst,
        ] {
            let (chosen, best) = (merit(&found, preference), merit(&all, preference));
            let ratio = chosen as f64 / best as f64;
            assert!(
                ratio <= 1.2,
                "{name}, {preference:?}: {chosen} by windows, {best} of {} whole replays",
                all.configurations
            );
            ratios.push(ratio);
        }
    }
    // The two searches look at other heaps, and either may be the luckier.
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    let mean = (logarithms / ratios.len() as f64).exp();
    assert!(mean <= 1.02, "{mean:.3}: {ratios:?}");
}

#[test]
fn every_named_heap_is_judged_or_named_with_what_is_known() {
    let events = crowd(60_000, 2000);
    for (seconds, workers) in [(0.05, 1), (0.1, 2), (0.3, 1), (0.9, 2)] {
        let (found, elapsed) = search(&events, seconds, 1000.0, workers);
        // The first heap takes 60 looks.
        assert!(kept(elapsed, seconds.max(0.09)), "{seconds} s: {elapsed:?}");
        let catalogue = metes_explore::catalogue();
        for named in &catalogue {
            let judged = found
                .named
                .iter()
                .any(|outcome| outcome.named == Some(named.name));
            let unfinished = found
                .unfinished
                .iter()
                .filter(|heap| heap.named == Some(named.name));
            assert_eq!(unfinished.count(), usize::from(!judged), "{}", named.name);
        }
        let options = Options::default();
        for heap in &found.unfinished {
            let Some(least) = heap.at_least else { continue };
            let Some(named) = catalogue.iter().find(|own| Some(own.name) == heap.named) else {
                continue;
            };
            let whole =
                metes_explore::Replayer::new().outcome(&named.description, &events, &options);
            assert!(least.footprint <= whole.footprint && least.footprint >= events.peak_live());
            assert!(least.cycles <= whole.cycles && least.cycles_max <= whole.cycles_max);
            assert!(least.events < events.len() as u64, "{}", named.name);
        }
        assert!(!found.pareto.is_empty() && !found.interrupted);
        if !found.unfinished.is_empty() {
            let why = choose(&found, Preference::Balanced).unwrap().why;
            assert!(why.contains("not finished in the budget"), "{why}");
        }
    }
}

#[test]
fn a_trace_that_fits_is_replayed_whole_at_any_speed() {
    let events = crowd(20_000, 300);
    for speed in [3000.0, 30_000.0] {
        let (found, elapsed) = search(&events, 3.0, speed, 1);
        assert!(kept(elapsed, 3.0), "{elapsed:?}");
        assert_eq!(found.sampled, None);
        assert!(found.configurations > 100);
    }
}

#[test]
fn smallest_arenas_end_with_the_budget_and_are_left_out_then() {
    let events = crowd(20_000, 300);
    let clock = Looks {
        looks: AtomicU64::new(0),
        tick: Duration::from_millis(1),
    };
    let stop = AtomicBool::new(false);
    let heaps = [("tlsf".to_owned(), metes_config::spec("tlsf").unwrap().heap)];
    let options = Options::default();
    let arena = |time: Option<Duration>| {
        let timer = Timer::begin(&clock, time, &stop);
        let compared = compare(&heaps, &events, &options, &[], &timer);
        (
            compared[0].replay.smallest_arena,
            compared[0].replay.footprint,
        )
    };
    let (whole, footprint) = arena(None);
    let (bytes, same) = arena(Some(Duration::from_secs(3600)));
    assert!(bytes.is_some() && bytes == whole && same == footprint);
    assert_eq!(arena(Some(Duration::from_millis(60))), (None, footprint));
}
