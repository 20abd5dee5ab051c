//! Accesses and footprints by memory level: every one is charged somewhere, to
//! the level of the block's pool, and a level with a size keeps to it.

use metes_explore::{
    Accesses, Arena, Counts, Events, EventsBuilder, LEVELS, Operation, Options, Replay, Replayer,
    shortages,
};
use metes_heap::description::{DedicatedPool, General, List, ObjectPoolKind};
use metes_heap::{Description, IndexKind};
use metes_trace::{Event, Op, Provenance, TraceBuilder};
use proptest::prelude::*;

fn general(up_to: usize, level: u8) -> General {
    General {
        up_to,
        level,
        ..General::of(IndexKind::tlsf(8))
    }
}

/// Requests up to 64 bytes near, all others far.
fn near_and_far() -> Description {
    Description {
        general: List::from_slice(&[general(64, 0), general(usize::MAX, 1)]),
        dedicated: List::EMPTY,
        objects: List::EMPTY,
        partition: None,
    }
}

fn replay(heap: &Description, events: &Events, arena: Arena) -> Replay {
    let options = Options {
        arena,
        ..Options::default()
    };
    Replayer::new().replay("heap", heap, events, &options).0
}

/// An event of a trace, with as many accesses.
fn row(seq: u64, op: Op, block: u64, size: u64, reads: u64, writes: u64) -> Event {
    let mut any = TraceBuilder::new();
    any.alloc(0, 0, size, 16).unwrap();
    let any = any.finish(Provenance::default()).event(0).unwrap();
    Event {
        seq,
        op,
        block,
        size,
        reads,
        writes,
        ..any
    }
}

/// A block that moves from near to far, one that is never freed, one in between.
fn recorded() -> Events {
    let rows = [
        (Op::Alloc, 0, 64, 0, 0),
        (Op::Alloc, 1, 100, 0, 0),
        (Op::Access, 0, 0, 1, 2),
        (Op::Resize, 0, 1000, 10, 20),
        (Op::Alloc, 2, 32, 0, 0),
        (Op::Free, 0, 0, 300, 400),
        (Op::Free, 2, 0, 5000, 0),
        (Op::Access, 1, 0, 7, 8),
    ];
    let mut builder = TraceBuilder::new();
    for (seq, (op, block, size, reads, writes)) in rows.into_iter().enumerate() {
        builder
            .push(row(seq as u64, op, block, size, reads, writes))
            .unwrap();
    }
    let trace = builder.finish(Provenance {
        access_word: 4,
        instructions: 12_345,
        ..Provenance::default()
    });
    Events::try_from(&trace).unwrap()
}

#[test]
fn accesses_are_charged_where_the_block_lay() {
    let events = recorded();
    assert_eq!((events.access_word(), events.instructions()), (4, 12_345));
    assert_eq!(events.len(), 6, "rows of accesses are no events");
    let all = Accesses {
        reads: 5318,
        writes: 430,
    };
    assert_eq!(events.application(), all);
    assert_eq!(
        events.left(),
        [(
            1,
            Accesses {
                reads: 7,
                writes: 8
            }
        )]
    );
    let replay = replay(&near_and_far(), &events, Arena::HOST);
    let [near, far, ..] = replay.levels;
    // Block 0 until its resize, and block 2.
    assert_eq!(
        (near.application_reads, near.application_writes),
        (5011, 22)
    );
    // Block 0 afterwards, and block 1.
    assert_eq!((far.application_reads, far.application_writes), (307, 408));
    assert_eq!((near.copied_from, near.copied_to), (64, 0));
    assert_eq!((far.copied_from, far.copied_to), (0, 64));
    assert_eq!(near.record_reads + far.record_reads, replay.record_reads);
    assert!(near.record_writes > 0 && far.record_writes > 0);
    assert_eq!(near.footprint + far.footprint, replay.footprint);
}

#[test]
fn a_level_that_is_full_refuses() {
    // Ten blocks of 512 bytes in a level that has room for some.
    let mut builder = EventsBuilder::new();
    for block in 0..10 {
        builder.push(Operation::Allocate, block, 512, 16).unwrap();
    }
    let events = builder.finish();
    let heap = Description::of(IndexKind::tlsf(1));
    let mut arena = Arena {
        increment: 64,
        ..Arena::HOST
    };
    arena.levels[0] = Some(4096);
    let full = replay(&heap, &events, arena);
    assert!(full.failed > 0 && full.failed < 10, "{}", full.failed);
    assert!(full.levels[0].footprint <= 4096);
    let options = Options {
        arena,
        ..Options::default()
    };
    let [shortage] = shortages(&mut Replayer::new(), &heap, &events, &options)[..] else {
        panic!("level 0 is too small")
    };
    assert_eq!((shortage.level, shortage.size), (0, 4096));
    // Ten blocks with their headers, and no more than the size that suffices.
    assert!((10 * 528..=8192).contains(&shortage.needed), "{shortage:?}");
    arena.levels[0] = Some(8192);
    let enough = replay(&heap, &events, arena);
    assert_eq!(enough.failed, 0);
    arena.levels = [None; LEVELS];
    let endless = replay(&heap, &events, arena);
    assert!(
        enough.control_bytes < endless.control_bytes,
        "an index laid out for 8 KiB is smaller than one for 64 GiB"
    );
}

fn anywhere() -> impl Strategy<Value = Description> {
    (crate::support::heap(), prop::collection::vec(0_u8..4, 16)).prop_map(|(heap, levels)| {
        let mut levels = levels.into_iter().cycle();
        let mut level = || levels.next().unwrap_or(0);
        let mut moved = Description {
            general: List::EMPTY,
            dedicated: List::EMPTY,
            objects: List::EMPTY,
            partition: None,
        };
        for pool in heap.general.iter() {
            moved.general.push(General {
                level: level(),
                ..pool
            });
        }
        for pool in heap.dedicated.iter() {
            // In the level of the general pool that serves its size.
            let level = moved.route(pool.size).map_or(0, |general| general.level);
            moved.dedicated.push(DedicatedPool { level, ..pool });
        }
        let slabs = level();
        for pool in heap.objects.iter() {
            moved.objects.push(ObjectPoolKind {
                level: slabs,
                ..pool
            });
        }
        moved
    })
}

/// The events with accesses between them, and what those add up to.
fn touched(events: &Events, seed: u64) -> Events {
    let mut builder = EventsBuilder::new();
    builder.recorded(4, 0);
    let mut blocks = vec![0; events.slots()];
    let mut state = seed | 1;
    for (number, event) in events.as_slice().iter().enumerate() {
        let slot = event.slot() as usize;
        if event.operation() == Operation::Allocate {
            blocks[slot] = number as u64;
        } else {
            state = state.wrapping_mul(6_364_136_223_846_793_005) | 1;
            let accesses = Accesses {
                reads: state >> 48,
                writes: state >> 32 & 0xff,
            };
            builder.access(blocks[slot], accesses).unwrap();
        }
        let (size, align) = (event.size() as u64, event.align() as u64);
        builder
            .push(event.operation(), blocks[slot], size, align)
            .unwrap();
    }
    builder.finish()
}

fn sum(levels: &[Counts], of: impl Fn(&Counts) -> u64) -> u64 {
    levels.iter().map(of).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn levels_add_up_to_the_whole(
        heap in anywhere(),
        steps in crate::support::steps(300),
        seed in any::<u64>(),
    ) {
        prop_assume!(heap.validate(16, 8).is_ok());
        let plain = crate::support::trace(&steps);
        let events = touched(&plain, seed);
        let without = replay(&heap, &plain, Arena::HOST);
        let with = replay(&heap, &events, Arena::HOST);
        // Accesses of the program change nothing that the heap does.
        prop_assert_eq!(&with.placements, &without.placements);
        let levels = &with.levels;
        prop_assert_eq!(sum(levels, |level| level.record_reads), with.record_reads);
        prop_assert_eq!(sum(levels, |level| level.record_writes), with.record_writes);
        prop_assert_eq!(sum(levels, |level| level.footprint), with.footprint);
        prop_assert_eq!(sum(levels, |level| level.copied_from), with.copied);
        prop_assert_eq!(sum(levels, |level| level.copied_to), with.copied);
        prop_assert_eq!(with.failed, 0);
        let all = events.application();
        prop_assert_eq!(sum(levels, |level| level.application_reads), all.reads);
        prop_assert_eq!(sum(levels, |level| level.application_writes), all.writes);
    }

    #[test]
    fn a_level_keeps_to_its_size(
        heap in anywhere(),
        steps in crate::support::steps(300),
        sizes in prop::array::uniform4(prop::option::of(12_u32..20)),
        increment in prop::sample::select(vec![16_usize, 64, 256, 4096]),
    ) {
        prop_assume!(heap.validate(16, 8).is_ok());
        let events = crate::support::trace(&steps);
        let arena = Arena {
            increment,
            levels: sizes.map(|log2| log2.map(|log2| 1 << log2)),
            ..Arena::HOST
        };
        let replay = replay(&heap, &events, arena);
        for (counts, size) in replay.levels.iter().zip(arena.levels) {
            prop_assert!(size.is_none_or(|size| counts.footprint <= size as u64));
        }
        prop_assert_eq!(sum(&replay.levels, |level| level.footprint), replay.footprint);
    }
}
