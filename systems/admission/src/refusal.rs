//! The answer to a set that does not fit: why, and the smallest changes of one thing that make it fit.
//!
//! *Invariant:* a change that is told was tried: with it, and nothing else, the set is admitted.

use std::fmt;

use serde::Serialize;

/// Why a set is refused, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// Each of these suffices.
    pub changes: Vec<Change>,
}

/// Why a set is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// There is no such set; what to write instead.
    Impossible(String),
    /// More memory is asked for than there is.
    Memory {
        /// Bytes that are asked for.
        #[serde(with = "crate::time")]
        asked: u128,
        /// Bytes that there are.
        there: u64,
    },
    /// The network's delay leaves nothing of a deadline.
    Network {
        /// The function.
        function: String,
        /// Its longest delay; none if it grows without end.
        delay: Option<u64>,
    },
    /// A core is asked for more in the long run than it has.
    Utilisation {
        /// The core.
        core: u32,
        /// What is asked for, in lowest terms; none where 128 bits do not hold it.
        fraction: Option<String>,
        /// The same in millionths, rounded up.
        millionths: u64,
    },
    /// A window demands more than its length: a deadline is missed there.
    Demand {
        /// The core.
        core: u32,
        /// Its length, from a critical instant.
        #[serde(with = "crate::time")]
        time: u128,
        /// What it demands.
        #[serde(with = "crate::time")]
        demand: u128,
    },
    /// No cores were found for the functions that have none.
    NoPartition {
        /// Whether every way was tried: then none exists. Otherwise one may.
        whole: bool,
    },
    /// A core was not decided in the effort allowed.
    Undecided {
        /// The core.
        core: u32,
    },
}

/// A change that suffices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The largest budget that is admitted.
    Budget {
        /// The function.
        name: String,
        /// The budget.
        to: u64,
    },
    /// The smallest deadline that is.
    Deadline {
        /// The function.
        name: String,
        /// The deadline.
        to: u64,
    },
    /// The smallest period that is.
    Period {
        /// The function.
        name: String,
        /// The period.
        to: u64,
    },
    /// More memory of the host.
    Memory {
        /// Bytes that are missing.
        #[serde(with = "crate::time")]
        missing: u128,
    },
    /// A host of more cores.
    Cores {
        /// How many.
        to: u32,
    },
    /// A faster network.
    NetworkRate {
        /// The function.
        name: String,
        /// Bytes in a unit of time.
        to: u64,
    },
    /// All budgets, where no change of one function suffices.
    Budgets {
        /// Thousandths of each, rounded down, at least 1.
        thousandths: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        for (index, change) in self.changes.iter().enumerate() {
            write!(f, "{}{change}", if index == 0 { ": " } else { ", or " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Impossible(error) => write!(f, "{error}"),
            Reason::Memory { asked, there } => {
                write!(f, "{asked} bytes are asked for, and there are {there}")
            }
            Reason::Network {
                function,
                delay: Some(delay),
            } => write!(
                f,
                "the network takes up to {delay} of the deadline of `{function}`, which leaves nothing"
            ),
            Reason::Network {
                function,
                delay: None,
            } => write!(f, "the network has no bound for requests of `{function}`"),
            Reason::Utilisation {
                core,
                fraction: Some(fraction),
                ..
            } => write!(f, "core {core} is asked for {fraction} of its time"),
            Reason::Utilisation {
                core, millionths, ..
            } => write!(
                f,
                "core {core} is asked for {millionths} millionths of its time"
            ),
            Reason::Demand { core, time, demand } => write!(
                f,
                "core {core} must do {demand} in a window of {time}, so a deadline is missed"
            ),
            Reason::NoPartition { whole: true } => write!(f, "no partition exists"),
            Reason::NoPartition { whole: false } => write!(
                f,
                "no partition was found by these heuristics (first, best and worst fit decreasing), though one may exist"
            ),
            Reason::Undecided { core } => write!(
                f,
                "core {core} is not decided in the effort allowed: bring periods to common multiples, or lower a budget"
            ),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Budget { name, to } => write!(f, "lower the budget of `{name}` to {to}"),
            Change::Deadline { name, to } => write!(f, "raise the deadline of `{name}` to {to}"),
            Change::Period { name, to } => write!(f, "raise the period of `{name}` to {to}"),
            Change::Memory { missing } => {
                write!(f, "give {missing} bytes more, or ask for as many less")
            }
            Change::Cores { to } => write!(f, "give {to} cores"),
            Change::NetworkRate { name, to } => {
                write!(f, "give `{name}` a network of {to} bytes in a unit of time")
            }
            Change::Budgets { thousandths } => {
                write!(f, "lower all budgets to {thousandths} thousandths")
            }
        }
    }
}
