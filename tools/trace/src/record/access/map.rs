//! Which block each record of the plug-in's stream is of.
//!
//! Invariant: no address belongs to two blocks; memory is bounded by the live ones.

use std::collections::BTreeMap;

use super::raw::Record;
use super::stream::Access;

/// log2 of the bytes of a page.
const PAGE_SHIFT: u32 = 12;

/// A record, with its block's serial number in the trace in place of its slot or address.
pub(super) enum Step {
    Alloc { block: u64, size: u64, align: u32 },
    Free { block: u64 },
    Resize { block: u64, size: u64, align: u32 },
    Access(Access),
}

/// Where the blocks lie while the stream goes by.
#[derive(Default)]
pub(super) struct Map {
    /// By slot: address, size and block.
    slots: BTreeMap<u64, (u64, u64, u64)>,
    /// By address: end and block.
    ranges: BTreeMap<u64, (u64, u64)>,
    /// Address, end and block of the last access.
    last: (u64, u64, u64),
    blocks: u64,
    events: u64,
}

impl Map {
    fn remove(&mut self, slot: u64) -> Option<u64> {
        let (address, _, block) = self.slots.remove(&slot)?;
        // While a resize was under way, another block may have come there.
        if self
            .ranges
            .get(&address)
            .is_some_and(|range| range.1 == block)
        {
            self.ranges.remove(&address);
        }
        self.last = (0, 0, 0);
        Some(block)
    }

    fn insert(&mut self, slot: u64, address: u64, size: u64, block: u64) {
        let end = address.saturating_add(size);
        while let Some((&start, _)) = self
            .ranges
            .range(..end)
            .next_back()
            .filter(|(_, range)| range.0 > address)
        {
            self.ranges.remove(&start);
        }
        self.slots.insert(slot, (address, size, block));
        if size > 0 {
            self.ranges.insert(address, (end, block));
        }
        self.last = (0, 0, 0);
    }

    /// What `record` says; None if it is of no block that is known. O(log blocks).
    pub(super) fn follow(&mut self, record: &Record) -> Option<Step> {
        match *record {
            Record::Alloc {
                slot,
                address,
                size,
                align,
                ..
            } => {
                let block = self.blocks;
                self.insert(slot, address, size, block);
                self.blocks += 1;
                self.events += 1;
                Some(Step::Alloc { block, size, align })
            }
            Record::Free { slot, .. } => {
                self.events += 1;
                self.remove(slot).map(|block| Step::Free { block })
            }
            Record::Resize {
                slot,
                address,
                size,
                align,
                ..
            } => {
                self.events += 1;
                let block = self.remove(slot)?;
                self.insert(slot, address, size, block);
                Some(Step::Resize { block, size, align })
            }
            Record::Access {
                address,
                bytes,
                write,
            } => {
                if !(self.last.0..self.last.1).contains(&address) {
                    let (&start, &(end, block)) = self.ranges.range(..=address).next_back()?;
                    if address >= end {
                        return None;
                    }
                    self.last = (start, end, block);
                }
                Some(Step::Access(Access {
                    event: self.events,
                    block: self.last.2,
                    offset: address - self.last.0,
                    page: address >> PAGE_SHIFT,
                    bytes: bytes as u32,
                    write,
                }))
            }
        }
    }
}
