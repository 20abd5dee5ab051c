//! Stream-ordered heaps beside a model that knows which work still uses which bytes.

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use common::{Random, operations};
use metes_device::backend::offsets::Offsets;
use metes_device::backend::timeline::{self, Manual, Stream, Ticket, Timeline};
use metes_device::backend::{self, Backend, Capacity, Memory, Range};
use metes_device::heap::{Block, Extent, Refusal};
use metes_device::sparse::{Plan, SparseRefusal};
use metes_device::stream_pages::SparseStreamHeap;
use metes_device::streams::{Crossing, NoStreams, Progress, StreamError, StreamHeap, Streams};
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
    ran: Rc<RefCell<Vec<u64>>>,
}

impl Device {
    fn new(streams: usize) -> Self {
        Device {
            inner: Manual::new(streams),
            issued: vec![0; streams],
            marks: vec![BTreeMap::new(); streams],
            orders: vec![Vec::new(); streams],
            ran: Rc::new(RefCell::new(vec![0; streams])),
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
            let ran = &mut self.ran.borrow_mut()[slot];
            *ran = work.max(*ran);
        }
    }

    /// What of every stream's work has surely run before the work that `slot` issues next.
    fn before_next(&self, slot: usize) -> Vec<u64> {
        let mut seen = self.ran.borrow().clone();
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
        let ran = self.ran.borrow();
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
        self.ran.borrow_mut()[slot] = self.issued[slot];
        self.marks[slot].clear();
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

/// What the test asks of a heap that is ordered by streams.
trait Ordered {
    fn allocate(&mut self, stream: Stream, bytes: u64) -> Result<Block<Handle>, StreamError>;
    fn free(&mut self, place: Handle) -> Result<(), StreamError>;
    fn use_on(&mut self, place: Handle, stream: Stream) -> Result<(), StreamError>;
    fn leave(&mut self, stream: Stream) -> Result<(), StreamError>;
    fn device(&mut self) -> &mut Device;
    fn progress(&self) -> Progress;
    fn in_use(&self) -> (usize, u64);
    fn check(&self);
    /// Work was issued that uses these bytes.
    fn issued(&mut self, _offset: u64, _bytes: u64, _slot: usize, _work: u64) {}
}

macro_rules! ordered {
    ($heap:ty, $issued:item) => {
        impl Ordered for $heap {
            fn allocate(
                &mut self,
                stream: Stream,
                bytes: u64,
            ) -> Result<Block<Handle>, StreamError> {
                self.heap().allocate(stream, bytes, 1)
            }

            fn free(&mut self, place: Handle) -> Result<(), StreamError> {
                self.heap().free(place)
            }

            fn use_on(&mut self, place: Handle, stream: Stream) -> Result<(), StreamError> {
                self.heap().use_on(place, stream)
            }

            fn leave(&mut self, stream: Stream) -> Result<(), StreamError> {
                self.heap().leave(stream)
            }

            fn device(&mut self) -> &mut Device {
                self.heap().timeline()
            }

            fn progress(&self) -> Progress {
                self.0.progress()
            }

            fn in_use(&self) -> (usize, u64) {
                let blocks = self.0.holders().map(|(_, _, blocks)| blocks).sum();
                (self.0.used(), blocks)
            }

            fn check(&self) {
                self.0.check().unwrap();
            }

            $issued
        }
    };
}

/// In one memory.
struct Fixed(StreamHeap<Device>);

impl Fixed {
    fn heap(&mut self) -> &mut StreamHeap<Device> {
        &mut self.0
    }
}

ordered!(
    Fixed,
    fn issued(&mut self, _: u64, _: u64, _: usize, _: u64) {}
);

const PAGE: u64 = 1 << 12;

/// By page that is mapped, by slot: the last work that uses its memory.
type Uses = Rc<RefCell<BTreeMap<u64, Vec<u64>>>>;

/// On pages of a backend that lets none go while work uses it.
struct Paged(SparseStreamHeap<Unforgiving, Device>, Uses);

impl Paged {
    fn heap(&mut self) -> &mut SparseStreamHeap<Unforgiving, Device> {
        &mut self.0
    }
}

ordered!(
    Paged,
    fn issued(&mut self, offset: u64, bytes: u64, slot: usize, work: u64) {
        let start = self.0.range().start + offset;
        let mut uses = self.1.borrow_mut();
        for page in start / PAGE..=(start + bytes - 1) / PAGE {
            let uses = uses
                .get_mut(&(page * PAGE))
                .expect("no memory under a block");
            uses[slot] = uses[slot].max(work);
        }
    }
);

#[derive(Debug)]
struct Unforgiving {
    inner: Offsets,
    uses: Uses,
    ran: Rc<RefCell<Vec<u64>>>,
}

impl Backend for Unforgiving {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn granularity(&self) -> u64 {
        self.inner.granularity()
    }

    fn paged(&self) -> bool {
        true
    }

    fn alignment(&self) -> u64 {
        self.inner.alignment()
    }

    fn capacity(&self) -> Result<Capacity, backend::Error> {
        self.inner.capacity()
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, backend::Error> {
        self.inner.reserve(bytes)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), backend::Error> {
        self.inner.unreserve(range)
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, backend::Error> {
        self.inner.create(bytes)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), backend::Error> {
        self.inner.map(address, memory)?;
        let streams = self.ran.borrow().len();
        self.uses.borrow_mut().insert(address, vec![0; streams]);
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, backend::Error> {
        let uses = self.uses.borrow_mut().remove(&address).expect("mapped");
        // A test that panics already ends as it may.
        if !std::thread::panicking() {
            for (slot, (work, ran)) in uses.iter().zip(&*self.ran.borrow()).enumerate() {
                assert!(
                    work <= ran,
                    "work {work} of stream {slot} still uses {address:#x}"
                );
            }
        }
        self.inner.unmap(address, bytes)
    }

    fn release(&mut self, memory: Memory) -> Result<(), backend::Error> {
        self.inner.release(memory)
    }
}

fn fixed(device: Device, options: Streams) -> Fixed {
    Fixed(StreamHeap::new(EXTENT, device, options).unwrap())
}

/// Twice the addresses, over as much memory as the fixed heap has.
fn paged(device: Device, options: Streams) -> Paged {
    let uses = Uses::default();
    let backend = Unforgiving {
        inner: Offsets::new(1 << 40, PAGE).unwrap(),
        uses: Rc::clone(&uses),
        ran: Rc::clone(&device.ran),
    };
    let plan = Plan {
        addresses: EXTENT.bytes,
        cap: EXTENT.bytes / 2,
        page: PAGE,
        granule: EXTENT.granule,
        blocks: EXTENT.blocks,
        moves: u64::MAX,
    };
    Paged(
        SparseStreamHeap::new(backend, plan, device, options).unwrap(),
        uses,
    )
}

/// Random work on several streams. Every block that is given out is checked for work that may
/// still use its bytes.
fn exercise<H: Ordered>(
    made: impl FnOnce(Device, Streams) -> H,
    options: Streams,
    count: usize,
    operations: u64,
    seed: u64,
) {
    let mut device = Device::new(count);
    let mut streams: Vec<Stream> = (0..count).map(|_| device.inner.join().unwrap()).collect();
    let mut heap = made(device, options);
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
                match heap.allocate(stream, bytes) {
                    Ok(block) => {
                        let seen = heap.device().before_next(slot);
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
                        let device = heap.device();
                        device.issued[slot] += 1;
                        let mut used = vec![0; count];
                        used[slot] = device.issued[slot];
                        let work = used[slot];
                        heap.issued(block.offset, bytes, slot, work);
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
                    Err(StreamError::Pages(SparseRefusal::Pages { .. })) => refused += 1,
                    // The page of a stream that is being captured cannot move.
                    Err(StreamError::Pages(SparseRefusal::Timeline(
                        timeline::Error::Capturing(_),
                    ))) => assert!(capturing.is_some()),
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
                let (&offset, block) = match held.range_mut(from..).next() {
                    Some(found) => found,
                    None => held.iter_mut().next().unwrap(),
                };
                // Of a stream that uses it already that is said again.
                heap.use_on(block.place, stream).unwrap();
                let device = heap.device();
                device.issued[slot] += 1;
                block.used[slot] = device.issued[slot];
                heap.issued(offset, block.bytes, slot, block.used[slot]);
            }
            // Time passes.
            92..97 => {
                let device = heap.device();
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
                    heap.device().inner.capture(stream, true).unwrap();
                    capturing = Some(slot);
                }
                Some(slot) => heap.device().inner.capture(streams[slot], false).unwrap(),
            },
            98 if random.below(50) == 0 && capturing.is_none() => {
                heap.leave(stream).unwrap();
                assert!(matches!(
                    heap.allocate(stream, 1),
                    Err(StreamError::Timeline(timeline::Error::NoStream(_)))
                ));
                streams[slot] = heap.device().inner.join().unwrap();
                assert_eq!(streams[slot].slot(), slot);
            }
            _ => {}
        }
        if operation % (operations / 50) == 0 {
            heap.check();
            assert_eq!(heap.in_use(), (held.len(), held.len() as u64));
        }
    }
    assert!(refused > 10 && captured > 0, "{refused} {captured}");
    let Progress { waits, orders, .. } = heap.progress();
    match options.crossing {
        Crossing::Wait => assert!(waits > 0 && orders == 0),
        Crossing::Order => assert!(orders > 0),
    }
    // All of it comes back.
    if let Some(slot) = capturing {
        heap.device().inner.capture(streams[slot], false).unwrap();
    }
    for block in held.into_values() {
        heap.free(block.place).unwrap();
    }
    for &stream in &streams {
        heap.leave(stream).unwrap();
    }
    heap.check();
    let stream = heap.device().inner.join().unwrap();
    let whole = heap.allocate(stream, EXTENT.bytes / 2).unwrap();
    assert_eq!(whole.offset, 0);
    heap.free(whole.place).unwrap();
    heap.leave(stream).unwrap();
}

const WAIT: Streams = Streams {
    batch: 16,
    crossing: Crossing::Wait,
};
const ORDER: Streams = Streams {
    batch: 16,
    crossing: Crossing::Order,
};

#[test]
fn no_block_is_given_out_while_work_uses_it_waiting() {
    exercise(fixed, WAIT, 4, operations() / 20, 1);
}

#[test]
fn no_block_is_given_out_while_work_uses_it_ordering() {
    exercise(fixed, ORDER, 4, operations() / 20, 2);
}

#[test]
fn single_frees_and_huge_batches_are_as_safe() {
    exercise(fixed, Streams { batch: 1, ..WAIT }, 3, operations() / 50, 3);
    let never = Streams {
        batch: u32::MAX,
        ..ORDER
    };
    exercise(fixed, never, 3, operations() / 50, 4);
}

#[test]
fn no_page_is_moved_while_work_uses_it() {
    exercise(paged, WAIT, 4, operations() / 20, 5);
    exercise(paged, ORDER, 3, operations() / 20, 6);
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
fn pages_of_a_captured_stream_are_passed_over() {
    let mut manual = Manual::new(3);
    let streams: Vec<_> = (0..3).map(|_| manual.join().unwrap()).collect();
    let plan = Plan {
        addresses: 16 * PAGE,
        cap: 4 * PAGE,
        page: PAGE,
        granule: 256,
        blocks: 16,
        moves: u64::MAX,
    };
    let backend = Offsets::new(1 << 20, PAGE).unwrap();
    let mut heap = SparseStreamHeap::new(backend, plan, manual, WAIT).unwrap();
    // Two that are freed, and what keeps them apart.
    let blocks: Vec<_> = [0, 2, 1, 2]
        .map(|stream: usize| heap.allocate(streams[stream], PAGE, PAGE).unwrap())
        .into();
    heap.free(blocks[0].place).unwrap();
    heap.free(blocks[2].place).unwrap();
    heap.timeline().capture(streams[0], true).unwrap();
    heap.allocate(streams[2], PAGE, PAGE).unwrap();
    assert_eq!((heap.pages().moved, heap.progress().waits), (1, 1));
    // The other page waits for the stream that is being captured.
    assert!(matches!(
        heap.allocate(streams[2], PAGE, PAGE),
        Err(StreamError::Pages(SparseRefusal::Timeline(
            timeline::Error::Capturing(_)
        )))
    ));
    heap.timeline().capture(streams[0], false).unwrap();
    heap.allocate(streams[2], PAGE, PAGE).unwrap();
    heap.check().unwrap();
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
