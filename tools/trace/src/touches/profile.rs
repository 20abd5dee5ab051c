//! What is in a touch trace, in figures.
//!
//! Invariant: memory is bounded by the live blocks and their slices that were touched.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::TouchOperation;

/// log2 of the bytes of a slice.
const SLICE_SHIFT: u32 = 12;

/// Figures of a touch trace. A *slice* is 4096 bytes of a block, counted from its beginning, the last one
/// fewer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TouchProfile {
    /// Operations.
    pub operations: u64,
    /// Allocations: blocks that there ever were.
    pub allocations: u64,
    /// Frees.
    pub frees: u64,
    /// Reads told.
    pub reads: u64,
    /// Writes told.
    pub writes: u64,
    /// Slices touched, each once in the life of its block.
    pub touched_slices: u64,
    /// Most blocks live at a time.
    pub peak_blocks: u64,
    /// Most bytes live at a time.
    pub peak_live: u64,
    /// Most slices at a time that lie in live blocks.
    pub peak_slices: u64,
    /// Most of them that had been touched.
    pub peak_touched_slices: u64,
    #[serde(skip)]
    live: HashMap<u64, Live>,
    #[serde(skip)]
    now: Now,
}

#[derive(Clone, Debug, Default)]
struct Live {
    size: u64,
    touched: HashSet<u64>,
}

/// What is live at the moment. Sums of sizes that no machine has may pass 64 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    bytes: u128,
    slices: u128,
    touched: u64,
}

fn slices(size: u64) -> u128 {
    u128::from(size.div_ceil(1 << SLICE_SHIFT))
}

fn peak(before: u64, now: u128) -> u64 {
    before.max(u64::try_from(now).unwrap_or(u64::MAX))
}

impl TouchProfile {
    /// Takes the next operation, which a [`TouchReader`](super::TouchReader) gave. O(1) expected.
    pub fn take(&mut self, operation: &TouchOperation) {
        self.operations += 1;
        match *operation {
            TouchOperation::Allocate { block, size, .. } => {
                self.allocations += 1;
                let touched = HashSet::new();
                self.live.insert(block, Live { size, touched });
                self.now.bytes += u128::from(size);
                self.now.slices += slices(size);
                self.peak_blocks = self.peak_blocks.max(self.live.len() as u64);
                self.peak_live = peak(self.peak_live, self.now.bytes);
                self.peak_slices = peak(self.peak_slices, self.now.slices);
            }
            TouchOperation::Free { block } => {
                self.frees += 1;
                if let Some(freed) = self.live.remove(&block) {
                    self.now.bytes -= u128::from(freed.size);
                    self.now.slices -= slices(freed.size);
                    self.now.touched -= freed.touched.len() as u64;
                }
            }
            TouchOperation::Read { block, offset } => {
                self.reads += 1;
                self.touch(block, offset);
            }
            TouchOperation::Write { block, offset } => {
                self.writes += 1;
                self.touch(block, offset);
            }
        }
    }

    fn touch(&mut self, block: u64, offset: u64) {
        let live = self.live.get_mut(&block);
        if live.is_some_and(|live| live.touched.insert(offset >> SLICE_SHIFT)) {
            self.touched_slices += 1;
            self.now.touched += 1;
            self.peak_touched_slices = self.peak_touched_slices.max(self.now.touched);
        }
    }
}
