//! Which page-blocks of a page are occupied and which are being left, found in constant time.
//!
//! The words of a page are `| summary | occupied 0 … | leaving 0 … |`. A page-block is free, or
//! occupied; an occupied one is used, or leaving: the source of a move. In an empty page all
//! words behind the summary are zero, whichever class owned it, so that a page changes its
//! class in constant time.
//!
//! Invariant: bit i of the summary is clear exactly when occupied word i has no zero, except
//! for the last word of a page, which may be partial: its bit is looked at last, and only in a
//! page with room.

use core::cell::Cell;
use core::marker::PhantomData;

const BITS: usize = usize::BITS as usize;
/// Most page-blocks of a page.
pub(super) const MOST: usize = BITS * BITS;

/// Words of a page with `blocks` page-blocks.
pub(super) const fn words_for(blocks: usize) -> usize {
    1 + 2 * blocks.div_ceil(BITS)
}

/// The bitmaps of one page.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    words: *const Cell<usize>,
    /// Words of one bitmap.
    count: usize,
    life: PhantomData<&'a Cell<usize>>,
}

impl<'a> Bits<'a> {
    /// The bitmaps in `1 + 2 count` words from `words` on.
    ///
    /// # Safety
    /// The words are valid, and reached as cells only, for `'a`.
    #[inline(always)]
    pub(super) unsafe fn new(words: *const Cell<usize>, count: usize) -> Self {
        Bits {
            words,
            count,
            life: PhantomData,
        }
    }

    #[inline(always)]
    fn word(self, index: usize) -> &'a Cell<usize> {
        debug_assert!(index < 1 + 2 * self.count);
        // SAFETY: within the words that `new` was promised.
        unsafe { &*self.words.add(index) }
    }

    #[inline(always)]
    fn summary(self) -> &'a Cell<usize> {
        self.word(0)
    }

    #[inline(always)]
    fn occupied_word(self, index: usize) -> &'a Cell<usize> {
        self.word(1 + index)
    }

    #[inline(always)]
    fn leaving_word(self, index: usize) -> &'a Cell<usize> {
        self.word(1 + self.count + index)
    }

    /// The page is empty and gets page-blocks with this [`summary`].
    #[inline(always)]
    pub(super) fn reset(self, summary: usize) {
        self.summary().set(summary);
    }

    /// Takes the first free page-block. There is one.
    #[inline(always)]
    pub(super) fn take(self) -> usize {
        let summary = self.summary().get();
        debug_assert_ne!(summary, 0);
        // SAFETY: the caller knows that a page-block is free; then a bit is set, and the first
        // of them is exact or that of the last word, which has the free page-block.
        unsafe { core::hint::assert_unchecked(summary != 0) };
        let index = summary.trailing_zeros() as usize;
        let word = self.occupied_word(index).get();
        debug_assert_ne!(word, usize::MAX);
        // SAFETY: as above.
        unsafe { core::hint::assert_unchecked(word != usize::MAX) };
        let taken = word | (word + 1);
        self.occupied_word(index).set(taken);
        if taken == usize::MAX {
            self.summary().set(summary & (summary - 1));
        }
        index * BITS + (!word).trailing_zeros() as usize
    }

    /// An occupied page-block becomes free.
    #[inline(always)]
    pub(super) fn release(self, block: usize) {
        let index = block / BITS;
        let word = self.occupied_word(index);
        debug_assert!(!self.free(block));
        word.set(word.get() & !(1 << (block % BITS)));
        self.summary().set(self.summary().get() | 1 << index);
    }

    /// The first used page-block begins to leave. There is one. O(blocks / word).
    pub(super) fn depart(self) -> usize {
        let mut index = 0;
        loop {
            let leaving = self.leaving_word(index);
            let used = self.occupied_word(index).get() & !leaving.get();
            if used != 0 {
                leaving.set(leaving.get() | used & used.wrapping_neg());
                return index * BITS + used.trailing_zeros() as usize;
            }
            index += 1;
        }
    }

    /// The first occupied page-block becomes free. There is one, and none is leaving.
    /// O(blocks / word).
    pub(super) fn release_first(self) -> usize {
        let mut index = 0;
        loop {
            let word = self.occupied_word(index);
            let used = word.get();
            debug_assert_eq!(self.leaving_word(index).get(), 0);
            if used != 0 {
                word.set(used & (used - 1));
                self.summary().set(self.summary().get() | 1 << index);
                return index * BITS + used.trailing_zeros() as usize;
            }
            index += 1;
        }
    }

    /// A page-block that was leaving stays used.
    #[inline(always)]
    pub(super) fn stay(self, block: usize) {
        let word = self.leaving_word(block / BITS);
        word.set(word.get() & !(1 << (block % BITS)));
    }

    /// A page-block that was leaving is free.
    #[inline(always)]
    pub(super) fn leave(self, block: usize) {
        self.stay(block);
        self.release(block);
    }

    /// Whether the page-block is free.
    #[inline(always)]
    pub(super) fn free(self, block: usize) -> bool {
        (self.occupied_word(block / BITS).get() >> (block % BITS)) & 1 == 0
    }

    /// Free and leaving ones of `blocks` page-blocks; `None` when the words disagree.
    pub(super) fn counts(self, blocks: usize) -> Option<(usize, usize)> {
        let (mut occupied, mut leaving) = (0, 0);
        for index in 0..self.count {
            let (here, gone) = (
                self.occupied_word(index).get(),
                self.leaving_word(index).get(),
            );
            let room = (self.summary().get() >> index) & 1 == 1;
            let right = match valid(blocks, index) {
                0 => !room,
                usize::MAX => room == (here != usize::MAX),
                _ => room,
            };
            if !right || here & !valid(blocks, index) != 0 || gone & !here != 0 {
                return None;
            }
            occupied += here.count_ones() as usize;
            leaving += gone.count_ones() as usize;
        }
        Some((blocks - occupied, leaving))
    }
}

/// The summary of an empty page with `blocks` page-blocks.
pub(super) const fn summary(blocks: usize) -> usize {
    usize::MAX >> (BITS - blocks.div_ceil(BITS))
}

/// The bits of word `index` that stand for one of `blocks` page-blocks.
fn valid(blocks: usize, index: usize) -> usize {
    match blocks.saturating_sub(index * BITS) {
        0 => 0,
        left if left >= BITS => usize::MAX,
        left => (1 << left) - 1,
    }
}
