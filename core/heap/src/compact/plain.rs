//! Compact-fit that never compacts and needs no indirection: a drop-in for malloc.
//!
//! With κ = ∞ no block moves, so programs hold addresses, and page-blocks need no record:
//! what the slides call optimised, non-compacting compact-fit. malloc and free are O(1);
//! size-class fragmentation is not bounded.
//!
//! [`ObjectPools`](crate::objects::ObjectPools) cut slabs of a composite heap by the same
//! partition and decide the same, which a test compares; they are not used here, as what they
//! need beside (requested sizes, pools of any size, slabs that come one at a time) makes an
//! allocation and a free half as long again.
//!
//! Invariant: a used page-block is a block that the program holds; all records lie outside
//! the pages, so a bad free is always detected and page-blocks may hold anything.

use core::ptr::NonNull;

use super::automaton::{Class, ClassState, Slot, of, of_mut};
use super::layout::{Tables, class_by_size};
use super::options::{GRANULE, Kappa, Options, Partition, Unfit};
use super::refusal::Refused;
use super::table::{Supply, Table};
use crate::statistics::{Counters, Statistics};
use crate::store::BadFree;
use crate::store::tagged::Memory;

/// A heap of page-blocks under plain addresses. With `STATISTICS` it counts whole page-blocks:
/// what was requested is not kept.
#[derive(Debug)]
pub struct NonCompacting<const STATISTICS: bool = true> {
    base: NonNull<u8>,
    table: Table<'static>,
    classes: &'static mut [Class],
    by_size: &'static [u8],
    supply: Supply,
    page_log2: u32,
    page_mask: usize,
    largest: usize,
    align: usize,
    counters: Counters,
}

// SAFETY: the memory is the heap's alone (contract of `Memory`), and all access goes through
// `&self` or `&mut self`.
unsafe impl<const STATISTICS: bool> Send for NonCompacting<STATISTICS> {}

impl<const STATISTICS: bool> NonCompacting<STATISTICS> {
    /// A heap in `memory`.
    ///
    /// # Errors
    /// [`Unfit`] when the partition contradicts itself, or the memory is too small.
    pub fn new(partition: &Partition, memory: Memory) -> Result<Self, Unfit> {
        let options = Options {
            partition: *partition,
            kappa: Kappa::Infinite,
            increment: None,
        };
        let tables = Tables::new(&options, memory, 0, partition.page)?;
        let page_log2 = partition.page.trailing_zeros();
        let limit = (tables.space >> page_log2).min(tables.table.count() as usize);
        Ok(NonCompacting {
            base: tables.base,
            table: tables.table,
            classes: tables.classes,
            by_size: tables.by_size,
            supply: Supply::new(limit as u32),
            page_log2,
            page_mask: partition.page - 1,
            largest: partition.largest,
            align: tables.align,
            counters: Counters::NEW,
        })
    }

    /// Allocates a block of at least `size` bytes aligned to `align`, a power of two. O(1).
    /// `None` when the request exceeds the largest class, no class is so aligned, or no page
    /// is left; [`serves`](NonCompacting::serves) tells which.
    #[inline(always)]
    pub fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if size > self.largest {
            return None;
        }
        let mut class = class_by_size(self.by_size, size);
        if align > GRANULE {
            class = self.aligned_class(class, align)?;
        }
        let Some(page) = of(self.classes, class).open_page() else {
            return self.allocate_elsewhere(class);
        };
        let (block, full) = of_mut(self.classes, class).take_still(&self.table, page);
        let slot = Slot { page, block };
        if full {
            return Some(self.close(class, slot));
        }
        Some(self.taken(class, slot))
    }

    /// Whether a class serves such requests.
    ///
    /// # Errors
    /// [`Refused::TooLarge`] or [`Refused::Alignment`].
    pub fn serves(&self, size: usize, align: usize) -> Result<(), Refused> {
        if size > self.largest {
            return Err(Refused::TooLarge);
        }
        let class = class_by_size(self.by_size, size);
        match self.aligned_class(class, align) {
            Some(_) => Ok(()),
            None => Err(Refused::Alignment),
        }
    }

    #[cold]
    fn aligned_class(&self, from: usize, align: usize) -> Option<usize> {
        if align > self.align {
            return None;
        }
        (from..self.classes.len())
            .find(|&class| (self.classes[class].bytes as usize).is_multiple_of(align))
    }

    // What seldom happens is a call at the very end, so that the common way needs no stack.
    #[inline(never)]
    fn close(&mut self, class: usize, slot: Slot) -> NonNull<u8> {
        of_mut(self.classes, class).close_still(&self.table, slot.page);
        self.taken(class, slot)
    }

    #[inline(never)]
    fn allocate_elsewhere(&mut self, class: usize) -> Option<NonNull<u8>> {
        let Some(page) = self.supply.take(&self.table) else {
            if STATISTICS {
                self.counters.failed();
            }
            return None;
        };
        let of_class = of_mut(self.classes, class);
        of_class.open_still(&self.table, page);
        let (block, full) = of_class.take_still(&self.table, page);
        if full {
            of_class.close_still(&self.table, page);
        }
        Some(self.taken(class, Slot { page, block }))
    }

    #[inline(always)]
    fn taken(&mut self, class: usize, slot: Slot) -> NonNull<u8> {
        let bytes = of(self.classes, class).bytes as usize;
        if STATISTICS {
            self.counters.allocated(bytes);
        }
        let offset = ((slot.page as usize) << self.page_log2) + slot.block as usize * bytes;
        // SAFETY: the page-block lies within the pages of the memory.
        unsafe { self.base.add(offset) }
    }

    /// The class and page-block that begin at an address.
    #[inline(always)]
    fn resolve(&self, block: NonNull<u8>) -> Result<(usize, Slot), BadFree> {
        let offset = (block.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize);
        let number = offset >> self.page_log2;
        if number >= self.supply.extent as usize {
            return Err(BadFree::Foreign);
        }
        // In a page that no class owns all page-blocks are free.
        let class = usize::from(self.table.page(number as u32).class.get());
        let within = offset & self.page_mask;
        let block = of(self.classes, class)
            .block_at(within)
            .ok_or(BadFree::Foreign)?;
        let slot = Slot {
            page: number as u32,
            block,
        };
        match self.table.bits(slot.page).free(block as usize) {
            false => Ok((class, slot)),
            true => Err(BadFree::NotInUse),
        }
    }

    /// Frees a block. O(1). Safe to call with any address: nothing behind it is touched.
    ///
    /// # Errors
    /// [`BadFree`] always, when no block in use begins there; the heap is unchanged.
    #[inline(always)]
    pub fn free(&mut self, block: NonNull<u8>) -> Result<(), BadFree> {
        let (number, slot) = self.resolve(block)?;
        let class = of_mut(self.classes, number);
        if STATISTICS {
            self.counters.freed(class.bytes as usize);
        }
        if class.free_still(&self.table, slot) {
            self.reopen(number, slot.page);
        }
        Ok(())
    }

    #[inline(never)]
    fn reopen(&mut self, class: usize, page: u32) {
        if of_mut(self.classes, class).reopen_still(&self.table, page) {
            self.supply.give(&self.table, page);
        }
    }

    /// Bytes that a block may use: those of its page-block. O(1).
    ///
    /// # Errors
    /// [`BadFree`] when no block in use begins there.
    pub fn capacity(&self, block: NonNull<u8>) -> Result<usize, BadFree> {
        let (class, _) = self.resolve(block)?;
        Ok(self.classes[class].bytes as usize)
    }

    /// The states of the classes, smallest first. O(classes × pages).
    pub fn states(&self) -> impl Iterator<Item = ClassState> + '_ {
        self.classes.iter().map(|class| class.state(&self.table))
    }

    /// Bytes that the heap has taken: pages that were ever used, and records.
    pub fn footprint(&self) -> usize {
        ((self.supply.extent as usize) << self.page_log2) + self.records()
    }

    fn records(&self) -> usize {
        self.supply.extent as usize * self.table.stride()
            + size_of_val(self.classes)
            + self.by_size.len()
    }

    /// What the heap holds and has held, in bytes of page-blocks. O(classes).
    pub fn statistics(&self) -> Statistics {
        let (mut free, mut bytes) = (0, 0);
        for class in self.states() {
            let spare = (class.pages * class.blocks - class.used) as usize;
            free += spare;
            bytes += spare * class.block;
        }
        let largest = self.classes.last().map_or(0, |class| class.bytes as usize);
        self.counters
            .report(self.footprint(), largest, free, bytes, self.records())
    }

    /// Verifies every invariant. O(pages × classes).
    ///
    /// # Errors
    /// [`Corruption::List`](crate::Corruption::List) when a page, class or list disagrees.
    pub fn check(&self) -> Result<(), crate::Corruption> {
        let owned: u32 = self.classes.iter().map(|class| class.pages).sum();
        let agree = self.classes.iter().all(|class| class.check(&self.table))
            && owned == self.supply.owned
            && self.supply.spare(&self.table) == Some(self.supply.extent - owned);
        match agree {
            true => Ok(()),
            false => Err(crate::Corruption::List),
        }
    }
}

#[cfg(test)]
mod tests;
