//! X-Y routing, each link a timeline: what is sent reserves its whole way at once.
//!
//! The cheap model: a packet costs an operation a hop, whatever its latency. It knows contention, but not back-pressure:
//! queues are without end, and who was sent first goes first on every link, though another may come by it sooner. So its
//! latencies are close to those of routers under low load, and under high load too friendly to short of them.
//!
//! *Invariant:* a link carries one packet at a time, in the order in which they left their interfaces. Hence packets of a
//! flow stay in order.

use crate::mesh::{Deaths, Ends, Fate, LinkUse, Network, Packet, Reason, Topology};
use crate::parameters::Parameters;

/// Links as timelines of reservations. O(hops) a packet.
pub struct Timelines {
    topology: Topology,
    hop: u64,
    occupancy: u64,
    interface_out: u64,
    deaths: Deaths,
    /// The cycle from which on each link is free.
    links: Vec<u64>,
    /// The same of the way from each interface into its router, and of the way back.
    into: Vec<u64>,
    out_of: Vec<u64>,
    used: Vec<LinkUse>,
}

impl Timelines {
    pub(super) fn new(parameters: &Parameters, deaths: Deaths) -> Timelines {
        let topology = parameters.topology();
        Timelines {
            topology,
            hop: parameters.hop(),
            occupancy: parameters.occupancy,
            interface_out: parameters.interface_out,
            deaths,
            links: vec![0; topology.links()],
            into: vec![0; topology.nodes()],
            out_of: vec![0; topology.nodes()],
            used: vec![LinkUse::default(); topology.links()],
        }
    }

    /// Reserves the way; returns when the packet has left the last router, or when and why it is gone.
    fn reserve(&mut self, packet: &Packet, cycle: u64) -> Result<u64, (u64, Reason)> {
        let mut cycle = reserve(&mut self.into[packet.source], cycle, 1);
        if self.deaths.node(packet.source, cycle) {
            return Err((cycle, Reason::DeadNode));
        }
        for (node, direction) in self.topology.path(packet.source, packet.destination) {
            let link = self.topology.link(node, direction);
            if self.deaths.link(link, cycle) {
                return Err((cycle, Reason::DeadLink));
            }
            cycle = reserve(&mut self.links[link], cycle, self.occupancy) + self.hop;
            self.used[link].count(self.occupancy);
            if self.deaths.link(link, cycle) {
                return Err((cycle, Reason::DeadLink));
            }
        }
        Ok(reserve(&mut self.out_of[packet.destination], cycle, 1))
    }
}

/// Takes the first cycles of a timeline from `cycle` on, and returns when they begin.
fn reserve(free: &mut u64, cycle: u64, cycles: u64) -> u64 {
    let begin = cycle.max(*free);
    *free = begin + cycles;
    begin
}

impl Network for Timelines {
    fn inject(&mut self, packet: Packet, cycle: u64, ends: &mut Ends) {
        match self.reserve(&packet, cycle) {
            Ok(cycle) => ends.file(cycle + self.interface_out, (packet, Fate::Delivered)),
            Err((cycle, reason)) => ends.file(cycle, (packet, Fate::Dropped(reason))),
        };
    }

    fn next(&self) -> Option<u64> {
        None
    }

    fn step(&mut self, _cycle: u64, _ends: &mut Ends) {}

    fn links(&self) -> &[LinkUse] {
        &self.used
    }
}
