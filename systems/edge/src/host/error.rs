//! Why the host does not do what it is asked.
//!
//! *Invariant:* a message is one line with its remedy.

use crate::error::{DeployError, EngineError};
use crate::manifest::ManifestError;

/// Why the host does not do what it is asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The manifest cannot be.
    #[error("function.toml: {0}")]
    Manifest(#[from] ManifestError),
    /// The module cannot be deployed.
    #[error("{0}")]
    Module(#[from] DeployError),
    /// There is a function of that name.
    #[error("there is a function `{0}`: remove it first, or give this one another name")]
    Exists(String),
    /// There is none of that name.
    #[error("there is no function `{0}`: deploy it first")]
    Unknown(String),
    /// The set with this function does not fit.
    #[error("not admitted: {0}")]
    NotAdmitted(String),
    /// As many functions are there as may be.
    #[error("{limit} functions are there, as many as may be: remove one first")]
    Full {
        /// How many may be.
        limit: usize,
    },
    /// Its deadline is shorter than what one invocation takes.
    #[error("an empty request was not served within the budget of {budget} ns: raise it")]
    Budget {
        /// The budget.
        budget: u64,
    },
    /// Its budget is shorter than its end is looked for.
    #[error(
        "budget is {budget} ns, and its end is looked for in time from {least} ns on: raise it, or have the host look more often (`--look`)"
    )]
    ShortBudget {
        /// The budget.
        budget: u64,
        /// The shortest.
        least: u64,
    },
    /// The samples that its manifest names did not come with it.
    #[error(
        "the manifest names {named} samples, and {came} came: put them between manifest and module, and their sizes into \
         the address (`samples=BYTES,BYTES`)"
    )]
    Samples {
        /// How many are named.
        named: usize,
        /// How many came.
        came: usize,
    },
    /// The request is larger than the function takes.
    #[error(
        "the request has more than {limit} bytes, the largest of `{name}`: raise `input`, or send less"
    )]
    TooLarge {
        /// The function.
        name: String,
        /// Its largest request.
        limit: u64,
    },
    /// Too many requests of the function wait.
    #[error("{waiting} requests of `{name}` wait: send one each {period} ns")]
    TooMany {
        /// The function.
        name: String,
        /// How many wait.
        waiting: usize,
        /// Its period.
        period: u64,
    },
    /// The host does not start.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// A worker does not start.
    #[error(
        "worker {core} does not start: {cause}; lower the number of cores, or raise the limit on threads"
    )]
    Worker {
        /// Its core.
        core: u32,
        /// Why.
        cause: String,
    },
    /// The host is ending.
    #[error("the host is ending")]
    Ending,
}
