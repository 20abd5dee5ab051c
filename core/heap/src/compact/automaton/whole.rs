//! Frees of who makes every move at once, so that nobody sees a page-block that is being left.

use super::super::table::{NONE, Place, Supply, Table};
use super::{Class, Move, Slot, Transition};

impl Class {
    /// Frees a page-block of a page that then has used and free ones as before, in a class in
    /// which nothing moves; `false`, and nothing is changed, where it is not so simple. O(1).
    #[inline(always)]
    pub(in crate::compact) fn drain(&mut self, table: &Table<'_>, slot: Slot) -> bool {
        let page = table.page(slot.page);
        let used = page.used.get();
        if u32::from(used) == self.blocks || used == 1 || self.sources > 0 {
            return false;
        }
        // A page with room and without sources stays where it is.
        debug_assert!(matches!(page.place.get(), Place::Open | Place::Held));
        page.used.set(used - 1);
        table.bits(slot.page).release(slot.block as usize);
        true
    }

    /// [`free`](Class::free) for who makes a move at once: where none is under way, the source
    /// of the move is free already, and nothing is left to [`arrive`](Class::arrive). O(1).
    #[inline(always)]
    pub(in crate::compact) fn free_at_once(
        &mut self,
        table: &Table<'_>,
        slot: Slot,
        supply: &mut Supply,
    ) -> (Transition, Option<Move>) {
        let full = u32::from(table.page(slot.page).used.get()) == self.blocks;
        match full && self.sources == 0 {
            true => self.free_of_full(table, slot, supply),
            false => self.free_into(table, slot, supply),
        }
    }

    /// Frees a page-block of a full page of a class in which nothing moves.
    #[inline(never)]
    fn free_of_full(
        &mut self,
        table: &Table<'_>,
        slot: Slot,
        supply: &mut Supply,
    ) -> (Transition, Option<Move>) {
        // Nothing moves, so not-full pages are open: the list has κ of them.
        let number = self.lists[Place::Open as usize].last;
        if table.page(slot.page).pins.get() > 0 || self.not_full < self.kappa || number == NONE {
            return self.free_at_edge(table, slot, |number| supply.give(table, number));
        }
        let page = table.page(number);
        let used = page.used.get() - 1;
        page.used.set(used);
        let block = table.bits(number).release_first() as u32;
        if used == 0 {
            self.settle_or_give(table, number, |number| supply.give(table, number));
        }
        let from = Slot {
            page: number,
            block,
        };
        (Transition::Compacts, Some(Move { from, to: slot }))
    }
}
