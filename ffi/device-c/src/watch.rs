//! Heaps that others may look at: one whose figures and pages stand on a board.
//!
//! A watched heap is a heap inside another that writes down what the first did; its backend is
//! inside one that writes down which pages have memory, its timeline inside one that remembers
//! how far streams came. A heap that is not watched has none of them.
//!
//! Invariant: after each call the board has what the heap's own functions say. The board is
//! written by the process that made the heap alone: calls of a fork are refused before they come
//! here.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use metes_board::{About, Figures, Writer};
use metes_device::backend::timeline::{self, Stream, Ticket, Timeline};
use metes_device::backend::{self, Backend, Capacity, Memory};

use crate::failure::Failure;
use crate::figures::{self, Block, Holder, Options, Range, Statistics};
use crate::follow::Follow;
use crate::graphs::Id;
use crate::history::History;
use crate::plug::{Device, Plug};

/// Decides for all heaps of a process.
const VARIABLE: &str = "METES_DEVICE_WATCH";

/// Streams of a heap, that of graphs included.
const STREAMS: usize = 64;

/// Whether a heap with these options may be watched.
pub(crate) fn wanted(options: &Options) -> Result<bool, Failure> {
    let asked = match options.watch {
        0 | 2 => false,
        1 => true,
        other => {
            return Err(Failure::invalid(format!(
                "watch is {other}: it is 0, 1 (others may look at the heap) or 2 (nobody)"
            )));
        }
    };
    let decided = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    Ok(decided.map_or(asked, |value| value != "0"))
}

/// The board once it is made, which is after the heap.
type Board = Arc<OnceLock<Mutex<Writer>>>;

fn lock(board: &Board) -> Option<MutexGuard<'_, Writer>> {
    let writer = board.get()?;
    Some(writer.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A heap over `backend` with a board; without one, and a word about it, where there is none to
/// be had.
pub(crate) fn watched<B: Backend + Send + 'static, T: Follow + 'static>(
    backend: B,
    options: &Options,
    name: &str,
    timeline: impl FnOnce(&B, usize) -> Result<T, Failure>,
    synchronize: fn(&B) -> Result<(), Failure>,
) -> Result<Box<dyn Device>, Failure> {
    let board = Board::default();
    let known = Arc::new(Known::default());
    let noting = Noting {
        own: backend,
        board: Arc::clone(&board),
        synchronize,
        shift: u32::MAX,
        start: 0,
    };
    let knowing = |noting: &Noting<B>, streams| {
        Ok(Knowing {
            own: timeline(&noting.own, streams)?,
            known: Arc::clone(&known),
        })
    };
    let plug = Plug::new(noting, options, knowing, |noting: &Noting<B>| {
        (noting.synchronize)(&noting.own)
    })?;
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let Statistics { page, granule, .. } = plug.statistics();
    let range = plug.range();
    let made = Writer::create(&About {
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        start: range.start,
        page,
        pages: range.bytes / page,
        granule,
        device: name,
    });
    match made {
        Ok(writer) => drop(board.set(Mutex::new(writer))),
        Err(error) => eprintln!("metes: this device heap cannot be watched, and goes on: {error}"),
    }
    let mut watched = Watched {
        own: plug,
        board,
        known,
        page_shift: page.trailing_zeros(),
        streams: 0,
        last: None,
        graph: false,
        shown: None,
    };
    watched.show(0);
    Ok(Box::new(watched))
}

/// A backend that writes down which pages have memory. Pages are as large as the plan of the
/// heap has them, which maps them one by one.
#[derive(Debug)]
struct Noting<B> {
    own: B,
    board: Board,
    synchronize: fn(&B) -> Result<(), Failure>,
    /// Of the range, and of a page.
    start: u64,
    shift: u32,
}

impl<B> Noting<B> {
    fn note(&self, address: u64, mapped: bool) {
        if let Some(mut writer) = lock(&self.board) {
            writer.map((address - self.start) >> self.shift, mapped);
        }
    }
}

impl<B: Backend> Backend for Noting<B> {
    fn name(&self) -> &'static str {
        self.own.name()
    }

    fn granularity(&self) -> u64 {
        self.own.granularity()
    }

    fn paged(&self) -> bool {
        self.own.paged()
    }

    fn alignment(&self) -> u64 {
        self.own.alignment()
    }

    fn capacity(&self) -> Result<Capacity, backend::Error> {
        self.own.capacity()
    }

    fn reserve(&mut self, bytes: u64) -> Result<backend::Range, backend::Error> {
        let range = self.own.reserve(bytes)?;
        // A heap reserves once.
        self.start = range.start;
        Ok(range)
    }

    fn unreserve(&mut self, range: backend::Range) -> Result<(), backend::Error> {
        self.own.unreserve(range)
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, backend::Error> {
        self.shift = bytes.trailing_zeros();
        self.own.create(bytes)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), backend::Error> {
        self.own.map(address, memory)?;
        self.note(address, true);
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, backend::Error> {
        let memory = self.own.unmap(address, bytes)?;
        self.note(address, false);
        Ok(memory)
    }

    fn release(&mut self, memory: Memory) -> Result<(), backend::Error> {
        self.own.release(memory)
    }
}

/// How far streams are known to have come, by their slots, and how often that changed.
#[derive(Debug)]
struct Known {
    tickets: [AtomicU64; STREAMS],
    changes: AtomicU64,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            tickets: [const { AtomicU64::new(0) }; STREAMS],
            changes: AtomicU64::new(0),
        }
    }
}

impl Known {
    fn set(&self, stream: Stream, ticket: Ticket) {
        if let Some(known) = self.tickets.get(stream.slot()) {
            known.store(ticket, Ordering::Relaxed);
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn get(&self, slot: usize) -> Ticket {
        self.tickets[slot].load(Ordering::Relaxed)
    }
}

/// A timeline that remembers how far streams came.
#[derive(Debug)]
struct Knowing<T> {
    own: T,
    known: Arc<Known>,
}

impl<T: Follow> Follow for Knowing<T> {
    fn follow(&mut self, raw: u64) -> Result<Stream, timeline::Error> {
        self.own.follow(raw)
    }
}

impl<T: Timeline> Timeline for Knowing<T> {
    fn streams(&self) -> usize {
        self.own.streams()
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), timeline::Error> {
        self.own.mark(stream, ticket)
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, timeline::Error> {
        let completed = self.own.completed(stream)?;
        self.known.set(stream, completed);
        Ok(completed)
    }

    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), timeline::Error> {
        self.own.wait(stream, ticket)?;
        let before = self.known.get(stream.slot());
        self.known.set(stream, before.max(ticket));
        Ok(())
    }

    fn order(
        &mut self,
        waiter: Stream,
        stream: Stream,
        ticket: Ticket,
    ) -> Result<(), timeline::Error> {
        self.own.order(waiter, stream, ticket)
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, timeline::Error> {
        self.own.capturing(stream)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), timeline::Error> {
        self.own.leave(stream)?;
        self.known.set(stream, 0);
        Ok(())
    }
}

/// See the module.
struct Watched<B: Backend, T: Follow> {
    own: Plug<Noting<B>, Knowing<T>>,
    board: Board,
    known: Arc<Known>,
    page_shift: u32,
    /// Streams followed, and for whom the last block was allocated: while it is the same stream,
    /// there is no other that would have to be counted.
    streams: u64,
    last: Option<u64>,
    /// Whether a graph was ever captured: then a request may be for the stream of graphs instead.
    graph: bool,
    /// What the streams on the board are of: marks, streams, and changes of what is known.
    shown: Option<[u64; 3]>,
}

impl<B: Backend + Send, T: Follow> Watched<B, T> {
    /// Shows what the heap has now, and of its streams those of `slots`, or all if the heap
    /// learnt something of any.
    fn show(&mut self, slots: u64) {
        let Some(mut writer) = lock(&self.board) else {
            return;
        };
        let (statistics, pages, progress, asleep) = self.own.figures();
        let changes = self.known.changes.load(Ordering::Relaxed);
        let now = Some([progress.marks, self.streams, changes]);
        let mut slots = match now == self.shown {
            true => slots,
            false => u64::MAX,
        };
        self.shown = now;
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            writer.stream(slot, self.own.came(slot, self.known.get(slot)));
        }
        let count = |count: figures::Count| metes_board::Count {
            current: count.current,
            peak: count.peak,
            added: count.added,
            removed: count.removed,
        };
        writer.publish(&Figures {
            blocks: count(statistics.all.blocks),
            allocated: count(statistics.all.allocated),
            requested: count(statistics.all.requested),
            reserved: count(statistics.reserved),
            cap: statistics.cap,
            live_pages: pages.live,
            idle_pages: pages.idle,
            spare_pages: pages.spare,
            mapped: pages.mapped,
            moved: pages.moved,
            most_moved: pages.most_moved,
            marks: progress.marks,
            waits: progress.waits,
            orders: progress.orders,
            streams: self.streams,
            refusals: statistics.refusals,
            retries: statistics.retries,
            bad_frees: statistics.bad_frees,
            asleep: asleep.into(),
        });
    }

    /// Does something with the heap, and shows what it has then.
    fn then<R>(&mut self, work: impl FnOnce(&mut Plug<Noting<B>, Knowing<T>>) -> R) -> R {
        let done = work(&mut self.own);
        self.streams = self.own.streams();
        self.last = None;
        self.show(u64::MAX);
        done
    }
}

impl<B: Backend + Send, T: Follow> Device for Watched<B, T> {
    fn allocate(&mut self, bytes: u64, align: u64, stream: u64) -> Result<u64, Failure> {
        let lying = self.own.lying();
        let done = self.own.allocate(bytes, align, stream);
        // One that a graph kept lies there already.
        if let Ok(address) = done
            && self.own.lying() > lying
            && let Some(mut writer) = lock(&self.board)
        {
            writer.add(address - self.own.range().start, bytes);
        }
        if self.last != Some(stream) || self.graph {
            self.streams = self.own.streams();
            self.last = Some(stream);
        }
        self.show(0);
        done
    }

    fn free(&mut self, address: u64) -> Result<(), Failure> {
        let span = self.own.span(address);
        let lying = self.own.lying();
        let done = self.own.free(address);
        let mut slots = 0;
        if let Some(span) = span
            && self.own.lying() < lying
            && let Some(mut writer) = lock(&self.board)
        {
            writer.remove(span.offset, span.requested);
            let last = (span.offset + span.requested - 1) >> self.page_shift;
            for page in span.offset >> self.page_shift..=last {
                if let Some((streams, ticket)) = self.own.waits(page) {
                    writer.waits(page, streams, ticket);
                    slots |= streams;
                }
            }
        }
        self.show(slots);
        done
    }

    fn use_on(&mut self, address: u64, stream: u64) -> Result<(), Failure> {
        self.then(|own| own.use_on(address, stream))
    }

    fn leave(&mut self, stream: u64) -> Result<(), Failure> {
        self.then(|own| own.leave(stream))
    }

    fn forget(&mut self, stream: u64) -> Result<(), Failure> {
        self.then(|own| own.forget(stream))
    }

    fn trim(&mut self, keep: u64) -> Result<u64, Failure> {
        self.then(|own| own.trim(keep))
    }

    fn sleep(&mut self) -> Result<(), Failure> {
        self.then(|own| own.sleep())
    }

    fn wake(&mut self) -> Result<(), Failure> {
        self.then(|own| own.wake())
    }

    fn limit(&mut self, cap: u64) -> Result<(), Failure> {
        self.then(|own| own.limit(cap))
    }

    fn range(&self) -> backend::Range {
        self.own.range()
    }

    fn capacity(&self) -> Result<(u64, u64), Failure> {
        self.own.capacity()
    }

    fn statistics(&self) -> Statistics {
        self.own.statistics()
    }

    fn reset_peaks(&mut self) {
        self.then(|own| own.reset_peaks());
    }

    fn reset_totals(&mut self) {
        self.then(|own| own.reset_totals());
    }

    fn retried(&mut self) {
        self.then(|own| own.retried());
    }

    fn requested(&self, address: u64) -> Result<u64, Failure> {
        self.own.requested(address)
    }

    fn holders(&self, visit: &mut dyn FnMut(Holder)) {
        self.own.holders(visit);
    }

    fn blocks(&self, visit: &mut dyn FnMut(Block)) {
        self.own.blocks(visit);
    }

    fn mapped(&self, visit: &mut dyn FnMut(Range)) {
        self.own.mapped(visit);
    }

    fn history(&mut self) -> &mut History {
        self.own.history()
    }

    fn begin_graph(&mut self, pool: Id) -> Result<(), Failure> {
        self.graph = true;
        self.own.begin_graph(pool)
    }

    fn end_graph(&mut self, pool: Id) {
        self.own.end_graph(pool);
    }

    /// Many blocks go at once, after the device was waited for: the board is drawn anew.
    fn release_graph(&mut self, pool: Id) -> Result<(), Failure> {
        let lying = self.own.lying();
        let done = self.own.release_graph(pool);
        if self.own.lying() < lying
            && let Some(mut writer) = lock(&self.board)
        {
            writer.clear();
            for span in self.own.spans() {
                writer.add(span.offset, span.requested);
            }
            for page in 0..self.own.range().bytes >> self.page_shift {
                if let Some((streams, ticket)) = self.own.waits(page) {
                    writer.waits(page, streams, ticket);
                }
            }
        }
        self.show(u64::MAX);
        done
    }

    fn check(&self) -> Result<(), Failure> {
        self.own.check()
    }
}

#[cfg(test)]
mod tests {
    use metes_board::{Board, Snapshot, find};
    use metes_device::backend::offsets::Offsets;

    use super::*;
    use crate::follow::Done;

    const MIB: u64 = 1 << 20;

    /// A heap with a board over offsets, and how a reader has it.
    fn made(total: u64, options: &Options) -> (Box<dyn Device>, Board) {
        let backend = Offsets::new(total, 2 * MIB).unwrap();
        // Tests of this process run side by side, and are told apart by their names.
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let timeline = |_: &Offsets, streams| Ok(Done::new(streams));
        let heap = watched(backend, options, &name, timeline, |_| Ok(())).unwrap();
        let own = |board: &Board| name.starts_with(&board.header().device);
        let board = find().into_iter().flatten().find(own);
        (heap, board.expect("the heap's board is found"))
    }

    /// The figures that the heap gives to whoever asks it.
    fn shown(statistics: &Statistics) -> Figures {
        let count = |count: figures::Count| metes_board::Count {
            current: count.current,
            peak: count.peak,
            added: count.added,
            removed: count.removed,
        };
        Figures {
            blocks: count(statistics.all.blocks),
            allocated: count(statistics.all.allocated),
            requested: count(statistics.all.requested),
            reserved: count(statistics.reserved),
            cap: statistics.cap,
            live_pages: statistics.live_pages,
            idle_pages: statistics.idle_pages,
            spare_pages: statistics.spare_pages,
            mapped: statistics.mapped,
            moved: statistics.moved,
            most_moved: statistics.most_moved,
            marks: statistics.marks,
            waits: statistics.waits,
            orders: statistics.orders,
            streams: statistics.streams,
            refusals: statistics.refusals,
            retries: statistics.retries,
            bad_frees: statistics.bad_frees,
            asleep: statistics.asleep,
        }
    }

    /// That the board has what the heap says by its own functions.
    #[track_caller]
    fn agree(heap: &dyn Device, board: &Board) -> Snapshot {
        let found = board.read().unwrap();
        assert_eq!(found.figures, shown(&heap.statistics()));
        let header = board.header();
        let mut used = vec![0; found.pages.len()];
        heap.blocks(&mut |block| {
            let (mut at, end) = (
                block.address - header.start,
                block.address - header.start + block.requested,
            );
            while at < end {
                let page = at / header.page;
                let next = ((page + 1) * header.page).min(end);
                used[page as usize] += next - at;
                at = next;
            }
        });
        let mut mapped = vec![false; found.pages.len()];
        heap.mapped(&mut |range| {
            let first = (range.address - header.start) / header.page;
            for page in first..first + range.bytes / header.page {
                mapped[page as usize] = true;
            }
        });
        for (number, page) in found.pages.iter().enumerate() {
            assert_eq!(page.used, used[number], "bytes on page {number}");
            assert_eq!(page.mapped, mapped[number], "memory of page {number}");
            assert!(!page.waiting || page.mapped && page.used == 0);
        }
        found
    }

    #[test]
    fn the_board_has_what_the_heap_says() {
        let options = Options {
            cap: 64 * MIB,
            addresses: 100 * MIB,
            blocks: 300,
            streams: 5,
            ..Options::default()
        };
        let (mut heap, board) = made(128 * MIB, &options);
        agree(&*heap, &board);
        let mut state = 3_u64;
        let mut draw = move |end: u64| {
            // A linear congruential generator (Knuth's MMIX).
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let mut live = Vec::new();
        let mut waited = 0;
        for _ in 0..20_000 {
            match draw(100) {
                0..50 => {
                    let shift = 8 + draw(16);
                    let bytes = 1 + draw(1 << shift);
                    let address = heap.allocate(bytes, 1 << draw(13), draw(5));
                    live.extend(address.ok());
                }
                50..88 if !live.is_empty() => {
                    let place = draw(live.len() as u64) as usize;
                    let _ = heap.free(live.swap_remove(place));
                }
                88..92 if !live.is_empty() => {
                    let place = draw(live.len() as u64) as usize;
                    let _ = heap.use_on(live[place], draw(5));
                }
                92 => assert!(heap.free(draw(100 * MIB) | 1).is_err()),
                93 => drop(heap.trim(draw(20 * MIB))),
                94 => drop(heap.limit((30 + draw(34)) * MIB)),
                95 => {
                    let _ = heap.leave(draw(5));
                }
                96 => drop(heap.sleep()),
                97 => heap.reset_peaks(),
                98 if draw(20) == 0 => heap.reset_totals(),
                _ => {}
            }
            if draw(4) == 0 {
                let _ = heap.wake();
            }
            let found = agree(&*heap, &board);
            waited += u64::from(found.pages.iter().any(|page| page.waiting));
        }
        heap.check().unwrap();
        let Statistics {
            moved,
            refusals,
            bad_frees,
            ..
        } = heap.statistics();
        let seen = [moved, refusals, bad_frees, waited];
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
        assert!(!board.ended());
        drop(heap);
        assert!(board.ended());
    }

    #[test]
    fn pages_wait_until_their_streams_are_known_to_have_come() {
        let (mut heap, board) = made(64 * MIB, &Options::default());
        let waiting = |board: &Board| {
            let found = board.read().unwrap();
            found.pages.iter().filter(|page| page.waiting).count()
        };
        let block = heap.allocate(2 * MIB, 2 * MIB, 5).unwrap();
        let others: Vec<u64> = (0..31).map(|_| heap.allocate(100, 1, 5).unwrap()).collect();
        assert_eq!(waiting(&board), 0);
        heap.free(block).unwrap();
        assert_eq!(waiting(&board), 1);
        let stream = board.read().unwrap().streams[0];
        assert_eq!((stream.name, stream.pages), (5, 1));
        for other in others {
            assert_eq!(waiting(&board), 1);
            heap.free(other).unwrap();
        }
        // The batch is full: the stream was marked and asked, and had come that far.
        assert_eq!(waiting(&board), 0);
        let block = heap.allocate(2 * MIB, 2 * MIB, 5).unwrap();
        heap.free(block).unwrap();
        assert_eq!(waiting(&board), 1);
        heap.leave(5).unwrap();
        assert_eq!(waiting(&board), 0);
    }

    #[test]
    fn who_may_look_is_asked_once() {
        let with = |watch| {
            wanted(&Options {
                watch,
                ..Options::default()
            })
        };
        // A variable of this process would decide, and other tests read it.
        if env::var_os(VARIABLE).is_none() {
            assert_eq!(
                [0, 1, 2].map(|watch| with(watch).unwrap()),
                [false, true, false]
            );
        }
        assert!(with(3).unwrap_err().text.contains("watch is 3"));
    }
}
