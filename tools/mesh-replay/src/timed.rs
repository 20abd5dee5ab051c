//! What came of a trace, and how long calls took: of nodes that each see a clock.
//!
//! Invariant: times are of calls of the protocol alone, in seconds; a kind that was never called has zeros.

use serde::{Deserialize, Serialize};

use crate::replay::Replayed;

/// What came of a trace whose nodes see a clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// What came of it.
    #[serde(flatten)]
    pub replayed: Replayed,
    /// From the first operation to the last, blocks written and read, and waiting, included.
    pub seconds: f64,
    /// Operations that were done, of all nodes, a second.
    pub operations_per_second: f64,
    /// How long calls took.
    pub latency: Latencies,
}

/// How long calls took, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Requests that the own heap served.
    pub local: Latency,
    /// Requests that another heap served.
    pub remote: Latency,
    /// Requests that were refused.
    pub refused: Latency,
    /// Frees of blocks of the own heap.
    pub free: Latency,
    /// Frees of blocks of another heap.
    pub free_remote: Latency,
}

/// How long calls of a kind took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many there were.
    pub calls: u64,
    /// Half of them took no longer.
    pub p50: f64,
    /// Of a hundred, 99 took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}
