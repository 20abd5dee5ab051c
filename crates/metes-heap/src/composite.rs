//! `Composite`: several general pools and object pools as one heap.
//!
//! Requests are routed by size: to the smallest object pool that holds them,
//! else to the first general pool whose bound is not exceeded. Each general
//! pool is a [`Heap`] over memory of its own; object pools have a range of
//! slabs of their own. A request that finds no slab goes to the general pools.
//!
//! Invariant: a place is freed and resized in the pool that gave it.

use crate::description::{DEDICATED, Description, GENERAL, IndexKind};
use crate::heap::{Corruption, Heap, Source};
use crate::index::any::AnyIndex;
use crate::index::dedicated::Dedicated;
use crate::index::{Index, Limits};
use crate::objects::ObjectPools;
use crate::statistics::{Counters, Statistics};
use crate::store::{BadFree, Store};

/// Where a block of a composite lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot<P> {
    /// A block of a general pool, by the pool's number.
    Block(usize, P),
    /// A slot of an object pool, by its offset in the range of slabs.
    Slot(usize),
}

/// Where the pools of a composite get memory from.
///
/// # Safety
/// When a method that grows returns `true`, the next `bytes` bytes behind that
/// pool's last region (or behind the range of slabs) are the heap's.
pub unsafe trait Sources {
    /// Memory of general pools comes in multiples of this.
    fn increment(&self) -> usize;
    /// Adds `bytes` behind general pool `pool`, or refuses.
    fn grow(&mut self, pool: usize, bytes: usize) -> bool;
    /// Adds a slab of `bytes` behind the range of slabs, or refuses.
    fn grow_slabs(&mut self, bytes: usize) -> bool;
}

/// No memory but what the pools have.
// SAFETY: never returns `true`.
unsafe impl Sources for crate::heap::NoSource {
    fn increment(&self) -> usize {
        1
    }

    fn grow(&mut self, _pool: usize, _bytes: usize) -> bool {
        false
    }

    fn grow_slabs(&mut self, _bytes: usize) -> bool {
        false
    }
}

/// The source of one general pool.
struct PoolSource<'a, M> {
    sources: &'a mut M,
    pool: usize,
}

// SAFETY: the contract of `Sources::grow` is that of `Source::grow`.
unsafe impl<M: Sources> Source for PoolSource<'_, M> {
    #[inline(always)]
    fn increment(&self) -> usize {
        self.sources.increment()
    }

    #[inline(always)]
    fn grow(&mut self, bytes: usize) -> bool {
        self.sources.grow(self.pool, bytes)
    }
}

/// General pools and object pools. `POOLS` bounds the number of general pools.
#[derive(Debug)]
pub struct Composite<'a, I, S: Store, const POOLS: usize = GENERAL> {
    general: [Option<Heap<I, S>>; POOLS],
    up_to: [usize; POOLS],
    objects: ObjectPools<'a>,
    counters: Counters,
}

/// The index of a general pool whose description is known at run time only.
pub type AnyPool<B> = Dedicated<AnyIndex<B>, DEDICATED>;

impl<'a, S: Store> Composite<'a, AnyPool<S::Block>, S> {
    /// The heap of a valid description; `store` makes the store of each general
    /// pool. Regions are added by [`general`](Self::general).
    pub fn describe(
        description: &Description,
        store: impl FnMut(usize) -> S,
        objects: ObjectPools<'a>,
    ) -> Self {
        Self::describe_with(description, AnyIndex::new, store, objects)
    }
}

impl<'a, I: Index<S>, S: Store> Composite<'a, Dedicated<I, DEDICATED>, S> {
    /// The same on other indexes: `index` makes the index of each general pool.
    pub fn describe_with(
        description: &Description,
        mut index: impl FnMut(IndexKind, Limits) -> I,
        mut store: impl FnMut(usize) -> S,
        objects: ObjectPools<'a>,
    ) -> Self {
        let mut general = [const { None }; GENERAL];
        let mut up_to = [0; GENERAL];
        for (number, pool) in description.general.iter().enumerate() {
            let store = store(number);
            let index = index(pool.index, pool.limits);
            let mut sizes = [0; DEDICATED];
            let blocks = description.dedicated.iter().filter_map(|dedicated| {
                let block = store.geometry().block_for(dedicated.size)?;
                Some(Index::<S>::block_size(&index, block))
            });
            let mut count = 0;
            for block in blocks {
                // Rounding may make two sizes one.
                if !sizes[..count].contains(&block) {
                    sizes[count] = block;
                    count += 1;
                }
            }
            general[number] = Some(Heap::new(Dedicated::new(sizes, index), store));
            up_to[number] = pool.up_to;
        }
        Self::new(general, up_to, objects)
    }
}

impl<'a, I: Index<S>, S: Store, const POOLS: usize> Composite<'a, I, S, POOLS> {
    /// A composite of given parts: general pools with the largest request of
    /// each, by rising bound, and object pools.
    pub const fn new(
        general: [Option<Heap<I, S>>; POOLS],
        up_to: [usize; POOLS],
        objects: ObjectPools<'a>,
    ) -> Self {
        Composite {
            general,
            up_to,
            objects,
            counters: Counters::NEW,
        }
    }

    /// A general pool, to add regions to it or to read it.
    pub fn general(&mut self, pool: usize) -> Option<&mut Heap<I, S>> {
        self.general.get_mut(pool)?.as_mut()
    }

    /// The general pools in order.
    pub fn pools(&self) -> impl Iterator<Item = &Heap<I, S>> {
        self.general.iter().flatten()
    }

    /// The object pools.
    pub fn objects(&self) -> &ObjectPools<'a> {
        &self.objects
    }

    #[inline(always)]
    fn route(&self, size: usize) -> usize {
        let mut pool = 0;
        while pool + 1 < POOLS && size > self.up_to[pool] {
            pool += 1;
        }
        pool
    }

    /// Allocates `size` bytes aligned to `align`, or `None`.
    ///
    /// # Safety
    /// `sources` must be the ones behind this heap's memory.
    #[inline(always)]
    pub unsafe fn allocate(
        &mut self,
        size: usize,
        align: usize,
        sources: &mut impl Sources,
    ) -> Option<Spot<S::Place>> {
        let spot = self.find(size, align, sources);
        match spot {
            Some(_) => self.counters.allocated(size),
            None => self.counters.failed(),
        }
        spot
    }

    #[inline(always)]
    fn find(
        &mut self,
        size: usize,
        align: usize,
        sources: &mut impl Sources,
    ) -> Option<Spot<S::Place>> {
        let slot = self
            .objects
            .allocate(size, align, |bytes| sources.grow_slabs(bytes));
        if let Some(offset) = slot {
            return Some(Spot::Slot(offset));
        }
        let pool = self.route(size);
        let heap = self.general[pool].as_mut()?;
        // SAFETY: the caller vouches for the sources.
        let place = unsafe { heap.allocate_from(size, align, &mut PoolSource { sources, pool }) }?;
        Some(Spot::Block(pool, place))
    }

    /// Frees a block; returns its requested bytes.
    ///
    /// # Errors
    /// [`BadFree`] where the pool can tell.
    ///
    /// # Safety
    /// As [`Heap::free`].
    #[inline(always)]
    pub unsafe fn free(&mut self, spot: Spot<S::Place>) -> Result<usize, BadFree> {
        let requested = self.release(spot)?;
        self.counters.freed(requested);
        Ok(requested)
    }

    #[inline(always)]
    fn release(&mut self, spot: Spot<S::Place>) -> Result<usize, BadFree> {
        match spot {
            Spot::Slot(offset) => Ok(self.objects.free(offset)?.requested),
            Spot::Block(pool, place) => {
                let heap = self.heap(pool)?;
                // SAFETY: the caller of `free` or `resize` vouches for the place.
                unsafe {
                    let requested = heap.requested(place)?;
                    heap.free(place)?;
                    Ok(requested)
                }
            }
        }
    }

    #[inline(always)]
    fn heap(&mut self, pool: usize) -> Result<&mut Heap<I, S>, BadFree> {
        self.general
            .get_mut(pool)
            .and_then(Option::as_mut)
            .ok_or(BadFree::Foreign)
    }

    /// Resizes a block: in its slot or its general pool when the new size is
    /// routed there, else by moving it, for which `copy` copies payload bytes
    /// from the first spot to the second. A block of a general pool stays in
    /// general pools. `None` leaves the block as it was.
    ///
    /// # Errors
    /// [`BadFree`] where the pool can tell.
    ///
    /// # Safety
    /// As [`Heap::resize`]; `sources` as for [`allocate`](Self::allocate).
    pub unsafe fn resize(
        &mut self,
        spot: Spot<S::Place>,
        size: usize,
        align: usize,
        sources: &mut impl Sources,
        copy: impl FnOnce(Spot<S::Place>, Spot<S::Place>, usize),
    ) -> Result<Option<Spot<S::Place>>, BadFree> {
        // SAFETY: the caller's contract.
        let requested = unsafe { self.requested(spot) }?;
        let target = self.route(size);
        let moved = match spot {
            Spot::Slot(offset) if self.objects.resize(offset, size, align)? => Some(spot),
            Spot::Block(pool, place) if pool == target => {
                let mut source = PoolSource { sources, pool };
                let heap = self.heap(pool)?;
                // SAFETY: the caller's contract.
                let place = unsafe { heap.resize_from(place, size, align, &mut source) }?;
                place.map(|place| Spot::Block(pool, place))
            }
            Spot::Slot(_) => self.find(size, align, sources),
            Spot::Block(..) => {
                let mut source = PoolSource {
                    sources,
                    pool: target,
                };
                let heap = self.heap(target)?;
                // SAFETY: the caller vouches for the sources.
                let place = unsafe { heap.allocate_from(size, align, &mut source) };
                place.map(|place| Spot::Block(target, place))
            }
        };
        match moved {
            Some(new) => {
                let stayed = match (spot, new) {
                    (Spot::Slot(from), Spot::Slot(to)) => from == to,
                    (Spot::Block(from, _), Spot::Block(to, _)) => from == to,
                    _ => false,
                };
                if !stayed {
                    copy(spot, new, requested.min(size));
                    self.release(spot)?;
                }
                self.counters.resized(requested, size);
            }
            None => self.counters.failed(),
        }
        Ok(moved)
    }

    /// Requested bytes at a spot (its capacity where they are not kept).
    ///
    /// # Errors
    /// [`BadFree`] where the pool can tell.
    ///
    /// # Safety
    /// As [`Heap::usable_size`].
    pub unsafe fn requested(&mut self, spot: Spot<S::Place>) -> Result<usize, BadFree> {
        match spot {
            Spot::Slot(offset) => Ok(self.objects.sizes(offset)?.0),
            // SAFETY: the caller's contract.
            Spot::Block(pool, place) => unsafe { self.heap(pool)?.requested(place) },
        }
    }

    /// Bytes that the program may use at a spot.
    ///
    /// # Errors
    /// [`BadFree`] where the pool can tell.
    ///
    /// # Safety
    /// As [`Heap::usable_size`].
    pub unsafe fn usable_size(&mut self, spot: Spot<S::Place>) -> Result<usize, BadFree> {
        match spot {
            Spot::Slot(offset) => Ok(self.objects.sizes(offset)?.1),
            // SAFETY: the caller's contract.
            Spot::Block(pool, place) => unsafe { self.heap(pool)?.usable_size(place) },
        }
    }

    /// Bytes taken from the system: regions, slabs and the records of slabs.
    pub fn footprint(&self) -> usize {
        let general: usize = self.pools().map(Heap::footprint).sum();
        general + self.objects.extent() + self.objects.record_bytes()
    }

    /// Verifies every pool. Linear.
    ///
    /// # Errors
    /// The first [`Corruption`] found.
    pub fn check(&self) -> Result<(), Corruption> {
        for heap in self.pools() {
            heap.check()?;
        }
        self.objects.check()
    }

    /// What the heap holds and has held. Linear.
    pub fn statistics(&self) -> Statistics {
        let mut sum = self.counters.report(self.footprint(), 0, 0, 0, 0);
        for heap in self.pools() {
            let part = heap.statistics();
            sum.largest_free = sum.largest_free.max(part.largest_free);
            sum.free_blocks += part.free_blocks;
            sum.free_bytes += part.free_bytes;
            sum.record_bytes += part.record_bytes;
        }
        sum.record_bytes += self.objects.record_bytes();
        sum
    }

    /// Largest requested bytes at once, and blocks in use, without a walk.
    pub fn peak_live(&self) -> usize {
        self.counters.peak_live()
    }
}
