//! The time that an exploration may take, and the clock that it is told by.
//!
//! A deadline is looked at inside replays, every
//! [`CHECK_EVERY`](crate::run::CHECK_EVERY) events, so that no heap can overrun it
//! by much, however slow. The clock is the caller's: a test brings one that goes
//! by the work done, and so finds the same at every speed.
//!
//! Invariant: time decides which heaps are judged, never what is said of one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tells the time since some moment in the past.
pub trait Clock: Sync {
    /// The time; never less than before. O(1).
    fn now(&self) -> Duration;
}

/// The time of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that begins now.
    pub fn start() -> Self {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// How long an exploration may take, from its beginning to the last replay of its
/// report, and whether somebody ended it.
#[derive(Clone, Copy)]
pub struct Timer<'c> {
    clock: &'c dyn Clock,
    stop: &'c AtomicBool,
    start: Duration,
    time: Option<Duration>,
}

/// A moment by the clock of a [`Timer`]; `None`: never.
pub(crate) type Moment = Option<Duration>;

impl<'c> Timer<'c> {
    /// Begins now, and ends after `time` (`None`: never) or as soon as `stop` is set.
    pub fn begin(clock: &'c dyn Clock, time: Option<Duration>, stop: &'c AtomicBool) -> Self {
        Timer {
            clock,
            stop,
            start: clock.now(),
            time,
        }
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.clock.now().saturating_sub(self.start)
    }

    /// All the time there is; `None` without a limit.
    pub fn time(&self) -> Option<Duration> {
        self.time
    }

    /// Whether it was ended by hand.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The end.
    pub(crate) fn end(&self) -> Moment {
        Some(self.start + self.time?)
    }

    /// When the part of the time is over that `share` of it is.
    pub(crate) fn after(&self, share: f64) -> Moment {
        Some(self.start + self.time?.mul_f64(share))
    }

    /// Whether a moment is over, or it was ended by hand.
    pub(crate) fn past(&self, moment: Moment) -> bool {
        self.stopped() || moment.is_some_and(|moment| self.clock.now() >= moment)
    }

    /// Time until a moment; `None` without one.
    pub(crate) fn until(&self, moment: Moment) -> Option<Duration> {
        Some(moment?.saturating_sub(self.clock.now()))
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }
}
