//! What an operation costs: a stated model, not a measurement.
//!
//! `cycles = base(operation) + read * reads + write * writes + copied / copy_rate`,
//! where reads and writes are the record words that the heap touched for that
//! operation. The model ranks heaps on one trace; it does not predict seconds:
//! caches that miss, branches that mispredict and the program's own use of the
//! memory are left out. What it keeps is what distinguishes allocators: how many
//! records an operation visits, and whether that number is bounded.

use crate::events::Operation;
use serde::{Deserialize, Serialize};

/// Cycles of the parts of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostModel {
    /// Straight-line work of an allocation.
    pub allocate: u64,
    /// Straight-line work of a free.
    pub free: u64,
    /// Straight-line work of a resize.
    pub resize: u64,
    /// One record word read.
    pub read: u64,
    /// One record word written.
    pub write: u64,
    /// Bytes that a cycle copies when a resize moves a block.
    pub copy_rate: u64,
}

impl CostModel {
    /// The default: a 64-bit core with records in the first-level cache.
    ///
    /// Reads depend on one another (a link must arrive before the record behind
    /// it can be read), so a read costs the load-to-use latency of a first-level
    /// hit, 4 cycles on current x86-64 and Armv8-A cores by their vendors'
    /// optimisation guides. Writes go to a store buffer, one a cycle. The bases
    /// are the some 60 straight-line instructions of an operation at three a
    /// cycle. Copies run at 16 bytes a cycle, one vector register.
    pub const HOST: CostModel = CostModel {
        allocate: 20,
        free: 20,
        resize: 30,
        read: 4,
        write: 1,
        copy_rate: 16,
    };

    /// Cycles of one operation.
    #[inline(always)]
    pub const fn cycles(&self, operation: Operation, reads: u64, writes: u64, copied: u64) -> u64 {
        let base = match operation {
            Operation::Allocate => self.allocate,
            Operation::Free => self.free,
            Operation::Resize => self.resize,
        };
        base + self.read * reads + self.write * writes + copied / self.copy_rate
    }

    /// The model in one sentence, for reports.
    pub fn sentence(&self) -> String {
        format!(
            "Cycles are modelled: {} for an allocation, {} for a free, {} for a resize, {} a record word read, {} a word written, one per {} bytes copied; cache misses and the program's own accesses are left out.",
            self.allocate, self.free, self.resize, self.read, self.write, self.copy_rate
        )
    }
}

impl Default for CostModel {
    fn default() -> Self {
        Self::HOST
    }
}
