//! The smallest fixed memory in which a whole trace succeeds.
//!
//! Each general pool is an arena of its own, and pools do not influence one
//! another, so each is narrowed down alone: a fixed region of so many bytes, in
//! which no request may fail, nor spill to another pool that does not where all
//! pools grow, found by bisection over replays to one granule.
//! Slabs are added as they are: what the trace needs of them is fixed.
//!
//! More memory does not always help a heap: an arena that fails may be larger
//! than one that succeeds. The value returned has been replayed with success;
//! it is the smallest *found*, not proven smallest.

use metes_heap::Description;

use crate::events::Events;
use crate::replay::{Options, Replayer};

/// Block sizes are multiples of this on 64-bit targets, and so are arenas here.
const GRANULE: usize = 16;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallestArena {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of each general pool's region.
    pub regions: Vec<usize>,
    /// Bytes of slabs and of their table.
    pub slabs: u64,
    /// Of these, bytes of the table, which need not lie with the slabs.
    pub table: u64,
    /// Replays that it took.
    pub replays: u32,
}

/// Finds the smallest fixed memory. `None` when a request fails whatever the
/// memory. Some 20 replays a general pool, most of which end early.
pub fn smallest_arena(
    replayer: &mut Replayer,
    description: &Description,
    events: &Events,
    options: &Options,
) -> Option<SmallestArena> {
    smallest_arena_while(replayer, description, events, options, &|| true)
}

/// Finds the smallest fixed memory as long as `go_on` says so, which replays ask every now and
/// then; `None` when a request fails whatever the memory, and when `go_on` did not say so to the
/// end.
pub(crate) fn smallest_arena_while(
    replayer: &mut Replayer,
    description: &Description,
    events: &Events,
    options: &Options,
    go_on: &dyn Fn() -> bool,
) -> Option<SmallestArena> {
    // A fixed memory has no mappings beside it.
    let mut options = *options;
    options.arena.mapped = None;
    let growing = replayer.totals(description, events, &options, &mut |totals| {
        totals.failed == 0 && go_on()
    });
    if growing.totals.failed != 0 || !growing.complete {
        return None;
    }
    let mut search = Search {
        replayer,
        description,
        events,
        options,
        spilled: growing.spilled,
        replays: 1,
        go_on,
    };
    let pools = description.general.len();
    let mut regions = Vec::with_capacity(pools);
    for pool in 0..pools {
        regions.push(search.narrow(pool, growing.totals.footprint as usize)?);
    }
    let table = growing.table;
    let sum: usize = regions.iter().sum();
    Some(SmallestArena {
        bytes: sum as u64 + growing.slabs + table,
        regions,
        slabs: growing.slabs + table,
        table,
        replays: search.replays,
    })
}

struct Search<'a> {
    replayer: &'a mut Replayer,
    description: &'a Description,
    events: &'a Events,
    options: Options,
    /// Requests that spill where every pool grows.
    spilled: u64,
    replays: u32,
    go_on: &'a dyn Fn() -> bool,
}

impl Search<'_> {
    /// Bisects the region of one pool, the others growing as they like.
    fn narrow(&mut self, pool: usize, footprint: usize) -> Option<usize> {
        let mut fits = footprint.next_multiple_of(GRANULE);
        // What suffices when it grows step by step may not as one region.
        while !self.suffices(pool, fits) {
            if !(self.go_on)() || fits > self.options.arena.span {
                return None;
            }
            fits = (fits + fits / 4).next_multiple_of(GRANULE);
        }
        let mut fails = 0;
        while fits - fails > GRANULE {
            let middle = (fails + (fits - fails) / 2).next_multiple_of(GRANULE);
            if self.suffices(pool, middle) {
                fits = middle;
            } else {
                // Broken off, it says nothing.
                (self.go_on)().then_some(())?;
                fails = middle;
            }
            if fits == middle && middle - fails <= GRANULE {
                break;
            }
        }
        Some(fits)
    }

    fn suffices(&mut self, pool: usize, bytes: usize) -> bool {
        let mut options = self.options;
        options.arena.fixed[pool] = Some(bytes);
        self.replays += 1;
        let go_on = self.go_on;
        let measured =
            self.replayer
                .totals(self.description, self.events, &options, &mut |totals| {
                    totals.failed == 0 && go_on()
                });
        measured.complete && measured.totals.failed == 0 && measured.spilled <= self.spilled
    }
}

/// A level that is too small for its pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Number of the level.
    pub level: usize,
    /// Bytes that it has.
    pub size: usize,
    /// Bytes that its pools take where levels are large enough.
    pub needed: u64,
}

/// Which levels are too small for a heap that fails on a trace, and by how much.
///
/// All levels with a size are doubled until no request fails; what their pools
/// take then is what they need. (A smaller need may exist: an index laid out for
/// more memory has more records, and more memory does not always help a heap.)
/// Empty when no size makes the trace succeed. A replay a doubling.
pub fn shortages(
    replayer: &mut Replayer,
    description: &Description,
    events: &Events,
    options: &Options,
) -> Vec<Shortage> {
    let given = options.arena.levels;
    let mut options = *options;
    loop {
        let measured = replayer.totals(description, events, &options, &mut |totals| {
            totals.failed == 0
        });
        if measured.complete && measured.totals.failed == 0 {
            let lacking = measured.totals.levels.iter().zip(given).enumerate();
            return lacking
                .filter_map(|(level, (counts, size))| {
                    let size = size.filter(|&size| (size as u64) < counts.footprint)?;
                    Some(Shortage {
                        level,
                        size,
                        needed: counts.footprint,
                    })
                })
                .collect();
        }
        let mut doubled = false;
        for size in options.arena.levels.iter_mut().flatten() {
            if *size < options.arena.span {
                *size = size.saturating_mul(2);
                doubled = true;
            }
        }
        if !doubled {
            return Vec::new();
        }
    }
}
