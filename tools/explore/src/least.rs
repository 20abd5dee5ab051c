//! What the rest of a trace costs at least, whatever the heap.
//!
//! Invariant: no heap of this library does an operation with fewer accesses;
//! `tests/search.rs` holds every index to it.

use std::ops::AddAssign;

use crate::events::{Event, Events, Operation};
use crate::mappings::foresee;
use crate::replay::Options;
use crate::run::CHECK_EVERY;

/// Record words that any heap of this library reads and writes at least, for an
/// allocation and a free that succeed: the head of a singly linked list, link
/// and header of the block; the header and mark of what follows.
const LEAST_ALLOCATE: (u64, u64) = (3, 2);
const LEAST_FREE: (u64, u64) = (2, 2);
/// A request of this size may fail for want of address space, and cost nothing.
const MAY_FAIL: usize = 1 << 32;

/// What some events cost at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeastCost {
    /// Record words read.
    pub(crate) reads: u64,
    /// Record words written.
    pub(crate) writes: u64,
    /// Modelled cycles.
    pub(crate) cycles: u64,
}

impl LeastCost {
    /// What the same events cost so many times.
    pub(crate) fn times(self, count: u64) -> Self {
        LeastCost {
            reads: self.reads * count,
            writes: self.writes * count,
            cycles: self.cycles * count,
        }
    }
}

impl AddAssign for LeastCost {
    fn add_assign(&mut self, other: LeastCost) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.cycles += other.cycles;
    }
}

/// What the counted events after each check among them cost at least, and what all counted events
/// together do. O(events).
pub(crate) fn least_rest(events: &Events, options: &Options) -> (Vec<LeastCost>, LeastCost) {
    let all_succeed = options.arena.fixed.iter().all(Option::is_none)
        && events
            .as_slice()
            .iter()
            .all(|event| event.size() < MAY_FAIL && event.align() <= 16);
    // A mapped block has no record in a pool.
    let is_mapped = foresee(events, options.arena.mapped()).is_mapped;
    let words = |event: &Event, is_mapped: bool| match event.operation() {
        Operation::Allocate if all_succeed && !is_mapped => LEAST_ALLOCATE,
        Operation::Free if all_succeed && !is_mapped => LEAST_FREE,
        _ => (0, 0),
    };
    let counted = events.as_slice()[events.counted()..].chunks(CHECK_EVERY);
    let is_mapped = is_mapped[events.counted()..].chunks(CHECK_EVERY);
    let mut rest = LeastCost::default();
    let mut least: Vec<LeastCost> = counted
        .zip(is_mapped)
        .rev()
        .map(|(chunk, is_mapped)| {
            let after = rest;
            for (event, &is_mapped) in chunk.iter().zip(is_mapped) {
                let (reads, writes) = words(event, is_mapped);
                let cycles = options.cost.cycles(event.operation(), reads, writes, 0);
                rest += LeastCost {
                    reads,
                    writes,
                    cycles,
                };
            }
            after
        })
        .collect();
    least.reverse();
    (least, rest)
}
