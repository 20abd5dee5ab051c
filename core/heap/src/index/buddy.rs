//! Binary buddy: block sizes are powers of two, buddies merge (Knowlton 1965).
//!
//! A block of `2^k` bytes lies at a multiple of `2^k` from the first block. It
//! is split by halving; it merges only with its buddy, the other half of the
//! block it came from. The choice is the lowest class that serves, or (`LOWEST`) the
//! lowest address among all blocks that serve. With records
//! outside the blocks ([`Ledger`](crate::store::ledger::Ledger)) a power-of-two
//! request loses nothing, which is when Robson's optimum is met.
//!
//! Invariant: list `c` holds free blocks of exactly `2^c` bytes, and no two
//! free buddies exist; bit `c` of the bitmap is set exactly when list `c` is
//! not empty.

use super::{Index, first_is_sound, walk_list, whole_list_is_sound};
use crate::store::{Geometry, Store};

/// The index; `LOWEST` picks the lowest address of all blocks that serve
/// (linear insertion, one look at each class; the choice that attains Robson's
/// bound, see `docs/guarantees.md#buddy`) instead of the latest of the smallest.
#[derive(Clone, Debug)]
pub struct Buddy<const LOWEST: bool = false> {
    bits: usize,
    heads: usize,
}

impl<const LOWEST: bool> Buddy<LOWEST> {
    /// An empty index.
    pub const fn new() -> Self {
        Buddy { bits: 0, heads: 0 }
    }
}

impl<const LOWEST: bool> Default for Buddy<LOWEST> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: lists are changed by `link_after` and `unlink` only, with the block
// that the heap passed or the first of a list that the bitmap says is not empty.
unsafe impl<S: Store, const LOWEST: bool> Index<S> for Buddy<LOWEST> {
    #[inline(always)]
    fn halves(&self) -> bool {
        true
    }

    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        false
    }

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
        debug_assert!(size.is_power_of_two());
        let class = size.trailing_zeros() as usize;
        let head = store.head(class);
        let mut before = head;
        if LOWEST {
            loop {
                let next = store.next(before);
                if next == head || store.precedes(block, next) {
                    break;
                }
                before = next;
            }
        }
        store.link_after(before, block);
        self.bits |= 1 << class;
        store.touch(1, 1);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, size: usize) {
        let (before, next) = store.unlink(block);
        if next == before {
            // Both are the head: the list is empty.
            self.bits &= !size;
            store.touch(1, 1);
        }
    }

    #[inline(always)]
    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        let class = size.trailing_zeros() as usize;
        match LOWEST {
            true => whole_list_is_sound(store, class),
            false => store.forward_is_sound(store.head(class)),
        }
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        debug_assert!(need.is_power_of_two());
        store.touch(1, 0);
        // All classes from that of `need` on: the bits from `need` itself upwards.
        let bits = self.bits & need.wrapping_neg();
        if bits == 0 {
            return None;
        }
        let mut size = bits & bits.wrapping_neg();
        let mut block = store.next(store.head(size.trailing_zeros() as usize));
        if LOWEST {
            // The lowest of all classes that serve, not of the smallest: what the proof needs.
            let mut rest = bits & (bits - 1);
            while rest != 0 {
                let wider = rest & rest.wrapping_neg();
                let other = store.next(store.head(wider.trailing_zeros() as usize));
                if store.precedes(other, block) {
                    (block, size) = (other, wider);
                }
                rest &= rest - 1;
            }
        }
        let head = store.head(size.trailing_zeros() as usize);
        if !first_is_sound(store, head, block) {
            return None;
        }
        self.remove(store, block, size);
        Some((block, size))
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        (0..self.heads).all(|class| {
            let mut any = false;
            walk_list(store, class, &mut |block| {
                any = true;
                store.header(block).size == 1 << class && visit(block)
            }) && any == (self.bits >> class & 1 == 1)
        })
    }
}
