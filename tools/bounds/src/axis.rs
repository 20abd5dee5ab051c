//! What time is in a trace: the number of the event, or nanoseconds.

use std::fmt;
use std::str::FromStr;

use metes_trace::Trace;

/// What windows and lifetimes are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The number of the event in the trace: no two events share one.
    #[default]
    Events,
    /// The recorded time. Events may share one, and their order at one time counts for nothing.
    Nanoseconds,
}

impl Axis {
    /// In one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Axis::Events => "events",
            Axis::Nanoseconds => "nanoseconds",
        }
    }

    /// When event `index` happened. Recorded times of several threads may go back; what counts
    /// then is the latest so far, which [`Clock`] keeps.
    fn raw(self, trace: &Trace, index: usize) -> u64 {
        match self {
            Axis::Events => index as u64,
            Axis::Nanoseconds => trace.times().get(index).unwrap_or(0),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "events" => Ok(Axis::Events),
            "nanoseconds" | "ns" => Ok(Axis::Nanoseconds),
            _ => Err(format!(
                "`{text}` is no axis of time: write events or nanoseconds"
            )),
        }
    }
}

/// The times of a trace's events in their order, never going back.
pub(crate) struct Clock<'a> {
    trace: &'a Trace,
    axis: Axis,
    now: u64,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(trace: &'a Trace, axis: Axis) -> Self {
        Clock {
            trace,
            axis,
            now: 0,
        }
    }

    /// The time of an event; they are asked for in their order.
    pub(crate) fn at(&mut self, index: usize) -> u64 {
        self.now = self.now.max(self.axis.raw(self.trace, index));
        self.now
    }
}
