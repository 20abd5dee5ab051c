//! What is tested: the seam between the checks and a heap, so that the checks can be
//! tried on heaps that are broken on purpose.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// A heap as the checks see it. Sizes and alignments in bytes; alignments are powers
/// of two.
pub trait Subject {
    /// The heap's usual name.
    const NAME: &'static str;

    /// True if freeing everything restores the largest block. Heaps that keep freed
    /// blocks in their size class do not promise that.
    const COALESCES: bool;

    /// An empty heap.
    fn create() -> Self;

    /// Gives the heap memory; false if it does not take it.
    fn add_region(&mut self, region: &'static mut [MaybeUninit<u8>]) -> bool;

    /// A block of at least `size` bytes, or nothing.
    fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>>;

    /// The same, filled with zeros.
    fn allocate_zeroed(&mut self, size: usize, align: usize) -> Option<NonNull<u8>>;

    /// Gives a block back.
    ///
    /// # Safety
    /// `block` came from this heap with this alignment and is live.
    unsafe fn free(&mut self, block: NonNull<u8>, align: usize);

    /// Changes the size of a block, moving it if need be; on `None` it stays as it is.
    ///
    /// # Safety
    /// As for `free`.
    unsafe fn resize(
        &mut self,
        block: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> Option<NonNull<u8>>;

    /// True if the heap's records are consistent.
    fn sound(&self) -> bool;

    /// Live bytes by the heap's own count.
    fn live(&self) -> usize;
}
