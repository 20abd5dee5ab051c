//! Quick processor-demand analysis (Zhang and Burns, “Schedulability analysis for real-time systems with EDF scheduling”,
//! IEEE Transactions on Computers 58(9), 2009), in whole numbers.
//!
//! Windows are looked at from the longest down. Where a window of length t demands h ≤ t, no window longer than h and
//! not longer than t demands more than its length, as demand never falls: so the next to look at is the longest that is
//! not longer than h at which demand rises.
//!
//! *Invariant:* the answer is exact, or [`Answer::TooLong`]; the steps that led to it prove it.

use crate::demand::Demand;

/// A window that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) time: u128,
    pub(crate) demand: u128,
}

/// What windows below an end say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// None demands more than its length; the first steps that show it, the longest window first.
    Fits {
        /// As many as were kept.
        steps: Vec<Step>,
        /// Whether these are all.
        whole: bool,
    },
    /// One demands more than its length.
    Misses(Step),
    /// Not decided in as many steps as were allowed.
    TooLong,
}

/// Steps that are kept.
pub(crate) const KEPT: usize = 256;

/// Whether any window from `first` on and below `end` demands more than its length, in `limit` steps at most.
pub(crate) fn answer(demand: &impl Demand, first: u128, end: u128, limit: u64) -> Answer {
    let mut steps = Vec::new();
    let mut end = end;
    for count in 0..limit {
        let Some(time) = demand.last_rise(end).filter(|time| *time >= first) else {
            return Answer::Fits {
                steps,
                whole: count <= KEPT as u64,
            };
        };
        let step = Step {
            time,
            demand: demand.at(time),
        };
        if step.demand > time {
            return Answer::Misses(step);
        }
        if steps.len() < KEPT {
            steps.push(step);
        }
        end = time.min(step.demand + 1);
    }
    Answer::TooLong
}
