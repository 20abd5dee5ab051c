//! Slots that other threads free: a bit a slot, a bit a word of them, and a chain of pages that have any.
//!
//! To free a slot of another thread's page is to set its bit by one exchange, which tells a second free from the first. Who
//! sets the first bit of a word also sets the word's bit in `some`; who sets the first bit of `some` puts the page at the head
//! of its owner's chain. So most frees of others are one exchange, and one exchange of the owner takes up to 64 of them back.
//! As in a mesh (`metes-mesh`), a free is decided by marking it, and the chain is drained by whoever has the heap.
//!
//! Invariants:
//! - who set a word's first bit since it was taken has not yet told, or its bit in `some` is set, or was taken: each bit is
//!   told of once;
//! - a page that is told of is in one chain, or was taken off it and `some` with it; nobody else refers to it, so a page whose
//!   bits were all told of and taken may become another's.

use crate::cells::{AtomicU64, AtomicUsize, Ordering};

/// What became of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// Another page of work for the owner: the page is to be put on its chain.
    First,
    /// The page is on its way there.
    Told,
    /// It was marked before.
    Twice,
}

/// The marks of a page's slots. Zero bytes are a page without any.
#[derive(Debug)]
pub(crate) struct Parked<const WORDS: usize> {
    /// The words that have marks, as far as they were told of.
    some: AtomicU64,
    /// The next page of the chain: written by who puts it there.
    next: AtomicUsize,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Parked<WORDS> {
    /// No marks.
    #[cfg(not(all(test, loom)))]
    pub(crate) const fn new() -> Self {
        Parked {
            some: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// No marks.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        Parked {
            some: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Marks a slot. One exchange, or two where its word had no mark.
    #[inline(always)]
    pub(crate) fn mark(&self, slot: usize) -> Marked {
        let (word, bit) = (slot / 64 % WORDS, 1 << (slot % 64));
        // What was done with the slot before is done when its owner takes it.
        let before = self.words[word].fetch_or(bit, Ordering::Release);
        if before & bit != 0 {
            return Marked::Twice;
        }
        if before != 0 {
            return Marked::Told;
        }
        match self.some.fetch_or(1 << word, Ordering::AcqRel) {
            0 => Marked::First,
            _ => Marked::Told,
        }
    }

    /// The marks of a word, as far as they are seen.
    #[cfg(not(all(test, loom)))]
    #[inline(always)]
    pub(crate) fn marks(&self, word: usize) -> u64 {
        self.words[word % WORDS].load(Ordering::Relaxed)
    }

    /// Takes which words have marks; the page must be off its chain.
    pub(crate) fn take(&self) -> u64 {
        self.some.swap(0, Ordering::AcqRel)
    }

    /// Takes the marks of a word that [`take`](Self::take) gave.
    pub(crate) fn take_word(&self, word: usize) -> u64 {
        self.words[word % WORDS].swap(0, Ordering::Acquire)
    }

    /// Whether all slots of each word are marked and told of, where `some` was taken and `masks` are the slots that words have.
    pub(crate) fn is_whole(&self, some: u64, masks: impl Iterator<Item = u64>) -> bool {
        masks.enumerate().all(|(word, mask)| {
            some & (1 << word) != 0 && self.words[word % WORDS].load(Ordering::Acquire) == mask
        })
    }

    /// Gives back what was taken and not used; whether the page is to be put on its chain again.
    pub(crate) fn untake(&self, some: u64) -> bool {
        some != 0 && self.some.fetch_or(some, Ordering::AcqRel) == 0
    }

    /// Clears the first words, where nobody marks: the page is nobody's.
    pub(crate) fn clear(&self, words: usize) {
        for word in &self.words[..words.min(WORDS)] {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// The page that was on the chain when this one was put there; to be read before [`take`](Self::take).
    pub(crate) fn next(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }
}

/// Pages that have marks, by their addresses. Zero bytes are an empty one.
#[derive(Debug)]
pub(crate) struct Chain(AtomicUsize);

impl Chain {
    /// An empty one.
    #[cfg(not(all(test, loom)))]
    pub(crate) const fn new() -> Self {
        Chain(AtomicUsize::new(0))
    }

    /// An empty one.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        Chain(AtomicUsize::new(0))
    }

    /// Puts a page at its head, which is on no chain. An exchange for each other page that is put there meanwhile.
    pub(crate) fn push<const WORDS: usize>(&self, page: usize, parked: &Parked<WORDS>) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            parked.next.store(head, Ordering::Relaxed);
            match (self.0).compare_exchange_weak(head, page, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }

    /// Takes all pages: the latest; 0 where there is none.
    pub(crate) fn take(&self) -> usize {
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.0.swap(0, Ordering::Acquire),
        }
    }
}
