//! What a manifest means to the engine and to workers.
//!
//! *Invariant:* what is enforced is what was admitted: the manifest's budget, memory and sizes.

use std::time::Duration;

pub use metes_admission::manifest::{Kind, Manifest, ManifestError, Overrun};

use crate::limits::{Limits, State, Tiers};
use crate::outcome::{Budget, Policy};

/// A manifest on a host.
pub(crate) trait Hosted {
    /// What the engine is told.
    fn limits(&self) -> Limits;
    /// How an invocation is held to its budget.
    fn held_to(&self) -> Budget;
}

impl Hosted for Manifest {
    fn limits(&self) -> Limits {
        Limits {
            entry: self.entry.clone(),
            memory: self.memory,
            input: self.input as usize,
            output: self.output as usize,
            state: if self.kept { State::Kept } else { State::Fresh },
            tiers: Tiers::Both,
            arguments: vec![self.name.clone()],
            ..Limits::default()
        }
    }

    fn held_to(&self) -> Budget {
        let period = Duration::from_nanos(self.period);
        Budget {
            time: Duration::from_nanos(self.budget),
            policy: match self.overrun {
                Overrun::Stop => Policy::Stop,
                Overrun::Suspend => Policy::Suspend { period, times: 1 },
                Overrun::Degrade => Policy::Degrade { further: period },
            },
        }
    }
}
