//! Replay of traces on heaps whose blocks are reached by handles.
//!
//! Such a heap need not place a block anywhere for good, so there are no placements to hash
//! and no ledger to count on: what is found is what it needs, when, and what it refuses.
//!
//! Invariant: requests follow the rules of [`Replayer::replay`](crate::Replayer::replay).

use std::time::Instant;

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use metes_heap::compact::{BlockTable, CompactFit, Handle, Options, Refused, Resize, Unfit};
use metes_heap::{Memory, fragmented};
use serde::{Deserialize, Serialize};

use crate::events::{Events, Operation};

/// A heap of handles, as a replay drives it.
pub trait HandleHeap {
    /// What names a block.
    type Handle: Copy;

    /// A block of `size` bytes, or none.
    fn allocate(&mut self, size: usize, align: usize) -> Option<Self::Handle>;

    /// Frees a block.
    fn free(&mut self, handle: Self::Handle);

    /// The block at another size; none where it is refused, and the block is as it was.
    fn resize(&mut self, handle: Self::Handle, size: usize, align: usize) -> Option<Self::Handle>;

    /// Bytes that the heap has taken, all tables included.
    fn footprint(&self) -> u64;
}

/// What a replay on a heap of handles found. Bytes as integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandleReplay {
    /// The heap, by specification.
    pub heap: String,
    /// Events replayed.
    pub events: u64,
    /// Allocations among them.
    pub allocations: u64,
    /// Frees among them.
    pub frees: u64,
    /// Resizes among them.
    pub resizes: u64,
    /// Largest sum of requested bytes of live blocks.
    pub peak_live: u64,
    /// Most live blocks.
    pub peak_blocks: u64,
    /// Bytes that the heap took, all tables included.
    pub footprint: u64,
    /// Smallest memory in which no request fails, where it is known.
    pub smallest_arena: Option<u64>,
    /// Requests that failed.
    pub failed: u64,
    /// Record words read: not counted on such heaps.
    pub record_reads: Option<u64>,
    /// Record words written: not counted on such heaps.
    pub record_writes: Option<u64>,
    /// Events replayed in a second on one core.
    pub events_per_second: f64,
}

/// Replays a trace on a heap. Linear in events times the heap's own cost.
pub fn replay_handles<H: HandleHeap>(name: &str, heap: &mut H, events: &Events) -> HandleReplay {
    let mut held: Vec<Option<(H::Handle, u64)>> = vec![None; events.slots()];
    let (mut live, mut peak_live, mut blocks, mut peak_blocks) = (0, 0, 0u64, 0);
    let mut failed = 0;
    let start = Instant::now();
    for event in events.as_slice() {
        let entry = &mut held[event.slot() as usize];
        let (size, align) = (event.size(), event.align());
        // What a resize finds nothing for is an allocation, as in `realloc(NULL, size)`.
        let before = entry.take();
        let after = match (event.operation(), before) {
            (Operation::Free, Some((handle, _))) => {
                heap.free(handle);
                None
            }
            (Operation::Free, None) => None,
            (Operation::Resize, Some((handle, own))) => {
                let resized = heap.resize(handle, size, align);
                failed += u64::from(resized.is_none());
                Some(resized.map_or((handle, own), |handle| (handle, size as u64)))
            }
            _ => {
                let handle = heap.allocate(size, align);
                failed += u64::from(handle.is_none());
                handle.map(|handle| (handle, size as u64))
            }
        };
        *entry = after;
        let bytes = |held: Option<(H::Handle, u64)>| held.map_or(0, |(_, size)| size);
        live = live - bytes(before) + bytes(after);
        blocks = blocks + u64::from(after.is_some()) - u64::from(before.is_some());
        peak_live = peak_live.max(live);
        peak_blocks = peak_blocks.max(blocks);
    }
    let seconds = start.elapsed().as_secs_f64();
    HandleReplay {
        heap: name.to_owned(),
        events: events.len() as u64,
        allocations: events.allocations(),
        frees: events.frees(),
        resizes: events.resizes(),
        peak_live,
        peak_blocks,
        footprint: heap.footprint(),
        smallest_arena: None,
        failed,
        record_reads: None,
        record_writes: None,
        events_per_second: events.len() as f64 / seconds.max(1e-9),
    }
}

/// A fragmented heap without its memory: a request is served exactly when its blocks are
/// free, so counting them is all that there is to decide.
#[derive(Clone, Debug)]
pub struct BlockCount {
    options: fragmented::Options,
    used: u64,
    most: u64,
    limit: u64,
}

impl BlockCount {
    /// A heap in as many bytes; `None`: as many as it takes.
    pub fn new(options: fragmented::Options, arena: Option<u64>) -> Self {
        let most = fragmented::options::MOST_BLOCKS as u64;
        BlockCount {
            options,
            used: 0,
            most: 0,
            limit: arena.map_or(most, |arena| (arena / options.bytes(1)).min(most)),
        }
    }

    /// Takes blocks for an object that has some already.
    fn take(&mut self, before: u64, size: usize) -> Option<u64> {
        let after = self.options.blocks(size as u64);
        if size > u32::MAX as usize || self.used - before + after > self.limit {
            return None;
        }
        self.used = self.used - before + after;
        self.most = self.most.max(self.used);
        Some(after)
    }
}

impl HandleHeap for BlockCount {
    /// The blocks of the object.
    type Handle = u64;

    fn allocate(&mut self, size: usize, _align: usize) -> Option<u64> {
        self.take(0, size)
    }

    fn free(&mut self, blocks: u64) {
        self.used -= blocks;
    }

    fn resize(&mut self, blocks: u64, size: usize, _align: usize) -> Option<u64> {
        self.take(blocks, size)
    }

    fn footprint(&self) -> u64 {
        self.options.bytes(self.most)
    }
}

/// Compact-fit behind a block table, in memory of its own.
struct Framed {
    heap: CompactFit<BlockTable>,
    /// Whether memory was the reason for a refusal.
    exhausted: bool,
}

impl HandleHeap for Framed {
    type Handle = Handle;

    fn allocate(&mut self, size: usize, align: usize) -> Option<Handle> {
        let block = self.heap.allocate(size.max(1), align);
        self.exhausted |= block == Err(Refused::Exhausted);
        block.ok()
    }

    fn free(&mut self, handle: Handle) {
        let freed = self.heap.free(handle);
        debug_assert!(freed.is_ok(), "the events free live blocks only");
    }

    fn resize(&mut self, handle: Handle, size: usize, align: usize) -> Option<Handle> {
        let resized = self.heap.resize(handle, size.max(1), align);
        self.exhausted |= resized == Err(Resize::Refused(Refused::Exhausted));
        resized.ok().map(|()| handle)
    }

    fn footprint(&self) -> u64 {
        self.heap.footprint() as u64
    }
}

/// Why a trace cannot be replayed behind a block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The options contradict each other.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// Blocks behind a block table lie in memory of the replay itself, which is not to be had.
    #[error(
        "blocks behind a block table are replayed in memory of their own, and the system does not \
         give {0} bytes: replay it where there is more, or on `compact-fit`, which needs none"
    )]
    NoMemory(usize),
}

/// The most bytes that live blocks of at most `largest` bytes have: others are refused.
fn served(events: &Events, largest: usize) -> usize {
    let mut held = vec![0; events.slots()];
    let (mut live, mut most) = (0_usize, 0);
    for event in events.as_slice() {
        let own = &mut held[event.slot() as usize];
        let after = match event.operation() {
            Operation::Free => 0,
            // A refused resize leaves the block as it is.
            _ if event.size() > largest => *own,
            _ => event.size(),
        };
        live = live - std::mem::replace(own, after) + after;
        most = most.max(live);
    }
    most
}

/// Replays a trace on compact-fit behind a block table, in as much memory as it takes: a few times
/// the most that is live in blocks that fit a page. Linear in events times the heap's cost.
///
/// # Errors
/// [`TableError::Unfit`] when the options contradict each other, [`TableError::NoMemory`] when there is
/// not so much memory.
pub fn replay_block_table(
    name: &str,
    options: &Options,
    events: &Events,
) -> Result<HandleReplay, TableError> {
    let live = served(events, options.partition.largest);
    let mut bytes = live.saturating_mul(2).saturating_add(1 << 20);
    loop {
        let mut memory: Vec<MaybeUninit<u8>> = Vec::new();
        let room = memory.try_reserve_exact(bytes);
        room.map_err(|_| TableError::NoMemory(bytes))?;
        let start = NonNull::new(memory.as_mut_ptr().cast()).ok_or(Unfit::TooSmall(bytes))?;
        // SAFETY: `memory` has this capacity, is used by nothing else, and outlives the heap.
        let own = unsafe { Memory::from_raw(start, bytes) };
        let mut heap = Framed {
            heap: CompactFit::with_block_table(options, own)?,
            exhausted: false,
        };
        let mut found = replay_handles(name, &mut heap, events);
        if !heap.exhausted {
            // Frames and pages that were used suffice, however many there are.
            found.smallest_arena = (found.failed == 0).then_some(found.footprint);
            return Ok(found);
        }
        bytes = bytes.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use metes_heap::Memory;
    use metes_heap::fragmented::{Fragmented, Handle, Options, Shape};

    use super::*;
    use crate::events::EventsBuilder;

    impl HandleHeap for Fragmented {
        type Handle = Handle;

        fn allocate(&mut self, size: usize, _align: usize) -> Option<Handle> {
            Fragmented::allocate(self, size).ok()
        }

        fn free(&mut self, handle: Handle) {
            Fragmented::free(self, handle).expect("a handle in use");
        }

        fn resize(&mut self, handle: Handle, size: usize, _align: usize) -> Option<Handle> {
            Fragmented::resize(self, handle, size).ok().map(|()| handle)
        }

        fn footprint(&self) -> u64 {
            Fragmented::footprint(self) as u64
        }
    }

    /// A program that allocates, resizes and frees in a scattered order.
    fn events() -> Events {
        let mut builder = EventsBuilder::new();
        let (mut state, mut live) = (7u64, Vec::new());
        for block in 0..3000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(block);
            let (number, size) = ((state >> 33) as usize, (state >> 40) % 700 + 1);
            match number % 4 {
                0 | 1 => {
                    builder.push(Operation::Allocate, block, size, 1).unwrap();
                    live.push(block);
                }
                2 if !live.is_empty() => {
                    let block = live[number % live.len()];
                    builder.push(Operation::Resize, block, size, 1).unwrap();
                }
                _ if !live.is_empty() => {
                    let block = live.swap_remove(number % live.len());
                    builder.push(Operation::Free, block, 0, 1).unwrap();
                }
                _ => {}
            }
        }
        builder.finish()
    }

    #[test]
    fn counting_blocks_finds_what_the_heap_finds() {
        let events = events();
        for shape in [Shape::Chain, Shape::Tree] {
            let options = Options { block: 64, shape };
            let counted = replay_handles("", &mut BlockCount::new(options, None), &events);
            assert_eq!(counted.peak_live, events.peak_live());
            assert_eq!(counted.failed, 0);
            let needed = counted.footprint;
            for bytes in [needed, needed - 1, needed / 2] {
                let memory = vec![0u64; bytes as usize / 8 + 1].leak();
                let start = std::ptr::NonNull::from(memory).cast();
                // SAFETY: leaked, so the heap's for ever.
                let memory = unsafe { Memory::from_raw(start, bytes as usize) };
                let mut real = Fragmented::new(&options, memory).unwrap();
                let mut count = BlockCount::new(options, Some(bytes));
                let real = replay_handles("", &mut real, &events);
                let count = replay_handles("", &mut count, &events);
                assert_eq!(real.failed > 0, bytes < needed);
                let figures = |r: &HandleReplay| (r.failed, r.footprint, r.peak_live);
                assert_eq!(figures(&real), figures(&count));
            }
        }
    }
}
