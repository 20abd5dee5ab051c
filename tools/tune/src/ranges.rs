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

#[cfg(test)]
mod tests {
    use metes_explore::{Arena, EventsBuilder, Placements, catalogue};
    use metes_random::Random;

    use super::*;

    /// A program of some hundred requests, aligned ones among them.
    fn drawn(seed: u64) -> Events {
        let mut random = Random::new(seed);
        let mut builder = EventsBuilder::new();
        let mut live = Vec::new();
        for block in 0..600 {
            let most = 1 << random.below(11);
            let size = 1 + random.below(most);
            let align = if random.below(9) == 0 { 64 } else { 8 };
            match random.below(4) {
                0 if !live.is_empty() => {
                    let gone = live.swap_remove(random.below(live.len() as u64) as usize);
                    builder.push(Operation::Free, gone, 0, 1).unwrap();
                }
                1 if !live.is_empty() => {
                    let other = live[random.below(live.len() as u64) as usize];
                    builder.push(Operation::Resize, other, size, 8).unwrap();
                }
                _ => {
                    builder
                        .push(Operation::Allocate, block, size, align)
                        .unwrap();
                    live.push(block);
                }
            }
        }
        builder.finish()
    }

    #[test]
    fn blocks_are_placed_as_a_replay_hashes_them_and_lie_in_their_ranges() {
        let options = Options {
            arena: Arena {
                increment: 64,
                span: 1 << 20,
                target: Target::Bare32,
                ..Arena::HOST
            },
            ..Options::default()
        };
        for (seed, named) in (1..).zip(catalogue()) {
            let events = drawn(seed);
            let config = options.arena.config(named.description);
            let (replay, _) = Replayer::new().replay(named.name, &config.heap, &events, &options);
            let placed = placed(&config, &events, &options);
            let ranges = ranges_of(&config, &events, &options, 4096);
            let places = Places::new(&config, ranges);
            let mut hashes = Placements::EMPTY;
            for (event, place) in events.as_slice().iter().zip(&placed) {
                let size = match event.operation() {
                    Operation::Free => 0,
                    _ => event.size() as u64,
                };
                let place = place.expect("a heap that grows refuses nothing");
                hashes.add(event.operation(), place, size);
                // All heaps here have one pool: a place is the distance from its beginning.
                assert_eq!(places.of(place as u32), place, "{}", named.name);
                assert!((place as usize) < ranges.pools[0], "{}", named.name);
            }
            assert_eq!(format!("{:016x}", hashes.placements), replay.placements);
            assert_eq!(format!("{:016x}", hashes.requests), replay.requests);
        }
    }

    #[test]
    fn slabs_lie_behind_the_ranges_of_all_pools() {
        let config = metes_config::resolve("objects:slab=1KiB 16/32 + tlsf").unwrap();
        let ranges = Ranges {
            slabs: 2,
            ..Ranges::single(4096, 16, 1 << 20)
        };
        assert_eq!(ranges.bytes(&config.heap), 4096 + 2048);
        let places = Places::new(&config, ranges);
        assert_eq!(places.of(4095), 4095);
        assert_eq!(places.of(4096), SLAB_BIT);
        assert_eq!(places.of(5000), SLAB_BIT + 904);
    }
}
