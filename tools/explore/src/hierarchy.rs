//! Memory levels: what a replay counts in each, and what they are.
//!
//! A pool lies in one level; level 0 is the nearest. Whatever is read or written
//! in a block, be it by the heap or by the program, is charged to the level of
//! the block's pool.
//!
//! Invariant: nothing here decides anything; counts are added up, and the sum
//! over the levels is what a replay reports without them.

use metes_heap::description::LEVELS;
use serde::{Deserialize, Serialize};

use crate::energy::{Figures, Leakage};

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

/// Memory levels, what their accesses cost, and the clock of the processor.
///
/// Read from a file or a specification: [`Hierarchy::resolve`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hierarchy {
    pub(crate) levels: Vec<Level>,
    pub(crate) clock_hz: u64,
    pub(crate) leakage: Leakage,
}

/// A level: its name, and the memories that it may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    pub(crate) name: String,
    pub(crate) word_bits: u32,
    /// By rising size, at least one.
    pub(crate) memories: Vec<Memory>,
}

/// A memory that a level may be: its size and what it costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Bytes.
    pub size: u64,
    /// What accesses cost.
    pub figures: Figures,
    /// Which rows that comes from.
    pub source: String,
}

impl Hierarchy {
    /// The levels, the nearest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Cycles of the processor in a second.
    pub fn clock_hz(&self) -> u64 {
        self.clock_hz
    }

    /// Which leakage is charged.
    pub fn leakage(&self) -> Leakage {
        self.leakage
    }

    /// Bytes that the pools of each level may take together: the largest size of
    /// the level. What [`Arena::levels`](crate::Arena::levels) is set to.
    pub fn sizes(&self) -> [Option<usize>; LEVELS] {
        let most = |level: &Level| usize::try_from(level.most()).ok();
        std::array::from_fn(|number| self.levels.get(number).and_then(most))
    }
}

impl Level {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bits that one access reads or writes.
    pub fn word_bits(&self) -> u32 {
        self.word_bits
    }

    /// The memories it may be, by rising size.
    pub fn memories(&self) -> &[Memory] {
        &self.memories
    }

    /// The largest size, bytes.
    pub fn most(&self) -> u64 {
        self.memories.last().map_or(0, |memory| memory.size)
    }
}
