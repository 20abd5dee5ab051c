//! Moves of blocks: begun by a free, made at once or step by step, taken back or redirected.
//!
//! Invariant: until the last step of a move its source holds the block, whole, and handles
//! resolve to it; the target counts as used and holds what was carried so far.

use super::super::automaton::{Class, Move, Slot, Transition, of, of_mut};
use super::super::backing::{Backing, Place, RECORD, Record};
use super::super::handles::{BadHandle, Handle};
use super::CompactFit;

/// Most moves under way at once: threads that free at the same time.
pub const MOVES: usize = 16;

/// A move under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    pub(super) moved: Move,
    pub(super) class: u8,
    pub(super) from: Place,
    pub(super) to: Place,
    /// Bytes of record and block.
    length: usize,
    /// Bytes carried so far.
    pub(super) done: usize,
    serial: u32,
}

/// A move that a free began and whose steps are to be made. Dropping it leaves the move to
/// whoever frees, pins or allocates next; nothing is lost but page-blocks meanwhile.
#[derive(Debug)]
#[must_use = "the move takes its steps by `CompactFit::step`"]
pub struct Compaction {
    index: usize,
    serial: u32,
}

impl Compaction {
    /// The move as a number, for other languages; never 0.
    pub const fn to_bits(self) -> u64 {
        (self.serial as u64) << 32 | (self.index as u64 + 1)
    }

    /// The move with this number, if it is that of one. A move that has ended, or of another
    /// heap, has no steps left.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match (bits as u32 as usize).wrapping_sub(1) {
            index @ 0..MOVES => Some(Compaction {
                index,
                serial: (bits >> 32) as u32,
            }),
            _ => None,
        }
    }
}

impl<B: Backing> CompactFit<B> {
    /// Frees a block; a move that follows from it is made by [`step`](CompactFit::step), so
    /// that other operations may come between its steps. O(1).
    ///
    /// # Errors
    /// [`BadHandle`]; the heap is unchanged.
    pub fn begin_free(
        &mut self,
        handle: Handle,
    ) -> Result<(Transition, Option<Compaction>), BadHandle> {
        let (place, class, slot) = self.unbind(handle)?;
        let (transition, moved) = self.release(place, class, slot, Class::free_into);
        let compaction = moved.and_then(|moved| self.begin(class, moved));
        Ok((transition, compaction))
    }

    /// Gives a request the target of a move under way in its class.
    #[cold]
    pub(super) fn recall(&mut self, class: usize) -> (Slot, Transition) {
        let table = &self.table;
        let classes = &mut *self.classes;
        let under = self
            .under
            .iter_mut()
            .find(|under| {
                under.is_some_and(|under| {
                    usize::from(under.class) == class
                        && classes[class].recallable(table, under.moved.from)
                })
            })
            .and_then(Option::take)
            .expect("a class with sources and without room has a move that can be taken back");
        let taken = classes[class].recall(table, under.moved);
        let bytes = classes[class].bytes as usize;
        self.backing.forget(under.to, bytes);
        taken
    }

    /// Ends the move of a block that is freed meanwhile: its source is free, and the target
    /// is what remains to be freed.
    #[cold]
    pub(super) fn abandon(&mut self, class: usize, place: Place) -> Option<Slot> {
        let under = self
            .under
            .iter_mut()
            .find(|under| under.is_some_and(|under| under.from == place))?
            .take()?;
        let bytes = of(self.classes, class).bytes as usize;
        self.backing.forget(under.to, bytes);
        self.arrive(class, under.moved.from);
        Some(under.moved.to)
    }

    #[inline(always)]
    fn arrive(&mut self, class: usize, from: Slot) {
        let (table, supply) = (&self.table, &mut self.supply);
        of_mut(self.classes, class).arrive(table, from, |number| supply.give(table, number));
    }

    /// Makes a move at once. O(bytes of the page-block).
    pub(super) fn carry_whole(&mut self, class: usize, moved: Move) {
        if self.classes[class].sources > 1
            && let Some(Compaction { index, .. }) = self.redirect(class, moved)
        {
            if let Some(under) = self.under[index] {
                self.hasten(under.from);
            }
            return;
        }
        self.carry_freed(class, moved);
        self.arrive(class, moved.from);
    }

    /// Carries a block out of a page-block that nobody else gets meanwhile, whether it is free
    /// already or not. O(bytes of the page-block).
    #[inline(always)]
    pub(super) fn carry_freed(&mut self, class: usize, moved: Move) {
        let (from, to) = (self.place(class, moved.from), self.place(class, moved.to));
        let record = self.backing.record(from);
        let length = self.carried(class, record);
        self.backing.carry(from, to, 0..length);
        self.handles.moved(record.owner, to);
        self.backing
            .leave(from, of(self.classes, class).bytes as usize);
    }

    /// Bytes of a page-block that a move carries.
    #[inline(always)]
    fn carried(&self, class: usize, record: Record) -> usize {
        match B::COPIES {
            true => RECORD + record.size as usize,
            false => of(self.classes, class).bytes as usize,
        }
    }

    /// Leads the move that is under way to the page-block that a new one is to leave to the
    /// target of the new one: no block has come to that page-block yet. O(moves).
    #[cold]
    fn redirect(&mut self, class: usize, moved: Move) -> Option<Compaction> {
        let index = self
            .under
            .iter()
            .position(|under| under.is_some_and(|under| under.moved.to == moved.from))?;
        let to = self.place(class, moved.to);
        let bytes = self.classes[class].bytes as usize;
        let under = self.under[index].as_mut()?;
        self.backing.forget(under.to, bytes);
        under.moved.to = moved.to;
        under.to = to;
        under.done = 0;
        let serial = under.serial;
        self.arrive(class, moved.from);
        Some(Compaction { index, serial })
    }

    /// Begins a move whose steps are to be made; makes it at once if too many are under way.
    fn begin(&mut self, class: usize, moved: Move) -> Option<Compaction> {
        if self.classes[class].sources > 1
            && let Some(compaction) = self.redirect(class, moved)
        {
            return Some(compaction);
        }
        let Some(index) = self.under.iter().position(Option::is_none) else {
            self.carry_whole(class, moved);
            return None;
        };
        let (from, to) = (self.place(class, moved.from), self.place(class, moved.to));
        self.serial = self.serial.wrapping_add(1);
        self.under[index] = Some(Under {
            moved,
            class: class as u8,
            from,
            to,
            length: self.carried(class, self.backing.record(from)),
            done: 0,
            serial: self.serial,
        });
        Some(Compaction {
            index,
            serial: self.serial,
        })
    }

    /// Makes one step of a move: at most ι bytes. Gives back the compaction while more steps
    /// remain. O(ι).
    pub fn step(&mut self, compaction: Compaction) -> Option<Compaction> {
        let Compaction { index, serial } = compaction;
        let mut under = self.under[index].filter(|under| under.serial == serial)?;
        let to = under.length.min(under.done.saturating_add(self.increment));
        self.backing.carry(under.from, under.to, under.done..to);
        under.done = to;
        if under.done < under.length {
            self.under[index] = Some(under);
            return Some(compaction);
        }
        self.under[index] = None;
        self.finish(under);
        None
    }

    /// The last step of a move: from here on the handle resolves to the target.
    fn finish(&mut self, under: Under) {
        let class = usize::from(under.class);
        let owner = self.backing.record(under.to).owner;
        self.handles.moved(owner, under.to);
        let bytes = of(self.classes, class).bytes as usize;
        self.backing.leave(under.from, bytes);
        self.arrive(class, under.moved.from);
    }

    /// Makes all remaining steps of the move of the block at `place`, if it is being moved.
    pub(super) fn hasten(&mut self, place: Place) -> Place {
        let under = self
            .under
            .iter_mut()
            .find(|under| under.is_some_and(|under| under.from == place));
        let Some(under) = under.and_then(Option::take) else {
            return place;
        };
        self.backing
            .carry(under.from, under.to, under.done..under.length);
        self.finish(under);
        under.to
    }

    /// Makes all remaining steps of the moves that leave a page.
    pub(super) fn hasten_from(&mut self, page: u32) {
        for index in 0..MOVES {
            if let Some(under) = self.under[index]
                && under.moved.from.page == page
            {
                self.hasten(under.from);
            }
        }
    }

    /// Makes all steps of all moves under way.
    pub fn finish_all(&mut self) {
        for index in 0..MOVES {
            if let Some(under) = self.under[index] {
                self.hasten(under.from);
            }
        }
    }

    /// Moves under way.
    pub fn moves(&self) -> usize {
        self.under.iter().flatten().count()
    }
}
