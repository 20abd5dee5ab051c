//! `Composite`: several general pools and object pools as one heap.
//!
//! Requests are routed by size: to the smallest object pool that holds them,
//! else to the first general pool whose range they lie in. Each general pool is
//! a [`Heap`] over memory of its own; object pools have a range of slabs of
//! their own. A request that finds no slab goes to the general pools; one that
//! its general pool refuses *spills*: it goes to the next pool whose range it
//! lies in. So a pool may lie in a small near memory, and what finds no room
//! there lies in the next one.
//!
//! Invariant: a place is freed and resized in the pool that gave it.

use crate::description::{DEDICATED, Description, GENERAL, IndexKind};
use crate::heap::{Corruption, Heap, Source};
use crate::index::any::AnyIndex;
use crate::index::dedicated::{ChosenKeeping, Dedicated};
use crate::index::{Index, Limits};
use crate::objects::ObjectPools;
use crate::statistics::{Counters, Statistics};
use crate::store::{BadFree, Overwritten, Store};

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
    /// Whether it ever has any: where not, code that grows is left out.
    const GROWS: bool = true;

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
    const GROWS: bool = false;

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
    const GROWS: bool = M::GROWS;

    #[inline(always)]
    fn increment(&self) -> usize {
        self.sources.increment()
    }

    #[inline(always)]
    fn grow(&mut self, bytes: usize) -> bool {
        self.sources.grow(self.pool, bytes)
    }
}

/// The requests that a general pool takes, by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    from: usize,
    /// Largest less smallest, so that one comparison decides.
    width: usize,
}

impl Sizes {
    /// All requests: those of the last pool.
    pub const ALL: Sizes = Sizes::between(0, usize::MAX);

    /// Requests of `from` to `up_to` bytes, both included.
    pub const fn between(from: usize, up_to: usize) -> Self {
        Sizes {
            from,
            width: up_to.saturating_sub(from),
        }
    }

    /// Whether requests of `size` bytes are among them. O(1).
    #[inline(always)]
    pub const fn contain(&self, size: usize) -> bool {
        size.wrapping_sub(self.from) <= self.width
    }
}

/// General pools and object pools. `POOLS` bounds the number of general pools; where `OBJECTS` says that
/// there are no object pools, the code for them is left out.
#[derive(Debug)]
pub struct Composite<'a, I, S: Store, const POOLS: usize = GENERAL, const OBJECTS: bool = true> {
    general: [Option<Heap<I, S>>; POOLS],
    sizes: [Sizes; POOLS],
    objects: ObjectPools<'a>,
    counters: Counters,
    /// Requests that another pool than the first in whose range they lie served.
    spilled: u64,
}

/// The index of a general pool whose description is known at run time only.
pub type AnyPool<B> = Dedicated<AnyIndex<B>, DEDICATED, ChosenKeeping<DEDICATED>>;

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

impl<'a, I: Index<S>, S: Store>
    Composite<'a, Dedicated<I, DEDICATED, ChosenKeeping<DEDICATED>>, S>
{
    /// The heap of a valid description on other indexes: `index` makes the index of each general
    /// pool, `store` its store.
    pub fn describe_with(
        description: &Description,
        mut index: impl FnMut(IndexKind, Limits) -> I,
        mut store: impl FnMut(usize) -> S,
        objects: ObjectPools<'a>,
    ) -> Self {
        let mut general = [const { None }; GENERAL];
        let mut ranges = [Sizes::ALL; GENERAL];
        for (number, pool) in description.general.iter().enumerate() {
            let store = store(number);
            let index = index(pool.index, pool.limits);
            let own = description.dedicated_of(&pool);
            let dedicated = Dedicated::describe::<S>(own, store.geometry(), index);
            general[number] = Some(Heap::new(dedicated, store));
            ranges[number] = pool.sizes();
        }
        Self::new(general, ranges, objects)
    }
}

impl<'a, I: Index<S>, S: Store, const POOLS: usize, const OBJECTS: bool>
    Composite<'a, I, S, POOLS, OBJECTS>
{
    /// A composite of given parts: general pools with the requests that each
    /// takes, in the order in which they are asked, and object pools. The last
    /// pool takes all requests.
    pub const fn new(
        general: [Option<Heap<I, S>>; POOLS],
        sizes: [Sizes; POOLS],
        objects: ObjectPools<'a>,
    ) -> Self {
        Composite {
            general,
            sizes,
            objects,
            counters: Counters::NEW,
            spilled: 0,
        }
    }

    /// A general pool, to add regions to it or to read it.
    pub fn general(&mut self, pool: usize) -> Option<&mut Heap<I, S>> {
        self.general.get_mut(pool)?.as_mut()
    }

    /// The general pools in order. Their own statistics have neither peaks nor failures, which are
    /// the [whole](Self::statistics)'s.
    pub fn pools(&self) -> impl Iterator<Item = &Heap<I, S>> {
        self.general.iter().flatten()
    }

    /// The object pools.
    pub fn objects(&self) -> &ObjectPools<'a> {
        &self.objects
    }

    /// The first pool in whose range `size` lies.
    #[inline(always)]
    fn route(&self, size: usize) -> usize {
        let mut pool = 0;
        while pool + 1 < POOLS && !self.sizes[pool].contain(size) {
            pool += 1;
        }
        pool
    }

    /// The next pool behind `pool` in whose range `size` lies.
    fn next(&self, pool: usize, size: usize) -> Option<usize> {
        (pool + 1..POOLS)
            .find(|&other| self.general[other].is_some() && self.sizes[other].contain(size))
    }

    /// Allocates in one general pool.
    #[inline(always)]
    fn ask(
        &mut self,
        pool: usize,
        size: usize,
        align: usize,
        sources: &mut impl Sources,
    ) -> Option<Spot<S::Place>> {
        let heap = self.general[pool].as_mut()?;
        // SAFETY: the callers' caller vouches for the sources.
        let place = unsafe { heap.allocate_part(size, align, &mut PoolSource { sources, pool }) }?;
        Some(Spot::Block(pool, place))
    }

    /// Allocates in the first pool behind `refused` that does not refuse.
    #[cold]
    fn spill(
        &mut self,
        refused: usize,
        size: usize,
        align: usize,
        sources: &mut impl Sources,
    ) -> Option<Spot<S::Place>> {
        let mut pool = refused;
        loop {
            pool = self.next(pool, size)?;
            if let Some(spot) = self.ask(pool, size, align, sources) {
                self.spilled += 1;
                return Some(spot);
            }
        }
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
        if OBJECTS
            && let Some(offset) =
                (self.objects).allocate(size, align, |bytes| sources.grow_slabs(bytes))
        {
            return Some(Spot::Slot(offset));
        }
        let pool = self.route(size);
        match self.ask(pool, size, align, sources) {
            None if pool + 1 < POOLS => self.spill(pool, size, align, sources),
            served => served,
        }
    }

    /// Allocates the successor of a block that lies in no pool, as [`allocate`](Self::allocate), but
    /// does not count it as an allocation: it is for the caller to
    /// [count the resize](Self::count_resize).
    ///
    /// # Safety
    /// As [`allocate`](Self::allocate).
    pub unsafe fn take_over(
        &mut self,
        size: usize,
        align: usize,
        sources: &mut impl Sources,
    ) -> Option<Spot<S::Place>> {
        let spot = self.find(size, align, sources);
        if spot.is_none() {
            self.counters.failed();
        }
        spot
    }

    /// Frees a block whose successor lies in no pool, as [`free`](Self::free), but does not count it
    /// as a free: it is for the caller to [count the resize](Self::count_resize).
    ///
    /// # Errors
    /// [`BadFree`] where the pool can tell.
    ///
    /// # Safety
    /// As [`Heap::free`].
    pub unsafe fn hand_over(&mut self, spot: Spot<S::Place>) -> Result<usize, BadFree> {
        self.release(spot)
    }

    /// Counts the allocation of a block that lies in no pool: a mapping of its own.
    pub fn count_allocation(&mut self, size: usize) {
        self.counters.allocated(size);
    }

    /// Takes back that the last request was refused: it was served outside of all pools.
    pub fn count_served_after_all(&mut self) {
        self.counters.served_after_all();
    }

    /// Counts the free of a block that lies in no pool.
    pub fn count_free(&mut self, requested: usize) {
        self.counters.freed(requested);
    }

    /// Counts the resize of a block that lies in no pool, or moved from or to one.
    pub fn count_resize(&mut self, from: usize, to: usize) {
        self.counters.resized(from, to);
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
            Spot::Slot(_) if !OBJECTS => Err(BadFree::Foreign),
            Spot::Slot(offset) => Ok(self.objects.free(offset)?.requested),
            Spot::Block(pool, place) => {
                let heap = self.heap(pool)?;
                // SAFETY: the caller of `free` or `resize` vouches for the place.
                unsafe { heap.free_requested(place) }
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
    /// general pools, which are asked in the order in which an allocation of
    /// the new size asks them; so a block that spilled returns when there is
    /// room again. `None` leaves the block as it was.
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
        let moved = match spot {
            Spot::Slot(offset) if self.objects.resize(offset, size, align)? => Some(spot),
            Spot::Slot(_) => self.find(size, align, sources),
            Spot::Block(pool, place) => {
                // SAFETY: the caller's contract.
                unsafe { self.resize_block(pool, place, size, align, sources) }?
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

    /// Resizes a block of general pool `own`, or allocates its successor in the
    /// first pool that serves.
    ///
    /// # Safety
    /// As [`resize`](Self::resize).
    unsafe fn resize_block(
        &mut self,
        own: usize,
        place: S::Place,
        size: usize,
        align: usize,
        sources: &mut impl Sources,
    ) -> Result<Option<Spot<S::Place>>, BadFree> {
        let first = self.route(size);
        let mut asked = Some(first);
        while let Some(pool) = asked {
            let served = if pool == own {
                let mut source = PoolSource { sources, pool };
                let heap = self.heap(pool)?;
                // SAFETY: the caller's contract.
                let place = unsafe { heap.resize_from(place, size, align, &mut source) }?;
                place.map(|place| Spot::Block(pool, place))
            } else {
                self.ask(pool, size, align, sources)
            };
            if served.is_some() {
                self.spilled += u64::from(pool != first);
                return Ok(served);
            }
            asked = self.next(pool, size);
        }
        Ok(None)
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

    /// What a general pool found overwritten in its last operation, as
    /// [`Heap::fault`]; each is told once.
    pub fn take_fault(&mut self) -> Option<Overwritten> {
        self.general.iter_mut().flatten().find_map(Heap::take_fault)
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

    /// Allocations and resizes so far that were served by another general pool
    /// than the first in whose range they lie, because that one refused.
    pub fn spilled(&self) -> u64 {
        self.spilled
    }

    /// Largest requested bytes at once, and blocks in use, without a walk.
    pub fn peak_live(&self) -> usize {
        self.counters.peak_live()
    }
}
