//! Dedicated free lists in front of any index.
//!
//! Blocks of a few dominant sizes, once freed, are kept for requests of the
//! same size and neither merged nor cut again: the *dedicated pools* of
//! Mamagkakis et al. (EMSOFT 2006). A hit costs a pop.
//!
//! Each list has an order and links of its own. No neighbour ever takes a kept
//! block back, since to its neighbours it is in use; blocks leave from the front
//! alone, so that single links save words at every free and every hit and cost
//! none anywhere.
//!
//! A list may have a limit: blocks that it has no room for are merged as if there
//! were no list, so that what it keeps is bounded
//! (`docs/guarantees.md#dedicated`).
//!
//! Invariant: list `i` holds blocks of exactly `sizes[i]` bytes, all of them
//! marked retained and, for their neighbours, in use; with a limit, at most so
//! many, and as many as are counted.

use super::links::{Links, Ring};
use super::list::Order;
use super::{Index, Limits};
use crate::description::{DEDICATED, DedicatedPool};
use crate::store::{Geometry, Store};

/// The limit of a list that keeps all blocks of its size.
pub const UNLIMITED: u32 = u32::MAX;

/// How each dedicated list is kept.
pub trait ListKeeping: Copy {
    /// Where a freed block enters list `pool`; requests take from the front.
    fn order(&self, pool: usize) -> Order {
        let _ = pool;
        Order::Lifo
    }
    /// How the blocks of list `pool` are linked.
    fn links(&self, pool: usize) -> Links {
        let _ = pool;
        Links::Double
    }
    /// Most blocks that list `pool` keeps; [`UNLIMITED`]: all.
    fn limit(&self, pool: usize) -> u32 {
        let _ = pool;
        UNLIMITED
    }
}

/// Every list in LIFO order with double links.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultKeeping;

impl ListKeeping for DefaultKeeping {}

/// Order, links and limit of each list, chosen at run time.
#[derive(Clone, Copy, Debug)]
pub struct ChosenKeeping<const POOLS: usize> {
    /// See [`ListKeeping::order`].
    pub order: [Order; POOLS],
    /// See [`ListKeeping::links`].
    pub links: [Links; POOLS],
    /// See [`ListKeeping::limit`].
    pub limit: [u32; POOLS],
}

impl<const POOLS: usize> ChosenKeeping<POOLS> {
    /// Every list in LIFO order with double links, without limit.
    pub const DEFAULT: Self = ChosenKeeping {
        order: [Order::Lifo; POOLS],
        links: [Links::Double; POOLS],
        limit: [UNLIMITED; POOLS],
    };
}

impl<const POOLS: usize> ListKeeping for ChosenKeeping<POOLS> {
    #[inline(always)]
    fn order(&self, pool: usize) -> Order {
        self.order[pool]
    }

    #[inline(always)]
    fn links(&self, pool: usize) -> Links {
        self.links[pool]
    }

    #[inline(always)]
    fn limit(&self, pool: usize) -> u32 {
        self.limit[pool]
    }
}

/// `inner` with a dedicated list for each of `sizes` (block sizes, record
/// included; zero entries, at the end, are unused).
#[derive(Clone, Debug)]
pub struct Dedicated<I, const POOLS: usize, K = DefaultKeeping> {
    sizes: [usize; POOLS],
    inner: I,
    /// Number of the first dedicated list head.
    own_heads: usize,
    keeping: K,
    /// Blocks in each list that has a limit.
    kept: [u32; POOLS],
}

impl<I, const POOLS: usize> Dedicated<I, POOLS> {
    /// Dedicated lists for blocks of `sizes` in front of `inner`, in LIFO order
    /// with double links.
    pub const fn new(sizes: [usize; POOLS], inner: I) -> Self {
        Self::with(sizes, DefaultKeeping, inner)
    }
}

impl<I> Dedicated<I, DEDICATED, ChosenKeeping<DEDICATED>> {
    /// The lists of a description in front of `inner`, for a store `S`. Where
    /// the inner index rounds two sizes to one, the first one's list serves both.
    pub fn describe<S: Store>(
        pools: impl IntoIterator<Item = DedicatedPool>,
        geometry: Geometry,
        inner: I,
    ) -> Self
    where
        I: Index<S>,
    {
        let mut sizes = [0; DEDICATED];
        let mut keeping = ChosenKeeping::DEFAULT;
        let mut count = 0;
        for pool in pools {
            let Some(block) = geometry.block_for(pool.size) else {
                continue;
            };
            let block = inner.block_size(block);
            if !sizes[..count].contains(&block) {
                sizes[count] = block;
                keeping.order[count] = pool.order;
                keeping.links[count] = pool.links;
                keeping.limit[count] = pool.limit.unwrap_or(UNLIMITED);
                count += 1;
            }
        }
        Self::with(sizes, keeping, inner)
    }
}

impl<I, const POOLS: usize, K> Dedicated<I, POOLS, K> {
    /// Dedicated lists for blocks of `sizes`, kept as `keeping` says, in front of
    /// `inner`.
    pub const fn with(sizes: [usize; POOLS], keeping: K, inner: I) -> Self {
        Dedicated {
            sizes,
            inner,
            own_heads: 0,
            keeping,
            kept: [0; POOLS],
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

impl<I, const POOLS: usize, K: ListKeeping> Dedicated<I, POOLS, K> {
    #[inline(always)]
    fn ring<S: Store>(&self, store: &S, pool: usize) -> Ring<S::Block> {
        Ring {
            head: store.head(self.own_heads + pool),
            order: self.keeping.order(pool),
            links: self.keeping.links(pool),
        }
    }

    /// The list that keeps the next freed block of a size, if one does.
    #[inline(always)]
    fn keeps(&self, size: usize) -> Option<usize> {
        let pool = self.pool(size)?;
        let limit = self.keeping.limit(pool);
        (limit == UNLIMITED || self.kept[pool] < limit).then_some(pool)
    }
}

// SAFETY: the inner index keeps the contract for its blocks; dedicated lists are
// changed by `Ring::insert` and `Ring::pop` only, with blocks the heap passed.
unsafe impl<S, I, const POOLS: usize, K> Index<S> for Dedicated<I, POOLS, K>
where
    S: Store,
    I: Index<S>,
    K: ListKeeping,
{
    #[inline(always)]
    fn halves(&self) -> bool {
        self.inner.halves()
    }

    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        // Without a list of its own it reads what the inner index reads, so that
        // counts do not depend on whether this wrapper is there.
        self.sizes.first().is_some_and(|&size| size != 0) || self.inner.reads_lists_first()
    }

    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        let inner = self.inner.heads(span, geometry)?;
        self.own_heads = self.inner.first_head() + inner;
        // Unused entries take no head, so that a heap with as many pools as it
        // needs and one with room for more are laid out alike.
        Some(inner + self.pools())
    }

    #[inline(always)]
    fn first_head(&self) -> usize {
        self.inner.first_head()
    }

    fn attach(&mut self, store: &mut S, base: S::Block) {
        self.inner.attach(store, base);
    }

    fn has_room_for_region(&self, store: &S, length: usize) -> bool {
        self.inner.has_room_for_region(store, length)
    }

    fn attach_further(&mut self, store: &mut S, first: S::Block, room: usize) {
        self.inner.attach_further(store, first, room);
    }

    fn may_extend(&self, store: &S, room: usize) -> bool {
        self.inner.may_extend(store, room)
    }

    #[inline(always)]
    fn block_size(&self, need: usize) -> usize {
        self.inner.block_size(need)
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
    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        self.inner.insert_is_sound(store, size)
    }

    #[inline(always)]
    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        self.inner.remove_is_sound(store, block)
    }

    #[inline(always)]
    fn retain_is_sound(&self, store: &S, size: usize) -> bool {
        match self.keeps(size) {
            Some(pool) => self
                .ring(store, pool)
                .insert_is_sound(store, self.own_heads + pool),
            None => self.inner.retain_is_sound(store, size),
        }
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
        match self.keeps(size) {
            Some(pool) => {
                self.ring(store, pool).insert(store, block);
                if self.keeping.limit(pool) != UNLIMITED {
                    self.kept[pool] += 1;
                }
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
        let block = self.ring(store, pool).pop(store)?;
        if self.keeping.limit(pool) != UNLIMITED {
            // A list that lost its links to a foreign write may have more than it kept.
            self.kept[pool] = self.kept[pool].saturating_sub(1);
        }
        Some(block)
    }

    #[inline(always)]
    fn gathers(&self, store: &S, need: usize) -> bool {
        self.inner.gathers(store, need)
    }

    #[inline(always)]
    fn relinquishes(&self) -> bool {
        self.inner.relinquishes()
    }

    #[inline(always)]
    fn relinquish(&mut self, store: &mut S) -> Option<S::Block> {
        self.inner.relinquish(store)
    }

    #[inline(always)]
    fn wilderness(&self) -> Option<S::Block> {
        self.inner.wilderness()
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        (0..self.pools()).all(|pool| {
            let number = self.own_heads + pool;
            let mut kept = 0;
            let whole = self.ring(store, pool).walk(store, number, &mut |block| {
                kept += 1;
                let header = store.header(block);
                header.size == self.sizes[pool] && header.retained() && visit(block)
            });
            whole && (self.keeping.limit(pool) == UNLIMITED || kept == self.kept[pool])
        }) && self.inner.each(store, visit)
    }
}
