//! Which page-blocks of a page are free and which are used, found in constant time.
//!
//! The words of a page are two bitmaps of two levels each:
//! `| free summary | used summary | free 0 … | used 0 … |`. A page-block in neither
//! is the source of a move.
//!
//! Invariant: bit i of a summary is set exactly when word i of its bitmap is not zero.

use core::cell::Cell;

const BITS: usize = usize::BITS as usize;
/// Most page-blocks of a page.
pub(super) const MOST: usize = BITS * BITS;

/// Words of a page with `blocks` page-blocks.
pub(super) const fn words_for(blocks: usize) -> usize {
    2 + 2 * blocks.div_ceil(BITS)
}

/// The bitmaps of one page.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a>(pub(super) &'a [Cell<usize>]);

/// One of the two bitmaps.
#[derive(Clone, Copy)]
enum Map {
    Free = 0,
    Used = 1,
}

impl Bits<'_> {
    #[inline(always)]
    fn words(self) -> usize {
        self.0.len() / 2 - 1
    }

    #[inline(always)]
    fn word(&self, map: Map, index: usize) -> &Cell<usize> {
        &self.0[2 + map as usize * self.words() + index]
    }

    #[inline(always)]
    fn set(self, map: Map, block: usize) {
        let word = self.word(map, block / BITS);
        word.set(word.get() | 1 << (block % BITS));
        let summary = &self.0[map as usize];
        summary.set(summary.get() | 1 << (block / BITS));
    }

    #[inline(always)]
    fn clear(self, map: Map, block: usize) {
        let word = self.word(map, block / BITS);
        word.set(word.get() & !(1 << (block % BITS)));
        if word.get() == 0 {
            let summary = &self.0[map as usize];
            summary.set(summary.get() & !(1 << (block / BITS)));
        }
    }

    #[inline(always)]
    fn first(self, map: Map) -> usize {
        let index = self.0[map as usize].get().trailing_zeros() as usize;
        index * BITS + self.word(map, index).get().trailing_zeros() as usize
    }

    #[inline(always)]
    fn has(self, map: Map, block: usize) -> bool {
        self.word(map, block / BITS).get() >> (block % BITS) & 1 == 1
    }

    /// All of `blocks` page-blocks are free. O(blocks / word).
    pub(super) fn reset(self, blocks: usize) {
        let full = blocks / BITS;
        for index in 0..self.words() {
            let free = match index.cmp(&full) {
                core::cmp::Ordering::Less => usize::MAX,
                core::cmp::Ordering::Equal => (1 << (blocks % BITS)) - 1,
                core::cmp::Ordering::Greater => 0,
            };
            self.word(Map::Free, index).set(free);
            self.word(Map::Used, index).set(0);
        }
        let words = blocks.div_ceil(BITS);
        self.0[0].set(usize::MAX >> (BITS - words));
        self.0[1].set(0);
    }

    /// Takes the first free page-block. There is one.
    #[inline(always)]
    pub(super) fn take(self) -> usize {
        let block = self.first(Map::Free);
        self.clear(Map::Free, block);
        self.set(Map::Used, block);
        block
    }

    /// A used page-block becomes free.
    #[inline(always)]
    pub(super) fn release(self, block: usize) {
        self.clear(Map::Used, block);
        self.set(Map::Free, block);
    }

    /// The first used page-block becomes the source of a move.
    #[inline(always)]
    pub(super) fn depart(self) -> usize {
        let block = self.first(Map::Used);
        self.clear(Map::Used, block);
        block
    }

    /// A source becomes free.
    #[inline(always)]
    pub(super) fn leave(self, block: usize) {
        self.set(Map::Free, block);
    }

    /// A source stays where it is.
    #[inline(always)]
    pub(super) fn stay(self, block: usize) {
        self.set(Map::Used, block);
    }

    /// Whether the page-block is free.
    #[inline(always)]
    pub(super) fn free(self, block: usize) -> bool {
        self.has(Map::Free, block)
    }

    /// Free and used page-blocks, counted; `None` when a summary disagrees.
    pub(super) fn counts(self) -> Option<(usize, usize)> {
        let count = |map| {
            let mut sum = 0;
            for index in 0..self.words() {
                let word = self.word(map, index).get();
                if (word != 0) != (self.0[map as usize].get() >> index & 1 == 1) {
                    return None;
                }
                sum += word.count_ones() as usize;
            }
            Some(sum)
        };
        let overlap = (0..self.words())
            .any(|i| self.word(Map::Free, i).get() & self.word(Map::Used, i).get() != 0);
        if overlap {
            return None;
        }
        Some((count(Map::Free)?, count(Map::Used)?))
    }
}
