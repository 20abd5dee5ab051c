//! What a run counts, node by node.
//!
//! *Invariant:* counts are of what the simulation did, in the order in which it did it; none is estimated.

use metes_noc::mesh::Histogram;

/// What a node has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cycles of each request for a block, from the program's call to its return.
    pub allocate: Histogram,
    /// Cycles of each free.
    pub free: Histogram,
    /// Cycles of requests that another heap served.
    pub remote: Histogram,
    /// Requests that the own heap served.
    pub served_at_home: u64,
    /// Requests that another served.
    pub served_away: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Those refused though a heap had had room all the time since they began.
    pub spurious: u64,
    /// Heaps looked into.
    pub visits: u64,
    /// Most heaps that a request looked into or passed over.
    pub most_visits: u64,
    /// Heaps passed over because somebody held them.
    pub skips: u64,
    /// Cycles for which this node waited for locks of heaps, at its own controller and at others'.
    pub lock_wait: u64,
    /// Microinstructions for communication between nodes: messages, locks, tables.
    pub communication: u64,
    /// Cycles in which the program computed.
    pub computed: u64,
    /// Cycles in which it waited for other nodes' programs.
    pub waited: u64,
    /// The cycle at which it ended; none if it has not.
    pub ended: Option<u64>,
}

impl Counts {
    /// Requests and frees.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.allocate.count() + self.free.count()
    }

    /// Cycles of all requests and frees.
    #[must_use]
    pub fn managed(&self) -> u128 {
        self.allocate.sum() + self.free.sum()
    }
}
