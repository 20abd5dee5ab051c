//! Binary buddy, lowest address first, without the walk.
//!
//! A list of [`Buddy<true>`](metes_heap::Buddy) is sorted by address, and entering it is a
//! linear search. Here all free blocks stand in one [sorted](super::sorted) list by class
//! and address; what the search would have read is a difference of ranks. No links are
//! written.
//!
//! Invariant: every decision, and every read and write told to the store, is the one that
//! `Buddy<true>` would have made.

use metes_heap::Store;
use metes_heap::index::Index;
use metes_heap::store::Geometry;
use metes_heap::store::ledger::LedgerBlock;

use super::sorted::Sorted;

/// Classes that a word has.
const CLASSES: usize = usize::BITS as usize;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuickBuddy {
    bits: usize,
    granule_log2: u32,
    /// By class and offset in granules.
    places: Sorted<u64, LedgerBlock>,
    counts: [u32; CLASSES],
    /// Offset of the first block of each class that has any, in granules.
    firsts: [u32; CLASSES],
}

impl QuickBuddy {
    /// An empty index.
    pub(crate) fn new() -> Self {
        QuickBuddy {
            bits: 0,
            granule_log2: 0,
            places: Sorted::new(),
            counts: [0; CLASSES],
            firsts: [0; CLASSES],
        }
    }

    #[inline(always)]
    fn take_out<S: Store>(&mut self, store: &S, class: usize, offset: u32) -> LedgerBlock {
        let at = self.places.locate(key(class, offset));
        let block = self.places.item(at);
        self.counts[class] -= 1;
        if self.counts[class] == 0 {
            self.bits &= !(1 << class);
            store.touch(2 + 1, 2 + 1);
        } else {
            if self.firsts[class] == offset {
                let next = self.places.key_after(at).unwrap_or(0);
                self.firsts[class] = next as u32;
            }
            store.touch(2, 2);
        }
        self.places.remove(at);
        block
    }
}

#[inline(always)]
fn key(class: usize, offset: u32) -> u64 {
    (class as u64) << 32 | u64::from(offset)
}

// SAFETY: blocks come from the heap, and leave the order when they are taken or removed.
unsafe impl<S: Store<Block = LedgerBlock>> Index<S> for QuickBuddy {
    #[inline(always)]
    fn halves(&self) -> bool {
        true
    }

    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        false
    }

    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        self.granule_log2 = geometry.granule.trailing_zeros();
        Some((span | 1).ilog2() as usize + 1)
    }

    #[inline(always)]
    fn block_size(&self, need: usize) -> usize {
        need.checked_next_power_of_two()
            .unwrap_or(1 << (usize::BITS - 1))
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        let class = size.trailing_zeros() as usize;
        let offset = (store.offset(block) >> self.granule_log2) as u32;
        let place = key(class, offset);
        let at = self.places.locate(place);
        let smaller: u32 = self.counts[..class].iter().sum();
        let before = self.places.rank(at) as u32 - smaller;
        self.places.insert(at, place, 1, block, 0);
        if before == 0 {
            self.firsts[class] = offset;
        }
        self.counts[class] += 1;
        self.bits |= 1 << class;
        // A link of each block passed and of the one before the place, twice; four links
        // written; the bitmap.
        store.touch(before + 1 + 1 + 1, 4 + 1);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        let offset = (store.offset(block) >> self.granule_log2) as u32;
        self.take_out(store, size.trailing_zeros() as usize, offset);
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(LedgerBlock, usize)> {
        let bits = self.bits & need.wrapping_neg();
        // The bitmap, and the head of each class that serves.
        store.touch(1 + bits.count_ones(), 0);
        if bits == 0 {
            return None;
        }
        let mut class = bits.trailing_zeros() as usize;
        let mut rest = bits & (bits - 1);
        while rest != 0 {
            let wider = rest.trailing_zeros() as usize;
            if self.firsts[wider] < self.firsts[class] {
                class = wider;
            }
            rest &= rest - 1;
        }
        let block = self.take_out(store, class, self.firsts[class]);
        Some((block, 1 << class))
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(LedgerBlock) -> bool) -> bool {
        let sizes = (0..CLASSES).flat_map(|class| (0..self.counts[class]).map(move |_| 1 << class));
        self.places
            .items()
            .zip(sizes)
            .all(|(block, size)| store.header(block).size == size && visit(block))
    }
}
