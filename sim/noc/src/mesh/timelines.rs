//! X-Y routing, each link a timeline: what is sent reserves its whole way at once.
//!
//! The cheap model: a packet costs a few operations a hop, whatever its latency. It knows contention: on each link a packet
//! takes the first time that is left when it would come by. It does not know back-pressure: queues are without end. And who was
//! sent first is served first, though on a link far away another may come by sooner and then has to wait.
//!
//! *Invariant:* a link carries one packet at a time. Packets of a flow stay in order: one that comes later finds no time
//! before another's that this one did not find.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::mesh::{Deaths, Ends, Fate, Faults, LinkUse, Network, Packet, Reason, Topology};
use crate::parameters::{Parameters, ParametersError};

/// Links as timelines of reservations. O(hops) a packet, times the gaps between reservations of a link.
#[derive(Clone)]
pub struct Timelines {
    topology: Topology,
    hop: u64,
    occupancy: u64,
    interface_in: u64,
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
            interface_in: parameters.interface_in,
            interface_out: parameters.interface_out,
            deaths,
            links: vec![Timeline::default(); topology.links()],
            into: vec![Timeline::default(); topology.nodes()],
            out_of: vec![Timeline::default(); topology.nodes()],
            used: vec![LinkUse::default(); topology.links()],
        }
    }

    /// The links of a mesh without faults by themselves: for platforms that know when each packet is sent, and of several
    /// nodes not in the order of time. What `parameters` say of the kind of network is not asked.
    ///
    /// # Errors
    /// The parameters are impossible.
    pub fn alone(parameters: &Parameters) -> Result<Timelines, ParametersError> {
        parameters.check()?;
        let deaths = Deaths::new(parameters.topology(), &Faults::default())?;
        Ok(Timelines::new(parameters, deaths))
    }

    /// Carries a packet that is sent at `cycle` and returns when it has arrived. Nothing is sent before cycle `past` any
    /// more, from whichever node.
    ///
    /// # Panics
    /// When the mesh has no such nodes.
    pub fn carry(&mut self, source: usize, destination: usize, cycle: u64, past: u64) -> u64 {
        let left = self.reserve(source, destination, cycle + self.interface_in, past);
        left.expect("nothing dies in a mesh without faults") + self.interface_out
    }

    /// What is taken of interfaces and links, in an order that [`take_up`](Self::take_up) knows. Linear in nodes.
    #[must_use]
    pub fn taken(&self) -> Vec<Timeline> {
        let all = self.into.iter().chain(&self.out_of).chain(&self.links);
        all.cloned().collect()
    }

    /// Takes what was taken of as large a mesh; false, and nothing happens, if it was another one, or none.
    pub fn take_up(&mut self, taken: &[Timeline]) -> bool {
        let all = self.into.iter_mut().chain(&mut self.out_of);
        let all: Vec<_> = all.chain(&mut self.links).collect();
        let same = all.len() == taken.len() && taken.iter().all(Timeline::can_be);
        if same {
            for (place, taken) in all.into_iter().zip(taken) {
                place.clone_from(taken);
            }
        }
        same
    }

    /// Reserves the way from `begin` on; returns when the packet has left the last router, or when and why it is gone.
    fn reserve(
        &mut self,
        source: usize,
        destination: usize,
        begin: u64,
        past: u64,
    ) -> Result<u64, (u64, Reason)> {
        let mut cycle = self.into[source].reserve(past, begin, 1);
        if self.deaths.node(source, cycle) {
            return Err((cycle, Reason::DeadNode));
        }
        for (node, direction) in self.topology.path(source, destination) {
            let link = self.topology.link(node, direction);
            if self.deaths.any() {
                let begin = self.links[link].first_free(past, cycle, self.occupancy);
                if self.deaths.link(link, begin) {
                    return Err((begin, Reason::DeadLink));
                }
            }
            cycle = self.links[link].reserve(past, cycle, self.occupancy) + self.hop;
            self.used[link].count(self.occupancy);
            if self.deaths.link(link, cycle) {
                return Err((cycle, Reason::DeadLink));
            }
        }
        Ok(self.out_of[destination].reserve(past, cycle, 1))
    }
}

/// Times that are taken: from the first to before the second cycle each, sorted, with a gap between each two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline(VecDeque<(u64, u64)>);

impl Timeline {
    /// Whether there can be such a one: of a file, for instance. Linear in what is taken.
    #[must_use]
    pub fn can_be(&self) -> bool {
        /// Behind all that is ever asked for, and far from where sums overflow.
        const END: u64 = 1 << 62;
        let begins = self.0.iter().map(|(from, _)| *from);
        let next = begins.skip(1).chain([END + 1]);
        let mut all = self.0.iter().zip(next);
        all.all(|(&(from, end), next)| from < end && end < next)
    }

    /// When, from `cycle` on, so many cycles are first left. What is over by `now` is forgotten: nobody asks for it again.
    /// Linear in what is taken.
    fn first_free(&mut self, now: u64, cycle: u64, cycles: u64) -> u64 {
        self.forget(now);
        let mut begin = cycle;
        for &(from, end) in &self.0 {
            if begin + cycles <= from {
                break;
            }
            begin = begin.max(end);
        }
        begin
    }

    fn forget(&mut self, now: u64) {
        while self.0.front().is_some_and(|(_, end)| *end <= now) {
            self.0.pop_front();
        }
    }

    /// Takes the first cycles that are left from `cycle` on, and returns when they begin. What is over by `now` is
    /// forgotten: nobody may ask for an earlier cycle again. Linear in what is taken.
    pub fn reserve(&mut self, now: u64, cycle: u64, cycles: u64) -> u64 {
        self.forget(now);
        // As a rule nobody is behind.
        match self.0.back_mut() {
            Some((_, end)) if *end > cycle => {}
            Some((_, end)) if *end == cycle => {
                *end += cycles;
                return cycle;
            }
            _ => {
                self.0.push_back((cycle, cycle + cycles));
                return cycle;
            }
        }
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
        match self.reserve(packet.source, packet.destination, cycle, cycle) {
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
        /// In whatever order packets of a time are told, a link carries one at a time, and none comes sooner than its way.
        #[test]
        fn packets_are_carried_out_of_order(
            sent in prop::collection::vec((0..20u64, 0..9usize, 0..9usize), 1..80),
            occupancy in 1..3u64,
        ) {
            let parameters = Parameters { occupancy, hop: Some(3), ..Parameters::new(3, 3, crate::Kind::Timelines) };
            let mut ways = Timelines::alone(&parameters).expect("they are possible");
            let mut arrivals = std::collections::BTreeSet::new();
            let mut past = 0;
            for (later, source, destination) in sent {
                let alone = 1 + 3 * ways.topology.hops(source, destination) as u64 + 1;
                let cycle = past + later;
                let arrival = ways.carry(source, destination, cycle, past);
                prop_assert!(arrival >= cycle + alone);
                prop_assert!(arrivals.insert((destination, arrival)), "an interface takes a packet a cycle");
                past += later / 7;
                // What was taken goes on in another mesh of the size.
                let mut other = Timelines::alone(&parameters).expect("they are possible");
                prop_assert!(other.take_up(&ways.taken()));
                let (mut one, mut other) = (ways.clone(), other);
                prop_assert_eq!(one.carry(source, 8, cycle, past), other.carry(source, 8, cycle, past));
            }
        }

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
                prop_assert!(timeline.can_be());
            }
        }
    }

    #[test]
    fn what_is_no_timeline_is_told() {
        let can_be = |taken: &[(u64, u64)]| Timeline(taken.iter().copied().collect()).can_be();
        assert!(can_be(&[]) && can_be(&[(0, 1)]) && can_be(&[(0, 1), (2, 1 << 62)]));
        assert!(!can_be(&[(1, 1)]) && !can_be(&[(0, 2), (2, 3)]) && !can_be(&[(5, 6), (1, 2)]));
        assert!(!can_be(&[(0, u64::MAX)]));
    }
}
