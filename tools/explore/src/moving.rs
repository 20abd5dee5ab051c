//! A trace on compact-fit whose blocks move: what its pages would have held.
//!
//! The heap is the library's own over a backing without memory, so that a trace of any
//! size can be replayed. Programs would hold handles, which no recorded program does: the
//! figures say what the heap needs, not what a run would measure.
//!
//! Invariant: the room for pages is never the reason for a decision; where it ended, the
//! replay is repeated with more.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::time::Instant;

use metes_heap::Memory;
use metes_heap::compact::apart::room;
use metes_heap::compact::backing::{Backing, Place, Record};
use metes_heap::compact::{CompactFit, Fragmentation, Handle, Options, Refused, Resize, Unfit};
use serde::Serialize;

use crate::events::{Event, Events, Operation};

/// Page-blocks that have a record each and no memory.
///
/// Invariant: the record of the page-block at a place is that at the place's index.
struct Unbacked {
    /// Owner and size in one word. A zeroed vector, of which only what is used is touched.
    records: Vec<u64>,
    page: usize,
    pages: u32,
    /// Most bytes of handles.
    handles: usize,
    moves: Cell<u64>,
    moved: Cell<u64>,
}

// SAFETY: nothing is read or written but records, which lie in a vector, at the place's
// index; so page-blocks that do not overlap have records of their own.
unsafe impl Backing for Unbacked {
    const COPIES: bool = false;

    fn pages_beside(&mut self, table: usize) -> u32 {
        match table <= self.handles {
            true => self.pages,
            false => 0,
        }
    }

    fn provide(&mut self, _place: Place, _bytes: usize) -> bool {
        true
    }

    fn withdraw(&mut self, _place: Place, _bytes: usize) {}

    fn record(&self, place: Place) -> Record {
        let word = self.records[place as usize];
        Record {
            owner: word as u32,
            size: (word >> 32) as u32,
        }
    }

    fn set_record(&mut self, place: Place, record: Record) {
        self.records[place as usize] = u64::from(record.owner) | u64::from(record.size) << 32;
    }

    fn carry(&mut self, from: Place, to: Place, range: Range<usize>) {
        if range.start == 0 {
            self.records[to as usize] = self.records[from as usize];
            self.moves.set(self.moves.get() + 1);
        }
        self.moved.set(self.moved.get() + range.len() as u64);
    }

    fn leave(&mut self, _from: Place, _bytes: usize) {}

    fn forget(&mut self, _to: Place, _bytes: usize) {}

    fn read(&self, _place: Place, _offset: usize, _bytes: &mut [u8]) {}

    fn write(&mut self, _place: Place, _offset: usize, bytes: &[u8]) {
        // Only a resize into another class writes.
        self.moved.set(self.moved.get() + bytes.len() as u64);
    }

    fn bytes(&self, pages: u32) -> usize {
        pages as usize * self.page
    }

    fn spare(&self) -> Option<usize> {
        None
    }

    fn record_bytes(&self, _pages: u32) -> usize {
        0
    }
}

/// Where the bytes were when most were live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shares {
    /// Requested bytes.
    pub live: u64,
    /// Requests rounded up to their class, and records of blocks.
    pub page_block_internal: u64,
    /// Ends of pages in which no page-block fits.
    pub page_internal: u64,
    /// Free page-blocks of pages that have used ones: what κ bounds.
    pub size_class: u64,
    /// Page-blocks that moves under way leave; none here, as each move is made at once.
    pub transient: u64,
    /// Pages that were used before.
    pub spare: u64,
    /// The table of handles.
    pub handles: u64,
    /// Records of pages and classes.
    pub records: u64,
}

impl From<Fragmentation> for Shares {
    fn from(found: Fragmentation) -> Self {
        Shares {
            live: found.live as u64,
            page_block_internal: found.page_block_internal as u64,
            page_internal: found.page_internal as u64,
            size_class: found.size_class as u64,
            transient: found.transient as u64,
            spare: found.spare as u64,
            handles: found.handles as u64,
            records: found.records as u64,
        }
    }
}

/// What a replay on moving compact-fit found. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovingReplay {
    /// The heap.
    pub heap: String,
    /// Events replayed.
    pub events: u64,
    /// Allocations among them.
    pub allocations: u64,
    /// Frees among them.
    pub frees: u64,
    /// Resizes among them.
    pub resizes: u64,
    /// Largest sum of requested bytes of live blocks, of those that were served.
    pub peak_live: u64,
    /// Most live blocks.
    pub peak_blocks: u64,
    /// Pages that were ever used, their records, handles, and the table of classes.
    pub footprint: u64,
    /// Smallest memory that serves every request, in bytes: the footprint, as which page-block
    /// serves does not depend on how many pages there are, so those that were used suffice.
    pub smallest_arena: Option<u64>,
    /// Requests that failed.
    pub failed: u64,
    /// Of those, requests above the largest class.
    pub above_largest: u64,
    /// The largest of these.
    pub largest_refused: u64,
    /// Requests that failed because no class is so aligned.
    pub misaligned: u64,
    /// Not counted: the tables of pages and handles do not tell of their accesses.
    pub record_reads: Option<u64>,
    /// Not counted, as reads.
    pub record_writes: Option<u64>,
    /// Blocks that a compaction moved.
    pub moves: u64,
    /// Bytes that compactions moved and resizes copied.
    pub moved_bytes: u64,
    /// Pages that were ever used.
    pub pages: u64,
    /// Where the bytes were when most were live.
    pub fragmentation: Shares,
    /// Events replayed in a second.
    pub events_per_second: f64,
}

/// The state of a replay.
struct Run {
    heap: CompactFit<Unbacked>,
    held: Vec<Option<(Handle, u64)>>,
    found: MovingReplay,
    live: u64,
    blocks: u64,
    /// Whether a request found no page or handle.
    exhausted: bool,
}

impl Run {
    fn refused(&mut self, why: Refused, size: u64) {
        self.found.failed += 1;
        match why {
            Refused::TooLarge => {
                self.found.above_largest += 1;
                self.found.largest_refused = self.found.largest_refused.max(size);
            }
            Refused::Alignment => self.found.misaligned += 1,
            Refused::Exhausted => self.exhausted = true,
        }
    }

    fn allocate(&mut self, event: Event) {
        let size = event.size().max(1);
        match self.heap.allocate(size, event.align()) {
            Ok(handle) => {
                self.held[event.slot() as usize] = Some((handle, event.size() as u64));
                self.live += event.size() as u64;
                self.blocks += 1;
                self.found.peak_blocks = self.found.peak_blocks.max(self.blocks);
            }
            Err(why) => self.refused(why, size as u64),
        }
    }

    /// Frees a block; nothing where its request failed.
    fn free(&mut self, event: Event) {
        if let Some((handle, size)) = self.held[event.slot() as usize].take() {
            let freed = self.heap.free(handle);
            debug_assert!(freed.is_ok(), "the events free live blocks only");
            self.live -= size;
            self.blocks -= 1;
        }
    }

    fn resize(&mut self, event: Event) {
        let Some((handle, before)) = self.held[event.slot() as usize] else {
            return self.allocate(event);
        };
        let size = event.size().max(1);
        match self.heap.resize(handle, size, event.align()) {
            Ok(()) => {
                self.held[event.slot() as usize] = Some((handle, event.size() as u64));
                self.live = self.live - before + event.size() as u64;
            }
            Err(Resize::Refused(why)) => self.refused(why, size as u64),
            Err(Resize::Handle(_)) => debug_assert!(false, "the events resize live blocks only"),
        }
    }

    /// Serves the events; notes the fragmentation behind event `peak`. Where most was live.
    fn go(&mut self, events: &Events, peak: Option<usize>) -> usize {
        let mut highest = 0;
        for (number, &event) in events.as_slice().iter().enumerate() {
            match event.operation() {
                Operation::Allocate => {
                    self.found.allocations += 1;
                    self.allocate(event);
                }
                Operation::Free => {
                    self.found.frees += 1;
                    self.free(event);
                }
                Operation::Resize => {
                    self.found.resizes += 1;
                    self.resize(event);
                }
            }
            if self.live > self.found.peak_live {
                self.found.peak_live = self.live;
                highest = number;
            }
            if peak == Some(number) {
                self.found.fragmentation = self.heap.fragmentation().into();
            }
        }
        highest
    }
}

/// Replays a trace on compact-fit whose blocks move. Linear in events times the heap's cost.
///
/// # Errors
/// [`Unfit`] when the options contradict each other.
pub fn replay(heap: &str, options: &Options, events: &Events) -> Result<MovingReplay, Unfit> {
    let mut pages = 256 + events.slots() / 8;
    loop {
        if let Some((peak, _)) = attempt(heap, options, events, pages, None)? {
            let found = attempt(heap, options, events, pages, Some(peak))?;
            if let Some((_, found)) = found {
                return Ok(found);
            }
        }
        pages *= 2;
    }
}

/// One replay with room for so many pages; `None` where they did not suffice.
fn attempt(
    heap: &str,
    options: &Options,
    events: &Events,
    pages: usize,
    peak: Option<usize>,
) -> Result<Option<(usize, MovingReplay)>, Unfit> {
    let room = room(options, pages)?;
    let page = options.partition.page;
    let mut memory: Vec<MaybeUninit<u8>> = Vec::with_capacity(room.bytes);
    let start =
        NonNull::new(memory.as_mut_ptr().cast::<u8>()).ok_or(Unfit::TooSmall(room.bytes))?;
    // SAFETY: `memory` has this capacity, is used by nothing else, and outlives the heap.
    let tables = unsafe { Memory::from_raw(start, room.bytes) };
    let backing = Unbacked {
        records: vec![0; pages * (page / metes_heap::compact::options::GRANULE)],
        page,
        pages: pages as u32,
        handles: room.handles,
        moves: Cell::new(0),
        moved: Cell::new(0),
    };
    // SAFETY: `pages_beside` grants none beside more handles than the room has.
    let heap_over = unsafe { CompactFit::over(options, tables, backing) }?;
    let mut run = Run {
        heap: heap_over,
        held: vec![None; events.slots()],
        found: empty(heap, events),
        live: 0,
        blocks: 0,
        exhausted: false,
    };
    let begin = Instant::now();
    let highest = run.go(events, peak);
    let seconds = begin.elapsed().as_secs_f64().max(1e-9);
    if run.exhausted {
        return Ok(None);
    }
    let (own, mut found) = (&run.heap, run.found.clone());
    found.footprint = own.footprint() as u64;
    found.smallest_arena = (found.failed == 0).then_some(found.footprint);
    found.moves = own.backing().moves.get();
    found.moved_bytes = own.backing().moved.get();
    found.pages = u64::from(own.pages().1);
    found.events_per_second = found.events as f64 / seconds;
    Ok(Some((highest, found)))
}

fn empty(heap: &str, events: &Events) -> MovingReplay {
    MovingReplay {
        heap: heap.to_owned(),
        events: events.len() as u64,
        allocations: 0,
        frees: 0,
        resizes: 0,
        peak_live: 0,
        peak_blocks: 0,
        footprint: 0,
        smallest_arena: None,
        failed: 0,
        above_largest: 0,
        largest_refused: 0,
        misaligned: 0,
        record_reads: None,
        record_writes: None,
        moves: 0,
        moved_bytes: 0,
        pages: 0,
        fragmentation: Shares::default(),
        events_per_second: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventsBuilder;
    use metes_heap::compact::{Kappa, Partition};

    /// Blocks of one size, of which every second one is freed.
    fn sparse() -> Events {
        let mut builder = EventsBuilder::new();
        for serial in 0..4000_u64 {
            builder.push(Operation::Allocate, serial, 56, 0).unwrap();
        }
        for serial in (0..4000).step_by(2) {
            builder.push(Operation::Free, serial, 0, 0).unwrap();
        }
        for serial in 4000..4500 {
            builder.push(Operation::Allocate, serial, 248, 0).unwrap();
        }
        builder.push(Operation::Allocate, 5000, 9000, 0).unwrap();
        builder.finish()
    }

    fn options(kappa: Kappa) -> Options {
        Options {
            kappa,
            partition: Partition {
                page: 4096,
                largest: 2048,
                ..Partition::DEFAULT
            },
            increment: None,
        }
    }

    #[test]
    fn compaction_gives_pages_back_to_other_classes() {
        let events = sparse();
        let still = replay("still", &options(Kappa::Infinite), &events).unwrap();
        let moving = replay("moving", &options(Kappa::Finite(1)), &events).unwrap();
        assert_eq!(still.moves, 0);
        // All frees but those that reopen the one page that may be not full, and those in it.
        assert!(moving.moves > 900, "{} moves", moving.moves);
        // 64 bytes a block with its record, 64 to a page: of 63 pages 32 stay, and the
        // larger blocks get the others.
        assert_eq!(still.pages - moving.pages, 63 - 32);
        assert_eq!(moving.peak_live, 2000 * 56 + 500 * 248);
        assert_eq!((moving.failed, moving.above_largest), (1, 1));
        assert_eq!(moving.largest_refused, 9000);
        assert_eq!(moving.smallest_arena, None, "no memory suffices");
        let shares = moving.fragmentation;
        assert_eq!(shares.live, moving.peak_live);
        // Records, and 256 bytes in page-blocks of 272.
        assert_eq!(shares.page_block_internal, 2500 * 8 + 500 * 16);
    }

    #[test]
    fn shares_make_up_the_footprint_at_the_peak() {
        let mut builder = EventsBuilder::new();
        for serial in 0..3000_u64 {
            let size = 1 + serial * serial % 1900;
            builder.push(Operation::Allocate, serial, size, 0).unwrap();
        }
        let events = builder.finish();
        let found = replay("compact-fit", &options(Kappa::Finite(2)), &events).unwrap();
        let of = found.fragmentation;
        let sum = of.live
            + of.page_block_internal
            + of.page_internal
            + of.size_class
            + of.spare
            + of.handles
            + of.records;
        assert_eq!(sum, found.footprint);
        assert_eq!(found.smallest_arena, Some(found.footprint));
    }
}
