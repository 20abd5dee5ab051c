//! `Heap<Index, Store>`: allocation, release, resizing, growth.
//!
//! The heap owns the blocks: it splits what the index finds, merges what the
//! program frees, and moves the end of its memory. Everything that differs
//! between allocators is in the index, everything that differs between
//! memories in the store; this file is the algorithm that they share.
//!
//! Invariants, all verified by [`Heap::check`]:
//! - the blocks of a region tile it and end at its sentinel;
//! - a block is marked previous-free exactly when the block before it is free;
//! - a block is free or retained exactly when the index holds it, once;
//! - if the index always coalesces, no two free blocks are neighbours.

mod grow;
mod inspect;
mod rebuild;
mod resize;
mod verify;

pub use inspect::{BlockInfo, Corruption, State};

use crate::index::Index;
use crate::statistics::Counters;
use crate::store::ledger::{Layout, Ledger, Lookup};
use crate::store::{BadFree, Geometry, Header, Plan, RegionError, Store, Used};

/// Alignment of the first block of large buddy heaps.
const PAGE: usize = 4096;

/// Where a heap gets more memory from, directly behind its last region.
///
/// # Safety
/// When `grow` returns `true`, the next `bytes` bytes behind the end of the
/// heap's last region are the heap's.
pub unsafe trait Source {
    /// Whether there may ever be more.
    const GROWS: bool = true;
    /// Memory comes in multiples of this many bytes (a multiple of the granule).
    fn increment(&self) -> usize;
    /// Adds `bytes`, a multiple of the increment, or refuses.
    fn grow(&mut self, bytes: usize) -> bool;
}

/// A source without memory: the heap has the regions that it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSource;

// SAFETY: never returns `true`.
unsafe impl Source for NoSource {
    const GROWS: bool = false;

    fn increment(&self) -> usize {
        1
    }

    fn grow(&mut self, _bytes: usize) -> bool {
        false
    }
}

/// A heap: an index over the blocks of a store.
///
/// Fields lie in the order in which they stand here: with boundary tags and size classes what
/// every call needs (where the heads are, the top word, the bitmaps of blocks below 128 KiB) is on
/// one cache line, if the heap begins on one.
#[derive(Debug)]
#[repr(C)]
pub struct Heap<I, S: Store> {
    /// Bytes behind the end of the last region that its source has granted.
    reserve: usize,
    plan: Plan,
    store: S,
    pub(crate) index: I,
    /// First block of the first region.
    base: Option<S::Block>,
    span: usize,
    pub(crate) counters: Counters,
}

/// Where the heads are is the last word of the store, and the top word and the bitmaps follow.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use crate::{Tagged, Tlsf};
    assert!(core::mem::offset_of!(Heap<Tlsf, Tagged<false>>, store) == 32);
    assert!(core::mem::offset_of!(Heap<Tlsf, Tagged<false>>, index) == 64 + size_of::<usize>());
};

impl<I: Index<S>, S: Store> Heap<I, S> {
    /// A heap without memory.
    pub const fn new(index: I, store: S) -> Self {
        Heap {
            reserve: 0,
            plan: Plan {
                heads: 0,
                align: 0,
                unit: 0,
            },
            store,
            index,
            base: None,
            span: 0,
            counters: Counters::NEW,
        }
    }

    /// Prepares the index for blocks up to `span` bytes, for heaps that grow or
    /// get further regions. Before the first region; without it the first
    /// region's length is the span.
    pub fn reserve_span(&mut self, span: usize) {
        if self.base.is_none() {
            self.span = span;
        }
    }

    /// Smallest first region: control structure and one block.
    pub fn smallest_region(&mut self) -> usize {
        let geometry = self.store.geometry();
        match self.plan(self.span.max(geometry.minimum)) {
            Some(plan) => geometry.control(plan) + geometry.minimum.max(plan.unit),
            None => usize::MAX,
        }
    }

    /// The layout for blocks of up to `span` bytes.
    fn plan(&mut self, span: usize) -> Option<Plan> {
        let geometry = self.store.geometry();
        let heads = self.index.heads(span, geometry)?;
        if !self.index.halves() {
            return Some(Plan {
                heads,
                align: geometry.granule,
                unit: geometry.granule,
            });
        }
        // Buddies are as aligned as the first block is, so where there is room
        // to spare it is aligned to a page.
        let align = if span >= 256 * PAGE {
            PAGE
        } else {
            geometry.granule
        };
        Some(Plan {
            heads,
            align,
            unit: geometry.minimum.next_power_of_two(),
        })
    }

    /// Adds a region. O(1); with buddy, O(log length).
    ///
    /// # Errors
    /// [`RegionError`] says why the region cannot serve; the heap is unchanged.
    pub fn add_region(&mut self, region: S::Region) -> Result<(), RegionError>
    where
        S::Region: Length,
    {
        if self.base.is_none() {
            self.span = self.span.max(region.length());
            self.plan = self.plan(self.span).ok_or(RegionError::SpanExceeded)?;
        } else if self.index.halves() {
            return Err(RegionError::OneRegionOnly);
        } else if region.length() > self.span
            || !self.index.has_room_for_region(&self.store, region.length())
        {
            return Err(RegionError::SpanExceeded);
        }
        if S::MERGED && !self.merges() {
            return Err(RegionError::Unmerged);
        }
        self.release_reserve();
        let laid = self.store.lay(region, self.plan)?;
        self.store.set_header(laid.block, Header::new(laid.size, 0));
        if self.base.is_none() {
            self.base = Some(laid.block);
            self.store.number_heads_from(self.index.first_head());
            self.index.attach(&mut self.store, laid.block);
        } else {
            self.index
                .attach_further(&mut self.store, laid.block, laid.size);
        }
        self.release_room(laid.block, laid.size);
        Ok(())
    }

    /// Adds the first region of a heap without memory: [`add_region`](Self::add_region) for programs that
    /// have one region and count the bytes of their code, as nothing is there to merge with.
    ///
    /// # Errors
    /// As [`add_region`](Self::add_region).
    pub fn add_only_region(&mut self, region: S::Region) -> Result<(), RegionError>
    where
        S::Region: Length,
    {
        if self.index.halves() || S::MERGED || S::VERIFIES {
            return self.add_region(region);
        }
        if self.base.is_some() {
            return Err(RegionError::OneRegionOnly);
        }
        self.span = self.span.max(region.length());
        self.plan = self.plan(self.span).ok_or(RegionError::SpanExceeded)?;
        let laid = self.store.lay(region, self.plan)?;
        self.base = Some(laid.block);
        self.store.number_heads_from(self.index.first_head());
        self.index.attach(&mut self.store, laid.block);
        let block = self.store.renew(laid.block);
        let after = self.store.after(block, laid.size);
        self.store.mark_previous_free(after);
        self.make_free(block, laid.size, 0);
        Ok(())
    }

    /// Allocates `size` bytes aligned to `align` (a power of two), or `None`.
    #[inline(always)]
    pub fn allocate(&mut self, size: usize, align: usize) -> Option<S::Place> {
        // SAFETY: `NoSource` never grows.
        unsafe { self.allocate_from(size, align, &mut NoSource) }
    }

    /// Allocates, and takes memory from `source` when the heap has none left.
    ///
    /// # Safety
    /// `source` must be the one behind this heap's last region.
    #[inline(always)]
    pub unsafe fn allocate_from(
        &mut self,
        size: usize,
        align: usize,
        source: &mut impl Source,
    ) -> Option<S::Place> {
        self.begin();
        let place = self.find(size, align, source);
        if S::STATISTICS {
            match place {
                Some(_) => self.counters.allocated(size),
                None => self.counters.failed(),
            }
        }
        place
    }

    /// Allocates in a pool of a composite, which keeps the peaks and what is refused itself.
    ///
    /// # Safety
    /// As [`allocate_from`](Self::allocate_from).
    #[inline(always)]
    pub(crate) unsafe fn allocate_part(
        &mut self,
        size: usize,
        align: usize,
        source: &mut impl Source,
    ) -> Option<S::Place> {
        self.begin();
        let place = self.find(size, align, source)?;
        if S::STATISTICS {
            self.counters.holds(size);
        }
        Some(place)
    }

    #[inline(always)]
    fn find(&mut self, size: usize, align: usize, source: &mut impl Source) -> Option<S::Place> {
        let aligned = self.store.alignment(align);
        if aligned > self.store.geometry().granule {
            return self.find_aligned(size, aligned, source);
        }
        let need = self.need(size)?;
        if !self.store.has_room() {
            return None;
        }
        if let Some(block) = self.recall(need) {
            let header = self.store.header(block).without(Header::RETAINED);
            let block = self.store.renew(block);
            return Some(self.store.occupy(block, header, size));
        }
        if self.found_fault() {
            return None;
        }
        self.gather_for(need);
        let (block, found) = match self.take(need) {
            Some(taken) => taken,
            None => self.take_grown(need, source)?,
        };
        let flags = self.flags_of_free(block);
        Some(self.cut(block, found, need, size, flags))
    }

    /// Whether the lists for blocks of `need` bytes exist; asked only where an
    /// index would read them before it knows.
    #[inline(always)]
    fn has_lists(&self, need: usize) -> bool {
        !self.index.reads_lists_first() || (self.base.is_some() && need <= self.span)
    }

    #[inline(always)]
    fn take(&mut self, need: usize) -> Option<(S::Block, usize)> {
        if !self.has_lists(need) {
            return None;
        }
        let (block, size) = self.index.take(&mut self.store, need)?;
        self.store.taken(block, size);
        Some((block, size))
    }

    #[inline(always)]
    fn recall(&mut self, need: usize) -> Option<S::Block> {
        if !self.has_lists(need) {
            return None;
        }
        self.index.recall(&mut self.store, need)
    }

    /// Flags that a free block keeps when it is given out.
    #[inline(always)]
    fn flags_of_free(&self, block: S::Block) -> usize {
        if self.merges() {
            // A free block follows a used one.
            return 0;
        }
        self.store.verified_header(block).flags() & Header::PREVIOUS_FREE
    }

    /// Whether two free blocks are never neighbours.
    #[inline(always)]
    fn merges(&self) -> bool {
        !self.index.halves() && self.index.limits().coalesce_up_to == usize::MAX
    }

    /// The size in the header of a free block.
    #[inline(always)]
    fn free_size(&self, header: Header) -> usize {
        if self.merges() {
            // What precedes it is in use.
            return self.store.size_beside(header, Header::FREE);
        }
        header.size
    }

    /// Allocation with an alignment above the granule: the block in front of the
    /// aligned payload becomes a free block of its own.
    #[cold]
    fn find_aligned(
        &mut self,
        size: usize,
        align: usize,
        source: &mut impl Source,
    ) -> Option<S::Place> {
        if !align.is_power_of_two() {
            return None;
        }
        let Geometry { minimum, .. } = self.store.geometry();
        let base = self.base?;
        let need = self.need(size)?;
        if self.index.halves() {
            // A block of at least `align` bytes lies at a multiple of `align`
            // from the base, which is as aligned as the base is.
            let wide = need.max(align.checked_next_power_of_two()?);
            if self.store.misalignment(base, align) != 0 || !self.store.has_room() {
                return None;
            }
            let (block, found) = match self.take(wide) {
                Some(taken) => taken,
                None => self.take_grown(wide, source)?,
            };
            let flags = self.flags_of_free(block);
            return Some(self.cut(block, found, wide, size, flags));
        }
        let wide = need.checked_add(align)?.checked_add(minimum)?;
        if wide > usize::MAX >> 2 {
            return None;
        }
        let wide = self.index.block_size(wide);
        if !self.store.has_room() {
            return None;
        }
        self.gather_for(wide);
        let (mut block, mut found) = match self.take(wide) {
            Some(taken) => taken,
            None => self.take_grown(wide, source)?,
        };
        let mut flags = self.flags_of_free(block);
        let mut gap = self.store.misalignment(block, align);
        while gap != 0 && gap < minimum {
            gap += align;
        }
        if gap != 0 {
            let sound = self.may_insert(gap);
            let Some(second) = self.store.carve(block, gap).filter(|_| sound) else {
                // Where the way back is not sound either, the block is lost.
                if self.may_insert(found) {
                    self.make_free(block, found, flags);
                }
                return None;
            };
            self.store
                .set_header(second, Header::new(found - gap, Header::PREVIOUS_FREE));
            self.make_free(block, gap, flags);
            flags = Header::PREVIOUS_FREE;
            block = second;
            found -= gap;
        }
        // The kept part may again be what an index rounds: pieces stay whole.
        Some(self.cut(block, found, need.min(found), size, flags))
    }

    /// The block size that a request needs.
    #[inline(always)]
    fn need(&self, size: usize) -> Option<usize> {
        let need = self.store.block_for(size)?;
        Some(self.index.block_size(need))
    }

    /// Gives `need` bytes of a block taken from the index to the program and the
    /// rest, if it is worth a block, back to the index.
    #[inline(always)]
    fn cut(
        &mut self,
        block: S::Block,
        found: usize,
        need: usize,
        requested: usize,
        flags: usize,
    ) -> S::Place {
        let size = if self.index.halves() {
            self.halve(block, found, need)
        } else {
            self.split(block, found, need)
        };
        self.store
            .occupy(block, Header::new(size, flags), requested)
    }

    /// Splits once; returns the size kept.
    #[inline(always)]
    fn split(&mut self, block: S::Block, found: usize, need: usize) -> usize {
        let rest = found - need;
        let least = self
            .store
            .geometry()
            .minimum
            .max(self.index.limits().split_down_to);
        if rest >= least
            && self.may_insert(rest)
            && let Some(second) = self.store.carve(block, need)
        {
            self.make_free(second, rest, 0);
            return need;
        }
        let after = self.store.after(block, found);
        self.store.clear_previous_free(after);
        found
    }

    /// Halves as long as half still serves; returns the size kept.
    #[inline(always)]
    fn halve(&mut self, block: S::Block, found: usize, need: usize) -> usize {
        let mut size = found;
        while size / 2 >= need && self.may_insert(size / 2) {
            let Some(second) = self.store.carve(block, size / 2) else {
                break;
            };
            size /= 2;
            let more = size / 2 >= need;
            self.make_free(second, size, if more { Header::PREVIOUS_FREE } else { 0 });
        }
        if size == found || size / 2 >= need {
            // Not split, or out of records: what follows is preceded by a used block.
            let after = self.store.after(block, size);
            self.store.clear_previous_free(after);
        }
        size
    }

    /// Writes a free block and hands it to the index. The block after it is
    /// already marked.
    #[inline(always)]
    fn make_free(&mut self, block: S::Block, size: usize, flags: usize) {
        self.store
            .set_header(block, Header::new(size, flags | Header::FREE));
        self.store.set_footer(block, size);
        self.index.insert(&mut self.store, block, size);
    }

    /// Frees a block.
    ///
    /// # Errors
    /// [`BadFree`] where the store can tell; the heap is unchanged.
    ///
    /// # Safety
    /// With a store that cannot tell (`Tagged`), `place` must be a block of
    /// this heap in use. With one that verifies (`Hardened`) it may be any address,
    /// and the heap's memory may have been overwritten. If there is a block in use,
    /// nothing may use its memory any more.
    #[inline(always)]
    pub unsafe fn free(&mut self, place: S::Place) -> Result<(), BadFree> {
        // SAFETY: the caller's contract.
        unsafe { self.free_requested(place) }.map(drop)
    }

    /// Frees a block whose requested size the caller knows, as those of Rust and of sized `delete`
    /// do. With boundary tags on x86-64 the record behind the block is then fetched while its own is
    /// still on the way, one wait for memory instead of two. The size is a hint: a wrong one costs
    /// time and nothing else.
    ///
    /// # Errors
    /// As [`free`](Self::free).
    ///
    /// # Safety
    /// As [`free`](Self::free).
    #[inline(always)]
    pub unsafe fn free_sized(&mut self, place: S::Place, size: usize) -> Result<(), BadFree> {
        self.store.fetch_behind(place, size);
        // SAFETY: the caller's contract.
        unsafe { self.free(place) }
    }

    /// Frees a block as [`free`](Self::free) does; returns the bytes requested (the capacity where
    /// they are not kept).
    ///
    /// # Safety
    /// As [`free`](Self::free).
    #[inline(always)]
    pub(crate) unsafe fn free_requested(&mut self, place: S::Place) -> Result<usize, BadFree> {
        self.begin();
        let Used {
            block,
            header,
            requested,
        } = self.store.resolve_used(place)?;
        if S::VERIFIES {
            self.verify_give_back(block, header)?;
        }
        if S::STATISTICS {
            self.counters.freed(requested);
        }
        self.give_back(block, header);
        Ok(requested)
    }

    #[inline(always)]
    fn give_back(&mut self, block: S::Block, header: Header) {
        debug_assert!(!header.free() && !header.retained(), "freed twice");
        self.store.vacate(block);
        if self.index.retain(&mut self.store, block, header.size) {
            self.store.set_header(block, header.with(Header::RETAINED));
        } else {
            self.release(block, header);
        }
    }

    /// Merges the kept blocks if the index wants that before it looks for `need`.
    /// What no region can hold merges nothing: such a request fails, and on
    /// targets of narrower words it fails before it reaches the index.
    #[inline(always)]
    fn gather_for(&mut self, need: usize) {
        if need <= self.span && self.index.gathers(&self.store, need) {
            self.gather();
        }
    }

    /// Merges the blocks that the index kept aside and gives up; whether there
    /// were any.
    #[inline(always)]
    fn gather(&mut self) -> bool {
        let mut any = false;
        while let Some(block) = self.index.relinquish(&mut self.store) {
            let header = self.store.header(block).without(Header::RETAINED);
            if S::VERIFIES && !self.kept_is_sound(block, header) {
                return any;
            }
            self.release(block, header);
            any = true;
        }
        any
    }

    /// Merges a block with its free neighbours and hands it to the index.
    #[inline(always)]
    fn release(&mut self, block: S::Block, header: Header) {
        if self.index.halves() {
            self.release_buddy(block, header);
            return;
        }
        let limit = self.index.limits().coalesce_up_to;
        let mut block = block;
        let mut flags = header.flags() & Header::PREVIOUS_FREE;
        let mut size;
        if flags != 0 {
            size = self.store.size_beside(header, Header::PREVIOUS_FREE);
            let before = self.store.verified_before(block);
            let other = self.store.verified_header(before);
            let free = self.free_size(other);
            if size + free <= limit {
                self.index.remove(&mut self.store, before, free);
                self.store.join(before, block);
                block = before;
                size += free;
                flags = if self.merges() {
                    0
                } else {
                    other.flags() & Header::PREVIOUS_FREE
                };
            } else {
                block = self.store.renew(block);
            }
        } else {
            size = self.store.size_beside(header, 0);
            block = self.store.renew(block);
        }
        let after = self.store.after(block, size);
        let other = self.store.verified_header(after);
        if other.free() && size + self.free_size(other) <= limit {
            let free = self.free_size(other);
            // What follows the merged block is marked already.
            self.index.remove(&mut self.store, after, free);
            self.store.join(block, after);
            size += free;
        } else {
            self.store.mark_previous_free(after);
        }
        self.make_free(block, size, flags);
    }

    fn release_buddy(&mut self, block: S::Block, header: Header) {
        let Some(base) = self.base else { return };
        let mut block = self.store.renew(block);
        let mut size = header.size;
        let mut flags = header.flags() & Header::PREVIOUS_FREE;
        loop {
            let second_half = self.store.distance(base, block) & size != 0;
            if second_half && flags != 0 {
                let before = self.store.verified_before(block);
                let other = self.store.verified_header(before);
                if other.size != size {
                    break;
                }
                self.index.remove(&mut self.store, before, size);
                self.store.join(before, block);
                block = before;
                flags = other.flags() & Header::PREVIOUS_FREE;
            } else if !second_half {
                let after = self.store.after(block, size);
                let other = self.store.verified_header(after);
                if !other.free() || other.size != size {
                    break;
                }
                self.index.remove(&mut self.store, after, size);
                self.store.join(block, after);
            } else {
                break;
            }
            size *= 2;
        }
        let after = self.store.after(block, size);
        self.store.mark_previous_free(after);
        self.make_free(block, size, flags);
    }

    /// Allocates and fills with zeros.
    pub fn allocate_zeroed(&mut self, size: usize, align: usize) -> Option<S::Place> {
        let place = self.allocate(size, align)?;
        self.store.zero(place, size);
        Some(place)
    }

    /// Bytes that the program may use at a place: at least what it requested, and with
    /// a [`Hardened`](crate::Hardened) store exactly that. A resize keeps only what was
    /// requested of them.
    ///
    /// # Errors
    /// [`BadFree`] where the store can tell.
    ///
    /// # Safety
    /// With a store that cannot tell (`Tagged`), `place` must be in use.
    pub unsafe fn usable_size(&self, place: S::Place) -> Result<usize, BadFree> {
        Ok(self.store.usable(self.store.resolve(place)?))
    }

    /// Bytes that the program requested at a place (the capacity where the
    /// store does not keep them).
    ///
    /// # Errors
    /// [`BadFree`] where the store can tell.
    ///
    /// # Safety
    /// As [`usable_size`](Self::usable_size).
    pub unsafe fn requested(&self, place: S::Place) -> Result<usize, BadFree> {
        Ok(self.store.requested(self.store.resolve(place)?))
    }

    /// Lets `file` tell the index of something that it files free blocks by beside their
    /// sizes, and move blocks between its lists.
    ///
    /// # Safety
    /// The index stays the one it is, and afterwards holds the blocks that it held, each once.
    pub unsafe fn refile<T>(&mut self, file: impl FnOnce(&mut I, &mut S) -> T) -> T {
        file(&mut self.index, &mut self.store)
    }

    /// Bytes of all regions, control structure included, and what a source has granted behind
    /// the last one.
    pub fn footprint(&self) -> usize {
        self.store.footprint() + self.reserve
    }

    /// Offset of a place inside its region; linear in the number of regions.
    pub fn place_offset(&self, place: S::Place) -> usize {
        self.store.place_offset(place)
    }

    /// The index, to look at what it knows.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// The store, to read its counts.
    pub fn store(&self) -> &S {
        &self.store
    }

    #[cfg(test)]
    pub(crate) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }
}

impl<'a, I, L, R> Heap<I, Ledger<'a, L, R>>
where
    L: Lookup,
    R: Layout,
    I: Index<Ledger<'a, L, R>>,
{
    /// Frees a block; any place may be tried.
    ///
    /// # Errors
    /// [`BadFree`] for a foreign, stale or already freed place.
    pub fn release_place(&mut self, place: L::Place) -> Result<(), BadFree> {
        // SAFETY: a ledger resolves blocks in use only and touches no memory.
        unsafe { self.free(place) }
    }
}

/// A region that knows its length in bytes.
pub trait Length {
    /// Bytes.
    fn length(&self) -> usize;
}

impl Length for usize {
    fn length(&self) -> usize {
        *self
    }
}

impl Length for crate::store::tagged::Memory {
    fn length(&self) -> usize {
        self.bytes()
    }
}
