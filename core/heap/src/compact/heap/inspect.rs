//! What the heap says of itself: where its bytes go, and whether it is whole.

use super::super::automaton::{ClassState, Slot};
use super::super::backing::{Backing, RECORD};
use super::super::table::Place as Listed;
use super::CompactFit;
use crate::heap::Corruption;
use crate::statistics::Statistics;

/// Where the bytes of the heap go. All in bytes of memory: behind a block table, free
/// page-blocks and sources of moves have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Requested bytes of the blocks in use.
    pub live: usize,
    /// Used page-blocks beyond requested bytes: the request rounded up to its class, and the
    /// record of the block.
    pub page_block_internal: usize,
    /// Ends of pages in which no page-block fits.
    pub page_internal: usize,
    /// Free page-blocks of pages that have used ones: what κ bounds.
    pub size_class: usize,
    /// Page-blocks that are left by moves under way: what ι costs.
    pub transient: usize,
    /// Pages that no class owns but that were used before.
    pub spare: usize,
    /// The table of handles.
    pub handles: usize,
    /// Records of pages, classes, and of the block table.
    pub records: usize,
}

impl<B: Backing> CompactFit<B> {
    /// Class sizes in bytes, smallest first.
    pub fn class_sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.classes.iter().map(|class| class.bytes as usize)
    }

    /// The states of the classes' automata, smallest class first. O(classes × pages).
    pub fn states(&self) -> impl Iterator<Item = ClassState> + '_ {
        self.classes.iter().map(|class| class.state(&self.table))
    }

    /// Pages in use, and pages that were ever used.
    pub fn pages(&self) -> (u32, u32) {
        (self.supply.owned, self.supply.extent)
    }

    /// Bytes that the heap has taken: pages that were ever used, their records, handles,
    /// classes.
    pub fn footprint(&self) -> usize {
        self.backing.bytes(self.supply.extent) + self.records() + self.handles.bytes()
    }

    fn records(&self) -> usize {
        self.supply.extent as usize * self.table.stride()
            + self.backing.record_bytes(self.supply.extent)
            + size_of_val(self.classes)
            + self.by_size.len()
    }

    /// Where the bytes go. O(classes × pages).
    pub fn fragmentation(&self) -> Fragmentation {
        let page = 1usize << self.page_log2;
        let mut found = Fragmentation {
            live: self.counters.live(),
            handles: self.handles.bytes(),
            records: self.records(),
            ..Fragmentation::default()
        };
        let mut used = 0;
        for class in self.states() {
            let (pages, blocks) = (class.pages as usize, class.blocks as usize);
            let free = pages * blocks - (class.used + class.sources) as usize;
            used += class.used as usize * class.block;
            if self.backing.spare().is_none() {
                found.page_internal += pages * (page - blocks * class.block);
                found.transient += class.sources as usize * class.block;
                found.size_class += free * class.block;
            }
        }
        found.page_block_internal = used - found.live;
        found.spare = match self.backing.spare() {
            Some(spare) => spare,
            None => (self.supply.extent - self.supply.owned) as usize * page,
        };
        found
    }

    /// What the heap holds and has held. O(classes × pages).
    pub fn statistics(&self) -> Statistics {
        let found = self.fragmentation();
        let free = self
            .states()
            .map(|class| (class.pages * class.blocks - class.used - class.sources) as usize)
            .sum();
        let largest = self.classes.last().map_or(0, |class| class.bytes as usize);
        self.counters.report(
            self.footprint(),
            largest.saturating_sub(RECORD),
            free,
            found.size_class,
            found.handles + found.records,
        )
    }

    /// Verifies every invariant. Linear in pages × classes and in blocks.
    ///
    /// # Errors
    /// [`Corruption::List`] when a page, class or list disagrees,
    /// [`Corruption::Statistics`] when a count does.
    pub fn check(&self) -> Result<(), Corruption> {
        let broken = Corruption::List;
        let owned: u32 = self.classes.iter().map(|class| class.pages).sum();
        let spare = self.supply.spare(&self.table).ok_or(broken)?;
        let classes = self.classes.iter().all(|class| class.check(&self.table));
        if !classes || owned != self.supply.owned || owned + spare != self.supply.extent {
            return Err(broken);
        }
        let (mut live, mut blocks) = (0, 0);
        for (number, page) in self.table.pages() {
            if page.place.get() == Listed::Unowned {
                continue;
            }
            let class = usize::from(page.class.get());
            for block in 0..self.classes[class].blocks {
                let slot = Slot {
                    page: number,
                    block,
                };
                if !self.occupied(slot) {
                    continue;
                }
                let place = self.place(class, slot);
                let record = self.backing.record(place);
                if self.handles.place_at(record.owner) != Some(place) {
                    return Err(broken);
                }
                live += record.size as usize;
                blocks += 1;
            }
        }
        let handles = self.handles.in_use().ok_or(broken)?;
        match handles as usize == blocks && self.counters.agree(live, blocks) {
            true => Ok(()),
            false => Err(Corruption::Statistics),
        }
    }

    /// Whether a block lies in the page-block: it is used and no target, or a source.
    fn occupied(&self, slot: Slot) -> bool {
        let bits = self.table.bits(slot.page);
        let target = self
            .under
            .iter()
            .flatten()
            .any(|under| under.moved.to == slot);
        !bits.free(slot.block as usize) && !target
    }
}
