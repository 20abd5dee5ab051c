//! What the host tells of itself and of its functions.
//!
//! *Invariant:* times are observations, and bound nothing.

use metes_admission::Certificate;
use serde::{Deserialize, Serialize};

use super::Sampled;
use crate::overheads::Overheads;
use crate::station::Obtained;
use crate::statistics::{Endings, Times};

/// What is told of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Its name.
    pub name: String,
    /// Its core.
    pub core: u32,
    /// Its period in nanoseconds.
    pub period_ns: u64,
    /// Its deadline in nanoseconds.
    pub deadline_ns: u64,
    /// Its budget in nanoseconds, as admitted.
    pub budget_ns: u64,
    /// Bytes of its slot.
    pub memory: u64,
    /// Which compiler's code it runs.
    pub tier: String,
    /// What an empty request took when it was deployed, in nanoseconds: an observation.
    pub measured_ns: Option<u64>,
    /// What the host takes for each invocation beyond what it takes for all, in nanoseconds, as admitted.
    pub overhead_ns: u64,
    /// What the requests take that its manifest names: of these alone, and enforced is the budget.
    #[serde(default)]
    pub samples: Vec<Sampled>,
    /// What the host has to say of its module.
    pub notes: Vec<String>,
    /// How invocations ended.
    pub counts: Endings,
    /// Times of invocations alone.
    pub time_ns: Times,
    /// From release to end.
    pub response_ns: Times,
    /// Requests that wait.
    pub waiting: usize,
}

/// What is told of the host.
#[derive(Debug, Serialize)]
pub struct HostTold<'a> {
    /// How each worker is scheduled.
    pub workers: Vec<&'a Obtained>,
    /// Whether the thread that ends overruns has its real-time priority.
    pub overruns_real_time: bool,
    /// Whether the kernel holds the compiling thread to its budget.
    pub compiler_reserved: bool,
    /// What the host takes of every core, as admitted.
    pub overheads: Overheads,
    /// Whether all memory of the process is locked, code and stacks included.
    pub memory_locked: bool,
    /// Bytes of slots that are taken.
    pub memory_taken: u64,
    /// Bytes of all slots.
    pub memory_total: u64,
    /// Why the functions fit.
    pub certificate: Option<Certificate>,
}
