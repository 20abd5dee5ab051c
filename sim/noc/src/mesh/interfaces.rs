//! Packets that have left the core of their source and wait for its router to take them.
//!
//! *Invariant:* packets of a node leave in the order in which they were sent.

use std::collections::VecDeque;

use crate::mesh::{Deaths, Ends, Fate, Packet, Reason};

/// The lines of all nodes: without end, as is the memory of a core that waits.
pub(super) struct Interfaces {
    /// Packets that are still in the interface, with the cycle at which they have passed it; in the order of time.
    passing: VecDeque<(u64, Packet)>,
    /// Packets that have passed it, by node.
    lines: Vec<VecDeque<Packet>>,
    /// How many packets have passed it.
    waiting: usize,
}

impl Interfaces {
    pub(super) fn new(nodes: usize) -> Interfaces {
        Interfaces {
            passing: VecDeque::new(),
            lines: vec![VecDeque::new(); nodes],
            waiting: 0,
        }
    }

    pub(super) fn push(&mut self, packet: Packet, cycle: u64) {
        debug_assert!(self.passing.back().is_none_or(|(last, _)| *last <= cycle));
        self.passing.push_back((cycle, packet));
    }

    /// The cycle at which the next packet has passed its interface.
    pub(super) fn first(&self) -> Option<u64> {
        self.passing.front().map(|(cycle, _)| *cycle)
    }

    /// How many packets wait for a router.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Lines up what has passed its interface by a cycle; those of dead nodes are dropped.
    pub(super) fn pass(&mut self, cycle: u64, deaths: &Deaths, ends: &mut Ends) {
        while self.first().is_some_and(|first| first <= cycle) {
            let (_, packet) = self.passing.pop_front().expect("there is a first");
            self.lines[packet.source].push_back(packet);
            self.waiting += 1;
        }
        if deaths.any() && self.waiting > 0 {
            for node in 0..self.lines.len() {
                if deaths.node(node, cycle) {
                    self.drop_all(node, cycle, Reason::DeadNode, ends);
                }
            }
        }
    }

    /// Whether a packet of a node waits.
    pub(super) fn waits(&self, node: usize) -> bool {
        !self.lines[node].is_empty()
    }

    /// Takes the first packet of a node.
    pub(super) fn take(&mut self, node: usize) -> Option<Packet> {
        let packet = self.lines[node].pop_front()?;
        self.waiting -= 1;
        Some(packet)
    }

    /// Drops what waits at a node.
    pub(super) fn drop_all(&mut self, node: usize, cycle: u64, reason: Reason, ends: &mut Ends) {
        while let Some(packet) = self.take(node) {
            ends.file(cycle, (packet, Fate::Dropped(reason)));
        }
    }
}
