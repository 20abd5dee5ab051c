//! The heap of one node.
//!
//! Invariant: offsets are of payloads, from the beginning of the node's memory; two of them lie at least
//! [`LocalHeap::APART`] bytes apart, and are multiples of half of that.

use core::ptr::NonNull;

use metes_heap::index::Index;
use metes_heap::{Heap, Memory, RegionError, Tagged};

/// A heap that knows nothing of other nodes.
pub trait LocalHeap {
    /// Least distance of two blocks in use, a power of two of 16 at least.
    const APART: u64;

    /// Takes a block, whose offset is given.
    fn allocate(&mut self, size: u64, align: u64) -> Option<u64>;

    /// Gives the block at `offset` back.
    ///
    /// # Safety
    /// It is in use, and nothing uses it any more.
    unsafe fn free(&mut self, offset: u64);

    /// Makes the heap whole again after a change of it was broken off anywhere: blocks at `used`, which are told in the
    /// order of offsets, stay in use, all else is free. False if that cannot be; nothing has changed then. Linear.
    ///
    /// # Safety
    /// `used` tells all blocks that are in use, but one that was being taken or given back, and tells the same each time.
    #[must_use]
    unsafe fn rebuild(&mut self, used: impl Iterator<Item = u64> + Clone) -> bool;

    /// Bytes that were asked for and are in use, parked ones included.
    fn live(&self) -> u64;

    /// Blocks in use, parked ones included. Linear.
    fn blocks(&self) -> u64;

    /// Whether its records are whole. Linear.
    fn is_whole(&self) -> bool;
}

/// A heap with boundary tags in the node's own memory.
#[derive(Debug)]
pub struct TaggedHeap<I> {
    heap: Heap<I, Tagged>,
    /// A new one of the kind, to rebuild with.
    index: I,
    start: NonNull<u8>,
}

// SAFETY: the pointers lead into memory that belongs to the heap alone, so it may be used from any thread, one at a time.
unsafe impl<I: Send> Send for TaggedHeap<I> {}

impl<I: Index<Tagged> + Clone> TaggedHeap<I> {
    /// A heap in `memory`, by `index`.
    ///
    /// # Errors
    /// It is too small.
    pub fn new(index: I, memory: Memory) -> Result<Self, RegionError> {
        let start = memory.start();
        let mut heap = Heap::new(index.clone(), Tagged::new());
        heap.add_region(memory)?;
        Ok(TaggedHeap { heap, index, start })
    }
}

impl<I: Index<Tagged> + Clone> LocalHeap for TaggedHeap<I> {
    // A block has a word in front of it and room for two links and a footer.
    const APART: u64 = 4 * size_of::<usize>() as u64;

    #[inline]
    fn allocate(&mut self, size: u64, align: u64) -> Option<u64> {
        let size = usize::try_from(size).ok()?;
        let align = usize::try_from(align).ok()?;
        let place = self.heap.allocate(size, align)?;
        Some((place.addr().get() - self.start.addr().get()) as u64)
    }

    #[inline]
    unsafe fn free(&mut self, offset: u64) {
        // SAFETY: the block is in use, so its offset lies in the heap's memory.
        let place = unsafe { self.start.add(offset as usize) };
        // SAFETY: as the caller says.
        let freed = unsafe { self.heap.free(place) };
        debug_assert!(freed.is_ok(), "a block in use is freed");
    }

    unsafe fn rebuild(&mut self, used: impl Iterator<Item = u64> + Clone) -> bool {
        let start = self.start;
        // SAFETY: blocks in use lie in the heap's memory.
        let places = used.map(|offset| unsafe { start.add(offset as usize) });
        // SAFETY: as the caller says; the heap has no source.
        let rebuilt = unsafe { self.heap.rebuild(self.index.clone(), places) };
        rebuilt.is_ok()
    }

    fn live(&self) -> u64 {
        self.heap.live() as u64
    }

    fn blocks(&self) -> u64 {
        let mut used = 0;
        let walked = self
            .heap
            .walk(|block| used += u64::from(matches!(block.state, metes_heap::State::Used(_))));
        debug_assert!(walked.is_ok(), "the heap is whole");
        used
    }

    fn is_whole(&self) -> bool {
        self.heap.check().is_ok()
    }
}
