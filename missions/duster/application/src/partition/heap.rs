//! The mission's heap: two-level segregated fit on boundary tags.
//!
//! *Invariant:* as `metes-heap` has it.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use metes_heap::{Heap, Tagged, Tlsf};

/// Blocks begin at multiples of this.
const ALIGN: usize = 8;

/// The memory of a partition.
pub(super) struct Memory(Heap<Tlsf<8>, Tagged>);

// SAFETY: the heap points into its own memory alone, which it was given for good.
unsafe impl Send for Memory {}

impl Memory {
    pub(super) fn new(memory: &'static mut [MaybeUninit<u8>], _: &[(usize, usize)]) -> Memory {
        let mut heap = Heap::new(Tlsf::new(), <Tagged>::new());
        let added = heap.add_region(metes_heap::Memory::from_static(memory));
        debug_assert!(added.is_ok());
        Memory(heap)
    }

    pub(super) fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.0.allocate(size, ALIGN)
    }

    /// # Safety
    /// `block` is live here.
    pub(super) unsafe fn free(&mut self, block: NonNull<u8>) -> bool {
        // SAFETY: as promised here.
        unsafe { self.0.free(block) }.is_ok()
    }

    pub(super) fn largest_free(&self) -> usize {
        self.0.index().surely_served(self.0.store())
    }
}
