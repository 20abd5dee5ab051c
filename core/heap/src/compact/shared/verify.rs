//! The states of a heap that several threads used, and the verification of its invariants.

use super::super::automaton::{ClassState, Slot};
use super::super::backing::Backing;
use super::super::table::Place;
use super::SharedCompactFit;
use crate::heap::Corruption;
use crate::lock::Lock;

impl<L: Lock + 'static> SharedCompactFit<L> {
    /// The states of the classes' automata, smallest class first. Exclusive, as no state of
    /// all of them exists while others change them. O(classes × pages).
    pub fn states(&mut self) -> impl Iterator<Item = ClassState> + '_ {
        let table = self.table;
        self.classes
            .alone()
            .iter()
            .map(move |class| class.state(&table))
    }

    /// Pages in use, and pages that were ever used.
    pub fn pages(&self) -> (u32, u32) {
        self.reserve
            .hold(|reserve| (reserve.supply.owned, reserve.supply.extent))
    }

    /// Moves under way.
    pub fn moves(&mut self) -> usize {
        self.moves.under_way().count()
    }

    /// Verifies every invariant. Linear in pages × classes, and in blocks × moves.
    ///
    /// # Errors
    /// [`Corruption::List`] when a page, class or list disagrees, [`Corruption::Statistics`]
    /// when a count does.
    pub fn check(&mut self) -> Result<(), Corruption> {
        let table = self.table;
        let classes = self.classes.alone();
        let owned: u32 = classes.iter().map(|class| class.pages).sum();
        let sound = classes.iter().all(|class| class.check(&table));
        let sources: u32 = classes.iter().map(|class| class.sources).sum();
        let reserve = self.reserve.alone();
        let spare = reserve.supply.spare(&table).ok_or(Corruption::List)?;
        let supplied = owned == reserve.supply.owned && owned + spare == reserve.supply.extent;
        if !sound || !supplied || sources as usize != self.moves() {
            return Err(Corruption::List);
        }
        let (live, blocks) = self.resolved().ok_or(Corruption::List)?;
        let reserve = self.reserve.alone();
        let handles = reserve
            .spare
            .in_use(&self.entries)
            .ok_or(Corruption::List)?;
        match handles as usize == blocks && reserve.counters.agree(live, blocks) {
            true => Ok(()),
            false => Err(Corruption::Statistics),
        }
    }

    /// Requested bytes and blocks, if every block's handle resolves to where it is.
    fn resolved(&mut self) -> Option<(usize, usize)> {
        let (mut live, mut blocks) = (0, 0);
        for number in 0..self.table.count() {
            let page = self.table.page(number);
            if page.place.get() == Place::Unowned {
                continue;
            }
            let class = usize::from(page.class.get());
            let class = &self.classes.alone()[class];
            let (count, bytes) = (class.blocks, class.bytes);
            for block in 0..count {
                let slot = Slot {
                    page: number,
                    block,
                };
                let free = self.table.bits(number).free(block as usize);
                if free || self.moves.under_way().any(|moved| moved.to == slot) {
                    continue;
                }
                let place = super::place_of(self.page_log2, bytes, slot);
                let record = self.backing.record(place);
                if self.entries.place_at(record.owner) != Some(place) {
                    return None;
                }
                live += record.size as usize;
                blocks += 1;
            }
        }
        Some((live, blocks))
    }
}
