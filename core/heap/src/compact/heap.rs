//! `CompactFit`: a heap whose blocks may move, and which therefore is never fragmented by
//! more than it says.
//!
//! Kirsch and Sokolova's compact-fit ("Explicit, dynamic memory management with temporal and
//! spatial guarantees", ARTIST summer school 2009; Craciunas et al., USENIX ATC 2008): memory
//! is divided into pages, a page into page-blocks of one size class. A free that would leave
//! more than κ pages of its class neither full nor empty moves one block instead, into the
//! page-block that was freed. Programs hold handles, so that a block can move.
//!
//! Invariants, verified by [`CompactFit::check`]: those of the automaton of each class (n is at
//! most κ); every used page-block has an owner, whose handle resolves to it; every move under
//! way leads from a source to a used page-block.

mod access;
mod inspect;
mod moves;

pub use inspect::Fragmentation;
pub use moves::{Compaction, MOVES};

use super::automaton::{Class, Move, Slot, Transition, of, of_mut};
use super::backing::{Backing, Place, RECORD, Record};
use super::handles::{BadHandle, Handle, Handles};
use super::layout::class_by_size;
use super::options::{GRANULE, Options};
use super::refusal::Refused;
use super::table::{Supply, Table};
use crate::statistics::Counters;
use moves::Under;

/// A heap of pages whose blocks move, over a [`Backing`].
#[derive(Debug)]
pub struct CompactFit<B> {
    backing: B,
    table: Table<'static>,
    classes: &'static mut [Class],
    /// Class by size of record and request, in granules.
    by_size: &'static [u8],
    supply: Supply,
    handles: Handles,
    page_log2: u32,
    increment: usize,
    /// Largest request.
    largest: usize,
    /// Most alignment of a block.
    align: usize,
    under: [Option<Under>; MOVES],
    serial: u32,
    counters: Counters,
}

/// What [`CompactFit`] is made of.
pub(super) struct Parts<B> {
    pub(super) backing: B,
    pub(super) table: Table<'static>,
    pub(super) classes: &'static mut [Class],
    pub(super) by_size: &'static [u8],
    pub(super) handles: Handles,
    /// Alignment that the first block has.
    pub(super) align: usize,
}

impl<B: Backing> CompactFit<B> {
    pub(super) fn from_parts(options: &Options, parts: Parts<B>) -> Self {
        let mut backing = parts.backing;
        let limit = backing.pages_beside(0).min(parts.table.count());
        CompactFit {
            backing,
            table: parts.table,
            classes: parts.classes,
            by_size: parts.by_size,
            supply: Supply::new(limit),
            handles: parts.handles,
            page_log2: options.partition.page.trailing_zeros(),
            largest: options.partition.largest,
            align: parts.align,
            increment: options.increment.unwrap_or(usize::MAX),
            under: [None; MOVES],
            serial: 0,
            counters: Counters::NEW,
        }
    }

    #[inline(always)]
    fn place(&self, class: usize, slot: Slot) -> Place {
        let within = slot.block * of(self.classes, class).bytes;
        (slot.page << (self.page_log2 - GRANULE.trailing_zeros())) + within / GRANULE as u32
    }

    /// The class and page-block at a place that a handle resolved to.
    #[inline(always)]
    fn slot(&self, place: Place) -> (usize, Slot) {
        let shift = self.page_log2 - GRANULE.trailing_zeros();
        let page = place >> shift;
        let class = usize::from(self.table.page(page).class.get());
        let offset = (place as usize & ((1 << shift) - 1)) * GRANULE;
        let block = of(self.classes, class).block_at(offset);
        debug_assert!(block.is_some());
        let block = block.unwrap_or(0);
        (class, Slot { page, block })
    }

    /// The class of a request.
    #[inline(always)]
    fn class_for(&self, size: usize, align: usize) -> Result<usize, Refused> {
        if size > self.largest {
            return Err(Refused::TooLarge);
        }
        let mut class = class_by_size(self.by_size, size + RECORD);
        if align > GRANULE {
            if align > self.align {
                return Err(Refused::Alignment);
            }
            while !self.aligned(class, align).ok_or(Refused::Alignment)? {
                class += 1;
            }
        }
        Ok(class)
    }

    /// Whether the page-blocks of a class are multiples of `align`; `None` behind the last.
    fn aligned(&self, class: usize, align: usize) -> Option<bool> {
        let class = self.classes.get(class)?;
        Some((class.bytes as usize).is_multiple_of(align))
    }

    /// Allocates a block of `size` bytes aligned to `align`, a power of two. The bytes are
    /// what they were. O(1) and, with moves under way, O(moves).
    ///
    /// # Errors
    /// [`Refused`]; the heap is unchanged.
    #[inline]
    pub fn allocate(&mut self, size: usize, align: usize) -> Result<Handle, Refused> {
        match self.allocate_traced(size, align) {
            Ok((handle, _)) => Ok(handle),
            Err(refused) => Err(refused),
        }
    }

    /// As [`allocate`](CompactFit::allocate), and the transition of the class.
    ///
    /// # Errors
    /// As [`allocate`](CompactFit::allocate).
    #[inline(always)]
    pub fn allocate_traced(
        &mut self,
        size: usize,
        align: usize,
    ) -> Result<(Handle, Transition), Refused> {
        let taken = self
            .class_for(size, align)
            .and_then(|class| self.take(class, size));
        match taken {
            Ok((handle, transition)) => {
                self.counters.allocated(size);
                Ok((handle, transition))
            }
            Err(refused) => {
                self.counters.failed();
                Err(refused)
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, class: usize, size: usize) -> Result<(Handle, Transition), Refused> {
        let (backing, supply) = (&mut self.backing, &mut self.supply);
        let owner = self
            .handles
            .take(|bytes| {
                let limit = backing.pages_beside(bytes);
                let fits = limit >= supply.extent;
                if fits {
                    supply.limit = supply.limit.min(limit);
                }
                fits
            })
            .ok_or(Refused::Exhausted)?;
        let taken = self.page_block(class);
        let Some((slot, transition)) = taken else {
            self.handles.untake(owner);
            return Err(Refused::Exhausted);
        };
        let place = self.place(class, slot);
        let bytes = of(self.classes, class).bytes as usize;
        if !self.backing.provide(place, bytes) {
            self.vacate(class, slot);
            self.handles.untake(owner);
            return Err(Refused::Exhausted);
        }
        self.backing.set_record(
            place,
            Record {
                owner,
                size: size as u32,
            },
        );
        Ok((self.handles.bind(owner, place), transition))
    }

    #[inline(always)]
    fn page_block(&mut self, class: usize) -> Option<(Slot, Transition)> {
        match of(self.classes, class).open_page() {
            Some(page) => Some(of_mut(self.classes, class).take(&self.table, page)),
            None => self.page_block_elsewhere(class),
        }
    }

    /// A page-block when no page is open: the target of a move under way, or of a page with
    /// pins, or of one of the supply.
    #[inline(never)]
    fn page_block_elsewhere(&mut self, class: usize) -> Option<(Slot, Transition)> {
        let of_class = of_mut(self.classes, class);
        if of_class.sources > 0 && !of_class.has_room() {
            return Some(self.recall(class));
        }
        let (table, supply) = (&self.table, &mut self.supply);
        of_class.take_elsewhere(table, || supply.take(table))
    }

    /// Frees a page-block that holds no block, and makes the move that may follow.
    fn vacate(&mut self, class: usize, slot: Slot) {
        let (_, moved) = of_mut(self.classes, class).free_into(&self.table, slot, &mut self.supply);
        if let Some(moved) = moved {
            self.carry_whole(class, moved);
        }
    }

    /// Frees a block and makes every step of the compaction that follows from it.
    /// O(1) without a move, else O(bytes of the page-block).
    ///
    /// # Errors
    /// [`BadHandle`]; the heap is unchanged.
    #[inline]
    pub fn free(&mut self, handle: Handle) -> Result<(), BadHandle> {
        let (place, class, slot) = self.unbind(handle)?;
        if of_mut(self.classes, class).drain(&self.table, slot) {
            self.withdraw(place, class);
            return Ok(());
        }
        self.free_at_edge(place, class, slot)
    }

    /// What seldom happens is a call at the very end, so that the common way needs no stack.
    #[inline(never)]
    fn free_at_edge(&mut self, place: Place, class: usize, slot: Slot) -> Result<(), BadHandle> {
        let (_, moved) = self.release(place, class, slot, Class::free_at_once);
        if let Some(moved) = moved {
            match of(self.classes, class).sources {
                0 => self.carry_freed(class, moved),
                _ => self.carry_whole(class, moved),
            }
        }
        Ok(())
    }

    /// Ends the handle of a block that may be freed; place, class and page-block of the block.
    #[inline(always)]
    fn unbind(&mut self, handle: Handle) -> Result<(Place, usize, Slot), BadHandle> {
        let place = self.handles.unpinned(handle)?;
        self.handles.release(handle);
        let size = self.backing.record(place).size as usize;
        self.counters.freed(size);
        let (class, slot) = self.slot(place);
        Ok((place, class, slot))
    }

    #[inline(always)]
    fn withdraw(&mut self, place: Place, class: usize) {
        let bytes = of(self.classes, class).bytes as usize;
        self.backing.withdraw(place, bytes);
    }

    /// Frees the page-block of a block without a handle, or ends the block's move and frees
    /// its target.
    #[inline(always)]
    fn release(
        &mut self,
        place: Place,
        class: usize,
        slot: Slot,
        free: impl FnOnce(&mut Class, &Table<'_>, Slot, &mut Supply) -> (Transition, Option<Move>),
    ) -> (Transition, Option<Move>) {
        let to = match of(self.classes, class).sources {
            0 => None,
            _ => self.abandon(class, place),
        };
        self.withdraw(place, class);
        let class = of_mut(self.classes, class);
        free(class, &self.table, to.unwrap_or(slot), &mut self.supply)
    }

    /// What the page-blocks are made of.
    pub fn backing(&self) -> &B {
        &self.backing
    }
}
