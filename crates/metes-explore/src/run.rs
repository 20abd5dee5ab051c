//! The loop over the events of a trace.
//!
//! Invariant: what it adds up depends on the events, the heap and the cost
//! model alone; a watcher may end it early but not change it.

use crate::cost::CostModel;
use crate::events::{Accesses, Event, Events, Operation};
use crate::hierarchy::Counts;
use crate::placement::Placements;
use crate::pools::Pools;
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
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) copied: u64,
    pub(crate) cycles: u64,
    /// Most record accesses and most cycles of one operation, by operation.
    pub(crate) most_accesses: [u64; 3],
    pub(crate) most_cycles: [u64; 3],
    /// By memory level. Record words and footprints are those of the latest look.
    pub(crate) levels: [Counts; LEVELS],
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
    let events = events.as_slice();
    let mut totals = Totals {
        footprint: pools.footprint() as u64,
        ..Totals::default()
    };
    // What setting up touched is not the trace's.
    let start = pools.counts();
    let start_levels = pools.levels();
    look(pools, &start_levels, &mut totals);
    let mut before = start;
    for chunk in events.chunks(CHECK_EVERY) {
        for event in chunk {
            // Empty unless the accesses of the program were recorded.
            let touched = accesses.get(totals.events).copied();
            let (offset, copied) = step(*event, touched, &mut held, pools, &mut totals, D::ON);
            let after = pools.counts();
            let operation = event.operation();
            let (reads, writes) = (after.0 - before.0, after.1 - before.1);
            before = after;
            let cycles = cost.cycles(operation, reads, writes, copied);
            let kind = operation as usize;
            totals.cycles += cycles;
            totals.copied += copied;
            totals.most_cycles[kind] = totals.most_cycles[kind].max(cycles);
            totals.most_accesses[kind] = totals.most_accesses[kind].max(reads + writes);
            if D::ON {
                totals.footprint = pools.footprint() as u64;
                detail.event(operation, offset, event.size() as u64, &totals);
            }
            totals.events += 1;
        }
        totals.footprint = pools.footprint() as u64;
        (totals.reads, totals.writes) = (before.0 - start.0, before.1 - start.1);
        look(pools, &start_levels, &mut totals);
        if totals.events == events.len() {
            for &(slot, accesses) in remaining {
                if let Some(place) = held[slot as usize].place {
                    charge(&mut totals, pools.level(place), accesses);
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
fn look<P: Pools>(pools: &P, start: &[Counts; LEVELS], totals: &mut Totals) {
    let levels = pools.levels();
    for (total, (now, start)) in totals.levels.iter_mut().zip(levels.iter().zip(start)) {
        total.record_reads = now.record_reads - start.record_reads;
        total.record_writes = now.record_writes - start.record_writes;
        total.footprint = now.footprint;
    }
}

/// Performs one event; returns the offset of its block (all ones for a failed
/// one; zero unless wanted) and the bytes that a move copies.
#[inline(always)]
pub(crate) fn step<P: Pools>(
    event: Event,
    touched: Option<Accesses>,
    held: &mut [Held<P::Place>],
    pools: &mut P,
    totals: &mut Totals,
    offsets: bool,
) -> (u64, u64) {
    let size = event.size();
    let entry = &mut held[event.slot() as usize];
    match event.operation() {
        Operation::Allocate => {
            totals.allocations += 1;
            entry.place = pools.allocate(size, event.align());
            entry.size = size as u64;
            let Some(place) = entry.place else {
                totals.failed += 1;
                return (u64::MAX, 0);
            };
            taken(totals, size as u64);
            (if offsets { pools.offset(place) } else { 0 }, 0)
        }
        Operation::Free => {
            totals.frees += 1;
            // A request that failed left nothing to free.
            let Some(place) = entry.place.take() else {
                return (u64::MAX, 0);
            };
            let offset = if offsets { pools.offset(place) } else { 0 };
            if let Some(accesses) = touched {
                charge(totals, pools.level(place), accesses);
            }
            pools.free(place);
            totals.live -= entry.size;
            totals.blocks -= 1;
            (offset, 0)
        }
        Operation::Resize => {
            totals.resizes += 1;
            let Some(place) = entry.place else {
                // As `realloc(NULL, size)`.
                entry.place = pools.allocate(size, event.align());
                entry.size = size as u64;
                let Some(place) = entry.place else {
                    totals.failed += 1;
                    return (u64::MAX, 0);
                };
                taken(totals, size as u64);
                return (if offsets { pools.offset(place) } else { 0 }, 0);
            };
            let from = pools.level(place);
            if let Some(accesses) = touched {
                charge(totals, from, accesses);
            }
            let Some(new) = pools.resize(place, size, event.align()) else {
                totals.failed += 1;
                return (u64::MAX, 0);
            };
            let copied = if new == place {
                0
            } else {
                entry.size.min(size as u64)
            };
            totals.levels[from].copied_from += copied;
            totals.levels[pools.level(new)].copied_to += copied;
            totals.live = totals.live - entry.size + size as u64;
            totals.peak_live = totals.peak_live.max(totals.live);
            *entry = Held {
                place: Some(new),
                size: size as u64,
            };
            (if offsets { pools.offset(new) } else { 0 }, copied)
        }
    }
}

#[inline(always)]
fn taken(totals: &mut Totals, size: u64) {
    totals.live += size;
    totals.peak_live = totals.peak_live.max(totals.live);
    totals.blocks += 1;
    totals.peak_blocks = totals.peak_blocks.max(totals.blocks);
}
