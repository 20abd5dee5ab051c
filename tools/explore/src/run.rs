//! The loop over the events of a trace.
//!
//! Invariant: what it adds up depends on the events, the heap and the cost
//! model alone; a watcher may end it early but not change it.

use crate::cost::CostModel;
use crate::events::{Accesses, Event, Events, Operation};
use crate::hierarchy::Counts;
use crate::mappings::Mappings;
use crate::placement::Placements;
use crate::pools::{Pools, fetch};
use metes_heap::description::LEVELS;

/// Events between two looks of the watcher.
pub(crate) const CHECK_EVERY: usize = 1024;

/// Sums over the events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) events: usize,
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) resizes: u64,
    pub(crate) failed: u64,
    pub(crate) live: u64,
    pub(crate) peak_live: u64,
    pub(crate) blocks: u64,
    pub(crate) peak_blocks: u64,
    pub(crate) footprint: u64,
    /// Of several traces, each as often as its share says; a replay of one leaves it alone.
    pub(crate) footprint_sum: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) copied: u64,
    pub(crate) cycles: u64,
    /// Those of `cycles` that went into copying blocks which moved.
    pub(crate) copy_cycles: u64,
    /// Most cycles of one operation without what it copied, and most that one copied.
    pub(crate) most_own_cycles: u64,
    pub(crate) most_copy_cycles: u64,
    /// Most record accesses and most cycles of one operation, by operation.
    pub(crate) most_accesses: [u64; 3],
    pub(crate) most_cycles: [u64; 3],
    /// By memory level. Record words and footprints are those of the latest look.
    pub(crate) levels: [Counts; LEVELS],
}

impl Totals {
    /// Forgets what operations so far have cost; what they took stays.
    pub(crate) fn forget_cost(&mut self) {
        (self.reads, self.writes, self.copied, self.cycles) = (0, 0, 0, 0);
        (
            self.copy_cycles,
            self.most_own_cycles,
            self.most_copy_cycles,
        ) = (0, 0, 0);
        (self.most_accesses, self.most_cycles) = ([0; 3], [0; 3]);
    }
}

/// What is kept of every event.
pub(crate) trait Detail {
    /// Whether [`event`](Detail::event) wants to be told.
    const ON: bool;
    fn event(&mut self, operation: Operation, offset: u64, size: u64, totals: &Totals);
}

/// Nothing.
impl Detail for () {
    const ON: bool = false;
    #[inline(always)]
    fn event(&mut self, _operation: Operation, _offset: u64, _size: u64, _totals: &Totals) {}
}

/// Hashes of placements and requests, and the curve of the footprint.
pub(crate) struct Record {
    pub(crate) hashes: Placements,
    pub(crate) curve: Vec<(u64, u64, u64)>,
    stride: usize,
    last: u64,
}

impl Record {
    /// About `points` points of the curve, and one wherever the footprint changes.
    pub(crate) fn new(events: usize, points: usize) -> Self {
        Record {
            hashes: Placements::EMPTY,
            curve: Vec::new(),
            stride: events.div_ceil(points.max(1)).max(1),
            last: u64::MAX,
        }
    }
}

impl Detail for Record {
    const ON: bool = true;

    #[inline(always)]
    fn event(&mut self, operation: Operation, offset: u64, size: u64, totals: &Totals) {
        if offset != u64::MAX {
            self.hashes.add(operation, offset, size);
        }
        if totals.footprint != self.last || totals.events.is_multiple_of(self.stride) {
            self.last = totals.footprint;
            self.curve
                .push((totals.events as u64, totals.footprint, totals.live));
        }
    }
}

/// What the program holds in a slot.
#[derive(Clone, Copy)]
pub(crate) struct Held<P> {
    pub(crate) place: Option<P>,
    pub(crate) size: u64,
}

/// So many live blocks are in the processor's cache all the time, with their records.
const CACHED: usize = 4096;
/// How many events before a block is asked for its entry is fetched, and, of the entry,
/// its record.
const ENTRY_AHEAD: usize = 16;
const RECORD_AHEAD: usize = 8;

/// Fetches what coming events will ask for: a trace knows what an allocator does not.
#[inline(always)]
fn approach<P: Pools>(coming: &[Event], held: &[Held<P::Place>], pools: &P) {
    if let Some(event) = coming.get(ENTRY_AHEAD) {
        fetch(&raw const held[event.slot() as usize]);
    }
    if let Some(event) = coming.get(RECORD_AHEAD)
        && let Some(place) = held[event.slot() as usize].place
    {
        pools.approach(place);
    }
}

/// Charges what the program did to a block to the level where it lay.
#[inline(always)]
fn charge(totals: &mut Totals, level: usize, accesses: Accesses) {
    let counts = &mut totals.levels[level];
    counts.application_reads += accesses.reads;
    counts.application_writes += accesses.writes;
}

/// Replays `events`; `watch` sees the totals every [`CHECK_EVERY`] events and
/// ends the run with `false`. Returns whether it came to the end.
pub(crate) fn run<P: Pools, D: Detail>(
    events: &Events,
    pools: &mut P,
    cost: &CostModel,
    mapped: Option<usize>,
    detail: &mut D,
    watch: &mut dyn FnMut(&Totals) -> bool,
) -> (Totals, bool) {
    let mut held: Vec<Held<P::Place>> = vec![
        Held {
            place: None,
            size: 0
        };
        events.slots()
    ];
    let accesses = events.accesses();
    let remaining = events.left();
    let first = events.counted();
    let events = events.as_slice();
    let mut totals = Totals {
        footprint: pools.footprint() as u64,
        ..Totals::default()
    };
    // What setting up touched is not the trace's.
    let mut start = pools.counts();
    let start_levels = pools.levels();
    let mut mapped = Mappings::new(mapped);
    look(pools, &mapped, &start_levels, &mut totals);
    let mut before = start;
    let (setup, counted) = events.split_at(first);
    let scattered = held.len() > CACHED;
    for chunk in setup.chunks(CHECK_EVERY).chain(counted.chunks(CHECK_EVERY)) {
        if totals.events == first && first > 0 {
            totals.forget_cost();
            start = before;
        }
        for event in chunk {
            if scattered {
                approach(&events[totals.events..], &held, pools);
            }
            // Empty unless the accesses of the program were recorded.
            let touched = accesses.get(totals.events).copied();
            let Step {
                offset,
                copied,
                cycles: system,
            } = step(
                *event,
                touched,
                &mut held,
                pools,
                &mut mapped,
                &mut totals,
                D::ON,
            );
            let after = pools.counts();
            let operation = event.operation();
            let (reads, writes) = (after.0 - before.0, after.1 - before.1);
            before = after;
            let own = cost.cycles(operation, reads, writes, 0);
            let copying = copied / cost.copy_rate;
            let cycles = own + copying;
            let kind = operation as usize;
            // What the system takes to map a block depends on the requests alone, and would hide in
            // the maxima what the heaps differ in.
            totals.cycles += cycles + system;
            totals.copied += copied;
            totals.copy_cycles += copying;
            totals.most_own_cycles = totals.most_own_cycles.max(own);
            totals.most_copy_cycles = totals.most_copy_cycles.max(copying);
            totals.most_cycles[kind] = totals.most_cycles[kind].max(cycles);
            totals.most_accesses[kind] = totals.most_accesses[kind].max(reads + writes);
            if D::ON {
                totals.footprint = mapped.rule.footprint(pools.footprint()) as u64;
                detail.event(operation, offset, event.size() as u64, &totals);
            }
            totals.events += 1;
        }
        totals.footprint = mapped.rule.footprint(pools.footprint()) as u64;
        (totals.reads, totals.writes) = (before.0 - start.0, before.1 - start.1);
        look(pools, &mapped, &start_levels, &mut totals);
        if totals.events == events.len() {
            for &(slot, accesses) in remaining {
                if let Some(place) = held[slot as usize].place {
                    charge(&mut totals, pools.level(place), accesses);
                } else if mapped.size(slot).is_some() {
                    charge(&mut totals, MAPPED_LEVEL, accesses);
                }
            }
        }
        if !watch(&totals) {
            return (totals, totals.events == events.len());
        }
    }
    (totals, true)
}

/// Notes what pools count themselves, by level.
fn look<P: Pools>(pools: &P, mapped: &Mappings, start: &[Counts; LEVELS], totals: &mut Totals) {
    let levels = pools.levels();
    for (total, (now, start)) in totals.levels.iter_mut().zip(levels.iter().zip(start)) {
        total.record_reads = now.record_reads - start.record_reads;
        total.record_writes = now.record_writes - start.record_writes;
        total.footprint = now.footprint;
    }
    let first = &mut totals.levels[MAPPED_LEVEL].footprint;
    *first = mapped.rule.footprint(*first as usize) as u64;
}

/// The memory level of mapped blocks: heaps that have them have but one.
pub(crate) const MAPPED_LEVEL: usize = 0;

/// What one event did.
pub(crate) struct Step {
    /// Offset of its block: all ones for a failed one; zero unless wanted.
    pub(crate) offset: u64,
    /// Bytes that a move copied.
    pub(crate) copied: u64,
    /// Modelled cycles that the system took.
    pub(crate) cycles: u64,
}

impl Step {
    const FAILED: Step = Step::at(u64::MAX);

    const fn at(offset: u64) -> Self {
        Step {
            offset,
            copied: 0,
            cycles: 0,
        }
    }
}

/// Performs one event.
#[inline(always)]
pub(crate) fn step<P: Pools>(
    event: Event,
    touched: Option<Accesses>,
    held: &mut [Held<P::Place>],
    pools: &mut P,
    mapped: &mut Mappings,
    totals: &mut Totals,
    offsets: bool,
) -> Step {
    let size = event.size();
    let slot = event.slot();
    let entry = &mut held[slot as usize];
    match event.operation() {
        Operation::Allocate => {
            totals.allocations += 1;
            let step = allocate(event, entry, pools, mapped, totals, offsets);
            // What the spare takes is not asked for.
            let _ = mapped.rule.gives_back(|| pools.footprint());
            step
        }
        Operation::Free => {
            totals.frees += 1;
            let Some(place) = entry.place.take() else {
                // A request that failed left nothing to free.
                let Some(done) = mapped.free(slot, pools.footprint()) else {
                    return Step::FAILED;
                };
                if let Some(accesses) = touched {
                    charge(totals, MAPPED_LEVEL, accesses);
                }
                totals.live -= entry.size;
                totals.blocks -= 1;
                return Step {
                    cycles: done.cycles,
                    ..Step::at(done.offset)
                };
            };
            let offset = if offsets { pools.offset(place) } else { 0 };
            if let Some(accesses) = touched {
                charge(totals, pools.level(place), accesses);
            }
            pools.free(place);
            totals.live -= entry.size;
            totals.blocks -= 1;
            Step::at(offset)
        }
        Operation::Resize => {
            totals.resizes += 1;
            let step = match entry.place {
                Some(place)
                    if !mapped.rule.reaches(size)
                        || !mapped.rule.serves_growth(entry.size as usize, size) =>
                {
                    resize(event, touched, entry, place, pools, totals, offsets)
                }
                Some(place) => {
                    let done = mapped.take_over(slot, size);
                    let from = pools.level(place);
                    if let Some(accesses) = touched {
                        charge(totals, from, accesses);
                    }
                    pools.free(place);
                    entry.place = None;
                    let copied = entry.size;
                    moved(totals, entry, size, copied, [from, MAPPED_LEVEL]);
                    Step {
                        copied,
                        cycles: done.cycles,
                        ..Step::at(done.offset)
                    }
                }
                None if mapped.size(slot).is_some() => {
                    resize_mapped(event, touched, entry, pools, mapped, totals, offsets)
                }
                // As `realloc(NULL, size)`.
                None => allocate(event, entry, pools, mapped, totals, offsets),
            };
            let _ = mapped.rule.gives_back(|| pools.footprint());
            step
        }
    }
}

#[inline(always)]
fn allocate<P: Pools>(
    event: Event,
    entry: &mut Held<P::Place>,
    pools: &mut P,
    mapped: &mut Mappings,
    totals: &mut Totals,
    offsets: bool,
) -> Step {
    let size = event.size();
    entry.size = size as u64;
    if mapped.rule.serves(size, event.align()) {
        let done = mapped.allocate(event.slot(), size);
        taken(totals, size as u64);
        return Step {
            cycles: done.cycles,
            ..Step::at(done.offset)
        };
    }
    entry.place = pools.allocate(size, event.align());
    let Some(place) = entry.place else {
        totals.failed += 1;
        return Step::FAILED;
    };
    taken(totals, size as u64);
    Step::at(if offsets { pools.offset(place) } else { 0 })
}

/// Resizes a block that stays in the pools.
#[inline(always)]
fn resize<P: Pools>(
    event: Event,
    touched: Option<Accesses>,
    entry: &mut Held<P::Place>,
    place: P::Place,
    pools: &mut P,
    totals: &mut Totals,
    offsets: bool,
) -> Step {
    let size = event.size();
    let from = pools.level(place);
    if let Some(accesses) = touched {
        charge(totals, from, accesses);
    }
    let Some(new) = pools.resize(place, size, event.align()) else {
        totals.failed += 1;
        return Step::FAILED;
    };
    let copied = if new == place {
        0
    } else {
        entry.size.min(size as u64)
    };
    entry.place = Some(new);
    moved(totals, entry, size, copied, [from, pools.level(new)]);
    Step {
        copied,
        ..Step::at(if offsets { pools.offset(new) } else { 0 })
    }
}

/// Resizes a mapped block, which a pool takes over where it became small.
#[cold]
fn resize_mapped<P: Pools>(
    event: Event,
    touched: Option<Accesses>,
    entry: &mut Held<P::Place>,
    pools: &mut P,
    mapped: &mut Mappings,
    totals: &mut Totals,
    offsets: bool,
) -> Step {
    let (size, slot) = (event.size(), event.slot());
    if let Some(accesses) = touched {
        charge(totals, MAPPED_LEVEL, accesses);
    }
    if mapped.rule.keeps(size)
        && let Some(done) = mapped.resize(slot, size, pools.footprint())
    {
        moved(totals, entry, size, 0, [MAPPED_LEVEL; 2]);
        return Step {
            cycles: done.cycles,
            ..Step::at(done.offset)
        };
    }
    let Some(place) = pools.allocate(size, event.align()) else {
        totals.failed += 1;
        return Step::FAILED;
    };
    let freed = mapped.free(slot, pools.footprint());
    entry.place = Some(place);
    let copied = entry.size.min(size as u64);
    moved(
        totals,
        entry,
        size,
        copied,
        [MAPPED_LEVEL, pools.level(place)],
    );
    Step {
        copied,
        cycles: freed.map_or(0, |done| done.cycles),
        ..Step::at(if offsets { pools.offset(place) } else { 0 })
    }
}

/// Counts that the block of an entry has `size` bytes now, of which so many were copied from a
/// level to another.
#[inline(always)]
fn moved<P>(
    totals: &mut Totals,
    entry: &mut Held<P>,
    size: usize,
    copied: u64,
    [from, to]: [usize; 2],
) {
    totals.levels[from].copied_from += copied;
    totals.levels[to].copied_to += copied;
    totals.live = totals.live - entry.size + size as u64;
    totals.peak_live = totals.peak_live.max(totals.live);
    entry.size = size as u64;
}

#[inline(always)]
fn taken(totals: &mut Totals, size: u64) {
    totals.live += size;
    totals.peak_live = totals.peak_live.max(totals.live);
    totals.blocks += 1;
    totals.peak_blocks = totals.peak_blocks.max(totals.blocks);
}
