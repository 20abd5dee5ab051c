//! What the rest of a trace costs at least, whatever the heap.
//!
//! Invariant: no heap of this library does an operation with fewer accesses;
//! `tests/search.rs` holds every index to it.

use crate::events::{Events, Operation};
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

/// The same, and the least cost of all counted events together.
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
    // A mapped block has no record in a pool, and which blocks are mapped is not looked up here.
    let mapped = options.arena.mapped();
    let all_succeed = all_succeed
        && mapped.is_none_or(|from| events.as_slice().iter().all(|event| event.size() < from));
    let words = |operation| match operation {
        Operation::Allocate if all_succeed => LEAST_ALLOCATE,
        Operation::Free if all_succeed => LEAST_FREE,
        _ => (0, 0),
    };
    let chunks = events.as_slice()[events.counted()..].chunks(CHECK_EVERY);
    let mut rest = 0;
    let mut least: Vec<u64> = chunks
        .rev()
        .map(|chunk| {
            let after = rest;
            let operations = chunk.iter().map(|event| event.operation());
            rest += operations.map(|op| cost(op, words(op))).sum::<u64>();
            after
        })
        .collect();
    least.reverse();
    (least, rest)
}
