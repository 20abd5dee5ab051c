//! First fit by a tree on recorded programs: every block where the list puts it, and no more memory than the list takes
//! and its own table.
//!
//! Invariant: the programs are those of `apps/bench/traces`, whole, and tides of random sizes.

use metes_explore::{
    Arena, Events, EventsBuilder, Operation, Options, Replayer, Simulated, smallest_arena,
};
use metes_heap::{Description, Fit, IndexKind, Order};

use crate::quick::tides;

const PROGRAMS: [&str; 4] = ["cc1", "perl", "python", "sqlite"];

/// What a program asks for: the number of a block, and its size, where it is not freed.
type Request = (u64, Option<usize>);

fn recorded(name: &str) -> Vec<Request> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/bench/traces");
    let text = std::fs::read_to_string(format!("{folder}/{name}.csv")).unwrap();
    let requests = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let size = (cells[0] != "f").then(|| cells[2].parse().unwrap());
        (cells[1].parse().unwrap(), size)
    });
    requests.collect()
}

fn of(events: &Events) -> Vec<Request> {
    let requests = events.as_slice().iter().map(|event| {
        let size = (event.operation() != Operation::Free).then_some(event.size());
        (u64::from(event.slot()), size)
    });
    requests.collect()
}

fn list() -> Description {
    Description::of(IndexKind::list(Fit::First, Order::Address))
}

fn tree(by_class: bool) -> Description {
    Description::of(IndexKind::FirstFit {
        by_class,
        span: Some(64 << 20),
    })
}

/// Where each block begins, from the first one on.
fn places(heap: &Description, requests: &[Request]) -> Vec<u64> {
    let mut places = Vec::new();
    let drive = &mut |heap: &mut dyn Simulated| {
        places.clear();
        let mut held = std::collections::HashMap::new();
        for &(block, size) in requests {
            // A block that is resized is freed first: what is compared is where blocks go.
            if let Some(own) = held.remove(&block) {
                heap.free(own);
            }
            let Some(size) = size else { continue };
            let own = heap.allocate(size).expect("the arena grows");
            places.push(heap.offset(own).unwrap());
            held.insert(block, own);
        }
    };
    let served = Replayer::new().simulate(heap, &Options::default(), requests.len(), drive);
    assert!(served);
    let first = places.iter().copied().min().unwrap_or(0);
    places.iter().map(|place| place - first).collect()
}

fn events(requests: &[Request]) -> Events {
    let mut builder = EventsBuilder::new();
    let mut held = std::collections::HashSet::new();
    for &(block, size) in requests {
        let (operation, size) = match size {
            None if !held.remove(&block) => continue,
            None => (Operation::Free, 0),
            Some(size) if held.insert(block) => (Operation::Allocate, size),
            Some(size) => (Operation::Resize, size),
        };
        builder.push(operation, block, size as u64, 0).unwrap();
    }
    builder.finish()
}

#[test]
fn recorded_programs_lie_as_the_list_has_them() {
    for name in PROGRAMS {
        let requests = recorded(name);
        let expected = places(&list(), &requests);
        assert!(expected.len() > 500, "{name}");
        assert_eq!(places(&tree(false), &requests), expected, "{name}");
    }
    for seed in 1..6 {
        let requests = of(&tides(seed, 20_000, 2_000, 60_000));
        assert_eq!(
            places(&tree(false), &requests),
            places(&list(), &requests),
            "{seed}"
        );
    }
}

#[test]
fn recorded_programs_take_as_much_as_with_the_list_and_the_table() {
    let mut replayer = Replayer::new();
    let options = Options {
        arena: Arena::HOST,
        ..Options::default()
    };
    for name in PROGRAMS {
        let events = events(&recorded(name));
        let mut smallest = |heap: &Description| {
            let found = smallest_arena(&mut replayer, heap, &events, &options);
            found.unwrap().bytes
        };
        let listed = smallest(&list());
        let found = smallest(&tree(false));
        // 16 bytes of each KiB, up to 4 more where the groups are no power of two, and what a group more takes.
        let most = listed + listed * 20 / 1004 + 64;
        assert!((listed..=most).contains(&found), "{name}: {listed} {found}");
    }
}

#[test]
fn a_span_that_is_used_up_refuses() {
    let small = Description::of(IndexKind::FirstFit {
        by_class: true,
        span: Some(64 << 10),
    });
    let mut builder = EventsBuilder::new();
    for serial in 0..100 {
        builder.push(Operation::Allocate, serial, 1000, 0).unwrap();
    }
    let events = builder.finish();
    let (replay, _) = Replayer::new().replay("tree", &small, &events, &Options::default());
    assert!(
        replay.failed > 30 && replay.footprint <= 64 << 10,
        "{replay:?}"
    );
    let (replay, _) = Replayer::new().replay("tree", &tree(true), &events, &Options::default());
    assert_eq!(replay.failed, 0);
}
