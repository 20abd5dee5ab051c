//! What the host itself takes of a core, for the admission.
//!
//! Times of processors of this kind have no bound that is proved; what is admitted rests on these figures, and on the
//! kernel to run a worker whose request is released.
//!
//! *Invariant:* all that the host itself does on a worker's core is in one of these.

use metes_admission::Interference;
use serde::Serialize;

use crate::clock;
use crate::limits::CompileServer;

/// How many times what was measured is counted.
const MARGIN: u64 = 2;
/// How late a sleeping thread is taken to be woken by a timer, in nanoseconds: an assumption about the machine.
const WAKE: u64 = 50_000;

/// What the host takes, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overheads {
    /// Of each invocation: taking it from the queue, leaving its answer, a look for its overrun, and how late its end may be
    /// found.
    pub release_ns: u64,
    /// Before the first of a row of invocations: how late a worker may wake.
    pub blocking_ns: u64,
    /// Of each look for overruns; nothing where the looking thread has processors of its own.
    pub look_ns: u64,
    /// How often that thread looks.
    pub look_period_ns: u64,
}

impl Overheads {
    /// From what was measured of the workers and of a look.
    pub(crate) fn measured(dispatch: u64, look: u64, look_period: u64, apart: bool) -> Overheads {
        let look = if apart { 0 } else { MARGIN * look };
        Overheads {
            release_ns: MARGIN * dispatch + look + WAKE,
            blocking_ns: WAKE,
            look_ns: look,
            look_period_ns: look_period,
        }
    }

    /// What is above workers on every core.
    pub(crate) fn interference(&self, server: Option<CompileServer>) -> Vec<Interference> {
        let look = (self.look_ns > 0).then_some(Interference {
            budget: self.look_ns,
            period: self.look_period_ns,
        });
        // The kernel lets a thread with a reservation run on any processor.
        let server = server.map(|server| Interference {
            budget: clock::nanoseconds(server.budget),
            period: clock::nanoseconds(server.period),
        });
        look.into_iter().chain(server).collect()
    }
}

/// What each invocation of a function takes beyond its budget, of a slot that is set back in so many nanoseconds: that, and
/// as much again for the one operator that fills or copies memory and is not interrupted at the end of a budget.
pub(crate) fn of_function(set_back: u64) -> u64 {
    MARGIN * (set_back + set_back)
}
