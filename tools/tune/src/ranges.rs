//! Heaps in memory that does not grow, inside a module or an image: which can be emitted for it, how much of it they take,
//! where their blocks lie in it, and where a replay would have put them.
//!
//! *Invariant:* a heap that is placed so has, range by range, at least what its replay took.

use metes_config::Config;
use metes_emit::Ranges;
use metes_explore::{
    Event, Events, Exploration, Operation, Options, Outcome, POOL_SHIFT, Replayer, SLAB_BIT,
    Simulated, Target, constant_time,
};
use metes_heap::description::GENERAL;

/// Whether a heap can be emitted for a target: it serves every request, and its slabs have no more slots than emitted C
/// keeps account of in words of that target.
pub fn serves(outcome: &Outcome, target: Target) -> bool {
    outcome.failed == 0 && target.summarises(&outcome.description.slabs())
}

/// What memory a heap takes where it is to do as replayed: for each pool what it took, in ranges that begin at multiples of
/// `beginning`.
pub fn ranges_of(config: &Config, events: &Events, options: &Options, beginning: usize) -> Ranges {
    let detail = Replayer::new().inspect(&config.heap, events, options);
    let general = config.heap.general.len();
    let mut ranges = Ranges {
        beginning,
        pools: [0; GENERAL],
        slabs: 0,
        span: options.arena.span,
    };
    for (bytes, part) in ranges
        .pools
        .iter_mut()
        .zip(detail.parts.iter().take(general))
    {
        *bytes = (part.footprint as usize).next_multiple_of(beginning);
    }
    if let Some(objects) = detail.parts.get(general) {
        // The records lie elsewhere.
        let slabs = (objects.footprint - objects.control) as usize;
        ranges.slabs = (slabs / config.heap.slabs().bytes()).max(1);
    }
    ranges
}

/// The outcomes of a search that can be emitted for its target and stay within the limit, of which one is chosen.
pub fn serving(found: &Exploration, target: Target, limit: Option<u64>) -> Exploration {
    let fits = |outcome: &&Outcome| {
        serves(outcome, target) && limit.is_none_or(|limit| outcome.footprint <= limit)
    };
    let mut kept = found.clone();
    kept.pareto = found.outcomes.iter().filter(fits).cloned().collect();
    let constant = kept.pareto.iter();
    kept.constant_time = constant
        .filter(|outcome| constant_time(&outcome.description))
        .cloned()
        .collect();
    kept.outcomes = kept.pareto.clone();
    if let Some(guaranteed) = &mut kept.guaranteed {
        *guaranteed = guaranteed.among(&kept.outcomes);
    }
    kept
}

/// Where the ranges of a heap's pools lie, one behind the other, the slabs last.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pools: [u32; GENERAL],
}

impl Places {
    /// Those of a heap in its ranges.
    pub fn new(config: &Config, ranges: Ranges) -> Places {
        let mut pools = ranges.pools.map(|bytes| bytes as u32);
        if config.heap.slabs().is_empty() {
            // Nothing lies behind the last pool, so what does is told as its.
            pools[config.heap.general.len() - 1] = u32::MAX;
        }
        Places { pools }
    }

    /// The place at a distance from the beginning of the first range, as a replay says it.
    pub fn of(&self, mut distance: u32) -> u64 {
        for (pool, &bytes) in (0u64..).zip(&self.pools) {
            if distance < bytes {
                return (pool << POOL_SHIFT) + u64::from(distance);
            }
            distance -= bytes;
        }
        SLAB_BIT + u64::from(distance)
    }
}

/// Where a replay puts the block of each event, as [`Placements`](metes_explore::Placements) hashes it: of a free, where it
/// lay. `None` where the heap refuses.
pub fn placed(config: &Config, events: &Events, options: &Options) -> Vec<Option<u64>> {
    let mut places = Vec::new();
    let mut drive = |heap: &mut dyn Simulated| {
        places.clear();
        let mut blocks = vec![None; events.slots()];
        places.extend(
            events
                .as_slice()
                .iter()
                .map(|event| one(*event, heap, &mut blocks)),
        );
    };
    Replayer::new().simulate(&config.heap, options, events.slots(), &mut drive);
    places.resize(events.len(), None);
    places
}

/// The place of one event's block.
fn one(event: Event, heap: &mut dyn Simulated, blocks: &mut [Option<u32>]) -> Option<u64> {
    let slot = &mut blocks[event.slot() as usize];
    match event.operation() {
        Operation::Allocate => *slot = heap.allocate_aligned(event.size(), event.align()),
        Operation::Free => {
            let block = slot.take()?;
            let place = heap.offset(block);
            heap.free(block);
            return place;
        }
        Operation::Resize => {
            heap.resize((*slot)?, event.size(), event.align());
        }
    }
    heap.offset((*slot)?)
}
