//! What is tested: the seam between the checks and a heap, so that the checks can be
//! tried on heaps that are broken on purpose.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// A heap as the checks see it. Sizes and alignments in bytes; alignments are powers
/// of two.
pub trait Subject {
    /// The heap's usual name.
    const NAME: &'static str;

    /// What the heap promises beyond what all do.
    const SEAMS: Seams;

    /// An empty heap.
    fn create() -> Self;

    /// Gives the heap memory; false if it does not take it.
    fn add_region(&mut self, region: &'static mut [MaybeUninit<u8>]) -> bool;

    /// A block of at least `size` bytes, or nothing.
    fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>>;

    /// A block of at least `size` bytes, all of them zero, or nothing.
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

    /// True if the heap refuses to free `block`, which is not live. Asked only where
    /// [`Seams::tells_bad_frees`].
    fn refuses(&mut self, block: NonNull<u8>) -> bool {
        let _ = block;
        false
    }

    /// True if the heap's records are consistent.
    fn sound(&self) -> bool;

    /// Live bytes by the heap's own count, if it keeps one.
    fn live(&self) -> Option<usize>;
}

/// Where heaps differ in what they promise.
#[derive(Clone, Copy, Debug)]
pub struct Seams {
    /// True if freeing everything restores the largest block. Heaps that keep freed
    /// blocks in their size class do not promise that.
    pub coalesces: bool,
    /// True if a free block serves a request of exactly its size. Indexes that round
    /// a request up to the next class may pass over it.
    pub exact: bool,
    /// Regions it takes.
    pub regions: usize,
    /// True if it finds out that what it is asked to free is not live.
    pub tells_bad_frees: bool,
    /// Largest alignment it serves wherever its region lies.
    pub largest_align: usize,
}

impl Seams {
    /// The promise of a heap without limits.
    pub const ANY: Self = Self {
        coalesces: true,
        exact: true,
        regions: usize::MAX,
        tells_bad_frees: false,
        largest_align: 1024,
    };
}
