//! What happens inside one heap while a trace is replayed: who causes which
//! accesses, and what each pool's memory is taken for.
//!
//! Invariant: the parts add up. The accesses of all pools and causes are those
//! of [`Replay`](crate::Replay), and a pool's shares make up its footprint.

use metes_heap::Slabs;
use metes_heap::description::{Description, GENERAL, LEVELS};
use serde::{Deserialize, Serialize};

use crate::events::{Events, Operation};
use crate::hierarchy::Counts;
use crate::mappings::Mappings;
use crate::placement::{POOL_SHIFT, SLAB_BIT};
use crate::pools::Pools;
use crate::run::{Held, Totals, step};
use crate::target::Target;

/// Number of the object pools among the parts; before it stand the general pools.
pub(crate) const SLABS: usize = GENERAL;
/// What the part is called that has slabs: object pools, or the classes of a partition.
const SLAB_PARTS: [&str; 2] = ["object pools", "size classes"];
/// What the part is called that blocks with mappings of their own make up; the last one.
const MAPPED_PART: &str = "mapped blocks";
/// About as many points of a heap's curve, and of one pool's.
const POINTS: (usize, usize) = (800, 300);

/// Words read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Read.
    pub reads: u64,
    /// Written.
    pub writes: u64,
}

/// One pool: a general one with the dedicated lists in front of it, or the
/// object pools together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it serves, in words.
    pub name: String,
    /// Its memory level.
    pub level: u8,
    /// Bytes it took from the system.
    pub footprint: u64,
    /// Of those, bytes that the program had requested when the pool last grew.
    pub live: u64,
    /// Headers of the blocks in use then.
    pub headers: u64,
    /// Control structures.
    pub control: u64,
    /// The rest: blocks that were free then, and what sizes were rounded up by.
    pub spare: u64,
    /// Record words that allocations touched.
    pub allocate: Words,
    /// Record words that frees touched.
    pub free: Words,
    /// Record words that resizes touched.
    pub resize: Words,
    /// Words that the program itself touched, as far as they were recorded.
    pub application: Words,
    /// `[event, live, footprint]`, ascending.
    pub curve: Vec<(u64, u64, u64)>,
}

/// The inside of one heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// `[event, footprint, live]`, ascending.
    pub curve: Vec<(u64, u64, u64)>,
    /// The pools that the heap has.
    pub parts: Vec<Part>,
    /// What was counted in each memory level.
    pub levels: Vec<Counts>,
    /// Requests that failed.
    pub failed: u64,
}

impl Detail {
    /// Empty parts for the pools of a description, the object pools behind the general ones, and
    /// for the blocks that are mapped last.
    pub(crate) fn of(description: &Description, mapped: Option<usize>) -> Self {
        let mut parts = Vec::new();
        let general = description.general.len();
        for (index, pool) in description.general.iter().enumerate() {
            let name = match (pool.from, pool.up_to) {
                _ if general == 1 => "general pool".to_owned(),
                (0, usize::MAX) => format!("general pool {}, all sizes", index + 1),
                (0, up_to) => format!("general pool {}, up to {up_to} B", index + 1),
                (from, usize::MAX) => format!("general pool {}, from {from} B", index + 1),
                (from, up_to) => format!("general pool {}, {from} to {up_to} B", index + 1),
            };
            let level = pool.level;
            parts.push(Part {
                name,
                level,
                ..Part::default()
            });
        }
        let slabs = description.slabs();
        if !slabs.is_empty() {
            let name = match slabs {
                Slabs::Pools(_) => SLAB_PARTS[0],
                Slabs::Classes(_) => SLAB_PARTS[1],
            };
            parts.push(Part {
                name: name.to_owned(),
                level: slabs.level(),
                ..Part::default()
            });
        }
        if mapped.is_some() {
            parts.push(Part {
                name: MAPPED_PART.to_owned(),
                ..Part::default()
            });
        }
        Detail {
            parts,
            ..Detail::default()
        }
    }
}

/// State of one part while it is watched.
#[derive(Clone, Copy, Default)]
struct Now {
    counts: Counts,
    live: u64,
    blocks: u64,
}

/// Replays `events` and fills `detail` in, whose parts are those of the heap.
pub(crate) fn inspect<P: Pools>(
    events: &Events,
    pools: &mut P,
    mapped: Option<usize>,
    target: Target,
    detail: &mut Detail,
) {
    let mut mappings = Mappings::new(mapped);
    // Of the pools' parts; mapped blocks make up one more.
    let count = detail.parts.len() - usize::from(mapped.is_some());
    let general = detail
        .parts
        .iter()
        .take(count)
        .filter(|part| !SLAB_PARTS.contains(&part.name.as_str()))
        .count();
    let number = |part: usize| if part < general { part } else { SLABS };
    let place_of = |offset: u64| match offset & SLAB_BIT {
        0 => (offset >> POOL_SHIFT) as usize,
        _ => general,
    };
    let header = target.geometry().header as u64;
    let mut now = vec![Now::default(); detail.parts.len()];
    for (part, state) in now.iter_mut().enumerate().take(count) {
        // Asking for the control structures is counted as well: it comes first.
        detail.parts[part].control = pools.part_control(number(part)) as u64;
        state.counts = pools.part(number(part));
    }
    let empty = Held {
        place: None,
        size: 0,
    };
    let mut held: Vec<Held<P::Place>> = vec![empty; events.slots()];
    let mut totals = Totals {
        footprint: pools.footprint() as u64,
        ..Totals::default()
    };
    let strides = (
        events.len().div_ceil(POINTS.0).max(1),
        events.len().div_ceil(POINTS.1).max(1),
    );
    let accesses = events.accesses();
    for (index, event) in events.as_slice().iter().enumerate() {
        let slot = event.slot() as usize;
        let part_of = |held: &Held<P::Place>, pools: &P, mappings: &Mappings| match held.place {
            Some(place) => Some((place_of(pools.offset(place)), held.size)),
            None => mappings.size(event.slot()).map(|_| (count, held.size)),
        };
        let before = part_of(&held[slot], pools, &mappings);
        let touched = accesses.get(index).copied();
        step(
            *event,
            touched,
            &mut held,
            pools,
            &mut mappings,
            &mut totals,
            false,
        );
        let after = part_of(&held[slot], pools, &mappings);
        if let (Some((part, _)), Some(touched)) = (before, touched) {
            detail.parts[part].application.reads += touched.reads;
            detail.parts[part].application.writes += touched.writes;
        }
        if let Some((part, size)) = before {
            now[part].live -= size;
            now[part].blocks -= 1;
        }
        if let Some((part, size)) = after {
            now[part].live += size;
            now[part].blocks += 1;
        }
        let mut grown = index == 0 || index + 1 == events.len();
        for (part, state) in now.iter_mut().enumerate() {
            let is_mapped = part == count;
            let counts = match is_mapped {
                true => Counts {
                    footprint: beyond(&mappings, pools.footprint()),
                    ..Counts::default()
                },
                false => pools.part(number(part)),
            };
            let into = &mut detail.parts[part];
            let words = match event.operation() {
                Operation::Allocate => &mut into.allocate,
                Operation::Free => &mut into.free,
                Operation::Resize => &mut into.resize,
            };
            words.reads += counts.record_reads - state.counts.record_reads;
            words.writes += counts.record_writes - state.counts.record_writes;
            let grew = counts.footprint != state.counts.footprint;
            if grew || into.footprint == 0 {
                into.footprint = counts.footprint;
                if is_mapped {
                    into.control = mappings.rule.record_bytes() as u64;
                } else if number(part) == SLABS {
                    into.control = pools.slabs().1 as u64;
                } else {
                    into.headers = header * state.blocks;
                }
                into.live = state.live;
            }
            state.counts = counts;
            grown |= grew;
            if grew || index % strides.1 == 0 || index + 1 == events.len() {
                into.curve
                    .push((index as u64 + 1, state.live, counts.footprint));
            }
        }
        if grown || index % strides.0 == 0 {
            let footprint = mappings.rule.footprint(pools.footprint()) as u64;
            detail
                .curve
                .push((index as u64 + 1, footprint, totals.live));
        }
    }
    for &(slot, touched) in events.left() {
        let part = match held[slot as usize].place {
            Some(place) => Some(place_of(pools.offset(place))),
            None => mappings.size(slot).map(|_| count),
        };
        if let Some(part) = part {
            let into = &mut detail.parts[part].application;
            into.reads += touched.reads;
            into.writes += touched.writes;
        }
    }
    for part in &mut detail.parts {
        let named = part.live + part.headers + part.control;
        part.spare = part.footprint.saturating_sub(named);
    }
    detail.failed = totals.failed;
    let mut levels = [Counts::default(); LEVELS];
    for part in &detail.parts {
        let counts = &mut levels[usize::from(part.level).min(LEVELS - 1)];
        for words in [part.allocate, part.free, part.resize] {
            counts.record_reads += words.reads;
            counts.record_writes += words.writes;
        }
        counts.application_reads += part.application.reads;
        counts.application_writes += part.application.writes;
        counts.footprint += part.footprint;
    }
    detail.levels = levels.to_vec();
}

/// Bytes that mapped blocks make the heap take above what its pools do.
fn beyond(mappings: &Mappings, pools: usize) -> u64 {
    (mappings.rule.footprint(pools) - pools) as u64
}
