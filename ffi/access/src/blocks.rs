//! The live blocks, as the guest announces them.
//!
//! Invariant: every block has one slot, its granules in the shadow name that
//! slot, and no address belongs to two. What the guest announces is not
//! believed: an allocation over a block that was never freed ends that block.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::count;
use crate::files::{Events, State};
use crate::layout::{ACCESS, ALLOC, FREE, RESIZE_END};
use crate::shadow;

/// A resize begun and not ended.
struct Resizing {
    address: u64,
    /// The block's slot; None if its allocation was not announced.
    slot: Option<u32>,
}

/// See the module.
pub(crate) struct Blocks {
    state: State,
    events: Events,
    by_address: HashMap<u64, u32>,
    /// Slots given back.
    free: Vec<u32>,
    /// Slots ever used.
    used: u32,
    /// By virtual processor.
    resizing: HashMap<u32, Resizing>,
}

impl Blocks {
    pub(crate) fn new(state: State, events: Events) -> Blocks {
        Blocks {
            state,
            events,
            by_address: HashMap::new(),
            free: Vec::new(),
            used: 0,
            resizing: HashMap::new(),
        }
    }

    fn put<const WORDS: usize>(&mut self, words: [u64; WORDS]) {
        if !self.events.put(words) {
            count::add(&self.state.header().lost, 1);
        }
    }

    /// A block of `size` bytes came into being at `address`.
    pub(crate) fn alloc(&mut self, cpu: u32, address: u64, size: u64, align_log2: u64) {
        self.clear_way(cpu, address, size);
        let Some(slot) = self.new_slot() else {
            count::add(&self.state.header().lost, 1);
            return;
        };
        count::place(slot, address, size);
        shadow::set(address, size, slot + 1);
        self.by_address.insert(address, slot);
        let head = head(ALLOC, cpu, align_log2);
        self.put([head, u64::from(slot), address, size]);
    }

    /// The block at `address` is about to be freed.
    pub(crate) fn free(&mut self, cpu: u32, address: u64) {
        match self.by_address.remove(&address) {
            Some(slot) => self.end(cpu, slot),
            None => count::add(&self.state.header().unknown_frees, 1),
        }
    }

    /// The block at `address` is about to be resized: until the end of that it
    /// is the allocator's, whose copying is none of the program's accesses.
    pub(crate) fn resize_begin(&mut self, cpu: u32, address: u64) {
        let slot = self.by_address.remove(&address);
        if let Some(slot) = slot {
            shadow::set(address, count::slot(slot).size.load(Ordering::Relaxed), 0);
        } else {
            count::add(&self.state.header().unknown_resizes, 1);
        }
        self.resizing.insert(cpu, Resizing { address, slot });
    }

    /// The resize begun last has put the block at `address`; 0 if it failed.
    pub(crate) fn resize_end(&mut self, cpu: u32, address: u64, size: u64, align_log2: u64) {
        let Some(resizing) = self.resizing.remove(&cpu) else {
            return;
        };
        let Some(slot) = resizing.slot else {
            if address != 0 {
                self.alloc(cpu, address, size, align_log2);
            }
            return;
        };
        if address == 0 {
            let size = count::slot(slot).size.load(Ordering::Relaxed);
            shadow::set(resizing.address, size, slot + 1);
            self.by_address.insert(resizing.address, slot);
            return;
        }
        self.clear_way(cpu, address, size);
        let [reads, writes, read, written] = count::take(slot);
        count::place(slot, address, size);
        shadow::set(address, size, slot + 1);
        self.by_address.insert(address, slot);
        let head = head(RESIZE_END, cpu, align_log2);
        let slot = u64::from(slot);
        self.put([head, slot, address, size, reads, writes, read, written]);
    }

    /// An access to a block, for the stream of all of them.
    pub(crate) fn access(&mut self, address: u64, bytes: u64, write: bool) {
        let head = ACCESS
            | u64::from(write) << 3
            | (bytes & 0x7f) << 4
            | (address & 0xffff_ffff_ffff) << 11;
        self.put([head]);
    }

    /// Ends blocks whose end was never announced: where their memory goes to
    /// another, it must have come.
    fn clear_way(&mut self, cpu: u32, address: u64, size: u64) {
        if let Some(slot) = self.by_address.remove(&address) {
            self.end(cpu, slot);
        }
        let end = address.saturating_add(size);
        let mut at = address & !(shadow::granule() - 1);
        while at < end {
            let value = shadow::at(at);
            if value != 0 {
                let slot = value - 1;
                let start = count::slot(slot).address.load(Ordering::Relaxed);
                let stop = start + count::slot(slot).size.load(Ordering::Relaxed);
                // Neighbours may share a granule.
                if start < end && stop > address {
                    self.by_address.remove(&start);
                    self.end(cpu, slot);
                }
            }
            at += shadow::granule();
        }
    }

    /// Ends the block of `slot`, no longer found by its address.
    fn end(&mut self, cpu: u32, slot: u32) {
        let (start, size) = {
            let slot = count::slot(slot);
            (
                slot.address.load(Ordering::Relaxed),
                slot.size.load(Ordering::Relaxed),
            )
        };
        shadow::set(start, size, 0);
        let [reads, writes, read, written] = count::take(slot);
        count::place(slot, 0, 0);
        self.free.push(slot);
        let head = head(FREE, cpu, 0);
        self.put([head, u64::from(slot), reads, writes, read, written]);
    }

    fn new_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if !self.state.has_room(self.used as usize) {
            return None;
        }
        self.used += 1;
        let header = self.state.header();
        header.slots.store(u64::from(self.used), Ordering::Relaxed);
        Some(self.used - 1)
    }
}

fn head(kind: u64, cpu: u32, align_log2: u64) -> u64 {
    let thread = count::cpu(cpu).thread.load(Ordering::Relaxed) & 0x1fff_ffff;
    kind | u64::from(thread) << 3 | (align_log2 & 0x3f) << 32
}
