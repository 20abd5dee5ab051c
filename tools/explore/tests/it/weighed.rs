//! What heaps guarantee is an objective as what is measured is.

use std::sync::atomic::AtomicBool;

use metes_explore::engine::{
    Evaluator, Explorer, Folder, Form, Front, Method, NO_GUARANTEE, Objective, ObjectiveSet, Plan,
    Row, Shard, Source, Status, Summary, decode_rows, encode_rows, finish,
};
use metes_explore::report::DemandFigures;
use metes_explore::{
    Arena, Budget, Events, EventsBuilder, Exploration, Hierarchy, Operation, Options, Outcome,
    Space, SpaceDescription, SystemClock, Terms, Timer, Wanted, explore,
};

const SPACE: &str = r#"
[general]
count = [1, 2]
split = [75]
index = ["list", "classes", "kingsley"]
[list]
fit = ["first", "best"]
order = ["fifo", "address"]
depth = [50, 100]
[dedicated]
count = [0, 1]
[coalescing]
pools = [0, 2]
[splitting]
pools = [0, 2]
"#;

/// Blocks of 64 to 1024 bytes, some 150 at once, no resizes.
fn program() -> Events {
    let mut builder = EventsBuilder::new();
    let mut live = std::collections::VecDeque::new();
    for serial in 0..2000_u64 {
        let size = [64, 96, 200, 512, 1024][(serial * 7919 % 5) as usize];
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
        live.push_back(serial);
        while live.len() > 150 {
            let block = live.remove(serial as usize * 31 % live.len()).unwrap();
            builder.push(Operation::Free, block, 0, 0).unwrap();
        }
    }
    builder.finish()
}

fn terms(events: &Events, wanted: Wanted) -> Terms {
    let recorded = DemandFigures {
        live: events.peak_live(),
        largest: 1024,
        smallest: 64,
        alignment: 16,
        resizes: false,
    };
    wanted.of(&recorded, &Arena::HOST).unwrap()
}

fn space(events: &Events) -> Space {
    let description = SpaceDescription::parse(SPACE, "s").unwrap();
    Space::new(&description, events, SPACE, "s").unwrap()
}

fn plan(objectives: &str, end_early: bool) -> Plan {
    Plan {
        objectives: objectives.parse().unwrap(),
        seed_evaluations: 32,
        end_early,
        ..Plan::default()
    }
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

/// Explores whole into a directory of its own: what is there then, and the rows.
fn explored(explorer: &Explorer<'_>, shards: u64) -> (Summary, Vec<Row>, Vec<u8>) {
    let place = tempfile::tempdir().unwrap();
    let manifest = explorer.manifest(Method::Exhaustive, 0, 0);
    for index in 0..shards {
        let folder = Folder::open(place.path(), &manifest, false).unwrap();
        let shard = Shard {
            index,
            count: shards,
        };
        explorer.run(&folder, shard, &never(), &()).unwrap();
    }
    let (folder, read) = Folder::read(place.path()).unwrap();
    assert_eq!(read, manifest);
    let evaluator = explorer.evaluator();
    let (summary, _) = finish(place.path(), &manifest, evaluator, Source::Units(&folder)).unwrap();
    let units = (0..explorer.units()).flat_map(|unit| folder.rows(Some(unit)).unwrap());
    let file = std::fs::read(place.path().join("results.parquet")).unwrap();
    (summary, units.collect(), file)
}

fn points(objectives: ObjectiveSet, rows: &[Row]) -> Vec<[u64; 8]> {
    let mut front = Front::new();
    for row in rows.iter().filter(|row| row.status == Status::Complete) {
        front.enter(objectives.point(&row.metrics), row.number);
    }
    let mut points: Vec<_> = front.points().iter().map(|(point, _)| *point).collect();
    points.sort_unstable();
    points
}

#[test]
fn a_described_space_is_searched_for_guarantees() {
    let events = program();
    let space = space(&events);
    let terms = terms(&events, Wanted::default());
    let run = |objectives: &str, end_early, shards| {
        let explorer = Explorer::new(&space, &events, plan(objectives, end_early), 2);
        explored(&explorer.guaranteeing(terms), shards)
    };
    let objectives = "footprint,guarantee,cycles";
    let (early, rows, file) = run(objectives, true, 1);
    let (whole, all, _) = run(objectives, false, 1);
    let set: ObjectiveSet = objectives.parse().unwrap();
    assert!(early.beaten > 0 && whole.beaten == 0);
    assert_eq!(points(set, &early.front), points(set, &whole.front));
    assert_eq!(points(set, &all), points(set, &whole.front));
    // Shards give the same file.
    assert_eq!(run(objectives, true, 3).2, file);
    // What is said of each heap is what its bound says, ended early or not.
    for row in rows.iter().chain(&all) {
        let config = space.describe(row.number).unwrap();
        let bytes = metes_config::suffices(&config, &terms.demand).unwrap();
        assert_eq!(
            row.metrics.guarantee,
            bytes.map_or(NO_GUARANTEE, |bytes| u64::try_from(bytes).unwrap()),
            "{}",
            config.name()
        );
    }
    // The least guarantee is on the front, and none beats it that measures better.
    let complete = || all.iter().filter(|row| row.status == Status::Complete);
    let least = |rows: &mut dyn Iterator<Item = &Row>| rows.map(|row| row.metrics.guarantee).min();
    assert_eq!(least(&mut whole.front.iter()), least(&mut complete()));
    let (measured, ..) = run("footprint,cycles", false, 1);
    assert!(least(&mut measured.front.iter()) > least(&mut complete()));
    // Some heap of the front has no bound: there it is worse than all that have one.
    assert!(
        (whole.front.iter()).any(|row| row.metrics.guarantee == NO_GUARANTEE)
            || complete().all(|row| row.metrics.guarantee != NO_GUARANTEE)
    );
}

#[test]
fn what_guarantees_less_than_was_asked_for_is_not_replayed() {
    let events = program();
    let space = space(&events);
    let limit = 7.0;
    let wanted = Wanted {
        times: Some(limit),
        ..Wanted::default()
    };
    let terms = terms(&events, wanted);
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 2);
    let (summary, rows, _) = explored(&explorer.guaranteeing(terms), 1);
    for row in &rows {
        let beyond = row.metrics.guarantee > terms.limit;
        assert_eq!(row.status == Status::Beyond, beyond);
        assert!(!beyond || row.metrics.cycles == 0);
    }
    let beyond = rows.iter().filter(|row| row.status == Status::Beyond);
    assert_eq!(beyond.count() as u64, summary.beyond);
    assert!(summary.beyond > 0 && !summary.front.is_empty());
    assert_eq!(
        summary.complete + summary.beaten + summary.failed + summary.beyond,
        summary.configurations
    );
}

#[test]
fn a_memory_level_with_a_price_must_have_room_for_the_guarantee() {
    let events = program();
    let space = space(&events);
    let terms = terms(&events, Wanted::default());
    let guarantees = |levels: &str| -> Vec<u64> {
        let hierarchy = Hierarchy::resolve(levels).unwrap();
        let evaluator = Evaluator::new(
            &space,
            &events,
            &Options::default(),
            "guarantee".parse().unwrap(),
        );
        let evaluator = evaluator.guaranteeing(terms).on(&hierarchy).unwrap();
        let rows = (0..space.baselines()).map(|number| evaluator.row(number, None));
        rows.map(|row| row.metrics.guarantee).collect()
    };
    let (large, small) = (guarantees("main=8MiB"), guarantees("main=512KiB"));
    assert!(large.iter().any(|bytes| *bytes != NO_GUARANTEE));
    for (large, small) in large.into_iter().zip(small) {
        let fits = large <= (512 << 10) - 2 * 4096;
        assert!(small == if fits { large } else { NO_GUARANTEE } || large > (512 << 10) - 8192);
    }
}

#[test]
fn explorations_without_guarantees_are_written_as_they_were() {
    let events = program();
    let space = space(&events);
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 1);
    let manifest = explorer.manifest(Method::Exhaustive, 0, 0);
    let written = serde_json::to_value(&manifest).unwrap();
    assert_eq!(
        (written["format"].as_u64(), written.get("guarantee")),
        (Some(3), None)
    );
    let seed = explorer.seed(&never()).unwrap();
    let bytes = encode_rows(seed.rows(), Form::Measured);
    assert_eq!(bytes.len(), 89 * seed.rows().len());
    assert_eq!(
        decode_rows(&bytes, Form::Measured).as_deref(),
        Some(seed.rows())
    );
    // With them it is another exploration, and says so.
    let with = explorer.guaranteeing(terms(&events, Wanted::default()));
    let place = tempfile::tempdir().unwrap();
    Folder::open(place.path(), &manifest, false).unwrap();
    let other = with.manifest(Method::Exhaustive, 0, 0);
    let refused = Folder::open(place.path(), &other, false).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("(what is to be guaranteed differs)"),
        "{refused}"
    );
}

fn search(events: &Events, weighed: bool, end_early: bool) -> Exploration {
    let wanted = Wanted {
        weighed,
        ..Wanted::default()
    };
    let terms = terms(events, wanted);
    let options = Options::default();
    let space = Space::suggested(events, &options.arena);
    let mut evaluator = Evaluator::new(&space, events, &options, ObjectiveSet::HOST);
    if weighed {
        evaluator = evaluator.weighing(terms);
    }
    let budget = Budget {
        time: None,
        evaluations: Some(120),
        terms: Some(terms),
        by_guarantee: weighed,
        end_early,
        ..Budget::default()
    };
    let (clock, stop) = (SystemClock::start(), never());
    let timer = Timer::begin(&clock, None, &stop);
    explore(&evaluator, &budget, None, &timer, &mut ()).unwrap()
}

#[test]
fn what_a_trace_suggests_is_searched_for_guarantees() {
    let events = program();
    let found = search(&events, true, true);
    let beats = |one: &Outcome, other: &Outcome| {
        let point = |own: &Outcome| {
            let [a, b, c] = own.objectives();
            [a, b, c, own.guarantee.unwrap_or(u64::MAX)]
        };
        let (one, other) = (point(one), point(other));
        one != other && one.iter().zip(&other).all(|(one, other)| one <= other)
    };
    let served = || found.outcomes.iter().filter(|one| one.failed == 0);
    for outcome in served() {
        let beaten = served().any(|other| beats(other, outcome));
        let same = |own: &Outcome| {
            own.objectives() == outcome.objectives() && own.guarantee == outcome.guarantee
        };
        assert_eq!(!beaten, found.pareto.iter().any(same), "{}", outcome.heap);
    }
    // Ending replays early loses none of them.
    let whole = search(&events, true, false);
    let heaps = |found: &Exploration| {
        let own = found.pareto.iter();
        own.map(|one| (one.objectives(), one.guarantee))
            .collect::<Vec<_>>()
    };
    assert_eq!(heaps(&found), heaps(&whole));
    assert!(found.outcomes.len() < whole.outcomes.len());
    // It is a choice: without it, fewer heaps stand beside each other.
    assert!(search(&events, false, true).pareto.len() < found.pareto.len());
    assert!(
        ObjectiveSet::HOST
            .with(Objective::Guarantee)
            .to_string()
            .ends_with("worst,guarantee")
    );
}
