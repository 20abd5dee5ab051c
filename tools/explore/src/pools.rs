//! The heaps that a replay drives: the library's own, over a counted ledger.
//!
//! A replay runs the very algorithm that will serve the program: the same
//! `Heap` and `Composite`, with records in a ledger that keeps the geometry of
//! boundary tags, so that no managed memory exists and every offset agrees.
//!
//! Invariant: a place handed out is freed or resized at most once, so that the
//! ledger never refuses one.

use crate::detail::SLABS;
use crate::hierarchy::Counts;
use crate::placement::{POOL_SHIFT, SLAB_BIT};
use crate::target::Target;
use metes_config::{Config, Pages};
use metes_heap::description::{Description, GENERAL, LEVELS};
use metes_heap::index::Index;
use metes_heap::store::ledger::{Handle, Lookup};
use metes_heap::{
    ByHandle, Composite, Counted, Heap, Ledger, Levels, Record, Source, Sources, Spot, Store,
};

/// The store of every replay.
pub(crate) type Counting<'a> = Counted<Ledger<'a, ByHandle>>;

/// What a replay asks of a heap.
pub(crate) trait Pools {
    /// What the program would hold.
    type Place: Copy + PartialEq;

    fn allocate(&mut self, size: usize, align: usize) -> Option<Self::Place>;
    fn free(&mut self, place: Self::Place);
    fn resize(&mut self, place: Self::Place, size: usize, align: usize) -> Option<Self::Place>;
    /// Says that a place in use will be freed or resized soon. Changes nothing.
    fn approach(&self, place: Self::Place);
    /// Offset as the placement hash defines it.
    fn offset(&self, place: Self::Place) -> u64;
    /// Bytes that a place in use takes: its record and what the program may use, in a slab its slot.
    fn taken(&self, place: Self::Place) -> usize;
    /// Record words read and written so far.
    fn counts(&self) -> (u64, u64);
    /// Memory level of a place in use, below [`LEVELS`].
    fn level(&self, place: Self::Place) -> usize;
    /// Record words and footprint by level; what the program did is not known here.
    fn levels(&self) -> [Counts; LEVELS];
    /// What one pool counted and took: a general pool by number, or
    /// [`SLABS`](crate::detail::SLABS).
    fn part(&self, part: usize) -> Counts;
    /// Control structures of that pool, asked before the first event.
    fn part_control(&self, part: usize) -> usize;
    /// Bytes taken from the system.
    fn footprint(&self) -> usize;
    /// Bytes of control structures beside the blocks, asked before the first event.
    fn control(&self) -> usize;
    /// Requests so far that one general pool refused and another served.
    fn spilled(&self) -> u64 {
        0
    }
    /// Bytes of the range of slabs and of its table.
    fn slabs(&self) -> (usize, usize) {
        (0, 0)
    }
}

/// Where the arenas of a heap's general pools end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Arena {
    /// Growing arenas grow by multiples of this many bytes.
    pub increment: usize,
    /// Bytes that a growing arena may reach; the index is laid out for them.
    pub span: usize,
    /// Pools whose arena is one region of so many bytes and does not grow. Such
    /// a region is not counted against its level.
    pub fixed: [Option<usize>; GENERAL],
    /// Bytes that the pools of a level may take from the system together, where
    /// the level has a size. The index of a growing pool in such a level is laid
    /// out for that size instead of `span`; pools get their first regions in
    /// order, so that a later one may find too little left.
    pub levels: [Option<usize>; LEVELS],
    /// From what size on blocks are mappings of their own, by the rule of [`metes_heap::mapped`].
    /// Only where all arenas grow without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapped: Option<usize>,
    /// When pages of freed mapped blocks go back: written down with each heap, and nothing to a replay,
    /// which decides and counts the same whatever it is.
    #[serde(skip)]
    pub pages: Option<Pages>,
    /// What machine that is.
    #[serde(skip_serializing_if = "Target::is_host")]
    pub target: Target,
}

impl Arena {
    /// Arenas as the preload libraries have them on a host: 4 KiB at a time,
    /// up to 2³⁶ bytes, without [mapped](Self::mapped) blocks.
    pub const HOST: Arena = Arena {
        increment: 4096,
        span: 1 << 36,
        fixed: [None; GENERAL],
        levels: [None; LEVELS],
        mapped: None,
        pages: None,
        target: Target::Host,
    };

    /// From what size on blocks are mapped, if they are: memory that is fixed or limited has none
    /// beside it.
    pub fn mapped(&self) -> Option<usize> {
        let grows = self.fixed == [None; GENERAL] && self.levels == [None; LEVELS];
        self.mapped.filter(|_| grows)
    }

    /// Arenas as a configuration has them: with its growth, its levels' sizes, and its mapped blocks.
    pub fn of(config: &Config) -> Arena {
        Arena {
            increment: config.arena.increment,
            mapped: config.arena.mapped,
            pages: config.arena.pages,
            levels: config.level_sizes(),
            ..Arena::HOST
        }
    }

    /// A heap as it is written down for programs that are to run as replays here do.
    pub fn config(&self, heap: Description) -> Config {
        let mut config = Config::of(heap);
        config.arena.increment = self.increment;
        if config.can_map().is_ok() {
            config.arena.mapped = self.mapped();
            config.arena.pages = self.pages.filter(|_| config.arena.mapped.is_some());
        }
        config
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self::HOST
    }
}

/// Grants or refuses growth of one pool; there is no memory behind it.
pub(crate) struct Extent {
    increment: usize,
    grows: bool,
    levels: Levels,
}

// SAFETY: a ledger touches no memory, so any range behind it is its own.
unsafe impl Source for Extent {
    #[inline(always)]
    fn increment(&self) -> usize {
        self.increment
    }

    #[inline(always)]
    fn grow(&mut self, bytes: usize) -> bool {
        self.grows && self.levels.take(0, bytes)
    }
}

/// Grants or refuses growth of the pools of a heap, by what their levels have left.
pub(crate) struct Supply {
    arena: Arena,
    levels: Levels,
}

// SAFETY: as above.
unsafe impl Sources for Supply {
    #[inline(always)]
    fn increment(&self) -> usize {
        self.arena.increment
    }

    #[inline(always)]
    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        self.arena.fixed[pool].is_none() && self.levels.take(pool, bytes)
    }

    #[inline(always)]
    fn grow_slabs(&mut self, bytes: usize) -> bool {
        self.levels.take_slab(bytes)
    }
}

/// Gives a heap its first region by the rules of its arena; `false` when a
/// fixed one is too small even for the control structure, or the level has too
/// little left.
fn open<'a, I: Index<Counting<'a>>>(
    heap: &mut Heap<I, Counting<'a>>,
    arena: &Arena,
    pool: usize,
    levels: &mut Levels,
) -> bool {
    let bytes = match arena.fixed[pool] {
        Some(bytes) => bytes,
        None => {
            heap.reserve_span(levels.span(pool, arena.span));
            let least = heap.smallest_region();
            match least.checked_next_multiple_of(arena.increment) {
                Some(bytes) if levels.take(pool, bytes) => bytes,
                _ => return false,
            }
        }
    };
    heap.add_region(bytes).is_ok()
}

/// What a heap without used blocks keeps beside its blocks.
fn control<'a, I: Index<Counting<'a>>>(heap: &Heap<I, Counting<'a>>) -> usize {
    let statistics = heap.statistics();
    let headers = statistics.free_blocks * heap.store().geometry().header;
    statistics.record_bytes - heap.store().outside_bytes() - headers
}

/// Bytes that a block in use takes.
fn taken<'a, I: Index<Counting<'a>>>(heap: &Heap<I, Counting<'a>>, place: Handle) -> usize {
    // SAFETY: a ledger resolves live blocks only and touches no memory.
    let usable = unsafe { heap.usable_size(place) };
    usable.map_or(0, |usable| usable + heap.store().geometry().header)
}

/// What a heap counted itself.
fn counts_of<'a, I: Index<Counting<'a>>>(heap: &Heap<I, Counting<'a>>) -> Counts {
    Counts {
        record_reads: heap.store().reads(),
        record_writes: heap.store().writes(),
        footprint: heap.footprint() as u64,
        ..Counts::default()
    }
}

/// Where the records of a pool lie, which its heap has borrowed: known to fetch them
/// into the processor's cache, never to look at them.
#[derive(Clone, Copy)]
pub(crate) struct RecordsAt(*const Record);

impl RecordsAt {
    pub(crate) fn of(records: &[Record]) -> Self {
        RecordsAt(records.as_ptr())
    }

    #[inline(always)]
    fn approach(self, place: Handle) {
        if let Some((record, _)) = ByHandle.find(place) {
            let record = self.0.wrapping_add(record as usize);
            fetch(record);
            // It may reach into a second line.
            fetch(record.wrapping_byte_add(size_of::<Record>() - 1));
        }
    }
}

/// Fetches what an address names into the processor's cache, if it can.
#[inline(always)]
pub(crate) fn fetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, which accesses nothing as far
    // as a program can tell, whatever the address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A heap of one general pool.
pub(crate) struct Single<'a, I> {
    heap: Heap<I, Counting<'a>>,
    extent: Extent,
    records: RecordsAt,
}

impl<'a, I: Index<Counting<'a>>> Single<'a, I> {
    pub(crate) fn new(
        index: I,
        records: &'a mut [Record],
        arena: &Arena,
        description: &Description,
    ) -> Option<Self> {
        let at = RecordsAt::of(records);
        let mut heap = Heap::new(index, store(records, arena.target));
        let mut levels = Levels::of(description, arena.levels);
        open(&mut heap, arena, 0, &mut levels).then_some(Single {
            heap,
            records: at,
            extent: Extent {
                increment: arena.increment,
                grows: arena.fixed[0].is_none(),
                levels,
            },
        })
    }
}

/// The store over an array of records.
pub(crate) fn store(records: &mut [Record], target: Target) -> Counting<'_> {
    Counted::new(Ledger::new(records, ByHandle, target.geometry()))
}

impl<'a, I: Index<Counting<'a>>> Pools for Single<'a, I> {
    type Place = Handle;

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Option<Handle> {
        // SAFETY: the extent is the one behind this heap.
        unsafe { self.heap.allocate_from(size, align, &mut self.extent) }
    }

    #[inline(always)]
    fn free(&mut self, place: Handle) {
        // SAFETY: a ledger resolves live blocks only and touches no memory.
        let freed = unsafe { self.heap.free(place) };
        debug_assert_eq!(freed, Ok(()), "the events free live blocks only");
    }

    #[inline(always)]
    fn resize(&mut self, place: Handle, size: usize, align: usize) -> Option<Handle> {
        // SAFETY: a ledger resolves live blocks only and touches no memory.
        let resized = unsafe { self.heap.resize_from(place, size, align, &mut self.extent) };
        debug_assert!(resized.is_ok(), "the events resize live blocks only");
        resized.ok().flatten()
    }

    #[inline(always)]
    fn approach(&self, place: Handle) {
        self.records.approach(place);
    }

    #[inline(always)]
    fn offset(&self, place: Handle) -> u64 {
        self.heap.place_offset(place) as u64
    }

    fn taken(&self, place: Handle) -> usize {
        taken(&self.heap, place)
    }

    #[inline(always)]
    fn counts(&self) -> (u64, u64) {
        (self.heap.store().reads(), self.heap.store().writes())
    }

    #[inline(always)]
    fn level(&self, _place: Handle) -> usize {
        self.extent.levels.of_general(0)
    }

    fn levels(&self) -> [Counts; LEVELS] {
        let mut levels = [Counts::default(); LEVELS];
        levels[self.extent.levels.of_general(0)] = counts_of(&self.heap);
        levels
    }

    fn part(&self, _part: usize) -> Counts {
        counts_of(&self.heap)
    }

    fn part_control(&self, _part: usize) -> usize {
        control(&self.heap)
    }

    #[inline(always)]
    fn footprint(&self) -> usize {
        self.heap.footprint()
    }

    fn control(&self) -> usize {
        control(&self.heap)
    }
}

/// Counts what object pools touch in their table of slabs.
///
/// The table counts nothing itself, but every step it takes follows from how
/// full a slab is before and after: taking a slab, filling it up and emptying
/// it change lists, all else changes one bitmap. A word of a slab's record is
/// counted as one access, as everywhere.
#[derive(Default)]
struct Meter {
    used: Vec<u32>,
    /// Bits of a word.
    bits: u64,
    /// Whether a word says which words of a bitmap are not full.
    summarised: bool,
    /// Words of a bitmap.
    words: u64,
    reads: u64,
    writes: u64,
}

impl Meter {
    #[inline(always)]
    fn allocated(&mut self, slab: usize, slot: usize, slots: u32) {
        if slab >= self.used.len() {
            self.used.resize(slab + 1, 0);
        }
        // The table from size to pool, the pool's list, the summary or the bitmap up
        // to the first free slot, the count; what changes is written.
        let searched = match self.summarised {
            true => 2,
            false => slot as u64 / self.bits + 1,
        };
        self.reads += 3 + searched;
        self.writes += 2 + u64::from(self.summarised);
        if self.used[slab] == 0 {
            // Taken from the empty ones or new, its bitmap, two links, count and
            // pool written, put in front.
            let bitmap = match self.summarised {
                true => 1 + u64::from(slots).div_ceil(self.bits),
                false => self.words,
            };
            self.reads += 3;
            self.writes += 1 + bitmap + 2 + 3;
        }
        self.used[slab] += 1;
        if self.used[slab] == slots {
            self.reads += 1;
            self.writes += 2;
        }
    }

    #[inline(always)]
    fn freed(&mut self, slab: usize, slots: u32) {
        // The slab's pool, the pool's slot size, the bitmap word and what sums it up,
        // the count.
        self.reads += 4 + u64::from(self.summarised);
        self.writes += 2 + u64::from(self.summarised);
        let full = self.used[slab] == slots;
        self.used[slab] -= 1;
        if self.used[slab] == 0 {
            self.reads += 1;
            self.writes += 3;
            if !full {
                self.reads += 1;
                self.writes += 2;
            }
        } else if full {
            self.reads += 1;
            self.writes += 4;
        }
    }
}

/// A heap of several pools.
pub(crate) struct Many<'a, I> {
    composite: Composite<'a, I, Counting<'a>>,
    supply: Supply,
    slab: usize,
    /// Bytes of the record of a slab on the target.
    record: usize,
    meter: Meter,
    /// Of the general pools.
    records: [RecordsAt; GENERAL],
}

impl<'a, I: Index<Counting<'a>>> Many<'a, I> {
    pub(crate) fn new(
        mut composite: Composite<'a, I, Counting<'a>>,
        records: [RecordsAt; GENERAL],
        arena: Arena,
        description: &Description,
    ) -> Option<Self> {
        let mut levels = Levels::of(description, arena.levels);
        for pool in 0..GENERAL {
            if let Some(heap) = composite.general(pool)
                && !open(heap, &arena, pool, &mut levels)
            {
                return None;
            }
        }
        let (slabs, target) = (description.slabs(), arena.target);
        Some(Many {
            slab: composite.objects().slab_bytes(),
            record: target.slab_record(&slabs),
            composite,
            records,
            supply: Supply { arena, levels },
            meter: Meter {
                bits: target.bits() as u64,
                summarised: slabs.summarised(),
                words: target.bitmap(&slabs) as u64,
                ..Meter::default()
            },
        })
    }

    /// Slab, slot and slots a slab of a place in use.
    #[inline(always)]
    fn slot(&self, offset: usize) -> (usize, usize, u32) {
        let size = self
            .composite
            .objects()
            .sizes(offset)
            .map_or(self.slab, |sizes| sizes.1);
        let within = offset & (self.slab - 1);
        (offset / self.slab, within / size, (self.slab / size) as u32)
    }

    #[inline(always)]
    fn note_taken(&mut self, spot: Spot<Handle>) {
        if let Spot::Slot(offset) = spot {
            let (slab, slot, slots) = self.slot(offset);
            self.meter.allocated(slab, slot, slots);
        }
    }
}

impl<'a, I: Index<Counting<'a>>> Pools for Many<'a, I> {
    type Place = Spot<Handle>;

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Option<Spot<Handle>> {
        // SAFETY: the supply is the one behind this heap.
        let spot = unsafe { self.composite.allocate(size, align, &mut self.supply) }?;
        self.note_taken(spot);
        Some(spot)
    }

    #[inline(always)]
    fn free(&mut self, place: Spot<Handle>) {
        if let Spot::Slot(offset) = place {
            let (slab, _, slots) = self.slot(offset);
            self.meter.freed(slab, slots);
        }
        // SAFETY: ledger and slab table resolve live blocks only.
        let freed = unsafe { self.composite.free(place) };
        debug_assert!(freed.is_ok(), "the events free live blocks only");
    }

    fn resize(&mut self, place: Spot<Handle>, size: usize, align: usize) -> Option<Spot<Handle>> {
        let held = match place {
            Spot::Slot(offset) => Some(self.slot(offset)),
            Spot::Block(..) => None,
        };
        // SAFETY: as in `free`; no payload exists that could be copied.
        let resized = unsafe {
            self.composite
                .resize(place, size, align, &mut self.supply, |_, _, _| {})
        };
        debug_assert!(resized.is_ok(), "the events resize live blocks only");
        let new = resized.ok().flatten()?;
        if new != place {
            self.note_taken(new);
            if let Some((slab, _, slots)) = held {
                self.meter.freed(slab, slots);
            }
        }
        Some(new)
    }

    #[inline(always)]
    fn approach(&self, place: Spot<Handle>) {
        if let Spot::Block(pool, place) = place {
            self.records[pool].approach(place);
        }
    }

    #[inline(always)]
    fn offset(&self, place: Spot<Handle>) -> u64 {
        match place {
            Spot::Slot(offset) => offset as u64 | SLAB_BIT,
            Spot::Block(pool, place) => {
                let within = self
                    .composite
                    .pools()
                    .nth(pool)
                    .map_or(0, |heap| heap.place_offset(place));
                ((pool as u64) << POOL_SHIFT) + within as u64
            }
        }
    }

    fn taken(&self, place: Spot<Handle>) -> usize {
        match place {
            Spot::Slot(offset) => {
                let sizes = self.composite.objects().sizes(offset);
                sizes.map_or(0, |(_, slot)| slot)
            }
            Spot::Block(pool, place) => {
                let heap = self.composite.pools().nth(pool);
                heap.map_or(0, |heap| taken(heap, place))
            }
        }
    }

    #[inline(always)]
    fn counts(&self) -> (u64, u64) {
        let mut reads = self.meter.reads;
        let mut writes = self.meter.writes;
        for heap in self.composite.pools() {
            reads += heap.store().reads();
            writes += heap.store().writes();
        }
        (reads, writes)
    }

    #[inline(always)]
    fn level(&self, place: Spot<Handle>) -> usize {
        match place {
            Spot::Slot(_) => self.supply.levels.of_objects(),
            Spot::Block(pool, _) => self.supply.levels.of_general(pool),
        }
    }

    fn levels(&self) -> [Counts; LEVELS] {
        let mut levels = [Counts::default(); LEVELS];
        let mut add = |level: usize, part: Counts| {
            let counts = &mut levels[level];
            counts.record_reads += part.record_reads;
            counts.record_writes += part.record_writes;
            counts.footprint += part.footprint;
        };
        for (pool, heap) in self.composite.pools().enumerate() {
            add(self.supply.levels.of_general(pool), counts_of(heap));
        }
        add(self.supply.levels.of_objects(), self.part(SLABS));
        levels
    }

    fn part(&self, part: usize) -> Counts {
        if let Some(heap) = self.composite.pools().nth(part) {
            return counts_of(heap);
        }
        let (extent, table) = self.slabs();
        Counts {
            record_reads: self.meter.reads,
            record_writes: self.meter.writes,
            footprint: (extent + table) as u64,
            ..Counts::default()
        }
    }

    fn part_control(&self, part: usize) -> usize {
        self.composite.pools().nth(part).map_or(0, control)
    }

    #[inline(always)]
    fn footprint(&self) -> usize {
        let here = self.composite.footprint();
        match self.supply.arena.target {
            Target::Host => here,
            Target::Bare32 | Target::Wasm32 => {
                here - self.composite.objects().record_bytes() + self.slabs().1
            }
        }
    }

    fn spilled(&self) -> u64 {
        self.composite.spilled()
    }

    fn control(&self) -> usize {
        self.composite.pools().map(control).sum()
    }

    fn slabs(&self) -> (usize, usize) {
        let objects = self.composite.objects();
        let extent = objects.extent();
        // Without object pools a slab has no bytes.
        let count = extent.checked_div(self.slab).unwrap_or(0);
        (extent, count * self.record)
    }
}
