//! What an adversary sees of a heap.
//!
//! Everything that attacks goes through [`Target`], so that a heap of another
//! make (one that moves its blocks, one without addresses) is attacked by the
//! same programs once it answers these questions.
//!
//! Invariant: the laboratory frees live blocks only, each once.

use metes_explore::Simulated;

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
pub(crate) struct Ledger<'h>(pub(crate) &'h mut dyn Simulated);

impl Target for Ledger<'_> {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        self.0.allocate(usize::try_from(size).ok()?)
    }

    fn free(&mut self, block: u32) {
        self.0.free(block);
    }

    fn offset(&self, block: u32) -> Option<u64> {
        self.0.offset(block)
    }

    fn footprint(&self) -> u64 {
        self.0.footprint()
    }

    fn work(&self) -> u64 {
        self.0.accesses()
    }

    fn shape(&self) -> Shape {
        Shape::TAGGED
    }
}
