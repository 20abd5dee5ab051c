//! The records of slabs, each followed by its bitmap.
//!
//! Of a bitmap of many words the first is a *summary*: which of the others have a
//! free slot. So a free slot is found in constant time however small the slots are.
//!
//! Invariant: a summary's bit is set exactly when its word is not zero.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::{BITS, EMPTY, NONE};

/// The record of one slab, without its bitmap.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Slab {
    pub(super) next: Cell<u32>,
    pub(super) previous: Cell<u32>,
    pub(super) used: Cell<u16>,
    pub(super) pool: Cell<u8>,
    /// The bitmap follows.
    words: [usize; 0],
}

/// Words of a record without its bitmap.
pub(super) const fn head_words() -> usize {
    size_of::<Slab>() / size_of::<usize>()
}

/// The records of all slabs. Bits that are set stand for free slots.
#[derive(Debug)]
pub(super) struct Table<'a> {
    first: NonNull<usize>,
    pub(super) count: usize,
    /// Words from a record to the next.
    stride: usize,
    /// Whether bitmaps begin with a summary.
    summarised: bool,
    life: PhantomData<&'a mut [usize]>,
}

// SAFETY: the words are the table's alone, as a mutable slice would be.
unsafe impl Send for Table<'_> {}

impl<'a> Table<'a> {
    /// Records with bitmaps of so many words, a summary included, in `memory`.
    pub(super) fn new(memory: &'a mut [usize], words: usize, summarised: bool) -> Self {
        let stride = head_words() + words;
        Table {
            count: memory.len() / stride,
            first: NonNull::from(memory).cast(),
            stride,
            summarised,
            life: PhantomData,
        }
    }

    #[inline(always)]
    fn at(&self, number: usize) -> NonNull<usize> {
        debug_assert!(number < self.count);
        // SAFETY: numbers of slabs lie below `extent`, which never exceeds `count`, and as
        // many records lie in the memory.
        unsafe { self.first.add(number * self.stride) }
    }

    /// The record of a slab that was [made](Table::make).
    #[inline(always)]
    pub(super) fn slab(&self, number: usize) -> &Slab {
        // SAFETY: made, aligned to a word, and reached through cells only.
        unsafe { self.at(number).cast().as_ref() }
    }

    #[inline(always)]
    fn word(&self, number: usize, index: usize) -> &Cell<usize> {
        debug_assert!(head_words() + index < self.stride);
        // SAFETY: within the record, behind its head.
        unsafe { self.at(number).add(head_words() + index).cast().as_ref() }
    }

    /// Makes the record of a slab that has none.
    pub(super) fn make(&mut self, number: usize) {
        let record = Slab {
            next: Cell::new(NONE),
            previous: Cell::new(NONE),
            used: Cell::new(0),
            pool: Cell::new(EMPTY),
            words: [],
        };
        // SAFETY: the place of a record, aligned, and nothing refers to it yet.
        unsafe { self.at(number).cast().write(record) };
    }

    /// Makes `slots` slots free and no other. O(words), at most a word's bits and one.
    pub(super) fn clear(&mut self, number: usize, slots: usize) {
        let first = usize::from(self.summarised);
        let words = match self.summarised {
            true => slots.div_ceil(BITS),
            false => self.stride - head_words(),
        };
        for index in 0..words {
            let left = slots.saturating_sub(index * BITS);
            let free = match left >= BITS {
                true => usize::MAX,
                false => (1 << left) - 1,
            };
            self.word(number, first + index).set(free);
        }
        if self.summarised {
            self.word(number, 0).set(usize::MAX >> (BITS - words));
        }
    }

    /// Takes the first free slot. `None` when there is none.
    #[inline(always)]
    pub(super) fn take(&self, number: usize) -> Option<usize> {
        if self.summarised {
            let summary = self.word(number, 0);
            let index = summary.get().trailing_zeros() as usize;
            let word = self.word(number, 1 + index.min(BITS - 1));
            let free = word.get();
            let left = free & free.wrapping_sub(1);
            word.set(left);
            if left == 0 {
                summary.set(summary.get() & summary.get().wrapping_sub(1));
            }
            return (free != 0).then(|| index * BITS + free.trailing_zeros() as usize);
        }
        for index in 0..self.stride - head_words() {
            let word = self.word(number, index);
            let free = word.get();
            if free != 0 {
                word.set(free & (free - 1));
                return Some(index * BITS + free.trailing_zeros() as usize);
            }
        }
        None
    }

    /// Makes a used slot free.
    #[inline(always)]
    pub(super) fn release(&self, number: usize, slot: usize) {
        let index = slot / BITS;
        let first = usize::from(self.summarised);
        let word = self.word(number, first + index);
        word.set(word.get() | 1 << (slot % BITS));
        if self.summarised {
            let summary = self.word(number, 0);
            summary.set(summary.get() | 1 << index);
        }
    }

    /// Whether a slot is free.
    #[inline(always)]
    pub(super) fn free(&self, number: usize, slot: usize) -> bool {
        let first = usize::from(self.summarised);
        self.word(number, first + slot / BITS).get() >> (slot % BITS) & 1 == 1
    }

    /// Free ones of `slots` slots; `None` when a summary is wrong.
    pub(super) fn count_free(&self, number: usize, slots: usize) -> Option<usize> {
        let first = usize::from(self.summarised);
        let mut free = 0;
        for index in 0..slots.div_ceil(BITS) {
            let word = self.word(number, first + index).get();
            if self.summarised && (self.word(number, 0).get() >> index & 1 == 1) != (word != 0) {
                return None;
            }
            free += word.count_ones() as usize;
        }
        Some(free)
    }
}
