//! TLSF over offsets, its records out of band, as what places blocks in virtual pages.
//!
//! Invariant: the range is never touched; every block in use is found by its offset in O(1).

use metes_device::heap::{DirectHeap, Extent, Unmade};
use metes_heap::Tlsf;
use metes_pages::Placement;

/// Bytes that blocks are multiples of.
pub const GRANULE: u64 = 16;

/// TLSF over a range of offsets.
#[derive(Debug)]
pub struct Blocks(DirectHeap<Tlsf>);

impl Blocks {
    /// A heap of `bytes` bytes in which up to `blocks` blocks are in use.
    ///
    /// # Errors
    /// Sizes that do not fit, with the remedy.
    pub fn new(bytes: u64, blocks: usize) -> Result<Self, Unmade> {
        let extent = Extent {
            bytes,
            granule: GRANULE,
            blocks,
        };
        DirectHeap::direct(extent).map(Self)
    }
}

impl Placement for Blocks {
    #[inline]
    fn allocate(&mut self, bytes: u64, align: u64) -> Option<u64> {
        self.0.allocate(bytes, align).ok().map(|block| block.offset)
    }

    #[inline]
    fn free(&mut self, offset: u64) -> Option<u64> {
        let place = usize::try_from(offset).ok()?;
        let span = self.0.span(place).ok()?;
        self.0.free(place).ok()?;
        Some(span.requested)
    }
}
