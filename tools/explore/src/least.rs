//! What the rest of a trace costs at least, whatever the heap.
//!
//! Invariant: no heap of this library does an operation with fewer accesses;
//! `tests/search.rs` holds every index to it.

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

/// Least cost of the counted events after each check among them, where `cost` says
/// what so many words read and written by an operation cost. O(events).
pub(crate) fn least_rest(
    events: &Events,
    options: &Options,
    cost: impl Fn(Operation, (u64, u64)) -> u64,
) -> Vec<u64> {
    let (least, _) = least_rest_and_all(events, options, cost);
    least
}

/// Least cost of the counted events after each check among them, and the least cost of all counted
/// events together. O(events).
pub(crate) fn least_rest_and_all(
    events: &Events,
    options: &Options,
    cost: impl Fn(Operation, (u64, u64)) -> u64,
) -> (Vec<u64>, u64) {
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
    let mut rest = 0;
    let mut least: Vec<u64> = counted
        .zip(is_mapped)
        .rev()
        .map(|(chunk, is_mapped)| {
            let after = rest;
            let least = chunk.iter().zip(is_mapped);
            let least = least.map(|(event, &is)| cost(event.operation(), words(event, is)));
            rest += least.sum::<u64>();
            after
        })
        .collect();
    least.reverse();
    (least, rest)
}
