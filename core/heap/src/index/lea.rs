//! Best fit in sorted bins with deferred coalescing, after Doug Lea's description.
//!
//! Lea ("A Memory Allocator", 1996; version 2.7 as Wilson et al. 1995 place its
//! ancestor among the segregated fits) keeps small blocks in bins of one exact size,
//! larger ones in logarithmically spaced bins that are sorted by size, so that the
//! first block that fits is the best; of equals the oldest serves. The memory at the
//! end, the *wilderness*, serves last. The smallest blocks are kept aside when freed
//! and merged only when a large block is asked for, or when nothing else serves.
//! What of Lea's allocator is here and what is not: `docs/parts.md#lea`.
//!
//! Invariant: list `g` below [`EXACT`] holds blocks of exactly `g` granules, oldest
//! first; a list above holds a quarter of a doubling, sorted by size, oldest first
//! among equals; bit `b` of word `w` is set exactly when list `32 w + b` is not
//! empty; kept list `g` holds `g` granules, latest first; the wilderness is in none.

use super::classes::class_floor;
use super::links::{Links, Ring};
use super::list::Order;
use super::{Index, apart_is_sound, step_is_sound, take_is_sound, walk_list, whole_list_is_sound};
use crate::store::{Geometry, Store};

/// Lists of one exact size: blocks of fewer granules than this.
pub const EXACT: usize = 64;
/// log2 of the lists to a doubling from there on.
pub const SPACING_LOG2: u32 = 2;
/// Words of the bitmap.
pub const WORDS: usize = 8;
/// Largest size that can be kept aside: on every target these have exact lists.
pub const LARGEST_KEPT: u32 = 256;

/// The index; `B` is the store's block.
#[derive(Clone, Debug)]
pub struct Lea<B> {
    /// Largest block kept aside, in bytes.
    keep_up_to: usize,
    /// Lists of free blocks; behind them the kept ones.
    bins: usize,
    /// Blocks kept aside.
    kept: usize,
    words: [u32; WORDS],
    wilderness: Option<B>,
}

impl<B> Lea<B> {
    /// An empty index that keeps freed blocks of up to `keep_up_to` bytes aside.
    pub const fn new(keep_up_to: u32) -> Self {
        Lea {
            keep_up_to: keep_up_to as usize,
            bins: 0,
            kept: 0,
            words: [0; WORDS],
            wilderness: None,
        }
    }

    #[inline(always)]
    fn list(granules: usize) -> usize {
        if granules < EXACT {
            return granules;
        }
        EXACT + class_floor(granules, SPACING_LOG2) - class_floor(EXACT, SPACING_LOG2)
    }

    /// The first list from `list` on that has a block.
    #[inline(always)]
    fn first_from<S: Store>(&self, store: &S, list: usize) -> Option<usize> {
        let mut word = list / 32;
        let mut bits = self.words.get(word)? & u32::MAX << (list % 32);
        store.touch(1, 0);
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
            store.touch(1, 0);
        }
        Some(word * 32 + bits.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn kept_ring<S: Store<Block = B>>(&self, store: &S, granules: usize) -> Ring<B> {
        Ring {
            head: store.head(self.bins + granules),
            order: Order::Lifo,
            links: Links::Single,
        }
    }
}

impl<B: Copy + Eq> Lea<B> {
    /// Takes a block out of its list.
    #[inline(always)]
    fn take_out<S: Store<Block = B>>(&mut self, store: &mut S, block: B) {
        let (before, next) = store.unlink(block);
        if next == before {
            // Both are the head: the list is empty.
            let list = store.head_number(before);
            self.words[list / 32] &= !(1 << (list % 32));
            store.touch(1, 1);
        }
    }
}

// SAFETY: lists are changed by `link_after`, `unlink` and `Ring` only, with blocks
// that the heap inserted or asked to retain; the wilderness is in no list.
unsafe impl<S: Store> Index<S> for Lea<S::Block> {
    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        self.bins = Self::list(geometry.granules(span)).max(EXACT) + 1;
        let kept = geometry.granules(self.keep_up_to) + 1;
        (self.bins <= WORDS * 32).then_some(self.bins + kept)
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        store.touch(1, 0);
        if self.wilderness.is_none() && store.header(store.after(block, size)).size == 0 {
            self.wilderness = Some(block);
            store.touch(0, 1);
            return;
        }
        let granules = store.geometry().granules(size);
        let list = Self::list(granules);
        let head = store.head(list);
        let mut before = store.previous(head);
        if before == head {
            self.words[list / 32] |= 1 << (list % 32);
            store.touch(1, 1);
        }
        if granules >= EXACT {
            // Sorted, from the largest down; behind the last of its size.
            while before != head && store.header(before).size > size {
                before = store.previous(before);
            }
        }
        store.link_after(before, block);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, _size: usize) {
        store.touch(1, 0);
        if self.wilderness == Some(block) {
            self.wilderness = None;
            store.touch(0, 1);
        } else {
            self.take_out(store, block);
        }
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        let own = Self::list(store.geometry().granules(need));
        let mut from = own;
        while let Some(list) = self.first_from(store, from) {
            let head = store.head(list);
            if !step_is_sound(store, head) {
                return None;
            }
            let mut block = store.next(head);
            let mut size = store.header(block).size;
            // In the list of the request itself blocks may be too small.
            while size < need {
                block = store.next(block);
                if block == head {
                    break;
                }
                if !step_is_sound(store, block) {
                    return None;
                }
                size = store.header(block).size;
            }
            if block != head {
                if !take_is_sound(store, block) {
                    return None;
                }
                self.take_out(store, block);
                return Some((block, size));
            }
            if S::VERIFIES && store.fault().is_some() {
                return None;
            }
            from = list + 1;
        }
        store.touch(1, 0);
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need || !apart_is_sound(store, block) {
            return None;
        }
        self.wilderness = None;
        store.touch(0, 1);
        Some((block, size))
    }

    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        let granules = store.geometry().granules(size);
        let list = Self::list(granules);
        match granules < EXACT {
            true => store.backward_is_sound(store.head(list)),
            false => whole_list_is_sound(store, list),
        }
    }

    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        self.wilderness == Some(block) || store.list_is_sound(block)
    }

    fn retain_is_sound(&self, store: &S, size: usize) -> bool {
        let granules = store.geometry().granules(size);
        size > self.keep_up_to || store.forward_is_sound(store.head(self.bins + granules))
    }

    #[inline(always)]
    fn retain(&mut self, store: &mut S, block: S::Block, size: usize) -> bool {
        if size > self.keep_up_to {
            return false;
        }
        let granules = store.geometry().granules(size);
        self.kept_ring(store, granules).insert(store, block);
        self.kept += 1;
        store.touch(1, 1);
        true
    }

    #[inline(always)]
    fn recall(&mut self, store: &mut S, need: usize) -> Option<S::Block> {
        if need > self.keep_up_to {
            return None;
        }
        let granules = store.geometry().granules(need);
        let block = self.kept_ring(store, granules).pop(store)?;
        self.kept -= 1;
        store.touch(1, 1);
        Some(block)
    }

    #[inline(always)]
    fn gathers(&self, store: &S, need: usize) -> bool {
        if store.geometry().granules(need) < EXACT {
            return false;
        }
        store.touch(1, 0);
        self.kept != 0
    }

    #[inline(always)]
    fn relinquishes(&self) -> bool {
        true
    }

    #[inline(always)]
    fn relinquish(&mut self, store: &mut S) -> Option<S::Block> {
        store.touch(1, 0);
        if self.kept == 0 {
            return None;
        }
        // Largest first; what merges least often is asked for first.
        let mut granules = store.geometry().granules(self.keep_up_to);
        loop {
            if let Some(block) = self.kept_ring(store, granules).pop(store) {
                self.kept -= 1;
                store.touch(0, 1);
                return Some(block);
            }
            granules = granules.checked_sub(1)?;
        }
    }

    #[inline(always)]
    fn wilderness(&self) -> Option<S::Block> {
        self.wilderness
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        if let Some(block) = self.wilderness
            && !visit(block)
        {
            return false;
        }
        let geometry = store.geometry();
        let bins = (0..self.bins).all(|list| {
            let mut last = 0;
            let right = walk_list(store, list, &mut |block| {
                let size = store.header(block).size;
                let sorted = size >= last;
                last = size;
                sorted && Self::list(geometry.granules(size)) == list && visit(block)
            });
            right && (last != 0) == (self.words[list / 32] >> (list % 32) & 1 == 1)
        });
        let mut kept = 0;
        bins && (0..=geometry.granules(self.keep_up_to)).all(|granules| {
            let number = self.bins + granules;
            self.kept_ring(store, granules)
                .walk(store, number, &mut |block| {
                    kept += 1;
                    let header = store.header(block);
                    let own = geometry.granules(header.size) == granules;
                    own && header.retained() && visit(block)
                })
        }) && kept == self.kept
    }
}
