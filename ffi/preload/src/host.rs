//! A heap behind malloc: its pools, and what stands beside them.
//!
//! Invariant: every block given out lies in the arena or is a mapping of its own.

use core::ptr::{self, NonNull};

use metes_config::Config;
use metes_heap::description::LEVELS;
use metes_heap::index::Index;
use metes_heap::{
    BadFree, Composite, Levels, MOST_DOUBTS, Mapped, Memory, ObjectPools, Overwritten, Slabs, Spot,
    Statistics, Store, Tagged,
};

use crate::arena::{Arena, map};
use crate::mapped::{Found, Mappings};
use crate::pages::{Managed, Pages};
use crate::process::{random, refuse, variable};
use crate::report::{Digest, Event, Report};

/// Blocks as large as the word's address space are prepared for, whatever is
/// really reserved, so that offsets do not depend on it.
const SPAN: usize = 1 << 36;
const _: () = assert!(u32::MAX as usize + ALIGN <= SPAN - PAGE);
/// Most slabs of object pools.
const SLABS: usize = 1 << 20;
/// Slabs below which object pools are given up.
const FEWEST_SLABS: usize = 1 << 10;
/// Zeroing at least so many bytes is left to the kernel.
const LARGE: usize = 1 << 20;
const PAGE: usize = 4096;
/// The alignment of every block.
pub(crate) const ALIGN: usize = 16;

/// A store of blocks that programs hold by their addresses.
pub(crate) trait Records: Store<Place = NonNull<u8>, Region = Memory> {}

impl<S: Store<Place = NonNull<u8>, Region = Memory>> Records for S {}

/// Pools and what is kept beside them, compiled for the kind of pools.
pub(crate) struct Host<I, S: Store, const POOLS: usize, const OBJECTS: bool> {
    pools: Composite<'static, I, S, POOLS, OBJECTS>,
    arena: Arena,
    /// The largest request that concerns the pools alone. Zero while every request is to be looked at:
    /// because it is noted, or a spare may have to go.
    plain: u32,
    /// Number of the range of slabs.
    slabs: usize,
    /// The large blocks, which lie outside the arena.
    mapped: Mappings,
    pub(crate) report: Option<Report>,
    /// What the program frees wrongly is told and not obeyed, and it goes on.
    ignores_bad_frees: bool,
    /// What was found forged or overwritten, or is no block in use of the arena, so far.
    doubts: u32,
}

/// Whether a program goes on after it was told what it did wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesOn {
    Yes,
    No,
    /// It did, but that was once too often.
    NoMore,
}

/// A size, or one that every heap refuses where it is larger than the arena:
/// indexes answer for the span that they were prepared for.
#[inline(always)]
fn bounded(size: usize, align: usize) -> usize {
    if size.saturating_add(align) > SPAN - PAGE {
        return usize::MAX;
    }
    size.max(1)
}

/// Why a block was not resized.
pub(crate) enum Refused {
    /// There is no memory; the block is as it was.
    NoMemory,
    /// It is no block of this heap.
    Bad(BadFree),
}

impl<I: Index<S>, S: Records, const POOLS: usize, const OBJECTS: bool> Host<I, S, POOLS, OBJECTS> {
    /// A heap of what `make` makes of its object pools.
    pub(crate) fn new(
        config: &Config,
        report: Option<Report>,
        make: impl FnOnce(ObjectPools<'static>) -> Composite<'static, I, S, POOLS, OBJECTS>,
    ) -> Self {
        let heap = &config.heap;
        let slabs = heap.general.len();
        let increment = config.arena.increment;
        let levels = Levels::of(heap, config.level_sizes());
        let reserve = config.arena.reserve;
        let Some(mut arena) = Arena::new(slabs + 1, reserve, increment, levels) else {
            refuse("no address space is left for a heap: raise the limit (ulimit -v)");
        };
        let cut = heap.slabs();
        let objects = match cut.is_empty() {
            true => ObjectPools::none(),
            false => match records(&cut, (arena.limit(slabs) / cut.bytes()).min(SLABS)) {
                Some((table, slack)) => ObjectPools::new(&cut, table, slack),
                None => refuse("no address space is left for the records of object pools"),
            },
        };
        let mut pools = make(objects);
        for number in 0..slabs {
            if begin(&mut pools, number, increment, &mut arena).is_none() {
                refuse("no memory is left to begin a heap with");
            }
        }
        let key = S::VERIFIES.then(random);
        let pages = Pages::new(config.arena.pages, arena.start(0), report.is_some());
        let mapped = Mappings::new(config.arena.mapped, pages, key);
        let mut host = Host {
            pools,
            arena,
            plain: 0,
            slabs,
            mapped,
            report,
            ignores_bad_frees: ignores_bad_frees(),
            doubts: 0,
        };
        host.look_ahead();
        host
    }

    /// Whether the program goes on. A check of a hardened heap could be guessed by one that goes on for ever:
    /// its pools close themselves, each, after [`MOST_DOUBTS`], and this says so.
    #[cold]
    pub(crate) fn goes_on_after(&mut self, address: *mut u8, why: BadFree) -> GoesOn {
        if !self.ignores_bad_frees {
            return GoesOn::No;
        }
        let outside = why == BadFree::Foreign && self.arena.locate(address).is_none();
        if outside || !S::VERIFIES {
            return GoesOn::Yes;
        }
        self.doubts += 1;
        match self.doubts < MOST_DOUBTS {
            true => GoesOn::Yes,
            false => GoesOn::NoMore,
        }
    }

    /// The block at an address, or why there is none. Cheap: it reads the
    /// header that the heap is about to read.
    #[inline(always)]
    fn spot(&self, place: NonNull<u8>) -> Result<Spot<NonNull<u8>>, BadFree> {
        let located = self.arena.locate(place.as_ptr());
        let (number, offset) = located.ok_or(BadFree::Foreign)?;
        if OBJECTS && number == self.slabs {
            return Ok(Spot::Slot(offset));
        }
        if !place.addr().get().is_multiple_of(ALIGN) || offset < ALIGN {
            return Err(BadFree::Foreign);
        }
        if S::VERIFIES {
            // The store verifies more than can be seen here.
            return Ok(Spot::Block(number, place));
        }
        let room = self.arena.extent(number) - (offset - size_of::<usize>());
        // SAFETY: inside an open range, and not at its beginning.
        unsafe { <Tagged>::probe_in(place, room) }?;
        Ok(Spot::Block(number, place))
    }

    /// What the last operation found overwritten; told once.
    #[inline(always)]
    pub(crate) fn take_fault(&mut self) -> Option<Overwritten> {
        match S::VERIFIES {
            true => self.pools.take_fault(),
            false => None,
        }
    }

    fn address(&self, spot: Spot<NonNull<u8>>) -> *mut u8 {
        match spot {
            Spot::Block(_, place) => place.as_ptr(),
            Spot::Slot(offset) => self.arena.start(self.slabs).wrapping_add(offset),
        }
    }

    /// An address as every run of the same heap gives it.
    fn offset(&self, address: *mut u8) -> u64 {
        match self.arena.locate(address) {
            Some((number, offset)) if number == self.slabs => (1 << 60) + offset as u64,
            Some((number, offset)) => ((number as u64) << 44) + offset as u64,
            None => match self.mapped.number(address) {
                Some(number) => (1 << 61) + number,
                None => u64::MAX,
            },
        }
    }

    #[inline(always)]
    fn note(&mut self, event: Event, address: *mut u8, size: usize) {
        if self.report.is_some() {
            let offset = self.offset(address);
            if let Some(report) = &mut self.report {
                report.digest.note(event, offset, size as u64);
            }
        }
    }

    /// Allocates at least one byte; null when there is no memory.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, size: usize) -> *mut u8 {
        // No size is below one.
        if size.wrapping_sub(1) >= self.plain as usize {
            return self.allocate_aligned(size, ALIGN);
        }
        // SAFETY: the arena is the source of every pool.
        match unsafe { self.pools.allocate(size, ALIGN, &mut self.arena) } {
            Some(spot) => self.address(spot),
            None => self.allocate_refused(size, ALIGN),
        }
    }

    /// A block that the pools refused, on pages of its own where the rule lets it have some; else null.
    #[cold]
    fn allocate_refused(&mut self, size: usize, align: usize) -> *mut u8 {
        let mut address = ptr::null_mut();
        if self.mapped.rule.serves_refused(size, align) {
            address = self.mapped.allocate(size, align);
        }
        if address.is_null() {
            self.settle();
            return address;
        }
        self.pools.count_served_after_all();
        self.pools.count_allocation(size);
        self.served(Event::Allocate, address, size)
    }

    /// A block of any alignment and size, or null.
    #[inline(never)]
    pub(crate) fn allocate_aligned(&mut self, size: usize, align: usize) -> *mut u8 {
        let size = bounded(size, align);
        if self.mapped.rule.serves(size, align) {
            let address = self.mapped.allocate(size, align);
            if !address.is_null() {
                self.pools.count_allocation(size);
                return self.served(Event::Allocate, address, size);
            }
        }
        // SAFETY: the arena is the source of every pool.
        let spot = unsafe { self.pools.allocate(size, align, &mut self.arena) };
        let Some(spot) = spot else {
            return self.allocate_refused(size, align);
        };
        let address = self.address(spot);
        self.served(Event::Allocate, address, size)
    }

    /// Notes what was served, and looks what it means for mappings.
    #[inline(always)]
    fn served(&mut self, event: Event, address: *mut u8, size: usize) -> *mut u8 {
        self.settle();
        self.note(event, address, size);
        address
    }

    #[inline(always)]
    fn settle(&mut self) {
        self.mapped.settle(|| self.pools.footprint());
        self.look_ahead();
    }

    /// Says which requests will concern the pools alone.
    #[inline(always)]
    fn look_ahead(&mut self) {
        let looks = self.report.is_some() || self.mapped.needs_looks();
        self.plain = match looks {
            true => 0,
            // Few requests are larger, and sums of what is not larger overflow nowhere.
            false => u32::try_from(self.mapped.rule.from().saturating_sub(1)).unwrap_or(u32::MAX),
        };
    }

    /// Whether a block just allocated is pages that nothing was written to.
    pub(crate) fn is_fresh(&self, address: *mut u8) -> bool {
        self.arena.locate(address).is_none() && self.mapped.pages.zeroed()
    }

    /// Frees a block.
    #[inline(always)]
    pub(crate) fn free(&mut self, place: NonNull<u8>) -> Result<(), BadFree> {
        let spot = match self.spot(place) {
            Ok(spot) => spot,
            Err(BadFree::Foreign) => return self.free_mapped(place.as_ptr()),
            Err(why) => return Err(why),
        };
        // SAFETY: the program frees a block of this heap, as far as can be told.
        unsafe { self.pools.free(spot) }?;
        self.note(Event::Free, place.as_ptr(), 0);
        Ok(())
    }

    #[cold]
    fn free_mapped(&mut self, address: *mut u8) -> Result<(), BadFree> {
        let found = self.mapped.find(address)?;
        self.note(Event::Free, address, 0);
        self.pools.count_free(found.block.size);
        self.mapped.free(found, self.pools.footprint());
        self.look_ahead();
        Ok(())
    }

    /// Resizes a block to at least one byte.
    pub(crate) fn resize(&mut self, place: NonNull<u8>, size: usize) -> Result<*mut u8, Refused> {
        let size = bounded(size, ALIGN);
        let address = place.as_ptr();
        let resized = match self.spot(place) {
            Ok(spot) => self.resize_spot(spot, size),
            Err(BadFree::Foreign) => match self.mapped.find(address) {
                Ok(found) => self.resize_mapped(address, found, size),
                Err(why) => Err(Refused::Bad(why)),
            },
            Err(why) => Err(Refused::Bad(why)),
        };
        match resized {
            Ok(new) => Ok(self.served(Event::Resize, new, size)),
            Err(why) => {
                self.settle();
                Err(why)
            }
        }
    }

    fn resize_spot(&mut self, spot: Spot<NonNull<u8>>, size: usize) -> Result<*mut u8, Refused> {
        if self.mapped.rule.reaches(size)
            && let Some(new) = self.take_over(spot, size, Mapped::serves_growth)?
        {
            return Ok(new);
        }
        let slabs = self.arena.start(self.slabs);
        let copy = |from: Spot<NonNull<u8>>, to: Spot<NonNull<u8>>, bytes: usize| {
            let [from, to] = [from, to].map(|spot| match spot {
                Spot::Block(_, place) => place.as_ptr(),
                Spot::Slot(offset) => slabs.wrapping_add(offset),
            });
            // SAFETY: two distinct blocks in use, each of at least that many bytes.
            unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
        };
        // SAFETY: as for `allocate` and `free`.
        let moved = unsafe { self.pools.resize(spot, size, ALIGN, &mut self.arena, copy) };
        if let Some(moved) = moved.map_err(Refused::Bad)? {
            return Ok(self.address(moved));
        }
        let refused = |rule: &Mapped, _, size| rule.serves_refused(size, ALIGN);
        let moved = self.take_over(spot, size, refused)?;
        let moved = moved.ok_or(Refused::NoMemory)?;
        self.pools.count_served_after_all();
        Ok(moved)
    }

    /// Moves a block of a pool that grows to a mapping of its own; `None` where the rule does not
    /// serve a block of so many bytes that is to have so many, or the system refuses.
    #[cold]
    fn take_over(
        &mut self,
        spot: Spot<NonNull<u8>>,
        size: usize,
        serves: impl FnOnce(&Mapped, usize, usize) -> bool,
    ) -> Result<Option<*mut u8>, Refused> {
        // SAFETY: the program resizes a block of this heap, as far as can be told.
        let held = unsafe { self.pools.requested(spot) }.map_err(Refused::Bad)?;
        if !serves(&self.mapped.rule, held, size) {
            return Ok(None);
        }
        let new = self.mapped.take_over(size);
        if new.is_null() {
            return Ok(None);
        }
        // SAFETY: a block in use of `held` bytes, and a new one of `size`.
        unsafe { ptr::copy_nonoverlapping(self.address(spot), new, held.min(size)) };
        // SAFETY: as above.
        let freed = unsafe { self.pools.hand_over(spot) };
        if let Err(why) = freed {
            // What was found on the way is told; the block is as it was.
            if let Ok(found) = self.mapped.find(new) {
                let beside = self.pools.footprint();
                self.mapped.free(found, beside);
            }
            return Err(Refused::Bad(why));
        }
        self.pools.count_resize(held, size);
        Ok(Some(new))
    }

    #[cold]
    fn resize_mapped(
        &mut self,
        address: *mut u8,
        found: Found,
        size: usize,
    ) -> Result<*mut u8, Refused> {
        let held = found.block.size;
        if self.mapped.rule.keeps(size)
            && let Some(new) = self.resize_in_pages(found, size)
        {
            return Ok(new);
        }
        // SAFETY: the arena is the source of every pool.
        let spot = unsafe { self.pools.take_over(size, ALIGN, &mut self.arena) };
        let Some(spot) = spot else {
            let kept = self.mapped.rule.keeps_refused(size);
            let kept = kept.then(|| self.resize_in_pages(found, size));
            let kept = kept.flatten().ok_or(Refused::NoMemory)?;
            self.pools.count_served_after_all();
            return Ok(kept);
        };
        let new = self.address(spot);
        // SAFETY: a block in use of `held` bytes, and a new one of `size`.
        unsafe { ptr::copy_nonoverlapping(address, new, held.min(size)) };
        self.pools.count_resize(held, size);
        self.mapped.free(found, self.pools.footprint());
        Ok(new)
    }

    /// Resizes a mapped block as one; `None`, and the block as it was, where the system refuses.
    fn resize_in_pages(&mut self, found: Found, size: usize) -> Option<*mut u8> {
        let held = found.block.size;
        let new = self.mapped.resize(found, size, self.pools.footprint());
        (!new.is_null()).then(|| {
            self.pools.count_resize(held, size);
            new
        })
    }

    /// The bytes that the program may use: those that it has requested, so that
    /// what it does with them does not depend on the heap.
    pub(crate) fn usable_size(&mut self, place: NonNull<u8>) -> Result<usize, BadFree> {
        match self.spot(place) {
            // SAFETY: the program asks about a block of this heap, as far as can be told.
            Ok(spot) => unsafe { self.pools.requested(spot) },
            Err(BadFree::Foreign) => Ok(self.mapped.find(place.as_ptr())?.block.size),
            Err(why) => Err(why),
        }
    }

    /// Gives back what nothing uses; whether there was any.
    pub(crate) fn trim(&mut self) -> bool {
        let trimmed = self.mapped.trim(self.pools.footprint());
        self.look_ahead();
        trimmed
    }

    /// Footprint of each memory level, up to the last one with a pool.
    pub(crate) fn footprints(&self) -> ([usize; LEVELS], usize) {
        let levels = self.arena.levels();
        let mut footprints = [0; LEVELS];
        for (number, pool) in self.pools.pools().enumerate() {
            footprints[levels.of_general(number)] += pool.footprint();
        }
        let objects = self.pools.objects();
        footprints[levels.of_objects()] += objects.extent() + objects.record_bytes();
        // Where blocks are mapped, there is one level.
        footprints[0] = self.mapped.rule.footprint(footprints[0]);
        (footprints, levels.count())
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let own = self.pools.statistics();
        Statistics {
            footprint: self.mapped.rule.footprint(own.footprint),
            record_bytes: own.record_bytes + self.mapped.rule.record_bytes(),
            ..own
        }
    }

    /// Blocks that are mappings of their own, bytes of their pages, and the most of either at once.
    pub(crate) fn mapped_figures(&self) -> [usize; 4] {
        self.mapped.figures()
    }

    /// What became of the pages of mapped blocks, where a manager of regions has them.
    pub(crate) fn managed(&self) -> Option<Managed> {
        self.mapped.pages.managed()
    }

    /// What the program's events amounted to, if that is kept.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.report.as_ref().map(|report| report.digest)
    }
}

/// Gives general pool `number` its first region, at the beginning of its range.
fn begin<I: Index<S>, S: Records, const POOLS: usize, const OBJECTS: bool>(
    pools: &mut Composite<'static, I, S, POOLS, OBJECTS>,
    number: usize,
    increment: usize,
    arena: &mut Arena,
) -> Option<()> {
    let general = pools.general(number)?;
    general.reserve_span(arena.levels().span(number, SPAN));
    let first = general
        .smallest_region()
        .checked_next_multiple_of(increment)?;
    let start = NonNull::new(arena.start(number))?;
    if !arena.begin(number, first) {
        return None;
    }
    // SAFETY: `first` bytes from the start of a range of the arena were just opened, for this pool alone.
    let memory = unsafe { Memory::from_raw(start, first) };
    general.add_region(memory).ok()
}

/// What `METES_BAD_FREE` says.
fn ignores_bad_frees() -> bool {
    match variable("METES_BAD_FREE").as_deref() {
        None | Some(b"" | b"abort") => false,
        Some(b"ignore") => true,
        Some(other) => refuse(&format!(
            "METES_BAD_FREE is `{}`: it can be `abort` or `ignore`",
            String::from_utf8_lossy(other)
        )),
    }
}

/// Tables for the records of slabs: `slabs` of them, or as many as the system
/// grants address space for.
fn records(cut: &Slabs, mut slabs: usize) -> Option<(&'static mut [usize], &'static mut [u16])> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    while slabs >= FEWEST_SLABS {
        let (words, slots) = (cut.memory_words(slabs), slabs * cut.slots());
        let table = map(words * size_of::<usize>(), access);
        let slack = map(slots * size_of::<u16>(), access);
        if let (Some(table), Some(slack)) = (table, slack) {
            // SAFETY: fresh mappings of these lengths, aligned to a page, that
            // stay; zero bytes are valid for both types.
            return Some(unsafe {
                (
                    core::slice::from_raw_parts_mut(table.cast(), words),
                    core::slice::from_raw_parts_mut(slack.cast(), slots),
                )
            });
        }
        slabs /= 2;
    }
    None
}

/// Fills a new block with zeros.
///
/// # Safety
/// `size` bytes from `address` must be the caller's alone.
#[inline(always)]
pub(crate) unsafe fn clear(address: *mut u8, size: usize) {
    if size >= LARGE {
        // SAFETY: the caller's contract.
        unsafe { clear_pages(address, size) };
    } else {
        // SAFETY: the caller's contract.
        unsafe { ptr::write_bytes(address, 0, size) };
    }
}

/// As [`clear`], but gives whole pages back to the kernel, which has them
/// zeroed when they are used again, if ever.
#[cold]
unsafe fn clear_pages(address: *mut u8, size: usize) {
    let first = address.addr().next_multiple_of(PAGE) - address.addr();
    let last = (address.addr() + size) / PAGE * PAGE - address.addr();
    let errno = crate::process::errno();
    let pages = address.wrapping_add(first);
    // SAFETY: whole pages of a private anonymous mapping, inside the block.
    let dropped = unsafe { libc::madvise(pages.cast(), last - first, libc::MADV_DONTNEED) };
    crate::process::set_errno(errno);
    // SAFETY: the caller's contract; locked memory is refused, and cleared here.
    unsafe {
        if dropped != 0 {
            ptr::write_bytes(pages, 0, last - first);
        }
        ptr::write_bytes(address, 0, first);
        ptr::write_bytes(address.wrapping_add(last), 0, size - last);
    }
}
