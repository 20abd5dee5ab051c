//! What each configuration of compact-fit costs, as the slides declare it per size class.
//!
//! n is the number of threads, m the page-blocks that a thread has allocated, π the page-blocks
//! of a page, β the bytes of a page-block, κ the bound on not-full pages and ι the increment of
//! a move. `n-CF` gives each thread an instance; `1-CF` shares one between all.
//!
//! The table of the slides and what this crate does differ in one place: our malloc searches
//! at most the moves under way, never the threads, and only if it finds no room.

use core::fmt;

use super::options::{Kappa, Options};
use crate::complexity::{Axis, Growth, Time};

/// What an operation costs, in these terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// O(1)
    Constant,
    /// O(n): waiting for the other threads.
    Threads,
    /// O(β)
    PageBlock,
    /// O(n + β)
    ThreadsAndPageBlock,
    /// O(n + β + ⌊β/ι⌋)
    ThreadsAndSteps,
    /// O(β + ⌊β/ι⌋)
    Steps,
    /// O(min(β, ι))
    Increment,
}

impl Cost {
    /// The usual notation.
    pub const fn notation(self) -> &'static str {
        match self {
            Cost::Constant => "O(1)",
            Cost::Threads => "O(n)",
            Cost::PageBlock => "O(β)",
            Cost::ThreadsAndPageBlock => "O(n + β)",
            Cost::ThreadsAndSteps => "O(n + β + ⌊β/ι⌋)",
            Cost::Steps => "O(β + ⌊β/ι⌋)",
            Cost::Increment => "O(min(β, ι))",
        }
    }

    /// How fast it grows with the block (n bytes, of which β is at most a constant multiple),
    /// for a number of threads and an increment that stay.
    pub const fn in_block(self) -> Time {
        match self {
            Cost::Constant | Cost::Threads | Cost::Increment => Time::Constant,
            Cost::PageBlock | Cost::ThreadsAndPageBlock | Cost::ThreadsAndSteps | Cost::Steps => {
                Time::Linear
            }
        }
    }

    /// How fast it grows along an axis while all else stays.
    pub const fn along(self, axis: Axis) -> Growth {
        match (self, axis) {
            (Cost::Increment, Axis::Increment) => Growth::Linear,
            // More increments of fewer bytes: the steps fall as ι grows.
            _ => self.in_block().along(axis),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.notation())
    }
}

/// A configuration of compact-fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// One instance for all threads, instead of one a thread.
    pub shared: bool,
    /// κ is finite.
    pub compacting: bool,
    /// ι is finite.
    pub incremental: bool,
}

/// Every configuration of the slides' tables, in their order, and the incremental one of an
/// instance a thread, which they leave out.
pub const CONFIGURATIONS: [Configuration; 6] = [
    Configuration::new(true, false, false),
    Configuration::new(true, true, false),
    Configuration::new(false, false, false),
    Configuration::new(false, true, false),
    Configuration::new(true, true, true),
    Configuration::new(false, true, true),
];

impl Configuration {
    /// A configuration.
    pub const fn new(shared: bool, compacting: bool, incremental: bool) -> Self {
        Configuration {
            shared,
            compacting,
            incremental,
        }
    }

    /// The configuration of a heap with these options.
    pub const fn of(options: &Options, shared: bool) -> Self {
        let compacting = matches!(options.kappa, Kappa::Finite(_));
        Self::new(
            shared,
            compacting,
            compacting && options.increment.is_some(),
        )
    }

    /// Time of malloc.
    pub const fn malloc(self) -> Cost {
        match self.shared {
            true => Cost::Threads,
            false => Cost::Constant,
        }
    }

    /// Time of free.
    pub const fn free(self) -> Cost {
        match (self.shared, self.compacting, self.incremental) {
            (true, false, _) => Cost::Threads,
            (false, false, _) => Cost::Constant,
            (true, true, false) => Cost::ThreadsAndPageBlock,
            (false, true, false) => Cost::PageBlock,
            (true, true, true) => Cost::ThreadsAndSteps,
            (false, true, true) => Cost::Steps,
        }
    }

    /// Time of a dereference.
    pub const fn dereference(self) -> Cost {
        Cost::Constant
    }

    /// The longest stretch that nobody can interrupt.
    pub const fn latency(self) -> Cost {
        match (self.compacting, self.incremental) {
            (false, _) => Cost::Constant,
            (true, false) => Cost::PageBlock,
            (true, true) => Cost::Increment,
        }
    }

    /// Memory of a size class.
    pub const fn memory(self) -> &'static str {
        match (self.shared, self.compacting, self.incremental) {
            (_, false, _) => "O(n m π β)",
            (true, true, false) => "O((n m + κ(π − 1)) β)",
            (false, true, false) => "O(n (m + κ(π − 1)) β)",
            (true, true, true) => "O((n m + n π + κ(π − 1)) β)",
            (false, true, true) => "O(n (m + π + κ(π − 1)) β)",
        }
    }

    /// Size-class fragmentation.
    pub const fn fragmentation(self) -> &'static str {
        match (self.shared, self.compacting, self.incremental) {
            (_, false, _) => "O(n m (π − 1) β)",
            (true, true, false) => "O(κ(π − 1) β)",
            (false, true, false) => "O(n κ(π − 1) β)",
            (true, true, true) => "O((n π + κ(π − 1)) β)",
            (false, true, true) => "O(n (π + κ(π − 1)) β)",
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instances = if self.shared { "1" } else { "n" };
        let kappa = if self.compacting { "κ" } else { "∞" };
        let increment = if self.incremental { "ι" } else { "∞" };
        write!(f, "{instances}-CF({kappa}, {increment})")
    }
}
