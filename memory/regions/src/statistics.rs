//! What a manager did, and the worst that its operations took.
//!
//! Invariant: times are measured, never estimated, and zero where none was.

use crate::kernel::clock;

/// Calls of one operation, and the worst of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Calls that were not refused by a look at the books.
    pub calls: u64,
    /// Most nanoseconds of processor time of the calling thread.
    pub worst_cpu: u64,
    /// Most nanoseconds that passed.
    pub worst_wall: u64,
}

impl Operation {
    pub(crate) fn note(&mut self, begun: Option<[u64; 2]>) {
        self.calls += 1;
        if let Some([cpu, wall]) = begun {
            let [cpu_now, wall_now] = now();
            self.worst_cpu = self.worst_cpu.max(cpu_now - cpu);
            self.worst_wall = self.worst_wall.max(wall_now - wall);
        }
    }
}

/// Processor time of this thread, and time that passes.
pub(crate) fn now() -> [u64; 2] {
    [libc::CLOCK_THREAD_CPUTIME_ID, libc::CLOCK_MONOTONIC].map(clock)
}

/// Figures of a manager. Pages are counted whether they were touched or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Regions now.
    pub regions: usize,
    /// Most regions at once.
    pub most_regions: usize,
    /// Pages of regions now.
    pub mapped: usize,
    /// Most pages of regions at once.
    pub most_mapped: usize,
    /// Pages that belong to no region, and wait to be given back: the debt.
    pub waiting: usize,
    /// Most pages that waited at once, looked at after each operation.
    pub most_waiting: usize,
    /// Pages given back.
    pub released: usize,
    /// Regions that were to be buried and were returned at once.
    pub fallbacks: u64,
    /// Bytes of records, as far as they may be written.
    pub record_bytes: usize,
    /// Mappings of regions.
    pub map: Operation,
    /// Resizes.
    pub resize: Operation,
    /// Unmappings.
    pub unmap: Operation,
    /// Calls of [`pay`](crate::Regions::pay).
    pub pay: Operation,
}

impl Statistics {
    pub(crate) fn map_pages(&mut self, pages: usize, regions: usize) {
        self.mapped += pages;
        self.most_mapped = self.most_mapped.max(self.mapped);
        self.most_regions = self.most_regions.max(regions);
    }

    pub(crate) fn resize_pages(&mut self, before: usize, after: usize) {
        self.mapped = self.mapped - before + after;
        self.most_mapped = self.most_mapped.max(self.mapped);
    }

    pub(crate) fn unmap_pages(&mut self, pages: usize) {
        self.mapped -= pages;
    }
}
