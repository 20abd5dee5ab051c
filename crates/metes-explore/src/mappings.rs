//! The large blocks of a replay that are mappings of their own, by the rule of the library.
//!
//! Invariant: a slot whose block is mapped holds no place in the pools.

use std::collections::HashMap;

use metes_heap::mapped::pages;
use metes_heap::{Mapped, MappedBlock};

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
        let kept = self.rule.free(&block, beside);
        Some(done(&block, if kept { 0 } else { CALL }))
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
