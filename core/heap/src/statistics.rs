//! Statistics of a heap.
//!
//! Invariant: `live` is the sum of the requested bytes of the blocks in use,
//! `blocks` their number; the peaks are the largest values these have had.

/// What a heap holds and has held. Bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requested bytes now allocated.
    pub live: usize,
    /// Largest `live` so far.
    pub peak_live: usize,
    /// Blocks now allocated.
    pub blocks: usize,
    /// Largest `blocks` so far.
    pub peak_blocks: usize,
    /// Successful allocations so far.
    pub allocations: u64,
    /// Frees so far.
    pub frees: u64,
    /// Successful resizes so far.
    pub resizes: u64,
    /// Allocations and resizes refused so far.
    pub failures: u64,
    /// The largest free block could serve a request of this many bytes.
    pub largest_free: usize,
    /// Free blocks, those kept by dedicated pools included.
    pub free_blocks: usize,
    /// Bytes in free blocks, without those kept by dedicated pools.
    pub free_bytes: usize,
    /// Bytes of all regions.
    pub footprint: usize,
    /// Bytes of records: headers, control structure, tables outside the memory.
    pub record_bytes: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Counters {
    live: usize,
    peak_live: usize,
    blocks: usize,
    peak_blocks: usize,
    allocations: u64,
    resizes: u64,
    failures: u64,
}

impl Counters {
    pub(crate) const NEW: Counters = Counters {
        live: 0,
        peak_live: 0,
        blocks: 0,
        peak_blocks: 0,
        allocations: 0,
        resizes: 0,
        failures: 0,
    };

    #[inline(always)]
    pub(crate) fn allocated(&mut self, size: usize) {
        self.holds(size);
        // Peaks are rare: better not written each time.
        if self.blocks > self.peak_blocks {
            self.peak_blocks = self.blocks;
        }
        if self.live > self.peak_live {
            self.peak_live = self.live;
        }
    }

    #[inline(always)]
    pub(crate) fn freed(&mut self, size: usize) {
        self.blocks -= 1;
        self.live -= size;
    }

    /// As [`allocated`](Self::allocated), without peaks: a composite keeps those of its pools together.
    #[inline(always)]
    pub(crate) fn holds(&mut self, size: usize) {
        self.allocations += 1;
        self.blocks += 1;
        self.live += size;
    }

    #[inline(always)]
    pub(crate) fn resized(&mut self, from: usize, to: usize) {
        self.resizes += 1;
        self.live = self.live - from + to;
        self.peak_live = self.peak_live.max(self.live);
    }

    #[inline(always)]
    pub(crate) fn failed(&mut self) {
        self.failures += 1;
    }

    pub(crate) fn served_after_all(&mut self) {
        debug_assert!(self.failures > 0);
        self.failures -= 1;
    }

    #[inline(always)]
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn peak_live(&self) -> usize {
        self.peak_live
    }

    /// What was counted anew; counts that an operation left behind are no smaller than what follows from it.
    pub(crate) fn recount(&mut self, live: usize, blocks: usize) {
        self.live = live;
        self.blocks = blocks;
        self.peak_live = self.peak_live.max(live);
        self.peak_blocks = self.peak_blocks.max(blocks);
        self.allocations = self.allocations.max(blocks as u64);
    }

    pub(crate) fn agree(&self, live: usize, blocks: usize) -> bool {
        self.live == live && self.blocks == blocks
    }

    pub(crate) fn report(
        &self,
        footprint: usize,
        largest_free: usize,
        free_blocks: usize,
        free_bytes: usize,
        record_bytes: usize,
    ) -> Statistics {
        Statistics {
            live: self.live,
            peak_live: self.peak_live,
            blocks: self.blocks,
            peak_blocks: self.peak_blocks,
            allocations: self.allocations,
            frees: self.allocations - self.blocks as u64,
            resizes: self.resizes,
            failures: self.failures,
            largest_free,
            free_blocks,
            free_bytes,
            footprint,
            record_bytes,
        }
    }
}
