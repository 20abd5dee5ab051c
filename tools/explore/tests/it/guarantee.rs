//! What is guaranteed is searched for, chosen, and told.

use std::sync::atomic::AtomicBool;

use metes_explore::engine::{Evaluator, ObjectiveSet};
use metes_explore::report::DemandFigures;
use metes_explore::{
    Arena, Budget, Declared, Events, EventsBuilder, Exploration, Operation, Options, Preference,
    Rule, Space, SystemClock, TermsError, Timer, USEFUL, Wanted, choose, explore,
};

/// Blocks of 64 to 1024 bytes, a few hundred at once, no resizes.
fn program() -> Events {
    let mut builder = EventsBuilder::new();
    let mut live = std::collections::VecDeque::new();
    for serial in 0..3000_u64 {
        let size = [64, 96, 200, 512, 1024][(serial * 7919 % 5) as usize];
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
        live.push_back(serial);
        while live.len() > 200 {
            let at = serial as usize * 31 % live.len();
            let block = live.remove(at).unwrap();
            builder.push(Operation::Free, block, 0, 0).unwrap();
        }
    }
    builder.finish()
}

fn demand(events: &Events) -> DemandFigures {
    DemandFigures {
        live: events.peak_live(),
        largest: 1024,
        smallest: 64,
        alignment: 16,
        resizes: false,
    }
}

fn search(wanted: Option<Wanted>, end_early: bool) -> Exploration {
    let events = program();
    let options = Options::default();
    let space = Space::suggested(&events, &options.arena);
    let evaluator = Evaluator::new(&space, &events, &options, ObjectiveSet::HOST);
    let budget = Budget {
        time: None,
        evaluations: Some(160),
        terms: wanted.map(|wanted| wanted.of(&demand(&events), &options.arena).unwrap()),
        end_early,
        ..Budget::default()
    };
    let (clock, stop) = (SystemClock::start(), AtomicBool::new(false));
    let timer = Timer::begin(&clock, None, &stop);
    explore(&evaluator, &budget, None, &timer, &mut ()).unwrap()
}

#[test]
fn the_best_with_a_useful_guarantee_is_chosen_and_the_best_without_stands_beside_it() {
    let found = search(Some(Wanted::default()), true);
    let terms = found.guaranteed.as_ref().unwrap().terms;
    assert_eq!(terms.limit, USEFUL * terms.necessary);
    let plain = search(None, true);
    assert!(plain.guaranteed.is_none());
    for preference in [
        Preference::Balanced,
        Preference::Footprint,
        Preference::Speed,
        Preference::Worst,
    ] {
        let choice = choose(&found, preference).unwrap();
        let bytes = choice.outcome.guarantee.unwrap();
        assert!(
            bytes <= terms.limit && bytes >= terms.necessary,
            "{preference:?}: {bytes}"
        );
        assert!(bytes >= choice.outcome.footprint || choice.outcome.footprint <= terms.limit);
        assert!(choice.why.contains("useful guarantee"), "{}", choice.why);
        if let Some(without) = choice.without {
            assert!(!terms.useful(without.guarantee) || preference == Preference::Balanced);
        }
    }
    // What is said of a heap is what its bound says.
    for outcome in &found.outcomes {
        assert_eq!(
            outcome.guarantee,
            terms.guarantee(&outcome.description),
            "{}",
            outcome.heap
        );
    }
    let least = choose(&found, Preference::Guarantee).unwrap().outcome;
    let served = found.outcomes.iter().filter(|one| one.failed == 0);
    assert_eq!(
        least.guarantee,
        served.filter_map(|one| one.guarantee).min()
    );
}

#[test]
fn a_heap_with_a_guarantee_is_beaten_by_such_heaps_alone() {
    let [early, whole] = [true, false].map(|early| search(Some(Wanted::default()), early));
    let fronts = |found: &Exploration| {
        let own = found.guaranteed.clone().unwrap();
        [own.pareto, own.constant_time]
            .map(|front| front.iter().map(|one| one.objectives()).collect::<Vec<_>>())
    };
    assert_eq!(fronts(&early), fronts(&whole));
    assert!(early.outcomes.len() < whole.outcomes.len());
}

#[test]
fn what_nobody_can_guarantee_is_refused_with_what_is_necessary_and_what_would_do() {
    let events = program();
    let recorded = demand(&events);
    let of = |wanted: Wanted| wanted.of(&recorded, &Arena::HOST);
    let narrow = Wanted {
        times: Some(1.5),
        ..Wanted::default()
    };
    let error = of(narrow).unwrap_err();
    let TermsError::Below {
        necessary,
        ref does,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert!(
        necessary > recorded.live && does.contains("suffice for"),
        "{error}"
    );
    // What would do, does.
    let (heap, bytes) = of(Wanted::default()).unwrap().least_named().unwrap();
    assert!(does.contains(&heap) && does.contains(&bytes.to_string()));
    let enough = of(Wanted {
        arena: Some(bytes),
        ..Wanted::default()
    })
    .unwrap();
    assert_eq!((enough.rule, enough.limit), (Rule::Arena, bytes));
    let found = search(
        Some(Wanted {
            arena: Some(bytes),
            ..Wanted::default()
        }),
        true,
    );
    assert!(
        choose(&found, Preference::Footprint)
            .unwrap()
            .outcome
            .guarantee
            <= Some(bytes)
    );
    // Where a limit was asked for that no heap keeps, none is chosen.
    let found = search(
        Some(Wanted {
            arena: Some(necessary),
            ..Wanted::default()
        }),
        true,
    );
    assert_eq!(choose(&found, Preference::Footprint), None);
}

#[test]
fn a_demand_is_that_of_the_trace_or_declared_for_more() {
    let recorded = demand(&program());
    let of = |wanted: Wanted| wanted.of(&recorded, &Arena::HOST);
    let more = of(Wanted {
        margin: 50,
        ..Wanted::default()
    })
    .unwrap()
    .demand;
    assert_eq!(
        (more.live, more.largest, more.smallest),
        (recorded.live * 3 / 2, 1536, 64)
    );
    let declared = |live, max_block, min_block| Wanted {
        declared: Some(Declared {
            live,
            max_block,
            min_block,
        }),
        ..Wanted::default()
    };
    let own = of(declared(1 << 20, 4096, None)).unwrap().demand;
    assert_eq!((own.live, own.largest, own.smallest), (1 << 20, 4096, 64));
    for (wanted, option) in [
        (declared(1000, 1000, None), "--live"),
        (declared(1 << 20, 1000, None), "--max-block"),
        (declared(1 << 20, 1024, Some(65)), "--min-block"),
    ] {
        let error = of(wanted).unwrap_err().to_string();
        assert!(error.contains(option), "{error}");
    }
    let nothing = DemandFigures {
        live: 0,
        largest: 1,
        smallest: 1,
        ..recorded
    };
    let error = Wanted::default().of(&nothing, &Arena::HOST).unwrap_err();
    assert!(
        error.to_string().contains("largest block are unknown"),
        "{error}"
    );
}

#[test]
fn every_heap_of_the_default_space_is_read_by_its_name() {
    let events = program();
    for mapped in [None, Some(1 << 17)] {
        let arena = Arena {
            mapped,
            ..Arena::HOST
        };
        let space = Space::suggested(&events, &arena);
        // All are too many: an even sample, and the named ones.
        let stride = (space.size() / 4000).max(1) as usize;
        let numbers = (0..space.size())
            .step_by(stride)
            .chain(0..space.baselines());
        for number in numbers {
            let config = space.describe(number).unwrap();
            let name = config.name();
            let read = metes_config::spec(&name).map_err(|error| format!("{name}: {error}"));
            assert_eq!(
                read.as_ref().map(|read| &read.heap),
                Ok(&config.normal().heap),
                "{name}"
            );
            assert_eq!(read.unwrap().arena.mapped, config.arena.mapped, "{name}");
        }
    }
}
