//! Memory levels, and what a replay counts in each.
//!
//! A pool lies in one level; level 0 is the nearest. Whatever is read or written
//! in a block, be it by the heap or by the program, is charged to the level of
//! the block's pool.
//!
//! Invariant: nothing here decides anything; counts are added up, and the sum
//! over the levels is what a replay reports without them.

use serde::{Deserialize, Serialize};

/// Most memory levels of a hierarchy.
pub const LEVELS: usize = 4;

/// What a replay counted in one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Record words read: words of the record geometry, 8 bytes on the host's.
    pub record_reads: u64,
    /// Record words written.
    pub record_writes: u64,
    /// Words that the program read, in words of the trace's `access_word`.
    pub application_reads: u64,
    /// Words that the program wrote.
    pub application_writes: u64,
    /// Bytes that resizes read here to move a block away.
    pub copied_from: u64,
    /// Bytes that resizes wrote here to move a block in.
    pub copied_to: u64,
    /// Bytes that the level's pools took from the system: never falls.
    pub footprint: u64,
}

/// The level of a pool as an index below [`LEVELS`]; what lies beyond counts as
/// the last.
pub(crate) const fn level_of(level: u8) -> usize {
    let level = level as usize;
    if level < LEVELS { level } else { LEVELS - 1 }
}
