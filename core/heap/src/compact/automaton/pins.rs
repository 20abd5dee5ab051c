//! Pins: pages whose blocks stay.
//!
//! Invariant: a page with pins is in the list of held pages, or has no room; it does not count
//! in n.

use super::super::table::Table;
use super::{Class, Move, Slot};

/// What is to be done so that a page may lose its last pin.
#[derive(Debug)]
pub(in crate::compact) enum Unpinning {
    /// Nothing: the pin is gone.
    Done,
    /// This move into the page.
    Moves(Move),
    /// The moves under way that leave the page.
    Waits,
}

impl Class {
    /// A used page-block is pinned. O(1).
    pub(in crate::compact) fn pin(&mut self, table: &Table<'_>, number: u32) {
        let page = table.page(number);
        page.pins.set(page.pins.get() + 1);
        if page.pins.get() == 1 {
            self.settle(table, number);
        }
    }

    /// Takes a pin of a page back, unless it is the last one and the page would be one not-full
    /// page too many: then says what is to be done before this is called again. O(1).
    pub(in crate::compact) fn unpin(
        &mut self,
        table: &Table<'_>,
        number: u32,
        give: impl FnOnce(u32),
    ) -> Unpinning {
        let page = table.page(number);
        let (used, sources) = (u32::from(page.used.get()), u32::from(page.sources.get()));
        let pins = page.pins.get();
        let counts = used > 0 && used < self.blocks;
        if pins > 1 || !counts || self.not_full < self.kappa {
            page.pins.set(pins - 1);
            if pins == 1 {
                self.settle_or_give(table, number, give);
            }
            return Unpinning::Done;
        }
        if used + sources == self.blocks {
            return Unpinning::Waits;
        }
        // The page is held until it is full or fewer are not full: n stays within κ.
        let Some(from) = self.depart(table) else {
            debug_assert!(false, "κ ≥ 1 pages are not full");
            return Unpinning::Waits;
        };
        page.used.set(page.used.get() + 1);
        let block = table.bits(number).take() as u32;
        self.settle(table, number);
        Unpinning::Moves(Move {
            from,
            to: Slot {
                page: number,
                block,
            },
        })
    }
}
