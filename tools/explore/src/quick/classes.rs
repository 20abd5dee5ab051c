//! Size classes whose own class is searched without the walk.
//!
//! Segregated fit tries the blocks of the request's own class, latest first. The lists
//! themselves are those of [`SizeClasses`]; beside them all blocks stand in one
//! [sorted](super::sorted) list by class and age, so that a class is a range of it, the
//! first block that suffices is one search for a size, and the blocks tried before it are
//! a difference of ranks.
//!
//! Invariant: every decision, and every read and write told to the store, is the one that
//! `SizeClasses` would have made with the same parameters.

use metes_heap::index::classes::{ChosenClasses, SizeClasses, class_floor};
use metes_heap::index::{Index, Limits};
use metes_heap::store::ledger::LedgerBlock;
use metes_heap::{Geometry, Store};

use super::sorted::Sorted;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuickClasses {
    /// The lists, which try no block of the request's own class.
    lists: SizeClasses<ChosenClasses>,
    probes: usize,
    second_level_log2: u32,
    limits: Limits,
    granule_log2: u32,
    header: usize,
    /// By class and age, latest first; sizes in granules.
    places: Sorted<u64, LedgerBlock>,
    /// The place of the block that has each record.
    place_of: Vec<u64>,
    next: u32,
}

impl QuickClasses {
    /// An empty index.
    pub(crate) fn with(parameters: ChosenClasses) -> Self {
        QuickClasses {
            lists: SizeClasses::with(ChosenClasses {
                probes: 0,
                ..parameters
            }),
            probes: parameters.probes,
            second_level_log2: parameters.second_level_log2,
            limits: parameters.limits,
            granule_log2: 0,
            header: 0,
            places: Sorted::new(),
            place_of: Vec::new(),
            next: u32::MAX - 1,
        }
    }

    /// The class of blocks of `size` bytes.
    #[inline(always)]
    fn class(&self, size: usize) -> u64 {
        class_floor(
            (size - self.header) >> self.granule_log2,
            self.second_level_log2,
        ) as u64
    }

    #[inline(always)]
    fn granules(&self, size: usize) -> u32 {
        u32::try_from(size >> self.granule_log2).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn forget(&mut self, block: LedgerBlock) {
        let at = self.places.locate(self.place_of[block.record()]);
        self.places.remove(at);
    }
}

// SAFETY: the lists keep the contract; what is removed from them was in them.
unsafe impl<S: Store<Block = LedgerBlock>> Index<S> for QuickClasses {
    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        self.probes != 0
    }

    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        self.granule_log2 = geometry.granule.trailing_zeros();
        self.header = geometry.header;
        Index::<S>::heads(&mut self.lists, span, geometry)
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        self.lists.insert(store, block, size);
        let number = block.record();
        if number >= self.place_of.len() {
            self.place_of.resize(number + number / 2 + 64, 0);
        }
        let granules = self.granules(size);
        let place = self.class(size) << 32 | u64::from(self.next);
        self.next -= 1;
        self.place_of[number] = place;
        let at = self.places.locate(place);
        self.places.insert(at, place, granules, block, 0);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        self.forget(block);
        self.lists.remove(store, block, size);
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(LedgerBlock, usize)> {
        if self.probes != 0 {
            let class = self.class(need);
            let begin = self.places.locate(class << 32);
            let first = self.places.rank(begin);
            let found = self.places.find(begin, self.granules(need));
            let found = found.filter(|&at| self.places.key(at) >> 32 == class);
            let end = match found {
                Some(at) => at,
                None => self.places.locate((class + 1) << 32),
            };
            let before = self.places.rank(end) - first;
            if let Some(at) = found
                && before < self.probes
            {
                // The head's link; a header of each tried, and a link between two.
                store.touch(1 + 2 * before as u32 + 1, 0);
                let block = self.places.item(at);
                let size = (self.places.value(at) as usize) << self.granule_log2;
                self.places.remove(at);
                self.lists.remove(store, block, size);
                return Some((block, size));
            }
            store.touch(1 + 2 * before.min(self.probes) as u32, 0);
        }
        let (block, size) = self.lists.take(store, need)?;
        self.forget(block);
        Some((block, size))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.limits
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(LedgerBlock) -> bool) -> bool {
        self.lists.each(store, visit)
    }
}
