//! Moves under way, and their steps.
//!
//! Invariant: a slot names its source's place exactly while its move is under way. The slot is
//! written only by who holds the contents of the source; it begins and ends only while the
//! class is held, too; it is given out by the reserve. The source stays whole until the last
//! step, in which the handle turns to the target.

use super::super::automaton::{Class, Move, Slot, Transition};
use super::super::backing::{Backing, Place, RECORD};
use super::super::cells::{AtomicU32, Cell, Ordering};
use super::super::layout::Cursor;
use super::super::options::Unfit;
use super::SharedCompactFit;
use crate::lock::Lock;

const NONE: u32 = u32::MAX;

/// A move under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    pub(super) moved: Move,
    to: Place,
    /// Bytes of record and block.
    length: u32,
    /// Bytes carried so far.
    done: u32,
    /// How often the slot was used before.
    serial: u32,
}

/// Room for a move under way.
#[derive(Debug)]
struct MoveSlot {
    /// Place of the source, or [`NONE`].
    from: AtomicU32,
    under: Cell<Under>,
    /// Next spare slot, while in the reserve.
    next: Cell<u32>,
}

/// The moves of a heap.
#[derive(Debug)]
pub(super) struct Moves(&'static [MoveSlot]);

/// A move that a free began and whose steps are to be made, by any thread. Dropping it leaves
/// the move to whoever needs its page-blocks next; nothing is lost but page-blocks meanwhile.
#[derive(Debug)]
#[must_use = "the move takes its steps by `SharedCompactFit::step`"]
pub struct Compaction {
    slot: u32,
    serial: u32,
}

impl Moves {
    /// Slots for so many moves, all of them spare.
    pub(super) fn new(cursor: &mut Cursor, count: usize) -> Result<Self, Unfit> {
        let nowhere = Slot { page: 0, block: 0 };
        let moved = Move {
            from: nowhere,
            to: nowhere,
        };
        let slots = cursor.slice(count, |index| MoveSlot {
            from: AtomicU32::new(NONE),
            under: Cell::new(Under {
                moved,
                to: 0,
                length: 0,
                done: 0,
                serial: 0,
            }),
            next: Cell::new(if index + 1 < count {
                index as u32 + 1
            } else {
                NONE
            }),
        })?;
        Ok(Moves(slots))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.0)
    }

    fn source(&self, slot: u32) -> Place {
        self.0[slot as usize].from.load(Ordering::Acquire)
    }

    /// The slot of the move from `place`, whose contents are held. O(moves).
    #[inline(always)]
    pub(super) fn find(&self, place: Place) -> Option<u32> {
        (0..self.0.len() as u32).find(|&slot| self.source(slot) == place)
    }

    /// Ends a move whose source's contents are held; the slot is then to be retired.
    pub(super) fn end(&self, slot: u32) -> (u32, Under) {
        let found = &self.0[slot as usize];
        let under = found.under.get();
        found.from.store(NONE, Ordering::Release);
        (slot, under)
    }

    /// Moves under way and where they lead. Exclusive: nobody moves anything meanwhile.
    pub(super) fn under_way(&mut self) -> impl Iterator<Item = Move> + '_ {
        let under = self.0.iter().enumerate();
        let under = under.filter(|&(slot, _)| self.source(slot as u32) != NONE);
        under.map(|(_, found)| found.under.get().moved)
    }
}

impl<L: Lock + 'static> SharedCompactFit<L> {
    /// Puts a slot whose move has ended back.
    pub(super) fn retire(&self, slot: u32) {
        self.reserve.hold(|reserve| {
            self.moves.0[slot as usize].next.set(reserve.slot);
            reserve.slot = slot;
        });
    }

    /// A move under way in a class that is held, as `wanted` says. O(moves).
    fn move_of(&self, index: usize, wanted: impl Fn(&Under) -> bool) -> Option<(u32, Place)> {
        (0..self.moves.0.len() as u32).find_map(|slot| {
            let from = self.moves.source(slot);
            // A source of another class may end meanwhile, one of this class may not.
            if from == NONE || self.class_at(from) != index {
                return None;
            }
            let found =
                self.in_contents_of(from, || wanted(&self.moves.0[slot as usize].under.get()));
            found.then_some((slot, from))
        })
    }

    /// Begins a move in a class that is held. Makes it at once if every slot is in use.
    pub(super) fn begin(&self, class: &mut Class, index: usize, moved: Move) -> Option<Compaction> {
        if class.sources > 1
            && let Some(compaction) = self.redirect(class, index, moved)
        {
            return Some(compaction);
        }
        let (from, to) = (self.place(class, moved.from), self.place(class, moved.to));
        let slot = self.reserve.hold(|reserve| {
            let slot = reserve.slot;
            let found = self.moves.0.get(slot as usize)?;
            reserve.slot = found.next.get();
            Some(slot)
        });
        let Some(slot) = slot else {
            self.carry_whole(class, moved, from, to);
            return None;
        };
        let serial = self.in_contents_of(from, || {
            let found = &self.moves.0[slot as usize];
            let serial = found.under.get().serial.wrapping_add(1);
            found.under.set(Under {
                moved,
                to,
                length: self.length(from),
                done: 0,
                serial,
            });
            found.from.store(from, Ordering::Release);
            serial
        });
        Some(Compaction { slot, serial })
    }

    /// Leads the move that is under way to the page-block that a new one is to leave to the
    /// target of the new one: no block has come to that page-block yet. O(moves).
    #[cold]
    fn redirect(&self, class: &mut Class, index: usize, moved: Move) -> Option<Compaction> {
        let (slot, from) = self.move_of(index, |under| under.moved.to == moved.from)?;
        let to = self.place(class, moved.to);
        let serial = self.in_contents_of(from, || {
            let found = &self.moves.0[slot as usize];
            let mut under = found.under.get();
            under.moved.to = moved.to;
            under.to = to;
            under.done = 0;
            found.under.set(under);
            under.serial
        });
        class.arrive(&self.table, moved.from, |page| self.give(page));
        Some(Compaction { slot, serial })
    }

    /// Bytes of record and block at a place whose contents are held.
    fn length(&self, place: Place) -> u32 {
        RECORD as u32 + self.backing.record(place).size
    }

    fn carry_whole(&self, class: &mut Class, moved: Move, from: Place, to: Place) {
        self.in_contents_of(from, || {
            let mut backing = self.backing;
            backing.carry(from, to, 0..self.length(from) as usize);
            self.entries.moved(backing.record(to).owner, to);
        });
        class.arrive(&self.table, moved.from, |page| self.give(page));
    }

    /// Makes one step of a move: at most ι bytes. Gives back the compaction while more steps
    /// remain. O(ι).
    pub fn step(&self, compaction: Compaction) -> Option<Compaction> {
        loop {
            let from = self.moves.source(compaction.slot);
            if from == NONE {
                return None;
            }
            let made = match self.pages.is_empty() {
                true => self.step_in_class(&compaction, from),
                false => self.step_in_page(&compaction, from),
            };
            match made {
                Some(true) => return Some(compaction),
                Some(false) => return None,
                None => {}
            }
        }
    }

    /// One step under the lock of the page, and the last under those of class and page.
    fn step_in_page(&self, compaction: &Compaction, from: Place) -> Option<bool> {
        match self.in_contents(from, || self.advance(compaction, from))? {
            Some(under) if under.done == under.length => self.step_in_class(compaction, from),
            Some(_) => Some(true),
            None => Some(false),
        }
    }

    /// One step under the lock of the class; whether more remain. `None` when the page has
    /// changed its class meanwhile.
    fn step_in_class(&self, compaction: &Compaction, from: Place) -> Option<bool> {
        let index = self.class_at(from);
        self.classes.hold(index, |class| {
            if self.class_at(from) != index {
                return None;
            }
            let under = self.in_contents_of(from, || {
                let under = self.advance(compaction, from)?;
                if under.done == under.length {
                    self.entries
                        .moved(self.backing.record(from).owner, under.to);
                    self.moves.end(compaction.slot);
                }
                Some(under)
            });
            let Some(under) = under else {
                return Some(false);
            };
            if under.done < under.length {
                return Some(true);
            }
            self.retire(compaction.slot);
            class.arrive(&self.table, under.moved.from, |page| self.give(page));
            Some(false)
        })
    }

    /// Carries the next bytes of a move from `from`, whose contents are held. `None` when it
    /// is over.
    fn advance(&self, compaction: &Compaction, from: Place) -> Option<Under> {
        let slot = &self.moves.0[compaction.slot as usize];
        if self.moves.source(compaction.slot) != from
            || slot.under.get().serial != compaction.serial
        {
            return None;
        }
        let mut under = slot.under.get();
        let to = (under.done as usize).saturating_add(self.increment);
        let to = to.min(under.length as usize);
        let mut backing = self.backing;
        backing.carry(from, under.to, under.done as usize..to);
        under.done = to as u32;
        slot.under.set(under);
        Some(under)
    }

    /// Makes the remaining steps of a move, each a critical section.
    pub(super) fn complete(&self, mut compaction: Option<Compaction>) {
        while let Some(more) = compaction {
            compaction = self.step(more);
        }
    }

    /// The move of the block at `place`, whose contents are held, to help it on.
    pub(super) fn under_way_from(&self, place: Place) -> Option<Compaction> {
        let slot = self.moves.find(place)?;
        let serial = self.moves.0[slot as usize].under.get().serial;
        Some(Compaction { slot, serial })
    }

    /// A move that leaves a page of a class that is held, to help it on.
    pub(super) fn under_way_out_of(&self, index: usize, page: u32) -> Option<Compaction> {
        let (slot, from) = self.move_of(index, |under| under.moved.from.page == page)?;
        let under = self.in_contents_of(from, || self.moves.0[slot as usize].under.get());
        Some(Compaction {
            slot,
            serial: under.serial,
        })
    }

    /// A move to be taken back for a request, if a class that is held has no room. O(moves).
    #[inline(always)]
    pub(super) fn recallable(&self, class: &Class, index: usize) -> Option<u32> {
        if class.sources == 0 || class.has_room() {
            return None;
        }
        let found = self.move_of(index, |under| {
            class.recallable(&self.table, under.moved.from)
        });
        found.map(|(slot, _)| slot)
    }

    /// Takes back a move of a class that is held: its target is the request's.
    #[cold]
    pub(super) fn recall(&self, class: &mut Class, slot: u32) -> (Slot, Transition) {
        let from = self.moves.source(slot);
        let (slot, under) = self.in_contents_of(from, || self.moves.end(slot));
        self.retire(slot);
        class.recall(&self.table, under.moved)
    }

    /// What was written to `length` bytes from `offset` of the block at `place`, whose contents
    /// are held, is written to the part that was carried already, too.
    #[inline(always)]
    pub(super) fn mirror(&self, place: Place, offset: usize, bytes: &[u8]) {
        let Some(slot) = self.moves.find(place) else {
            return;
        };
        let under = self.moves.0[slot as usize].under.get();
        let carried = (under.done as usize).saturating_sub(RECORD + offset);
        let mut backing = self.backing;
        backing.write(under.to, offset, &bytes[..carried.min(bytes.len())]);
    }
}
