//! The adapters: every heap must give disjoint, aligned blocks that keep their
//! contents, through every function it is measured by.

#![cfg(not(feature = "plain"))]

use std::collections::BTreeMap;

use crate::peer::{Kind, Session};
use crate::peers;
use crate::player::Player;
use crate::random::Random;
use crate::reservation::{LENGTH, Reservation};
use crate::workload::{Builder, Event, Operation};

/// A workload of every kind of event, alignments included.
fn events(aligned: bool) -> (Vec<Event>, usize) {
    const SLOTS: usize = 300;
    let mut random = Random::new(5);
    let mut builder = Builder::new(SLOTS);
    for _ in 0..20_000 {
        let slot = random.below(SLOTS);
        if !builder.is_live(slot) {
            let align = if aligned { 16 << random.below(6) } else { 16 };
            builder.allocate(slot, random.log_uniform(1, 5000), align);
        } else if random.below(3) == 0 {
            builder.resize(slot, random.log_uniform(1, 5000));
        } else {
            builder.free(slot);
        }
    }
    let workload = builder.finish("test");
    let all = workload.events().copied().collect();
    (all, SLOTS)
}

/// Fills a block with a pattern of its slot, or checks it.
fn pattern(handle: usize, size: usize, slot: u32, write: bool) {
    // SAFETY: the block is live and `size` long.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u8>(handle), size)
    };
    let byte = slot as u8 ^ 0x5A;
    if write {
        bytes.fill(byte);
    } else {
        assert!(
            bytes.iter().all(|b| *b == byte),
            "slot {slot} was overwritten"
        );
    }
}

fn play(session: &Session, events: &[Event], slots: usize) {
    let mut player = Player::new(slots);
    for event in events {
        let before = player.handle(event.slot);
        match event.operation {
            Operation::Free => pattern(before, event.size, event.slot, false),
            Operation::Resize => pattern(before, event.old, event.slot, false),
            Operation::Allocate => {}
        }
        assert!(player.step(session, event), "{event:?} refused");
        let handle = player.handle(event.slot);
        if event.operation == Operation::Resize {
            let kept = event.old.min(event.size);
            pattern(handle, kept, event.slot, false);
        }
        if event.operation != Operation::Free {
            assert_eq!(handle % event.align, 0, "{event:?} misaligned");
            pattern(handle, event.size, event.slot, true);
        }
    }
}

#[test]
fn blocks_are_disjoint_aligned_and_keep_their_contents() {
    let mut memory = Reservation::new().unwrap();
    for peer in peers::all() {
        // The floors are no heaps, offsets and handles no addresses.
        if matches!(peer.kind, Kind::Floor | Kind::OutOfBand | Kind::Moving) {
            continue;
        }
        // These two say in their documentation of alignment that they stop at
        // 16 and 32 bytes.
        let aligned = !matches!(peer.name, "pow2-lists" | "o1heap");
        let (events, slots) = events(aligned);
        let session = peer.start(&mut memory, LENGTH).unwrap();
        play(&session, &events, slots);
    }
}

#[test]
fn offsets_are_disjoint() {
    let mut memory = Reservation::new().unwrap();
    let peer = peers::named(&["offset-allocator".to_owned()]).unwrap()[0];
    let (events, slots) = events(false);
    let session = peer.start(&mut memory, LENGTH).unwrap();
    let mut player = Player::new(slots);
    // Live offsets and their ends.
    let mut live: BTreeMap<usize, usize> = BTreeMap::new();
    for event in &events {
        if event.operation != Operation::Allocate {
            live.remove(&peers::rust::offset_of(player.handle(event.slot)));
        }
        assert!(player.step(&session, event));
        if event.operation != Operation::Free {
            let offset = peers::rust::offset_of(player.handle(event.slot));
            let end = offset + event.size;
            let below = live.range(..end).next_back();
            assert!(below.is_none_or(|(_, other)| *other <= offset));
            live.insert(offset, end);
        }
    }
}

#[test]
fn a_tiny_arena_is_refused_or_fails_but_does_no_harm() {
    let mut memory = Reservation::new().unwrap();
    let (events, slots) = events(false);
    for peer in peers::all() {
        if matches!(peer.kind, Kind::Floor | Kind::General) {
            continue;
        }
        for length in (0..20_000).step_by(400).map(|n: usize| n / 16 * 16) {
            if let Some(session) = peer.start(&mut memory, length) {
                let mut player = Player::new(slots);
                assert!(
                    player.play(&session, &events).is_err(),
                    "{} {length}",
                    peer.name
                );
            }
        }
    }
}
