//! A heap asked one request after another, by a caller who looks where each
//! block went.
//!
//! A trace says beforehand what is asked. An adversary does not: what it asks
//! next depends on what the heap has done so far. It drives a [`Simulated`]
//! heap, which is the one that a replay would drive.
//!
//! Invariant: the requests of a caller, replayed as a trace, are served at the
//! same places and end with the same footprint.

use metes_heap::Description;

use crate::events::Events;
use crate::pools::Pools;
use crate::replay::{Options, Replayer};
use crate::run::Totals;

/// A heap without memory behind it, one request at a time. Blocks are numbered
/// by the caller's live blocks: a number is given again once its block is freed.
pub trait Simulated {
    /// A block of `size` bytes, or `None` where the heap refuses. The heap's own
    /// time.
    fn allocate(&mut self, size: usize) -> Option<u32> {
        self.allocate_aligned(size, 1)
    }
    /// As [`allocate`](Simulated::allocate), at a multiple of a power of two.
    fn allocate_aligned(&mut self, size: usize, align: usize) -> Option<u32>;
    /// Gives a live block another size; false, and nothing is changed, where the heap refuses. The heap's
    /// own time.
    fn resize(&mut self, block: u32, size: usize, align: usize) -> bool;
    /// Takes back a block; one that is not live is left alone. The heap's own
    /// time.
    fn free(&mut self, block: u32);
    /// Where a live block's record begins, in bytes; blocks of different pools
    /// lie in ranges far apart, slots of slabs in that of [`SLAB_BIT`](crate::SLAB_BIT).
    /// `None` for a block that is not live. O(1).
    fn offset(&self, block: u32) -> Option<u64>;
    /// Bytes that a live block takes: its record and what may be used of it, in a slab its slot. O(pools).
    fn taken(&self, block: u32) -> Option<u64>;
    /// Bytes taken from the system. O(pools).
    fn footprint(&self) -> u64;
    /// Record words read and written so far: what time goes by. O(pools).
    fn accesses(&self) -> u64;
}

/// Pools, and who lives in them.
pub(crate) struct Driven<'p, P: Pools> {
    pools: &'p mut P,
    held: Vec<Option<P::Place>>,
    spare: Vec<u32>,
}

impl<'p, P: Pools> Driven<'p, P> {
    pub(crate) fn new(pools: &'p mut P) -> Self {
        Driven {
            pools,
            held: Vec::new(),
            spare: Vec::new(),
        }
    }
}

impl<P: Pools> Simulated for Driven<'_, P> {
    fn allocate_aligned(&mut self, size: usize, align: usize) -> Option<u32> {
        // As malloc layers have it.
        let place = self.pools.allocate(size.max(1), align)?;
        let block = self.spare.pop().unwrap_or(self.held.len() as u32);
        match self.held.get_mut(block as usize) {
            Some(entry) => *entry = Some(place),
            None => self.held.push(Some(place)),
        }
        Some(block)
    }

    fn resize(&mut self, block: u32, size: usize, align: usize) -> bool {
        let Some(Some(held)) = self.held.get_mut(block as usize) else {
            return false;
        };
        let resized = self.pools.resize(*held, size.max(1), align);
        resized.is_some_and(|place| {
            *held = place;
            true
        })
    }

    fn free(&mut self, block: u32) {
        let held = self.held.get_mut(block as usize);
        if let Some(place) = held.and_then(Option::take) {
            self.pools.free(place);
            self.spare.push(block);
        }
    }

    fn offset(&self, block: u32) -> Option<u64> {
        let place = (*self.held.get(block as usize)?)?;
        Some(self.pools.offset(place))
    }

    fn taken(&self, block: u32) -> Option<u64> {
        let place = (*self.held.get(block as usize)?)?;
        Some(self.pools.taken(place) as u64)
    }

    fn footprint(&self) -> u64 {
        self.pools.footprint() as u64
    }

    fn accesses(&self) -> u64 {
        let (reads, writes) = self.pools.counts();
        reads + writes
    }
}

impl Replayer {
    /// Lets `drive` ask a heap in its arena for what it likes, with at most
    /// `blocks` blocks live at once. Returns `false` where the arena is too small
    /// even for the heap's control structure; `drive` is not called then.
    ///
    /// Where the arrays prove too small, `drive` is called once more from the
    /// start, on a new heap: it must begin anew whenever it is called.
    pub fn simulate(
        &mut self,
        description: &Description,
        options: &Options,
        blocks: usize,
        drive: &mut dyn FnMut(&mut dyn Simulated),
    ) -> bool {
        let mut driven = false;
        self.measure(
            description,
            &Events::room_for(blocks),
            options,
            &mut |run| {
                driven = true;
                run.drive(drive);
                (Totals::default(), true)
            },
        );
        driven
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventsBuilder, Operation};
    use crate::random::Random;

    /// Requests at random, as a caller makes them and as a trace has them.
    #[test]
    fn requests_one_by_one_end_as_their_replay() {
        let options = Options::default();
        for (name, config) in metes_config::named() {
            let mut random = Random::new(7);
            let mut events = EventsBuilder::new();
            let mut end = (0, 0);
            let mut replayer = Replayer::new();
            let driven = replayer.simulate(&config.heap, &options, 300, &mut |heap| {
                random = Random::new(7);
                events = EventsBuilder::new();
                let mut live = Vec::new();
                let before = heap.accesses();
                for serial in 0..3000 {
                    if live.len() >= 200 || (!live.is_empty() && random.below(3) == 0) {
                        let (block, serial) = live.swap_remove(random.below(live.len()));
                        heap.free(block);
                        assert_eq!(heap.offset(block), None);
                        events.push(Operation::Free, serial, 0, 0).unwrap();
                        continue;
                    }
                    let size = 1 + random.below(700);
                    let block = heap.allocate(size).expect("the arena grows");
                    live.push((block, serial));
                    events
                        .push(Operation::Allocate, serial, size as u64, 0)
                        .unwrap();
                }
                end = (heap.footprint(), heap.accesses() - before);
            });
            assert!(driven);
            let events = std::mem::take(&mut events).finish();
            let (replay, _) = replayer.replay(name, &config.heap, &events, &options);
            assert_eq!(replay.footprint, end.0, "{name}");
            assert_eq!(replay.record_reads + replay.record_writes, end.1, "{name}");
        }
    }

    /// A block takes its record and its bytes, rounded up; in a slab its slot.
    #[test]
    fn blocks_take_what_they_take() {
        let mut replayer = Replayer::new();
        let cases = [
            ("tlsf", 100, 112),
            ("buddy", 100, 128),
            ("kingsley", 1000, 1024),
            ("ose:sizes=128/256", 100, 128),
        ];
        for (name, size, expected) in cases {
            let heap = metes_config::spec(name).unwrap().heap;
            let driven = replayer.simulate(&heap, &Options::default(), 4, &mut |heap| {
                let block = heap.allocate(size).expect("the arena grows");
                assert_eq!(heap.taken(block), Some(expected), "{name}");
                assert!(heap.resize(block, size + size, 16));
                assert!(heap.taken(block) >= Some(2 * size as u64), "{name}");
                heap.free(block);
                assert_eq!(heap.taken(block), None);
                assert!(!heap.resize(block, 1, 16));
            });
            assert!(driven);
        }
    }

    #[test]
    fn an_arena_without_room_is_said() {
        let mut options = Options::default();
        options.arena.fixed[0] = Some(16);
        let heap = metes_config::spec("tlsf").unwrap().heap;
        assert!(!Replayer::new().simulate(&heap, &options, 4, &mut |_| unreachable!()));
    }
}
