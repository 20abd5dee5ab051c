//! What goes to C and comes from there: options, counts, listings.
//!
//! Invariant: structures have the fields of `metes_device.h` in their order.

/// `metes_device_options`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Options {
    pub(crate) cap: u64,
    pub(crate) addresses: u64,
    pub(crate) page: u64,
    pub(crate) granule: u64,
    pub(crate) moves: u64,
    pub(crate) blocks: u64,
    pub(crate) streams: u32,
    pub(crate) batch: u32,
    pub(crate) wait: u32,
    pub(crate) watch: u32,
}

/// `metes_device_count`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Count {
    pub(crate) current: u64,
    pub(crate) peak: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl Count {
    pub(crate) fn add(&mut self, amount: u64) {
        self.current += amount;
        self.added += amount;
        self.peak = self.peak.max(self.current);
    }

    pub(crate) fn remove(&mut self, amount: u64) {
        self.current -= amount;
        self.removed += amount;
    }

    pub(crate) fn set(&mut self, amount: u64) {
        match amount >= self.current {
            true => self.add(amount - self.current),
            false => self.remove(self.current - amount),
        }
    }
}

/// Counts of blocks of some sizes: `metes_device_block_counts`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Blocks {
    pub(crate) blocks: Count,
    pub(crate) allocated: Count,
    pub(crate) requested: Count,
}

impl Blocks {
    pub(crate) fn each(&mut self, mut visit: impl FnMut(&mut Count)) {
        visit(&mut self.blocks);
        visit(&mut self.allocated);
        visit(&mut self.requested);
    }
}

/// `metes_device_statistics`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Statistics {
    pub(crate) small: Blocks,
    pub(crate) large: Blocks,
    pub(crate) all: Blocks,
    pub(crate) reserved: Count,
    pub(crate) cap: u64,
    pub(crate) addresses: u64,
    pub(crate) page: u64,
    pub(crate) granule: u64,
    pub(crate) live_pages: u64,
    pub(crate) idle_pages: u64,
    pub(crate) spare_pages: u64,
    pub(crate) mapped: u64,
    pub(crate) moved: u64,
    pub(crate) most_moved: u64,
    pub(crate) marks: u64,
    pub(crate) waits: u64,
    pub(crate) orders: u64,
    pub(crate) streams: u64,
    pub(crate) refusals: u64,
    pub(crate) retries: u64,
    pub(crate) bad_frees: u64,
    pub(crate) asleep: u64,
}

/// `metes_device_block`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Block {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) requested: u64,
    pub(crate) stream: u64,
}

/// `metes_device_holder`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Holder {
    pub(crate) stream: u64,
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
}

/// `metes_device_range`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Range {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}
