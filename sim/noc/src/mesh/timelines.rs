//! X-Y routing, each link a timeline: what is sent reserves its whole way at once.
//!
//! The cheap model: a packet costs a few operations a hop, whatever its latency. It knows contention: on each link a packet
//! takes the first time that is left when it would come by. It does not know back-pressure: queues are without end. And who was
//! sent first is served first, though on a link far away another may come by sooner and then has to wait.
//!
//! *Invariant:* a link carries one packet at a time. Packets of a flow stay in order: one that comes later finds no time
//! before another's that this one did not find.

use std::collections::VecDeque;

use crate::mesh::{Deaths, Ends, Fate, LinkUse, Network, Packet, Reason, Topology};
use crate::parameters::Parameters;

/// Links as timelines of reservations. O(hops) a packet, times the gaps between reservations of a link.
pub struct Timelines {
    topology: Topology,
    hop: u64,
    occupancy: u64,
    interface_out: u64,
    deaths: Deaths,
    links: Vec<Timeline>,
    /// The way from each interface into its router, and the way back.
    into: Vec<Timeline>,
    out_of: Vec<Timeline>,
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
            links: vec![Timeline::default(); topology.links()],
            into: vec![Timeline::default(); topology.nodes()],
            out_of: vec![Timeline::default(); topology.nodes()],
            used: vec![LinkUse::default(); topology.links()],
        }
    }

    /// Reserves the way; returns when the packet has left the last router, or when and why it is gone.
    fn reserve(&mut self, packet: &Packet, now: u64) -> Result<u64, (u64, Reason)> {
        let mut cycle = self.into[packet.source].reserve(now, now, 1);
        if self.deaths.node(packet.source, cycle) {
            return Err((cycle, Reason::DeadNode));
        }
        for (node, direction) in self.topology.path(packet.source, packet.destination) {
            let link = self.topology.link(node, direction);
            let begin = self.links[link].first_free(now, cycle, self.occupancy);
            if self.deaths.link(link, begin) {
                return Err((begin, Reason::DeadLink));
            }
            cycle = self.links[link].reserve(now, cycle, self.occupancy) + self.hop;
            self.used[link].count(self.occupancy);
            if self.deaths.link(link, cycle) {
                return Err((cycle, Reason::DeadLink));
            }
        }
        Ok(self.out_of[packet.destination].reserve(now, cycle, 1))
    }
}

/// Times that are taken: from the first to before the second cycle each, sorted, with a gap between each two.
#[derive(Clone, Default)]
struct Timeline(VecDeque<(u64, u64)>);

impl Timeline {
    /// When, from `cycle` on, so many cycles are first left. What is over `now` is forgotten: nobody asks for it again.
    /// Linear in what is taken.
    fn first_free(&mut self, now: u64, cycle: u64, cycles: u64) -> u64 {
        while self.0.front().is_some_and(|(_, end)| *end <= now) {
            self.0.pop_front();
        }
        let mut begin = cycle;
        for &(from, end) in &self.0 {
            if begin + cycles <= from {
                break;
            }
            begin = begin.max(end);
        }
        begin
    }

    /// Takes the first cycles that are left from `cycle` on, and returns when they begin.
    fn reserve(&mut self, now: u64, cycle: u64, cycles: u64) -> u64 {
        let begin = self.first_free(now, cycle, cycles);
        let end = begin + cycles;
        let place = self.0.partition_point(|(from, _)| *from < begin);
        let touches_next = self.0.get(place).is_some_and(|(from, _)| *from == end);
        let touches_last = place > 0 && self.0[place - 1].1 == begin;
        match (touches_last, touches_next) {
            (false, false) => self.0.insert(place, (begin, end)),
            (true, false) => self.0[place - 1].1 = end,
            (false, true) => self.0[place].0 = begin,
            (true, true) => {
                self.0[place - 1].1 = self.0[place].1;
                self.0.remove(place);
            }
        }
        begin
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_time_that_is_left_is_taken(
            asked in prop::collection::vec((0..3u64, 0..30u64, 1..4u64), 0..60),
        ) {
            // The naive model: a flag a cycle.
            let (mut taken, mut timeline, mut now) = (vec![false; 400], Timeline::default(), 0);
            for (passes, later, cycles) in asked {
                now += passes;
                let is_left = |begin: &u64| (*begin..begin + cycles).all(|cycle| !taken[cycle as usize]);
                let begin = (now + later..).find(is_left).expect("there is no end");
                (begin..begin + cycles).for_each(|cycle| taken[cycle as usize] = true);
                prop_assert_eq!(timeline.reserve(now, now + later, cycles), begin);
                prop_assert!(timeline.0.iter().is_sorted());
                prop_assert!(timeline.0.iter().zip(timeline.0.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            }
        }
    }
}
