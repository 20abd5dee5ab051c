//! Dedicated free lists in front of any index.
//!
//! Blocks of a few dominant sizes, once freed, are kept for requests of the
//! same size and neither merged nor cut again: the *dedicated pools* of
//! Mamagkakis et al. (EMSOFT 2006). A hit costs a pop.
//!
//! Invariant: list `i` holds blocks of exactly `sizes[i]` bytes, all of them
//! marked retained and, for their neighbours, in use.

use super::{Index, Limits, link_after, unlink, walk_list};
use crate::store::{Geometry, Store};

/// `inner` with a dedicated list for each of `sizes` (block sizes, record
/// included; zero entries, at the end, are unused).
#[derive(Clone, Debug)]
pub struct Dedicated<I, const POOLS: usize> {
    sizes: [usize; POOLS],
    inner: I,
    /// Number of the first dedicated list head.
    first_head: usize,
}

impl<I, const POOLS: usize> Dedicated<I, POOLS> {
    /// Dedicated lists for blocks of `sizes` in front of `inner`.
    pub const fn new(sizes: [usize; POOLS], inner: I) -> Self {
        Dedicated {
            sizes,
            inner,
            first_head: 0,
        }
    }

    fn pools(&self) -> usize {
        self.sizes.iter().take_while(|&&size| size != 0).count()
    }

    #[inline(always)]
    fn pool(&self, size: usize) -> Option<usize> {
        for (pool, &own) in self.sizes.iter().enumerate() {
            if own == size {
                return Some(pool);
            }
            if own == 0 {
                break;
            }
        }
        None
    }
}

// SAFETY: the inner index keeps the contract for its blocks; dedicated lists are
// changed by `link_after` and `unlink` only, with blocks the heap passed.
unsafe impl<S: Store, I: Index<S>, const POOLS: usize> Index<S> for Dedicated<I, POOLS> {
    #[inline(always)]
    fn halves(&self) -> bool {
        self.inner.halves()
    }

    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        self.first_head = self.inner.heads(span, geometry)?;
        // Unused entries take no head, so that a heap with as many pools as it
        // needs and one with room for more are laid out alike.
        Some(self.first_head + self.pools())
    }

    fn attach(&mut self, store: &mut S, base: S::Block) {
        self.inner.attach(store, base);
    }

    #[inline(always)]
    fn block_size(&self, need: usize) -> usize {
        self.inner.block_size(need)
    }

    fn ceiling(&self, need: usize) -> usize {
        self.inner.ceiling(need)
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        self.inner.insert(store, block, size);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, size: usize) {
        self.inner.remove(store, block, size);
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        self.inner.take(store, need)
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    #[inline(always)]
    fn retain(&mut self, store: &mut S, block: S::Block, size: usize) -> bool {
        match self.pool(size) {
            Some(pool) => {
                let head = store.head(self.first_head + pool);
                link_after(store, head, block);
                true
            }
            None => self.inner.retain(store, block, size),
        }
    }

    #[inline(always)]
    fn recall(&mut self, store: &mut S, need: usize) -> Option<S::Block> {
        let Some(pool) = self.pool(need) else {
            return self.inner.recall(store, need);
        };
        let head = store.head(self.first_head + pool);
        let block = store.next(head);
        if block == head {
            return None;
        }
        unlink(store, block);
        Some(block)
    }

    #[inline(always)]
    fn wilderness(&self) -> Option<S::Block> {
        self.inner.wilderness()
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        (0..self.pools()).all(|pool| {
            walk_list(store, self.first_head + pool, &mut |block| {
                let header = store.header(block);
                header.size == self.sizes[pool] && header.retained() && visit(block)
            })
        }) && self.inner.each(store, visit)
    }
}
