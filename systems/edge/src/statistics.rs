//! What a function's invocations took, and how they ended.
//!
//! *Invariant:* every invocation that was released is counted once; times that are shown are observed, and bound nothing.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::outcome::{Invocation, Outcome};

/// Endings and times of one function.
pub(crate) struct Statistics {
    time: Histogram<u64>,
    response: Histogram<u64>,
    counts: Endings,
}

/// How invocations ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endings {
    /// Ended with status 0.
    pub done: u64,
    /// Ended with another status.
    pub failed: u64,
    /// Did what WebAssembly forbids.
    pub trapped: u64,
    /// Were stopped at the end of their budget.
    pub overrun: u64,
    /// Were not released.
    pub refused: u64,
    /// Ended behind their deadlines.
    pub missed: u64,
}

/// Observed times, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Half are not above.
    pub p50: u64,
    /// 99 of 100 are not above.
    pub p99: u64,
    /// 999 of 1000 are not above.
    pub p999: u64,
    /// The longest that was observed.
    pub max: u64,
}

/// The longest time that is told apart: an hour.
const LONGEST: u64 = 3_600_000_000_000;

impl Statistics {
    pub(crate) fn new() -> Statistics {
        let empty = || {
            Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are those of a histogram")
        };
        Statistics {
            time: empty(),
            response: empty(),
            counts: Endings::default(),
        }
    }

    /// Takes an invocation; `response` is from its release to its end, waiting included.
    pub(crate) fn take(&mut self, invocation: &Invocation, response: u64, missed: bool) {
        let counts = &mut self.counts;
        match invocation.outcome {
            Outcome::Done { exit: 0 } => counts.done += 1,
            Outcome::Done { .. } => counts.failed += 1,
            Outcome::Trap(_) => counts.trapped += 1,
            Outcome::Overrun { .. } => counts.overrun += 1,
            Outcome::Refused(_) => {
                counts.refused += 1;
                return;
            }
        }
        counts.missed += u64::from(missed);
        self.time.saturating_record(invocation.time_ns.max(1));
        self.response.saturating_record(response.max(1));
    }

    pub(crate) fn counts(&self) -> Endings {
        self.counts
    }

    pub(crate) fn time(&self) -> Times {
        times(&self.time)
    }

    pub(crate) fn response(&self) -> Times {
        times(&self.response)
    }
}

fn times(histogram: &Histogram<u64>) -> Times {
    if histogram.is_empty() {
        return Times::default();
    }
    Times {
        p50: histogram.value_at_quantile(0.5),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    }
}
