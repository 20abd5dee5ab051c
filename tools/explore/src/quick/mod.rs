//! Indexes that decide and count as the library's do, in O(log n).
//!
//! A replay must know how many records an allocator visits, but need not visit them. The
//! indexes here keep free blocks in an order in which the visited ones can be counted
//! instead of walked, make the library's decisions, and tell the store of the library's
//! reads and writes, each one. Whatever takes constant time is left to the library, but for first fit by a tree, whose words
//! over records outside the memory are others than those over boundary tags.
//!
//! Invariant: replays on these indexes and on the library's end with the same totals,
//! placement by placement; the tests of this crate hold it over random heaps and runs.

use crate::pools::Arena;

mod any;
mod buddy;
mod classes;
mod lanes;
mod list;
mod marks;
mod ranks;
mod sizes;
mod sorted;
mod tree;

#[cfg(test)]
mod tests;

pub(crate) use any::QuickAny;
pub(crate) use buddy::QuickBuddy;
pub(crate) use classes::QuickClasses;
pub(crate) use list::QuickList;
pub(crate) use tree::QuickTree;

/// From so many probes on, trying blocks one by one takes longer than searching.
pub(crate) const MANY_PROBES: usize = 17;

/// Whether places can be numbered in 32 bits, as they are here. Beyond, the library's own
/// indexes serve.
pub(crate) fn serves(arena: &Arena, events: usize) -> bool {
    let sizes = arena.fixed.iter().chain(&arena.levels).flatten();
    let widest = sizes.fold(arena.span, |widest, &size| widest.max(size));
    // Granules have 16 bytes; an event enters a handful of blocks at most into one list.
    widest >> 4 <= 1 << 32 && events <= 1 << 28
}
