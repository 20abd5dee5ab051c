//! What an adversary sees of a heap.
//!
//! Everything that attacks goes through [`Target`], so that a heap of another
//! make (one that moves its blocks, one without addresses) is attacked by the
//! same programs once it answers these questions.
//!
//! Invariant: the laboratory frees live blocks only, each once.

use metes_explore::{SLAB_BIT, Simulated};
use metes_heap::Description;

/// Offsets of blocks in general pool n have n above this bit (`metes_explore::Simulated`).
const POOL_SHIFT: u32 = 44;

/// A heap under attack. Sizes in requested bytes.
pub trait Target {
    /// A block of `size` bytes, or `None` where the heap refuses. Numbers of
    /// freed blocks may be given again.
    fn allocate(&mut self, size: u64) -> Option<u32>;
    /// Takes a live block back.
    fn free(&mut self, block: u32);
    /// Where a live block begins now, its record included; `None` where the heap
    /// does not say. Heaps that move blocks may answer differently each time.
    fn offset(&self, block: u32) -> Option<u64>;
    /// Bytes taken from the system, now.
    fn footprint(&self) -> u64;
    /// Steps done so far, in whatever unit grows with time: record words read
    /// and written. It guides the search for slow calls and is never reported as
    /// a time.
    fn work(&self) -> u64;
    /// How it cuts blocks.
    fn shape(&self) -> Shape;
}

/// How a heap cuts blocks, as far as an adversary can use it. A wrong shape
/// makes a weaker attack, not a wrong result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Block sizes are multiples of this.
    pub granule: u64,
    /// Bytes of record in a block.
    pub header: u64,
    /// Smallest block.
    pub minimum: u64,
}

impl Shape {
    /// Boundary tags on a 64-bit machine.
    pub const TAGGED: Shape = Shape {
        granule: 16,
        header: 8,
        minimum: 32,
    };

    /// The block of a request.
    pub fn block(&self, request: u64) -> u64 {
        (request + self.header)
            .next_multiple_of(self.granule)
            .max(self.minimum)
    }

    /// The largest request that a block holds.
    pub fn request(&self, block: u64) -> u64 {
        block.saturating_sub(self.header)
    }
}

/// A heap over a ledger with the geometry of boundary tags: no memory behind
/// it, the same decisions, offset for offset.
pub(crate) struct Ledger<'h> {
    heap: &'h mut dyn Simulated,
    /// Each request must be served by the pool that it goes to first: another one that serves
    /// it does not make good the bytes that this one was said to need.
    routed: Option<Description>,
}

impl<'h> Ledger<'h> {
    pub(crate) fn new(heap: &'h mut dyn Simulated, routed: Option<Description>) -> Self {
        Ledger { heap, routed }
    }
}

/// Whether a block at this offset lies in the pool that requests of its size ask first.
fn at_home(heap: &Description, size: usize, offset: u64) -> bool {
    if size <= heap.slabs().largest() {
        return offset & SLAB_BIT != 0;
    }
    let first = heap
        .general
        .iter()
        .position(|pool| pool.sizes().contain(size));
    first == Some((offset >> POOL_SHIFT) as usize)
}

impl Target for Ledger<'_> {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        let size = usize::try_from(size).ok()?;
        let block = self.heap.allocate(size)?;
        if let Some(heap) = &self.routed
            && !(self.heap.offset(block)).is_some_and(|offset| at_home(heap, size, offset))
        {
            self.heap.free(block);
            return None;
        }
        Some(block)
    }

    fn free(&mut self, block: u32) {
        self.heap.free(block);
    }

    fn offset(&self, block: u32) -> Option<u64> {
        self.heap.offset(block)
    }

    fn footprint(&self) -> u64 {
        self.heap.footprint()
    }

    fn work(&self) -> u64 {
        self.heap.accesses()
    }

    fn shape(&self) -> Shape {
        Shape::TAGGED
    }
}
