//! What is asked of a heap that is measured, ours or a peer's.

use std::fmt::Debug;

use metes_device::backend::Backend;
use metes_device::heap::{ListHeap, Lists, OffsetHeap};
use metes_device::hybrid::{HybridHeap, HybridPlace};
use metes_device::sparse::SparseHeap;
use metes_heap::store::ledger::Lookup;

/// A heap over a range of offsets.
pub trait Subject {
    /// What names a block.
    type Place: Copy;
    /// Whether it takes alignments.
    const ALIGNS: bool = false;
    /// A block of `bytes` bytes, or `None` at once.
    fn allocate(&mut self, bytes: u64) -> Option<Self::Place>;
    /// A block of `bytes` bytes at a multiple of `align`, a power of two, or `None`; of heaps that
    /// take [alignments](Subject::ALIGNS).
    fn allocate_aligned(&mut self, bytes: u64, align: u64) -> Option<Self::Place> {
        let _ = align;
        self.allocate(bytes)
    }
    /// Frees a block in use.
    fn free(&mut self, place: Self::Place);
    /// Where a block in use begins.
    fn offset(&self, place: Self::Place) -> u64;
}

/// A block in use that a heap does not know: an error of ours, as a workload frees what it holds.
fn freed<E: Debug>(result: Result<(), E>) {
    debug_assert!(result.is_ok(), "a block in use: {result:?}");
}

impl<L: Lookup, I: Lists<L>> Subject for ListHeap<L, I> {
    type Place = L::Place;
    const ALIGNS: bool = true;

    #[inline(always)]
    fn allocate(&mut self, bytes: u64) -> Option<L::Place> {
        Some(ListHeap::allocate(self, bytes, 1).ok()?.place)
    }

    #[inline(always)]
    fn allocate_aligned(&mut self, bytes: u64, align: u64) -> Option<Self::Place> {
        Some(ListHeap::allocate(self, bytes, align).ok()?.place)
    }

    #[inline(always)]
    fn free(&mut self, place: L::Place) {
        freed(ListHeap::free(self, place));
    }

    fn offset(&self, place: L::Place) -> u64 {
        self.span(place).map_or(u64::MAX, |span| span.offset)
    }
}

impl<L: Lookup, I: Lists<L>> Subject for HybridHeap<L, I> {
    type Place = HybridPlace<L::Place>;
    const ALIGNS: bool = true;

    #[inline(always)]
    fn allocate(&mut self, bytes: u64) -> Option<Self::Place> {
        Some(HybridHeap::allocate(self, bytes, 1).ok()?.place)
    }

    #[inline(always)]
    fn allocate_aligned(&mut self, bytes: u64, align: u64) -> Option<Self::Place> {
        Some(HybridHeap::allocate(self, bytes, align).ok()?.place)
    }

    #[inline(always)]
    fn free(&mut self, place: Self::Place) {
        freed(HybridHeap::free(self, place));
    }

    fn offset(&self, place: Self::Place) -> u64 {
        self.span(place).map_or(u64::MAX, |span| span.offset)
    }
}

impl<B: Backend, H: OffsetHeap> Subject for SparseHeap<B, H> {
    type Place = H::Place;

    #[inline(always)]
    fn allocate(&mut self, bytes: u64) -> Option<Self::Place> {
        Some(SparseHeap::allocate(self, bytes, 1).ok()?.place)
    }

    #[inline(always)]
    fn free(&mut self, place: Self::Place) {
        freed(SparseHeap::free(self, place));
    }

    fn offset(&self, place: Self::Place) -> u64 {
        let span = self.places().span(place);
        span.map_or(u64::MAX, |span| span.offset)
    }
}
