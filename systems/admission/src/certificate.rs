//! The answer to a set that fits: what was placed where, why it fits, and how much is left.
//!
//! *Invariant:* every figure can be computed again from the set and the placement; nothing in it must be believed.

use serde::{Deserialize, Serialize};

/// What was admitted, and why it fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Each core of the host, in order.
    pub cores: Vec<Core>,
    /// Memory.
    pub memory: Memory,
}

/// Memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Bytes that functions and the compile server hold.
    pub used: u64,
    /// Bytes that are left.
    pub left: u64,
}

/// One core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Its number.
    pub core: u32,
    /// Functions that it runs.
    pub functions: Vec<String>,
    /// Whether the compile server is there.
    pub compile_server: bool,
    /// What is asked for in the long run, a fraction in lowest terms; none where 128 bits do not hold it.
    pub utilisation: Option<String>,
    /// The same in millionths, rounded up.
    pub utilisation_millionths: u64,
    /// Windows shorter than this decide: the first busy period, or where lines above the demand meet its supply.
    #[serde(with = "crate::time")]
    pub horizon: u128,
    /// Windows that decide, the longest first: where one demands h, none between h and it demands more than its length.
    pub decides: Vec<Point>,
    /// Whether these are all that were looked at.
    pub decides_whole: bool,
    /// What is given up so that it fits; none if nothing is.
    pub degraded: Option<Degraded>,
    /// How much more budget each function could have, alone.
    pub spare: Vec<Spare>,
}

/// A window, and what must be done in it at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Its length, from a critical instant.
    #[serde(with = "crate::time")]
    pub time: u128,
    /// Most work with arrival and deadline in it, and the longest section that is not preempted.
    #[serde(with = "crate::time")]
    pub demand: u128,
}

/// What happens when a function of high criticality has used up its `budget` and takes its `budget_high`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Degraded {
    /// Functions of low criticality that are suspended until the core is idle; the compile server is, too, if it is there.
    pub suspended: Vec<String>,
    /// Sixteenths of their deadlines by which functions of high criticality are scheduled until then.
    pub virtual_deadlines: u64,
}

/// How much more one function could have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spare {
    /// The function.
    pub name: String,
    /// Time by which its budget, and `budget_high`, could rise if all else stayed, virtual deadlines too.
    pub budget: u64,
}

impl Certificate {
    /// The core of a function; none if it is on none.
    #[must_use]
    pub fn core_of(&self, name: &str) -> Option<u32> {
        let runs = |core: &&Core| core.functions.iter().any(|function| function == name);
        self.cores.iter().find(runs).map(|core| core.core)
    }
}
