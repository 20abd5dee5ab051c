//! What the ring keeps, sends and counts, with interrupts at its one open place: after an event has its number, before it is
//! written.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use metes_target_recorder::layout::{
    ALLOCATED, BATCH_EVENTS, BATCH_MAGIC, EVENT_WORDS, FREED, HEADER_WORDS, REFUSED, batch,
    checksum,
};
use metes_target_recorder::{Recorder, Target};
use proptest::prelude::*;

const EVENTS: usize = 8;

type Ring = Recorder<Host, EVENTS>;

thread_local! {
    static NOW: Cell<u32> = const { Cell::new(0) };
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    /// What an interrupt does when the next event is being written.
    static INTERRUPT: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

struct Host;

// SAFETY: each recorder here is of one thread; what stands in for an interrupt comes outside `exclusively`.
unsafe impl Target for Host {
    const FREQUENCY: u32 = 1000;

    fn now() -> u32 {
        NOW.set(NOW.get() + 1);
        NOW.get()
    }

    fn context() -> u8 {
        assert!(!WITHIN.get());
        if let Some(interrupt) = INTERRUPT.take() {
            interrupt();
        }
        7
    }

    fn exclusively<R>(work: impl FnOnce() -> R) -> R {
        assert!(!WITHIN.replace(true));
        let done = work();
        WITHIN.set(false);
        done
    }
}

/// One batch: its first number, what was lost until then, and its events.
fn sent(recorder: &Ring) -> Option<(u32, u32, Vec<[u32; EVENT_WORDS]>)> {
    let mut bytes = Vec::new();
    let count = recorder.send(|part| bytes.extend_from_slice(part));
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    let (sum, before) = words.split_last()?;
    assert_eq!(words[batch::MAGIC], BATCH_MAGIC);
    assert_eq!(words[batch::COUNT] as usize, count);
    assert!(count <= BATCH_EVENTS);
    assert_eq!(
        *sum,
        before.iter().fold(0, |sum, word| checksum(sum, *word))
    );
    let events = before[HEADER_WORDS..].chunks_exact(EVENT_WORDS);
    let events = events.map(|event| event.try_into().unwrap()).collect();
    Some((words[batch::FIRST], words[batch::LOST], events))
}

#[test]
fn the_checksum_is_that_of_ethernet() {
    // "123456789" and padding to whole words, by zlib.
    let words = [*b"1234", *b"5678"].map(u32::from_le_bytes);
    assert_eq!(
        words.iter().fold(0, |sum, word| checksum(sum, *word)),
        0x9ae0_daaf
    );
}

#[test]
fn what_finds_no_room_is_counted_and_what_was_first_stays() {
    let recorder = Ring::new();
    NOW.set(0);
    for block in 1..=11 {
        recorder.allocated(block * 16, 5, 8);
    }
    assert_eq!((recorder.waiting(), recorder.lost()), (8, 3));
    let (first, lost, events) = sent(&recorder).unwrap();
    assert_eq!((first, lost, events.len()), (0, 3, 8));
    assert_eq!(
        events[7],
        [8, ALLOCATED | 3 << 3 | 7 << 8 | 7 << 16, 128, 5]
    );
    assert!(sent(&recorder).is_none());
    recorder.freed(16);
    let (first, lost, events) = sent(&recorder).unwrap();
    assert_eq!((first, lost), (8, 3));
    assert_eq!(events, [[12, FREED | 7 << 8 | 8 << 16, 16, 0]]);
}

#[test]
fn an_event_that_is_being_written_waits_with_those_after_it() {
    static RECORDER: Ring = Ring::new();
    RECORDER.allocated(16, 1, 4);
    INTERRUPT.set(Some(Box::new(|| {
        RECORDER.allocated(0, 9, 4);
        let (first, _, events) = sent(&RECORDER).unwrap();
        assert_eq!((first, events.len()), (0, 1));
        assert!(sent(&RECORDER).is_none());
        assert_eq!(RECORDER.waiting(), 2);
    })));
    RECORDER.freed(16);
    let (first, _, events) = sent(&RECORDER).unwrap();
    assert_eq!(first, 1);
    let kinds: Vec<u32> = events.iter().map(|event| event[1] & 7).collect();
    assert_eq!(kinds, [FREED, REFUSED]);
}

proptest! {
    /// Against a queue that is bounded.
    #[test]
    fn a_ring_is_a_bounded_queue(does in prop::collection::vec(0_usize..12, 0..200)) {
        let recorder = Ring::new();
        let (mut queue, mut taken, mut lost) = (VecDeque::new(), 0_u32, 0);
        for what in does {
            if what < 10 {
                recorder.allocated(16 + what, what, 1);
                if queue.len() < EVENTS {
                    queue.push_back(16 + what as u32);
                    taken += 1;
                } else {
                    lost += 1;
                }
            } else {
                let found = sent(&recorder);
                prop_assert_eq!(found.is_none(), queue.is_empty());
                if let Some((first, told, events)) = found {
                    prop_assert_eq!((first, told), (taken - queue.len() as u32, lost));
                    let addresses: Vec<u32> = events.iter().map(|event| event[2]).collect();
                    prop_assert_eq!(addresses, queue.drain(..).collect::<Vec<u32>>());
                }
            }
            prop_assert_eq!((recorder.waiting(), recorder.lost()), (queue.len() as u32, lost));
        }
    }
}
