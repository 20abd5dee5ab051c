//! Stream-ordered heaps beside a model that knows which work still uses which bytes.

mod common;

use std::collections::BTreeMap;

use common::{Random, operations};
use metes_device::backend::timeline::{self, Manual, Stream, Ticket, Timeline};
use metes_device::heap::{Extent, Refusal};
use metes_device::streams::{Crossing, NoStreams, StreamError, StreamHeap, Streams};
use metes_heap::BadFree;
use metes_heap::store::ledger::Handle;

/// A device that knows what has run: each stream's work is numbered, and a mark, a wait and an
/// order say what lies behind what.
#[derive(Debug)]
struct Device {
    inner: Manual,
    /// By slot: work issued so far.
    issued: Vec<u64>,
    /// By slot, by ticket: work that was issued before the mark.
    marks: Vec<BTreeMap<Ticket, u64>>,
    /// By slot: with which work it runs behind another slot's (slot, work).
    orders: Vec<Vec<(u64, usize, u64)>>,
    /// By slot: the work that has surely run, as the host knows.
    ran: Vec<u64>,
}

impl Device {
    fn new(streams: usize) -> Self {
        Device {
            inner: Manual::new(streams),
            issued: vec![0; streams],
            marks: vec![BTreeMap::new(); streams],
            orders: vec![Vec::new(); streams],
            ran: vec![0; streams],
        }
    }

    /// The mark that a wait for a ticket waits for, as devices have events for marks only.
    fn mark_for(&self, slot: usize, ticket: Ticket) -> Ticket {
        let mark = self.marks[slot].range(ticket..).next();
        mark.map_or(ticket, |mark| *mark.0)
    }

    fn note(&mut self, slot: usize, ticket: Ticket) {
        let done = self.marks[slot].range(..=ticket).next_back();
        if let Some((_, &work)) = done {
            self.ran[slot] = self.ran[slot].max(work);
        }
    }

    /// What of every stream's work has surely run before the work that `slot` issues next.
    fn before_next(&self, slot: usize) -> Vec<u64> {
        let mut seen = self.ran.clone();
        seen[slot] = self.issued[slot];
        // Whatever ran or runs before that was itself ordered behind other work.
        loop {
            let mut more = false;
            for at in 0..seen.len() {
                for &(from, other, work) in &self.orders[at] {
                    if from <= seen[at] && seen[other] < work {
                        seen[other] = work;
                        more = true;
                    }
                }
            }
            if !more {
                return seen;
            }
        }
    }
}

impl Timeline for Device {
    fn streams(&self) -> usize {
        self.inner.streams()
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), timeline::Error> {
        self.inner.mark(stream, ticket)?;
        let slot = stream.slot();
        self.marks[slot].insert(ticket, self.issued[slot]);
        Ok(())
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, timeline::Error> {
        let ticket = self.inner.completed(stream)?;
        self.note(stream.slot(), ticket);
        Ok(ticket)
    }

    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), timeline::Error> {
        let ticket = self.mark_for(stream.slot(), ticket);
        self.inner.wait(stream, ticket)?;
        self.note(stream.slot(), ticket);
        Ok(())
    }

    fn order(
        &mut self,
        waiter: Stream,
        stream: Stream,
        ticket: Ticket,
    ) -> Result<(), timeline::Error> {
        let slot = stream.slot();
        let ticket = self.mark_for(slot, ticket);
        self.inner.order(waiter, stream, ticket)?;
        let work = self.marks[slot]
            .range(..=ticket)
            .next_back()
            .map_or(0, |mark| *mark.1);
        let ran = &self.ran;
        self.orders[waiter.slot()].retain(|&(_, other, work)| ran[other] < work);
        // Running behind is work of its own: a mark after it is behind it.
        self.issued[waiter.slot()] += 1;
        let from = self.issued[waiter.slot()];
        self.orders[waiter.slot()].push((from, slot, work));
        Ok(())
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, timeline::Error> {
        self.inner.capturing(stream)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), timeline::Error> {
        self.inner.leave(stream)?;
        let slot = stream.slot();
        self.ran[slot] = self.issued[slot];
        Ok(())
    }
}

const EXTENT: Extent = Extent {
    bytes: 1 << 20,
    granule: 256,
    blocks: 3000,
};

#[derive(Debug)]
struct Held {
    place: Handle,
    bytes: u64,
    /// By slot: the last work that uses it.
    used: Vec<u64>,
}

/// Random work on several streams. Every block that is given out is checked for work that may
/// still use its bytes.
fn exercise(crossing: Crossing, batch: u32, count: usize, operations: u64, seed: u64) {
    let mut device = Device::new(count);
    let mut streams: Vec<Stream> = (0..count).map(|_| device.inner.join().unwrap()).collect();
    let mut heap = StreamHeap::new(EXTENT, device, Streams { batch, crossing }).unwrap();
    let mut random = Random(seed);
    let mut held: BTreeMap<u64, Held> = BTreeMap::new();
    // By granule, by slot: the last work that used it.
    let granules = (EXTENT.bytes / EXTENT.granule) as usize;
    let mut last = vec![vec![0_u64; count]; granules];
    let (mut refused, mut captured) = (0_u64, 0_u64);
    let mut capturing: Option<usize> = None;
    for operation in 0..operations {
        let slot = random.below(count as u64) as usize;
        let stream = streams[slot];
        match random.below(100) {
            0..45 => {
                let most = 1 << random.below(18);
                let bytes = 1 + random.below(most);
                match heap.allocate(stream, bytes, 1) {
                    Ok(block) => {
                        let seen = heap.timeline().before_next(slot);
                        let first = (block.offset / 256) as usize;
                        let end = (block.offset + bytes).div_ceil(256) as usize;
                        for (at, granule) in last.iter().enumerate().take(end).skip(first) {
                            for (other, work) in granule.iter().enumerate() {
                                assert!(
                                    *work <= seen[other],
                                    "work {work} of stream {other} may still use granule {at} \
                                     that stream {slot} was given"
                                );
                            }
                        }
                        let before = held.range(..=block.offset).next_back();
                        if let Some((start, before)) = before {
                            assert!(start + before.bytes <= block.offset);
                        }
                        if let Some((next, _)) = held.range(block.offset..).next() {
                            assert!(block.offset + bytes <= *next);
                        }
                        let device = heap.timeline();
                        device.issued[slot] += 1;
                        let mut used = vec![0; count];
                        used[slot] = device.issued[slot];
                        held.insert(
                            block.offset,
                            Held {
                                place: block.place,
                                bytes,
                                used,
                            },
                        );
                    }
                    Err(StreamError::OutOfMemory { in_use, .. }) => {
                        refused += 1;
                        let live: u64 = held.values().map(|held| held.bytes).sum();
                        assert_eq!(in_use, live);
                    }
                    Err(StreamError::Timeline(timeline::Error::Capturing(_))) => {
                        assert_eq!(capturing, Some(slot));
                        captured += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            45..82 if !held.is_empty() => {
                let from = random.below(EXTENT.bytes);
                let key = held.range(from..).next().or(held.first_key_value());
                let offset = *key.unwrap().0;
                let block = held.remove(&offset).unwrap();
                heap.free(block.place).unwrap();
                assert!(matches!(
                    heap.free(block.place),
                    Err(StreamError::BadFree(_))
                ));
                let first = (offset / 256) as usize;
                let end = (offset + block.bytes).div_ceil(256) as usize;
                for granule in &mut last[first..end] {
                    for (last, used) in granule.iter_mut().zip(&block.used) {
                        *last = (*last).max(*used);
                    }
                }
            }
            // More work on a block, by its own stream or another.
            82..92 if !held.is_empty() => {
                let from = random.below(EXTENT.bytes);
                let (_, block) = match held.range_mut(from..).next() {
                    Some(found) => found,
                    None => held.iter_mut().next().unwrap(),
                };
                // Of a stream that uses it already that is said again.
                heap.use_on(block.place, stream).unwrap();
                let device = heap.timeline();
                device.issued[slot] += 1;
                block.used[slot] = device.issued[slot];
            }
            // Time passes.
            92..97 => {
                let device = heap.timeline();
                let count = device.marks[slot].len() as u64;
                if count > 0 {
                    let back = random.below(count.min(8)) as usize;
                    let ticket = *device.marks[slot].keys().nth_back(back).unwrap();
                    // Held up by another stream's work: another time.
                    let _ = device.inner.complete(stream, ticket);
                }
            }
            97 => match capturing.take() {
                None => {
                    heap.timeline().inner.capture(stream, true).unwrap();
                    capturing = Some(slot);
                }
                Some(slot) => heap.timeline().inner.capture(streams[slot], false).unwrap(),
            },
            98 if random.below(50) == 0 && capturing.is_none() => {
                heap.leave(stream).unwrap();
                assert!(matches!(
                    heap.allocate(stream, 1, 1),
                    Err(StreamError::Timeline(timeline::Error::NoStream(_)))
                ));
                streams[slot] = heap.timeline().inner.join().unwrap();
                assert_eq!(streams[slot].slot(), slot);
                heap.timeline().marks[slot].clear();
            }
            _ => {}
        }
        if operation % (operations / 50) == 0 {
            heap.check().unwrap();
            let blocks: u64 = heap.holders().map(|(_, _, blocks)| blocks).sum();
            assert_eq!((heap.used(), blocks), (held.len(), held.len() as u64));
        }
    }
    assert!(refused > 10 && captured > 0, "{refused} {captured}");
    let progress = heap.progress();
    match crossing {
        Crossing::Wait => assert!(count == 1 || progress.waits > 0 && progress.orders == 0),
        Crossing::Order => assert!(count == 1 || progress.orders > 0 && progress.waits == 0),
    }
    // All of it comes back.
    if let Some(slot) = capturing {
        heap.timeline().inner.capture(streams[slot], false).unwrap();
    }
    for block in held.into_values() {
        heap.free(block.place).unwrap();
    }
    for &stream in &streams[1..] {
        heap.leave(stream).unwrap();
    }
    let whole = heap.allocate(streams[0], EXTENT.bytes, 1).unwrap();
    assert_eq!(whole.offset, 0);
    heap.free(whole.place).unwrap();
    heap.check().unwrap();
}

#[test]
fn no_block_is_given_out_while_work_uses_it_waiting() {
    exercise(Crossing::Wait, 16, 4, operations() / 20, 1);
}

#[test]
fn no_block_is_given_out_while_work_uses_it_ordering() {
    exercise(Crossing::Order, 16, 4, operations() / 20, 2);
}

#[test]
fn single_frees_and_huge_batches_are_as_safe() {
    exercise(Crossing::Wait, 1, 3, operations() / 50, 3);
    exercise(Crossing::Order, u32::MAX, 3, operations() / 50, 4);
}

#[test]
fn a_single_stream_needs_no_event() {
    let mut device = Device::new(1);
    let stream = device.inner.join().unwrap();
    let options = Streams {
        batch: u32::MAX,
        crossing: Crossing::Wait,
    };
    let mut heap = StreamHeap::new(EXTENT, device, options).unwrap();
    for _ in 0..1000 {
        let block = heap.allocate(stream, EXTENT.bytes, 1).unwrap();
        heap.free(block.place).unwrap();
    }
    assert_eq!(heap.progress(), Default::default());
}

fn two() -> (StreamHeap<Manual>, Stream, Stream) {
    let mut manual = Manual::new(2);
    let (first, second) = (manual.join().unwrap(), manual.join().unwrap());
    let options = Streams {
        batch: 1,
        crossing: Crossing::Wait,
    };
    (
        StreamHeap::new(EXTENT, manual, options).unwrap(),
        first,
        second,
    )
}

#[test]
fn waits_end_as_soon_as_the_request_fits() {
    let (mut heap, first, second) = two();
    let blocks: Vec<_> = (0..16)
        .map(|_| heap.allocate(first, EXTENT.bytes / 16, 1).unwrap())
        .collect();
    // Every second, so that nothing merges.
    for block in blocks.iter().step_by(2) {
        heap.free(block.place).unwrap();
    }
    heap.allocate(second, EXTENT.bytes / 16, 1).unwrap();
    // One wait, for the oldest.
    assert_eq!(heap.progress().waits, 1);
    assert_eq!(heap.timeline().completed(first).unwrap(), 1);
}

#[test]
fn what_can_be_reclaimed_is_before_a_refusal() {
    let (mut heap, first, second) = two();
    let cached = heap.allocate(first, EXTENT.bytes, 1).unwrap();
    let mut left = vec![cached.place];
    heap.on_out_of_memory(Box::new(move |heap, wanted| {
        assert_eq!(wanted, 100);
        left.pop().is_some_and(|place| heap.free(place).is_ok())
    }));
    let block = heap.allocate(second, 100, 1).unwrap();
    assert_eq!(heap.free(cached.place), Err(BadFree::NotInUse.into()));
    let rest = heap.allocate(first, EXTENT.bytes - 256, 1).unwrap();
    let refused = heap.allocate(second, 100, 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "no block of 100 bytes is left for stream {second}: of 1048576 bytes {} are in use, \
             100 of them by this stream; free some, or make the heap larger",
            EXTENT.bytes - 256 + 100
        )
    );
    let holders: Vec<_> = heap.holders().collect();
    assert_eq!(
        holders,
        [(Some(first), EXTENT.bytes - 256, 1), (Some(second), 100, 1)]
    );
    heap.free(block.place).unwrap();
    heap.free(rest.place).unwrap();
}

#[test]
fn destroyed_streams_are_errors_and_lose_nothing() {
    let (mut heap, first, second) = two();
    let block = heap.allocate(first, EXTENT.bytes, 1).unwrap();
    // The timeline lost the stream, as when it was destroyed under us.
    heap.timeline().leave(first).unwrap();
    assert!(matches!(
        heap.free(block.place),
        Err(StreamError::Timeline(timeline::Error::NoStream(_)))
    ));
    assert!(matches!(
        heap.allocate(second, 1, 1),
        Err(StreamError::Timeline(timeline::Error::NoStream(_)))
    ));
    heap.forget(first);
    let whole = heap.allocate(second, EXTENT.bytes, 1).unwrap();
    assert!(matches!(
        heap.allocate(second, EXTENT.bytes + 1, 1),
        Err(StreamError::Refused(Refusal::TooLarge { .. }))
    ));
    heap.free(whole.place).unwrap();
    heap.check().unwrap();
}

#[test]
fn too_many_streams_are_refused() {
    let options = Streams {
        batch: 1,
        crossing: Crossing::Wait,
    };
    for streams in [0, 65] {
        let made = StreamHeap::new(EXTENT, Manual::new(streams), options);
        assert_eq!(made.map(drop).unwrap_err(), NoStreams::Streams(streams));
    }
}
