//! The large blocks of a replay that are mappings of their own, by the rule of the library.
//!
//! Invariant: a slot whose block is mapped holds no place in the pools.

use std::collections::HashMap;

use metes_heap::mapped::pages;
use metes_heap::{Mapped, MappedBlock};

use crate::events::{Events, Operation};
use crate::placement::MAPPED_BIT;

/// Modelled cycles of a system call that changes a mapping, and of the first use of a page: a
/// fault, and zeros written by the kernel. Orders of magnitude, measured on hosts: a microsecond,
/// and a quarter of one.
const CALL: u64 = 4000;
const PAGE: u64 = 1000;

/// What a replay did with a mapped block.
pub(crate) struct Done {
    /// Offset of the block as the placement hash defines it.
    pub(crate) offset: u64,
    /// Modelled cycles of system calls and of the first use of pages.
    pub(crate) cycles: u64,
}

/// The mapped blocks, by slot.
pub(crate) struct Mappings {
    pub(crate) rule: Mapped,
    blocks: HashMap<u32, MappedBlock>,
}

impl Mappings {
    pub(crate) fn new(threshold: Option<usize>) -> Self {
        Mappings {
            rule: Mapped::new(threshold),
            blocks: HashMap::new(),
        }
    }

    /// The requested bytes of the block in a slot, if it is mapped.
    #[cold]
    pub(crate) fn size(&self, slot: u32) -> Option<usize> {
        self.blocks.get(&slot).map(|block| block.size)
    }

    #[cold]
    pub(crate) fn allocate(&mut self, slot: u32, size: usize) -> Done {
        let block = self.rule.allocate(size);
        self.blocks.insert(slot, block);
        done(&block, CALL + touched(block.pages()))
    }

    #[cold]
    pub(crate) fn take_over(&mut self, slot: u32, size: usize) -> Done {
        let spare = self.rule.free_spare();
        let block = self.rule.take_over(size);
        self.blocks.insert(slot, block);
        done(&block, grown(spare, block.pages()))
    }

    /// Resizes the block in a slot; `None` where there is none.
    #[cold]
    pub(crate) fn resize(&mut self, slot: u32, size: usize, beside: usize) -> Option<Done> {
        let block = self.blocks.get_mut(&slot)?;
        let (before, held) = (block.pages(), block.pages() + self.rule.spare_of(block));
        self.rule.resize(block, size, beside);
        let cut = before > pages(size) && self.rule.spare_of(block) == 0;
        let cycles = if cut { CALL } else { grown(held, pages(size)) };
        Some(done(block, cycles))
    }

    /// Frees the block in a slot; `None` where there is none.
    #[cold]
    pub(crate) fn free(&mut self, slot: u32, beside: usize) -> Option<Done> {
        let block = self.blocks.remove(&slot)?;
        let _ = self.rule.gives_back(|| beside);
        let kept = self.rule.free(&block, beside);
        Some(done(&block, if kept { 0 } else { CALL }))
    }
}

/// What mapped blocks of a trace are known to be before any heap is asked, where no request fails:
/// which blocks are mapped depends on the requests alone.
pub(crate) struct Foreseen {
    /// Of each event, whether its block is mapped when it is done; of a free, before it.
    pub(crate) is_mapped: Vec<bool>,
    /// Bytes of the table at the end, when it is longest.
    pub(crate) record_bytes: usize,
}

/// Looks which events are of mapped blocks. O(events).
pub(crate) fn foresee(events: &Events, threshold: Option<usize>) -> Foreseen {
    // What pools take decides about the spare alone.
    const BESIDE: usize = 0;
    let mut rule = Mapped::new(threshold);
    let mut is_mapped = vec![false; events.len()];
    let mut slots: Vec<(usize, Option<MappedBlock>)> = match threshold {
        Some(_) => vec![(0, None); events.slots()],
        None => Vec::new(),
    };
    for (event, is) in events.as_slice().iter().zip(&mut is_mapped) {
        let Some((held, block)) = slots.get_mut(event.slot() as usize) else {
            break;
        };
        let size = event.size();
        *is = block.is_some();
        match (event.operation(), block.as_mut()) {
            (Operation::Allocate, _) if rule.serves(size, event.align()) => {
                *block = Some(rule.allocate(size));
            }
            (Operation::Resize, Some(own)) if rule.keeps(size) => rule.resize(own, size, BESIDE),
            (Operation::Resize, None) if rule.serves_growth(*held, size) => {
                *block = Some(rule.take_over(size));
            }
            (Operation::Free | Operation::Resize, Some(own)) => {
                // Whether its pages are kept is no matter here.
                let _ = rule.free(own, BESIDE);
                *block = None;
            }
            _ => {}
        }
        if event.operation() != Operation::Free {
            *is = block.is_some();
            *held = size;
        }
    }
    Foreseen {
        is_mapped,
        record_bytes: rule.record_bytes(),
    }
}

fn done(block: &MappedBlock, cycles: u64) -> Done {
    Done {
        offset: MAPPED_BIT + block.number,
        cycles,
    }
}

/// What it costs to use pages for the first time.
fn touched(bytes: usize) -> u64 {
    PAGE * (bytes / metes_heap::mapped::PAGE) as u64
}

/// What it costs to have `wanted` bytes of pages where `held` are.
fn grown(held: usize, wanted: usize) -> u64 {
    match wanted > held {
        true => CALL + touched(wanted - held),
        false => 0,
    }
}
