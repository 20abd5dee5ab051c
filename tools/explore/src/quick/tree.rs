//! First fit by a tree, reading and writing what it reads and writes where blocks have addresses.
//!
//! Over records outside the memory, the library's own tree has a list of blocks for each group, and other words.
//! Here the words and the tree of boundary tags are kept, and with them which block ends where, as nothing lies in memory that
//! would tell.
//!
//! Invariant: every decision, and every read and write told to the store, is the one that
//! [`FirstFit`](metes_heap::index::first_fit::FirstFit) makes over boundary tags in one region.

use std::marker::PhantomData;

use metes_heap::Store;
use metes_heap::index::Index;
use metes_heap::index::first_fit::Summary;
use metes_heap::store::ledger::LedgerBlock;
use metes_heap::store::{Extent, Geometry};

/// No group.
const NONE: usize = usize::MAX;
/// Above every summary.
const ABOVE: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuickTree<E> {
    /// Of each group, which granules belong to a free block that ends in it.
    words: Vec<u64>,
    /// The tree: node 1 is its root, below node `i` are `2i` and `2i + 1`.
    entries: Vec<u32>,
    /// The free block that ends with each granule, as far as one ever did.
    ends: Vec<Option<LedgerBlock>>,
    granule_log2: u32,
    /// log2 of the granules of a group.
    width_log2: u32,
    leaves: usize,
    root: usize,
    /// Groups below the root.
    reach: usize,
    /// Groups whose summaries may be too large, the older first.
    pending: [usize; 2],
    wilderness: Option<LedgerBlock>,
    /// Offset of the first block.
    base: usize,
    summary: PhantomData<E>,
}

/// Where a free block lies.
#[derive(Clone, Copy)]
struct Place {
    /// The group in which it ends.
    group: usize,
    granules: usize,
    /// Its first granule in that group, and its last one.
    low: u32,
    high: u32,
}

impl Place {
    fn bits(self) -> u64 {
        (u64::MAX >> (63 - (self.high - self.low))) << self.low
    }
}

impl<E: Summary> QuickTree<E> {
    /// An empty index.
    pub(crate) fn new() -> Self {
        QuickTree {
            words: Vec::new(),
            entries: Vec::new(),
            ends: Vec::new(),
            granule_log2: 0,
            width_log2: 0,
            leaves: 1,
            root: 1,
            reach: 1,
            pending: [NONE; 2],
            wilderness: None,
            base: 0,
            summary: PhantomData,
        }
    }

    fn groups_for(&self, bytes: usize) -> usize {
        (bytes >> self.granule_log2 >> self.width_log2) + 1
    }

    fn fence(&mut self) {
        self.entries[self.root ^ 1] = ABOVE;
        self.entries[self.root / 2] = ABOVE;
    }

    #[inline(always)]
    fn place<S: Store<Block = LedgerBlock>>(
        &self,
        store: &S,
        block: LedgerBlock,
        size: usize,
    ) -> Place {
        let from = (store.offset(block) - self.base) >> self.granule_log2;
        let granules = size >> self.granule_log2;
        let last = from + granules - 1;
        let begins = last >> self.width_log2 << self.width_log2;
        Place {
            group: last >> self.width_log2,
            granules,
            low: from.saturating_sub(begins) as u32,
            high: (last - begins) as u32,
        }
    }

    /// The number of a granule.
    fn granule(&self, group: usize, at: u32) -> usize {
        (group << self.width_log2) + at as usize
    }

    /// The block that ends there.
    fn ending(&self, group: usize, at: u32) -> Option<LedgerBlock> {
        self.ends.get(self.granule(group, at)).copied()?
    }

    fn put<S: Store>(&mut self, store: &S, place: Place, block: LedgerBlock) {
        store.touch(1, 1);
        self.words[place.group] |= place.bits();
        let end = self.granule(place.group, place.high);
        if end >= self.ends.len() {
            self.ends.resize((end + 1).next_power_of_two(), None);
        }
        self.ends[end] = Some(block);
    }

    fn take_out<S: Store>(&mut self, store: &S, place: Place) {
        store.touch(1, 1);
        self.words[place.group] &= !place.bits();
    }

    fn summary<S: Store>(&self, store: &S, group: usize) -> u32 {
        store.touch(1, 0);
        self.entries[self.leaves + group]
    }

    /// The block that ends with the `ones` lowest granules of a group: what its footer says.
    fn lowest<S: Store<Block = LedgerBlock>>(
        &self,
        store: &S,
        group: usize,
        ones: u32,
    ) -> Option<(LedgerBlock, usize)> {
        store.touch(1, 0);
        let block = self.ending(group, ones - 1)?;
        let begins = (store.offset(block) - self.base) >> self.granule_log2;
        Some((block, self.granule(group, ones) - begins))
    }

    /// The first block of a group with at least `served` granules.
    fn first_in<S: Store<Block = LedgerBlock>>(
        &self,
        store: &S,
        group: usize,
        served: usize,
    ) -> Option<(LedgerBlock, Place)> {
        store.touch(1, 0);
        let word = self.words[group];
        if word & 1 != 0 {
            let ones = word.trailing_ones();
            let (block, granules) = self.lowest(store, group, ones)?;
            if granules >= served {
                let place = Place {
                    group,
                    granules,
                    low: 0,
                    high: ones - 1,
                };
                return Some((block, place));
            }
        }
        if served > 1 << self.width_log2 {
            return None;
        }
        let low = first_of(word, served as u32)?;
        let ones = (word >> low).trailing_ones();
        let place = Place {
            group,
            granules: ones as usize,
            low,
            high: low + ones - 1,
        };
        Some((self.ending(group, place.high)?, place))
    }

    /// The exact summary of a group.
    fn largest<S: Store<Block = LedgerBlock>>(&self, store: &S, group: usize) -> u32 {
        store.touch(1, 0);
        let word = self.words[group];
        if word & 1 == 0 {
            return E::of(longest(word) as usize);
        }
        // Without the lowest run, which may reach back.
        let inside = longest(word & word.wrapping_add(1)) as usize;
        let lowest = self.lowest(store, group, word.trailing_ones());
        E::of(lowest.map_or(inside, |(_, granules)| inside.max(granules)))
    }

    fn reach<S: Store>(&mut self, store: &S, group: usize) {
        if group < self.reach {
            return;
        }
        let largest = self.entries[self.root];
        store.touch(1, 1);
        self.entries[self.root ^ 1] = 0;
        while group >= self.reach {
            self.reach *= 2;
            self.root /= 2;
            store.touch(0, 1);
            self.entries[self.root] = largest;
        }
        store.touch(0, 2);
        self.fence();
    }

    /// The first group with a summary of at least `wanted`.
    fn first<S: Store>(&self, store: &S, wanted: u32) -> Option<usize> {
        store.touch(1, 0);
        let mut node = self.root;
        if self.entries[node] < wanted {
            return None;
        }
        while node < self.leaves {
            node *= 2;
            store.touch(1, 0);
            node += usize::from(self.entries[node] < wanted);
        }
        Some(node - self.leaves)
    }

    fn raise<S: Store>(&mut self, store: &S, group: usize, summary: u32) {
        let mut node = self.leaves + group;
        while self.entries[node] < summary {
            store.touch(1, 1);
            self.entries[node] = summary;
            node /= 2;
        }
        store.touch(1, 0);
    }

    fn lower<S: Store>(&mut self, store: &S, group: usize, mut summary: u32) {
        let mut node = self.leaves + group;
        store.touch(1, 0);
        let before = self.entries[node];
        if summary == before {
            return;
        }
        loop {
            store.touch(1, 1);
            self.entries[node] = summary;
            let beside = self.entries[node ^ 1];
            if beside >= before {
                return;
            }
            summary = summary.max(beside);
            node /= 2;
        }
    }

    /// Makes the summaries above the older pending group right.
    fn settle<S: Store<Block = LedgerBlock>>(&mut self, store: &S) {
        let group = self.pending[0];
        if group == NONE {
            return;
        }
        self.pending = [self.pending[1], NONE];
        let largest = self.largest(store, group);
        self.lower(store, group, largest);
    }

    /// A block with this summary was taken out of a group.
    fn left<S: Store<Block = LedgerBlock>>(&mut self, store: &S, group: usize, summary: u32) {
        if self.summary(store, group) != summary || self.pending.contains(&group) {
            return;
        }
        if self.pending[1] != NONE {
            self.settle(store);
        }
        match self.pending[0] {
            NONE => self.pending[0] = group,
            _ => self.pending[1] = group,
        }
    }
}

// SAFETY: blocks come from the heap, and are given out while the bits say that they are free, which change as the heap
// tells.
unsafe impl<E: Summary, S: Store<Block = LedgerBlock>> Index<S> for QuickTree<E> {
    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        let granules = geometry.granules(span);
        if granules > E::LARGEST || geometry.head == 0 {
            return None;
        }
        let word = geometry.head / 2;
        self.granule_log2 = geometry.granule.trailing_zeros();
        self.width_log2 = (8 * word).ilog2();
        let groups = (granules >> self.width_log2) + 1;
        self.leaves = groups.next_power_of_two();
        self.reach = self.leaves.min(2);
        self.root = self.leaves / self.reach;
        let entries = self.leaves + groups.next_multiple_of(2);
        self.words = vec![0; groups];
        self.entries = vec![0; entries];
        let bytes = groups * word + entries * E::BYTES;
        Some(bytes.div_ceil(geometry.head).max(2))
    }

    fn attach(&mut self, store: &mut S, base: LedgerBlock) {
        self.base = store.offset(base);
        self.fence();
    }

    fn has_room_for_region(&self, store: &S, length: usize) -> bool {
        let used: usize = (0..)
            .map_while(|number| store.region(number)?.ok())
            .map(|Extent { room, .. }| self.groups_for(room))
            .sum();
        used + self.groups_for(length) <= self.words.len()
    }

    fn may_extend(&self, _store: &S, room: usize) -> bool {
        self.groups_for(room) <= self.words.len()
    }

    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        true
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        if self.wilderness.is_none() && store.header(store.after(block, size)).size == 0 {
            self.wilderness = Some(block);
            store.touch(1, 1);
            return;
        }
        let place = self.place(store, block, size);
        self.reach(store, place.group);
        self.put(store, place, block);
        let summary = E::of(place.granules);
        let before = self.summary(store, place.group);
        if summary >= before {
            if self.pending[1] == place.group {
                self.pending[1] = NONE;
            } else if self.pending[0] == place.group {
                self.pending = [self.pending[1], NONE];
            }
            if summary > before {
                self.raise(store, place.group, summary);
            }
        }
        if self.pending[1] != NONE {
            self.settle(store);
        }
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        store.touch(1, 0);
        if self.wilderness == Some(block) {
            self.wilderness = None;
            store.touch(0, 1);
            return;
        }
        let place = self.place(store, block, size);
        self.take_out(store, place);
        self.left(store, place.group, E::of(place.granules));
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(LedgerBlock, usize)> {
        while self.pending[0] != NONE {
            self.settle(store);
        }
        let granules = need >> self.granule_log2;
        if let Some(group) = self.first(store, E::wanted(granules)) {
            let (block, place) = self.first_in(store, group, E::served(granules))?;
            self.take_out(store, place);
            if self.summary(store, group) == E::of(place.granules) {
                self.pending[0] = group;
            }
            return Some((block, place.granules << self.granule_log2));
        }
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need {
            return None;
        }
        self.wilderness = None;
        store.touch(1, 1);
        Some((block, size))
    }

    #[inline(always)]
    fn wilderness(&self) -> Option<LedgerBlock> {
        self.wilderness
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(LedgerBlock) -> bool) -> bool {
        if self.wilderness.is_some_and(|block| !visit(block)) {
            return false;
        }
        (0..self.words.len()).all(|group| {
            let mut rest = self.words[group];
            while rest != 0 {
                let low = rest.trailing_zeros();
                let ones = (rest >> low).trailing_ones();
                let high = low + ones - 1;
                let Some(block) = self.ending(group, high) else {
                    return false;
                };
                let size = store.header(block).size;
                let end = self.place(store, block, size);
                if (end.group, end.high, end.low) != (group, high, low) || !visit(block) {
                    return false;
                }
                rest &= !end.bits();
            }
            true
        })
    }
}

/// Where the lowest run of at least `length` ones begins.
fn first_of(word: u64, length: u32) -> Option<u32> {
    let mut starts = word;
    let mut left = length;
    while left > 1 {
        let half = left / 2;
        starts &= starts >> half;
        left -= half;
    }
    (starts != 0).then(|| starts.trailing_zeros())
}

/// The length of the longest run of ones.
fn longest(mut word: u64) -> u32 {
    let mut length = 0;
    while word != 0 {
        word &= word >> 1;
        length += 1;
    }
    length
}
