//! Concurrent compact-fit, the experiments of the slides of Kirsch and Sokolova (ARTIST summer
//! school 2009): allocation throughput by κ, granularity of locks, threads, degree of sharing
//! and ι; how long locks are held while threads move blocks; and what memory moves under way
//! take.
//!
//! Every thread keeps as many blocks as the others, and frees one of them at random for each
//! that it allocates. The pictures of the slides are not public, so rows name what the slides
//! say of them in words.
//!
//! Invariant: designs that are compared take turns within each round, and a figure is the best
//! of its short rounds, as other programs only ever take time away. Ratios within a report mean
//! something, single times nothing; so no time decides whether an experiment holds. What does
//! decide: no heap refuses a request, every heap passes its own check at the end, and bytes.

mod designs;
mod increments;
mod latency;
mod rounds;
mod scalability;
mod system;
mod throughput;
mod transient;

pub use increments::increments;
pub use latency::latency;
pub use scalability::scalability;
pub use throughput::throughput;
pub use transient::transient;

use metes_heap::Corruption;
use metes_heap::compact::{Kappa, Unfit};

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Seconds: enough to see the picture.
    Quick,
    /// A minute or two: ratios settle.
    Whole,
    /// No more than to run everything.
    #[cfg(test)]
    Trial,
}

impl Effort {
    /// Turns of each setting.
    fn rounds(self) -> usize {
        match self {
            Effort::Quick => 30,
            Effort::Whole => 150,
            #[cfg(test)]
            Effort::Trial => 1,
        }
    }

    /// Blocks that each thread frees and allocates in a turn.
    fn operations(self) -> usize {
        match self {
            Effort::Quick => 1000,
            Effort::Whole => 2000,
            #[cfg(test)]
            Effort::Trial => 40,
        }
    }
}

/// Why an experiment could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConcurrentError {
    /// Options and memory do not go together.
    #[error("compact-fit: {0}")]
    Unfit(#[from] Unfit),
    /// A heap contradicts itself.
    #[error("{design}: the heap is not sound after {threads} threads used it: {corruption:?}")]
    Unsound {
        /// Of which design.
        design: String,
        /// How many used it.
        threads: usize,
        /// What its check says.
        corruption: Corruption,
    },
    /// A request was refused.
    #[error("{design}: {refused} requests were refused in {bytes} bytes for {threads} threads")]
    Refused {
        /// By which design.
        design: String,
        /// How many.
        refused: u64,
        /// Bytes of memory of the heap.
        bytes: usize,
        /// Threads that used it.
        threads: usize,
    },
}

const FULL: Kappa = Kappa::Finite(1);
const KAPPAS: [Kappa; 4] = [FULL, Kappa::Finite(2), Kappa::Finite(4), Kappa::Infinite];
/// Blocks that a thread keeps.
const LIVE: usize = 2000;
/// Bytes of a request.
const SIZES: (usize, usize) = (16, 1024);

/// κ as it is written.
fn kappa_text(kappa: Kappa) -> String {
    match kappa {
        Kappa::Finite(limit) => limit.to_string(),
        Kappa::Infinite => "∞".to_owned(),
    }
}

/// ι as it is written.
fn increment_text(increment: Option<usize>) -> String {
    increment.map_or_else(|| "∞".to_owned(), |bytes| bytes.to_string())
}

/// What is assumed of everything that is timed.
fn timed(effort: Effort, threads: &str) -> Vec<String> {
    let cores = system::cores();
    vec![
        format!(
            "{cores} core{}, to which threads are bound; {threads}; locks are those of Rust's \
             standard library",
            if cores == 1 { "" } else { "s" }
        ),
        format!(
            "best of {} short rounds in which all designs take turns: ratios of this run mean \
             something, single times do not, and none decides whether this holds",
            effort.rounds()
        ),
        format!(
            "each thread keeps {LIVE} blocks of {} to {} bytes, uniform, and frees one at random \
             for each that it allocates; bytes of blocks are moved, but not written by the threads",
            SIZES.0, SIZES.1
        ),
        "the slides' pictures are not public; notes say what they state in words".to_owned(),
    ]
}
