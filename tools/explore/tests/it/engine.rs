//! The engine gives the same bytes whoever does the work, and loses no point.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use metes_explore::engine::{
    EngineError, Explorer, Folder, Form, Front, Manifest, Method, ObjectiveSet, Plan, Point,
    Progress, RESULTS, Row, Shard, Source, Status, Summary, decode_rows, encode_rows, finish,
    level_shortages,
};
use metes_explore::{
    Events, EventsBuilder, Hierarchy, Operation, Replayer, Space, SpaceDescription,
};

/// A queue of packets: bursts in, bursts out, some held longer; no randomness.
fn packets(count: u64) -> Events {
    let mut builder = EventsBuilder::new();
    let mut live = std::collections::VecDeque::new();
    for serial in 0..count {
        let size = match serial * 7919 % 100 {
            0..38 => 1514,
            38..60 => 66,
            other => 70 + other * serial * 31 % 9000,
        };
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
        live.push_back(serial);
        let most = 40 + serial * 13 % 90;
        while live.len() as u64 > most {
            let block = match serial % 7 {
                0 => live.remove(live.len() / 2),
                _ => live.pop_front(),
            };
            builder.push(Operation::Free, block.unwrap(), 0, 0).unwrap();
        }
    }
    builder.finish()
}

/// Phases of growth and of resizes.
fn phases(count: u64) -> Events {
    let mut builder = EventsBuilder::new();
    let mut live = Vec::new();
    for serial in 0..count {
        let size = 16 << (serial * serial % 9);
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
        live.push(serial);
        if serial % 4 == 0 {
            let block = live[live.len() / 3];
            builder
                .push(Operation::Resize, block, 24 + serial % 700, 0)
                .unwrap();
        }
        if serial % 50 > 24 {
            for _ in 0..2 {
                let at = (serial * 31) as usize % live.len();
                let block = live.swap_remove(at);
                builder.push(Operation::Free, block, 0, 0).unwrap();
            }
        }
    }
    builder.finish()
}

const SPACE: &str = r#"
[general]
count = [1, 2]
split = [75]
index = ["list", "classes"]
[list]
fit = ["first", "best", "exact"]
order = ["fifo", "address"]
max_fit = ["any", 120]
depth = [10, 100]
[classes]
second_level = [1, 4, 32]
[dedicated]
count = [0, 1, 3]
[coalescing]
pools = [0, 1, 2]
up_to = [512, "any"]
[splitting]
pools = [0, 2]
down_to = [32, 256]
"#;

fn space(events: &Events) -> Space {
    described(SPACE, events)
}

fn described(text: &str, events: &Events) -> Space {
    let description = SpaceDescription::parse(text, "s").unwrap();
    Space::new(&description, events, text, "s").unwrap()
}

fn plan(objectives: &str, end_early: bool) -> Plan {
    Plan {
        objectives: objectives.parse().unwrap(),
        seed_evaluations: 64,
        end_early,
        ..Plan::default()
    }
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

/// Explores whole into a directory.
fn explore(explorer: &Explorer<'_>, directory: &Path) -> Summary {
    let manifest = explorer.manifest(Method::Exhaustive, 0, 0);
    let folder = Folder::open(directory, &manifest, false).unwrap();
    let work = explorer.run(&folder, Shard::WHOLE, &never(), &()).unwrap();
    assert!(!work.interrupted);
    complete(explorer, &folder, &manifest).unwrap()
}

fn complete(
    explorer: &Explorer<'_>,
    folder: &Folder,
    manifest: &Manifest,
) -> Result<Summary, EngineError> {
    let evaluator = explorer.evaluator();
    let source = Source::Units(folder);
    Ok(finish(folder.directory(), manifest, evaluator, source)?.0)
}

/// Names and contents of the files that an exploration leaves.
fn results(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for place in [directory.to_owned(), directory.join("pareto")] {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.strip_prefix(directory).unwrap().display().to_string();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn points(summary: &Summary, objectives: ObjectiveSet) -> Vec<(Point, u64)> {
    let rows = summary.front.iter();
    rows.map(|row| (objectives.point(&row.metrics), row.number))
        .collect()
}

#[test]
fn ending_early_changes_no_point_of_the_front() {
    for events in [packets(1500), phases(1300)] {
        let space = space(&events);
        for objectives in [
            "footprint,accesses",
            "footprint,cycles,worst",
            "footprint,accesses,cycles,worst",
            "worst",
        ] {
            let place = tempfile::tempdir().unwrap();
            let early = Explorer::new(&space, &events, plan(objectives, true), 2);
            let early = explore(&early, &place.path().join("early"));
            let full = Explorer::new(&space, &events, plan(objectives, false), 2);
            let full = explore(&full, &place.path().join("full"));
            assert!(
                early.beaten > early.configurations / 4,
                "{objectives}: {}",
                early.beaten
            );
            assert_eq!(full.beaten, 0);
            assert_eq!(early.configurations, space.size());
            let set: ObjectiveSet = objectives.parse().unwrap();
            assert!(!early.front.is_empty());
            assert_eq!(points(&early, set), points(&full, set), "{objectives}");
            // The front is that of the definition.
            let mut front = Front::new();
            for row in &full.front {
                assert!(front.enter(set.point(&row.metrics), row.number));
            }
            assert_eq!(front.len(), full.front.len());
        }
    }
}

/// Pools in two levels, and what the program does to its blocks.
#[test]
fn ending_early_changes_no_front_of_energy_and_time() {
    const LEVELS: &str = r#"
[general]
count = [1, 2]
split = [75]
level = ["main", ["near", "main"]]
[list]
fit = ["first", "best"]
order = ["fifo", "address"]
depth = [10, 100]
[dedicated]
count = [0, 1, 2]
level = ["main", ["near", "main"]]
[coalescing]
pools = [0, 2]
[splitting]
pools = [0, 2]
down_to = [32, 256]
[[level]]
name = "near"
size = ["8 KiB", "16 KiB"]
[[level]]
name = "main"
size = "4 MiB"
[named]
heaps = ["first-fit", "kingsley"]
"#;
    let mut builder = EventsBuilder::new();
    builder.recorded(4, 100_000);
    for serial in 0..2500_u64 {
        let size = [66, 1514, 66, 400, 1514][(serial * serial % 5) as usize] + serial % 3;
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
        if let Some(block) = serial.checked_sub(40 + serial % 20)
            && serial % 20 == 0
        {
            for block in block..block + 20 {
                let accesses = metes_explore::Accesses {
                    reads: 3 + block % 9,
                    writes: 20 + block % 50,
                };
                // Blocks overlap at the ends of ranges: each goes once.
                if builder.access(block, accesses).is_ok() {
                    builder.push(Operation::Free, block, 0, 0).unwrap();
                }
            }
        }
    }
    let events = builder.finish();
    let space = described(LEVELS, &events);
    let hierarchy = metes_explore::Hierarchy::resolve("near=4KiB..16KiB,main=1MiB..8MiB").unwrap();
    for objectives in [
        "footprint,accesses,energy,time",
        "energy",
        "footprint,energy",
    ] {
        let place = tempfile::tempdir().unwrap();
        let run = |end_early, name| {
            let explorer = Explorer::new(&space, &events, plan(objectives, end_early), 2);
            let explorer = explorer.on(&hierarchy).unwrap();
            explore(&explorer, &place.path().join(name))
        };
        let (early, full) = (run(true, "early"), run(false, "full"));
        assert!(early.beaten > 0 && full.beaten == 0, "{objectives}");
        let set: ObjectiveSet = objectives.parse().unwrap();
        assert_eq!(points(&early, set), points(&full, set), "{objectives}");
        let priced = full
            .front
            .iter()
            .all(|row| row.metrics.energy_fj > 0 && row.metrics.time_ps > 0);
        assert!(priced && !full.front.is_empty());
    }
}

#[test]
fn shards_workers_and_interruptions_give_the_same_bytes() {
    let events = packets(400);
    let text = SPACE.replace("depth = [10, 100]", "depth = [5, 10, 20, 40, 70, 100]");
    let space = described(&text, &events);
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let plan = plan("footprint,accesses", true);
    explore(&Explorer::new(&space, &events, plan, 1), &at("one"));
    let whole = results(&at("one"));
    assert!(whole.len() > 3);

    explore(&Explorer::new(&space, &events, plan, 3), &at("three"));
    assert_eq!(results(&at("three")), whole);

    // Three shards in directories of their own, joined.
    let explorer = Explorer::new(&space, &events, plan, 2);
    assert!(explorer.units() >= 4);
    let manifest = explorer.manifest(Method::Exhaustive, 0, 0);
    let joined = Folder::open(&at("joined"), &manifest, false).unwrap();
    for index in 0..3 {
        let name = format!("shard{index}");
        let folder = Folder::open(&at(&name), &manifest, false).unwrap();
        let shard = Shard { index, count: 3 };
        explorer.run(&folder, shard, &never(), &()).unwrap();
        let (part, theirs) = Folder::read(&at(&name)).unwrap();
        if index == 2 {
            let missing = joined.all_there(explorer.units()).unwrap_err();
            assert!(
                missing.to_string().contains("units are missing"),
                "{missing}"
            );
        }
        joined
            .take_over(&part, &manifest, &theirs, explorer.units())
            .unwrap();
    }
    joined.all_there(explorer.units()).unwrap();
    complete(&explorer, &joined, &manifest).unwrap();
    assert_eq!(results(&at("joined")), whole);

    // Stopped after a unit, then gone on with; a damaged unit is done again.
    let folder = Folder::open(&at("stopped"), &manifest, false).unwrap();
    let stop = never();
    let impatient = Impatient(&stop);
    let one = Explorer::new(&space, &events, plan, 1);
    let work = one.run(&folder, Shard::WHOLE, &stop, &impatient).unwrap();
    assert!(work.interrupted && work.replayed > 0, "{work:?}");
    let done = work.replayed;
    let kept = (0..explorer.units())
        .filter(|&unit| folder.has(unit))
        .collect::<Vec<_>>();
    let mut damaged = fs::read(at("stopped/units").join(format!("{:06}", kept[0]))).unwrap();
    damaged[100] ^= 1;
    fs::write(at("stopped/units").join(format!("{:06}", kept[0])), damaged).unwrap();
    let work = explorer.run(&folder, Shard::WHOLE, &never(), &()).unwrap();
    let first = folder.rows(Some(kept[0])).unwrap().len() as u64;
    assert_eq!(
        work.found,
        done - first,
        "finished units are not done again"
    );
    assert_eq!(work.found + work.replayed, space.size());
    complete(&explorer, &folder, &manifest).unwrap();
    assert_eq!(results(&at("stopped")), whole);
    let again = explorer.run(&folder, Shard::WHOLE, &never(), &()).unwrap();
    assert_eq!((again.replayed, again.found), (0, space.size()));
}

/// Stops the exploration as soon as a unit is done.
struct Impatient<'s>(&'s AtomicBool);

impl Progress for Impatient<'_> {
    fn done(&self, configurations: u64, _of: u64) {
        if configurations > 0 {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_directory_of_another_exploration_is_refused() {
    let events = packets(300);
    let space = space(&events);
    let place = tempfile::tempdir().unwrap();
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 1);
    let manifest = explorer.manifest(Method::Exhaustive, 0, 0);
    Folder::open(place.path(), &manifest, false).unwrap();

    let other = Explorer::new(&space, &events, plan("footprint,worst", true), 1);
    let other = other.manifest(Method::Exhaustive, 0, 0);
    let refused = Folder::open(place.path(), &other, false).unwrap_err();
    assert!(
        refused.to_string().contains("(objectives differs)"),
        "{refused}"
    );
    let newer = Manifest {
        metes: "99.0.0".to_owned(),
        trace: String::new(),
        ..manifest.clone()
    };
    let refused = Folder::open(place.path(), &newer, false).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("(version of Metes and trace differ)") && text.contains("--fresh"),
        "{text}"
    );
    Folder::open(place.path(), &other, true).unwrap();
    let (_, own) = Folder::read(place.path()).unwrap();
    assert_eq!(own, other);

    let empty = tempfile::tempdir().unwrap();
    let refused = Folder::read(empty.path()).unwrap_err();
    assert!(refused.to_string().contains("holds no units"), "{refused}");
}

#[test]
fn what_an_exploration_is_of_is_json_and_an_older_form_is_told() {
    let events = packets(300);
    let space = space(&events);
    let place = tempfile::tempdir().unwrap();
    let hierarchy = Hierarchy::resolve("near=64KiB,main=1MiB..8MiB").unwrap();
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 1);
    let explorer = explorer.on(&hierarchy).unwrap();
    let manifest = explorer.manifest(Method::Exhaustive, 0, 0);
    assert_eq!(manifest.options["arena"]["increment"], 4096);
    assert_eq!(manifest.options["cost"]["allocate"], 20);
    let levels = &manifest.hierarchy["levels"];
    assert_eq!(
        (&levels[0]["name"], &levels[1]["memories"][0]["size"]),
        (&"near".into(), &(1 << 20).into())
    );
    explore(&explorer, place.path());
    let results = fs::read(place.path().join(RESULTS)).unwrap();
    let text = String::from_utf8_lossy(&results);
    assert!(
        text.contains(r#""options":{"arena":{"#),
        "the metadata is JSON"
    );

    // What an earlier release left: options as text, no levels.
    let path = place.path().join("units/manifest.json");
    let mut old = serde_json::to_value(&manifest).unwrap();
    old["format"] = 1.into();
    old["options"] = "Options { arena: Arena { .. } }".into();
    old.as_object_mut().unwrap().remove("hierarchy");
    fs::write(&path, old.to_string()).unwrap();
    let refused = Folder::open(place.path(), &manifest, false).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("(version of Metes differs)") && text.contains("--fresh"),
        "{text}"
    );
}

#[test]
fn to_begin_anew_removes_units_and_nothing_else() {
    let events = packets(300);
    let space = space(&events);
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join("units").join(name);
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 1);
    explore(&explorer, place.path());
    for name in ["notes", "seed.txt", "000000.bak", "12", "000000.part-x"] {
        fs::write(at(name), "mine").unwrap();
    }
    fs::write(at("000001.part-metes-0"), "half").unwrap();
    fs::create_dir(at("000009")).unwrap();
    let other = explorer.manifest(Method::Exhaustive, 7, 0);
    let other = Manifest {
        trace: "another".to_owned(),
        ..other
    };
    let folder = Folder::open(place.path(), &other, true).unwrap();
    let entries = fs::read_dir(at("")).unwrap();
    let mut left: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let mine = [
        "000000.bak",
        "000000.part-x",
        "000009",
        "12",
        "manifest.json",
        "notes",
        "seed.txt",
    ];
    assert_eq!(left, mine);
    // With nothing else in it, the directory goes, too.
    for name in mine.iter().filter(|name| **name != "manifest.json") {
        let _ = fs::remove_file(at(name));
    }
    fs::remove_dir(at("000009")).unwrap();
    folder.remove().unwrap();
    assert!(!at("").exists());
}

/// Two pools in two levels, of which the near one is too small for some heaps.
const TIGHT: &str = r#"
[general]
count = [1, 2]
split = [100]
level = ["main", ["near", "main"]]
[list]
fit = ["first", "best"]
[[level]]
name = "near"
size = [512, "64 KiB"]
[[level]]
name = "main"
size = "8 MiB"
[named]
heaps = []
"#;

#[test]
fn a_level_too_small_is_named_though_other_heaps_serve() {
    // Small blocks that stay: none of them fits into 512 bytes for long.
    let mut builder = EventsBuilder::new();
    for serial in 0..200 {
        let size = if serial % 2 == 0 { 64 } else { 900 };
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
    }
    let events = builder.finish();
    let space = described(TIGHT, &events);
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 2);
    let evaluator = explorer.evaluator();
    let rows: Vec<Row> = (0..space.size())
        .map(|number| evaluator.row(number, None))
        .collect();
    let failed = rows.iter().filter(|row| row.status == Status::Failed);
    let failed: Vec<u64> = failed.map(|row| row.number).collect();
    assert!(!failed.is_empty() && failed.len() < rows.len());
    // Small requests spill into the main memory, but the first regions of pools do not.
    let place = tempfile::tempdir().unwrap();
    let summary = explore(&explorer, place.path());
    assert_eq!(summary.failures, failed);
    assert!(!summary.front.is_empty());
    let found = level_shortages(evaluator, &summary.failures);
    let [shortage] = &found[..] else {
        panic!("one level of one size: {found:?}");
    };
    assert_eq!((&*shortage.level, shortage.size), ("near", 512));
    assert_eq!(
        (shortage.heaps, shortage.looked_at),
        (failed.len() as u64, shortage.failed)
    );
    assert!(0 < shortage.least && shortage.least <= shortage.most);
    assert!(failed.contains(&shortage.number) && !shortage.heap.is_empty());
    // With that much more, the heap serves.
    let config = space.describe(shortage.number).unwrap();
    let mut options = evaluator.options(&config);
    options.arena.levels[0] = Some(512 + shortage.least as usize);
    let (replay, _) = Replayer::new().replay("", &config.heap, &events, &options);
    assert_eq!(replay.failed, 0);
    assert!(level_shortages(evaluator, &[]).is_empty());
}

/// Counts what is replayed.
struct Counter(AtomicU64);

impl Progress for Counter {
    fn done(&self, configurations: u64, _of: u64) {
        self.0.store(configurations, Ordering::Relaxed);
    }
}

#[test]
fn searches_are_the_same_on_any_number_of_workers_and_go_on_where_they_were() {
    let events = packets(500);
    let space = space(&events);
    for method in [Method::Local, Method::Nsga2, Method::Random] {
        let place = tempfile::tempdir().unwrap();
        let run = |name: &str, workers, evaluations, seed| {
            let explorer =
                Explorer::new(&space, &events, plan("footprint,accesses", true), workers);
            // A search of more evaluations goes on from one of fewer.
            let manifest = explorer.manifest(method, seed, 0);
            let folder = Folder::open(&place.path().join(name), &manifest, false).unwrap();
            let mut searcher = method.searcher(&space, seed).unwrap();
            let counter = Counter(AtomicU64::new(0));
            let found = explorer
                .search(
                    &folder,
                    searcher.as_mut(),
                    evaluations,
                    None,
                    &never(),
                    &counter,
                )
                .unwrap();
            assert_eq!(counter.0.into_inner(), found.0.len() as u64);
            found
        };
        let (one, _) = run("one", 1, 200, 1);
        assert_eq!(one.len() as u64, 200 + space.baselines());
        let numbers: std::collections::HashSet<u64> = one.iter().map(|row| row.number).collect();
        assert_eq!(numbers.len(), one.len(), "nothing twice");
        let (many, _) = run("many", 3, 200, 1);
        assert_eq!(many, one, "{method:?}");
        run("parts", 2, 100, 1);
        let (parts, work) = run("parts", 2, 200, 1);
        assert_eq!(parts, one, "{method:?}");
        assert!(work.found >= 100 && work.replayed <= 110, "{work:?}");
        let (other, _) = run("other", 2, 200, 2);
        assert_ne!(other, one, "the seed matters to {method:?}");
    }
}

#[test]
fn rows_survive_their_form_on_disk() {
    let events = phases(200);
    let space = space(&events);
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 1);
    let seed = explorer.seed(&never()).unwrap();
    assert_eq!(seed.rows().len() as u64, 64 + space.baselines());
    for form in [Form::Measured, Form::Guaranteed] {
        let bytes = encode_rows(seed.rows(), form);
        assert_eq!(decode_rows(&bytes, form).as_deref(), Some(seed.rows()));
        assert_eq!(decode_rows(&bytes[1..], form), None);
    }
    let rows = explorer.unit(&seed, 0, &never()).unwrap();
    assert!(rows[..10].iter().all(|row| row.status == Status::Complete));
    assert_eq!(explorer.unit(&seed, 0, &never()).unwrap(), rows);
    assert_eq!(
        explorer.unit(&seed, explorer.units(), &never()),
        Some(Vec::new())
    );
}

#[test]
fn results_hold_every_configuration_once() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    let events = packets(300);
    let space = space(&events);
    let place = tempfile::tempdir().unwrap();
    let explorer = Explorer::new(&space, &events, plan("footprint,accesses", true), 2);
    let summary = explore(&explorer, place.path());
    let file = fs::File::open(place.path().join(RESULTS)).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let column = |name: &str| {
        let fields = schema.get_fields();
        fields
            .iter()
            .position(|field| field.name() == name)
            .unwrap()
    };
    let (number, front, footprint) = (column("number"), column("front"), column("footprint"));
    let mut unbeaten = Vec::new();
    let mut next = 0;
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        assert_eq!(row.get_ulong(number).unwrap(), next);
        if row.get_bool(front).unwrap() {
            unbeaten.push((next, row.get_ulong(footprint).unwrap()));
        }
        next += 1;
    }
    assert_eq!(next, space.size());
    let mut expected: Vec<(u64, u64)> = (summary.front.iter())
        .map(|row| (row.number, row.metrics.footprint))
        .collect();
    expected.sort_unstable();
    assert_eq!(unbeaten, expected);
    // Each of the front is replayed from its file with the same footprint.
    for (index, row) in summary.front.iter().enumerate() {
        let path = metes_explore::heap_file(place.path(), index);
        let config = metes_config::load(&path).unwrap();
        let options = explorer.evaluator().options(&config);
        let outcome = metes_explore::Replayer::new().outcome(&config.heap, &events, &options);
        assert_eq!(outcome.footprint, row.metrics.footprint, "{config}");
        assert_eq!(
            outcome.record_reads + outcome.record_writes,
            row.metrics.accesses
        );
    }
}
