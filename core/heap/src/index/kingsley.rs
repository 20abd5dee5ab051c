//! Kingsley: power-of-two classes, no coalescing, fresh memory on a miss.
//!
//! The allocator of 4.2BSD: a request is rounded to a power of two, served from
//! the list of its class, else cut from memory that was never given out (the
//! *wilderness*). A block belongs to its class for ever, but for one at the very
//! end of the memory, which becomes the wilderness when there is none.
//!
//! Invariant: list `c` holds blocks of at least `2^c` and less than `2^(c+1)`
//! bytes (larger than `2^c` only what the end of a region left over); the
//! wilderness is in no list.

use super::{Index, Limits, apart_is_sound, first_is_sound, step_is_sound, walk_list};
use crate::store::{Geometry, Store};

/// The index; `B` is the store's block.
#[derive(Clone, Debug)]
pub struct Kingsley<B> {
    wilderness: Option<B>,
    heads: usize,
}

impl<B> Kingsley<B> {
    /// An empty index.
    pub const fn new() -> Self {
        Kingsley {
            wilderness: None,
            heads: 0,
        }
    }
}

impl<B> Default for Kingsley<B> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: lists are changed by `link_after` and `unlink` only; the wilderness is
// a block the heap inserted and that is in no list.
unsafe impl<S: Store> Index<S> for Kingsley<S::Block> {
    fn heads(&mut self, span: usize, _geometry: Geometry) -> Option<usize> {
        self.heads = (span | 1).ilog2() as usize + 1;
        Some(self.heads)
    }

    #[inline(always)]
    fn block_size(&self, need: usize) -> usize {
        need.checked_next_power_of_two()
            .unwrap_or(1 << (usize::BITS - 1))
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        let last = store.header(store.after(block, size)).size == 0;
        if last && self.wilderness.is_none() {
            self.wilderness = Some(block);
            return;
        }
        let head = store.head(size.ilog2() as usize);
        store.link_after(head, block);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, _size: usize) {
        if self.wilderness == Some(block) {
            self.wilderness = None;
        } else {
            store.unlink(block);
        }
    }

    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        // Also where it becomes the wilderness: that depends on its place.
        store.forward_is_sound(store.head(size.ilog2() as usize))
    }

    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        self.wilderness == Some(block) || store.list_is_sound(block)
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        let class = need.ilog2() as usize;
        if class >= self.heads {
            return None;
        }
        let head = store.head(class);
        let block = store.next(head);
        if block != head || !step_is_sound(store, head) {
            if !first_is_sound(store, head, block) {
                return None;
            }
            let size = store.header(block).size;
            store.unlink(block);
            return Some((block, size));
        }
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need || !apart_is_sound(store, block) {
            return None;
        }
        self.wilderness = None;
        Some((block, size))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        Limits {
            coalesce_up_to: 0,
            split_down_to: 0,
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
        (0..self.heads).all(|class| {
            walk_list(store, class, &mut |block| {
                store.header(block).size.ilog2() as usize == class && visit(block)
            })
        })
    }
}
