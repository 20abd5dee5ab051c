//! Regions that leave their frames where they are: what waits to be given back, a bit a page.
//!
//! Invariant: a bit is set for just the pages that were freed, belong to no region, and were not given
//! back since; `waiting` counts them. Pages below `opened` are readable and writable.

use crate::kernel::{self, Range, Table};
use crate::{Error, PAGE};

const BITS: usize = u64::BITS as usize;

/// The arena's pages that wait.
#[derive(Debug)]
pub(crate) struct Kept {
    bits: Table<u64>,
    waiting: usize,
    /// Pages that were opened, from the first one on.
    opened: usize,
    /// Word from which on what waits is looked for.
    cursor: usize,
}

/// Calls `change` with each word that holds bits of pages `first..first + pages`, and the mask of these.
fn words(bits: &mut [u64], first: usize, pages: usize, mut change: impl FnMut(&mut u64, u64)) {
    let end = first + pages;
    let mut page = first;
    while page < end {
        let (word, bit) = (page / BITS, page % BITS);
        let count = (BITS - bit).min(end - page);
        change(&mut bits[word], (u64::MAX >> (BITS - count)) << bit);
        page += count;
    }
}

impl Kept {
    /// Nothing waits, of `pages` pages.
    pub(crate) fn new(pages: usize) -> Result<Self, Error> {
        Ok(Kept {
            bits: Table::new(pages.div_ceil(BITS))?,
            waiting: 0,
            opened: 0,
            cursor: 0,
        })
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn record_bytes(&self) -> usize {
        self.bits.bytes()
    }

    /// Pages become a region's, with the frames that they have: whether all of them are zero.
    /// O(pages / 64).
    pub(crate) fn take(
        &mut self,
        arena: &Range,
        first: usize,
        pages: usize,
    ) -> Result<bool, Error> {
        let end = first + pages;
        if end > self.opened {
            kernel::open(arena.page(self.opened), (end - self.opened) * PAGE)?;
            self.opened = end;
        }
        let mut found = 0;
        words(&mut self.bits, first, pages, |word, mask| {
            found += (*word & mask).count_ones() as usize;
            *word &= !mask;
        });
        self.waiting -= found;
        Ok(found == 0)
    }

    /// Pages of a region wait from now on. O(pages / 64).
    pub(crate) fn give(&mut self, first: usize, pages: usize) {
        words(&mut self.bits, first, pages, |word, mask| *word |= mask);
        self.waiting += pages;
    }

    /// Gives back at most `most` pages that wait, one behind the other, by one system call, and looks at
    /// no more than `most` words for them: how many pages. O(most).
    pub(crate) fn pay(&mut self, arena: &Range, most: usize) -> Result<usize, Error> {
        if self.waiting == 0 || most == 0 {
            return Ok(0);
        }
        let end = self.opened.div_ceil(BITS);
        for _ in 0..most {
            if self.cursor >= end {
                self.cursor = 0;
            }
            let word = self.bits[self.cursor];
            if word != 0 {
                let first = self.cursor * BITS + word.trailing_zeros() as usize;
                let pages = self.run(first, most);
                kernel::discard(arena.page(first), pages * PAGE)?;
                words(&mut self.bits, first, pages, |word, mask| *word &= !mask);
                self.waiting -= pages;
                return Ok(pages);
            }
            self.cursor += 1;
        }
        Ok(0)
    }

    /// Pages that wait one behind the other from `first` on, at most `most`.
    fn run(&self, first: usize, most: usize) -> usize {
        let mut end = first;
        while end - first < most && end < self.opened {
            let rest = !(self.bits[end / BITS] >> (end % BITS));
            let set = (rest.trailing_zeros() as usize).min(BITS - end % BITS);
            end += set;
            if set == 0 || !end.is_multiple_of(BITS) {
                break;
            }
        }
        (end - first).min(most)
    }
}
