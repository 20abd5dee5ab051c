//! X-Y routing through routers with input queues, credits and round-robin arbitration, by the cycle.
//!
//! A hop takes what it does in a router of virtual channels whose packets are one flit (Dally and Towles, "Principles and
//! Practices of Interconnection Networks", 2004, chapter 16): a cycle until the channel is allocated, one for the switch, one
//! to traverse it, one on the link. There is one queue an input, not several: a packet for a busy output keeps back those
//! behind it, so that under high load latencies rise sooner than with virtual channels.
//!
//! *Invariant:* a queue never holds more than it has room for, since who sends to it has a credit for each place. An output
//! sends one packet at a time, a queue loses one a cycle, and packets of a flow stay in order.

use std::collections::VecDeque;

use crate::mesh::interfaces::Interfaces;
use crate::mesh::wheel::Wheel;
use crate::mesh::{Deaths, Direction, Ends, Fate, LinkUse, Network, Packet, Reason, Topology};
use crate::parameters::Parameters;

/// Inputs of a router: one from each neighbour, by its direction, and one from the interface. So its outputs.
const PORTS: usize = 5;
/// The port of the interface.
const INTERFACE: usize = 4;

/// Routers with input queues. A cycle in which anything moves is linear in nodes.
pub struct Buffered {
    topology: Topology,
    /// Cycles from when a packet is in a queue to when it may have the switch, and from there to the next queue.
    allocation: u64,
    passage: u64,
    occupancy: u64,
    room: usize,
    credit: u64,
    interface_out: u64,
    deaths: Deaths,
    routers: Vec<Router>,
    /// Places that are left behind each link.
    credits: Vec<u64>,
    /// The cycle from which on each link is free.
    free: Vec<u64>,
    interfaces: Interfaces,
    /// Packets on links, and credits on their way back, by the cycle at which they are there.
    arriving: Wheel<(usize, usize, Packet)>,
    returning: Wheel<usize>,
    /// Packets in routers.
    held: usize,
    last: u64,
    used: Vec<LinkUse>,
}

/// A router: its queues and whose turn it is.
#[derive(Clone, Default)]
struct Router {
    queues: [VecDeque<Queued>; PORTS],
    held: usize,
    /// The input that each output served last.
    served: [usize; PORTS],
}

#[derive(Clone, Copy)]
struct Queued {
    packet: Packet,
    output: usize,
    /// The cycle from which on it may have the switch.
    ready: u64,
}

impl Buffered {
    pub(super) fn new(parameters: &Parameters, deaths: Deaths) -> Buffered {
        let topology = parameters.topology();
        let allocation = parameters.hop().min(2) - 1;
        let passage = parameters.hop() - allocation;
        Buffered {
            topology,
            allocation,
            passage,
            occupancy: parameters.occupancy,
            room: parameters.queue as usize,
            credit: parameters.credit,
            interface_out: parameters.interface_out,
            deaths,
            routers: vec![Router::default(); topology.nodes()],
            credits: vec![parameters.queue; topology.links()],
            free: vec![0; topology.links()],
            interfaces: Interfaces::new(topology.nodes()),
            arriving: Wheel::new(passage),
            returning: Wheel::new(parameters.credit),
            held: 0,
            last: 0,
            used: vec![LinkUse::default(); topology.links()],
        }
    }

    /// What is due now: credits, and packets from links.
    fn arrive(&mut self, cycle: u64, ends: &mut Ends) {
        let credits = self.returning.take(cycle);
        for &link in &credits {
            self.credits[link] += 1;
        }
        self.returning.restore(cycle, credits);
        let packets = self.arriving.take(cycle);
        for &(link, node, packet) in &packets {
            if self.deaths.link(link, cycle) {
                ends.file(cycle, (packet, Fate::Dropped(Reason::DeadLink)));
            } else {
                let input = Direction::ALL[link % 4].opposite() as usize;
                self.queue(node, input, packet, cycle);
            }
        }
        self.arriving.restore(cycle, packets);
    }

    /// Takes a packet from each interface whose queue has room.
    fn inject_waiting(&mut self, cycle: u64, ends: &mut Ends) {
        self.interfaces.pass(cycle, &self.deaths, ends);
        if self.interfaces.waiting() == 0 {
            return;
        }
        for node in 0..self.routers.len() {
            if self.routers[node].queues[INTERFACE].len() < self.room
                && let Some(packet) = self.interfaces.take(node)
            {
                self.queue(node, INTERFACE, packet, cycle);
            }
        }
    }

    fn queue(&mut self, node: usize, input: usize, packet: Packet, cycle: u64) {
        let towards = self.topology.x_y(node, packet.destination);
        let router = &mut self.routers[node];
        router.queues[input].push_back(Queued {
            packet,
            output: towards.map_or(INTERFACE, |direction| direction as usize),
            ready: cycle + self.allocation,
        });
        debug_assert!(router.queues[input].len() <= self.room, "a place each");
        router.held += 1;
        self.held += 1;
    }

    /// Gives each output of a router to one of the inputs that want it, in turn.
    fn switch(&mut self, node: usize, cycle: u64, ends: &mut Ends) {
        let mut wanted = [0u8; PORTS];
        for (input, queue) in self.routers[node].queues.iter().enumerate() {
            if let Some(first) = queue.front().filter(|first| first.ready <= cycle) {
                wanted[first.output] |= 1 << input;
            }
        }
        for (output, inputs) in wanted
            .into_iter()
            .enumerate()
            .filter(|(_, inputs)| *inputs != 0)
        {
            let link = node * 4 + output;
            let router = &mut self.routers[node];
            let input = next_in_turn(inputs, router.served[output]);
            if output == INTERFACE {
                router.served[output] = input;
                let packet = self.leave(node, input, cycle);
                let cycle = cycle + self.passage + self.interface_out;
                ends.file(cycle, (packet, Fate::Delivered));
            } else if self.deaths.link(link, cycle) {
                router.served[output] = input;
                let packet = self.leave(node, input, cycle);
                ends.file(cycle, (packet, Fate::Dropped(Reason::DeadLink)));
            } else if self.credits[link] > 0 && self.free[link] <= cycle {
                router.served[output] = input;
                let packet = self.leave(node, input, cycle);
                let other = self.topology.neighbour(node, Direction::ALL[output]);
                let other = other.expect("the way stays in the grid");
                self.credits[link] -= 1;
                self.free[link] = cycle + self.occupancy;
                self.used[link].count(self.occupancy);
                self.arriving
                    .file(cycle + self.passage, (link, other, packet));
            }
        }
    }

    /// Takes the first packet of a queue; its place is free for the router before.
    fn leave(&mut self, node: usize, input: usize, cycle: u64) -> Packet {
        let router = &mut self.routers[node];
        router.held -= 1;
        self.held -= 1;
        let queued = router.queues[input].pop_front().expect("it has a first");
        if input != INTERFACE {
            let from = Direction::ALL[input];
            let before = self
                .topology
                .neighbour(node, from)
                .expect("it came from there");
            let link = self.topology.link(before, from.opposite());
            self.returning.file(cycle + self.credit, link);
        }
        queued.packet
    }
}

/// The first of `inputs`, a bit each, behind the one that was served last.
fn next_in_turn(inputs: u8, last: usize) -> usize {
    let behind = inputs & !((2 << last) - 1) as u8;
    let inputs = if behind == 0 { inputs } else { behind };
    inputs.trailing_zeros() as usize
}

impl Network for Buffered {
    fn inject(&mut self, packet: Packet, cycle: u64, _ends: &mut Ends) {
        self.interfaces.push(packet, cycle);
    }

    fn next(&self) -> Option<u64> {
        let moving =
            self.held + self.interfaces.waiting() + self.arriving.count() + self.returning.count();
        match moving {
            0 => self.interfaces.first(),
            _ => Some(self.last + 1),
        }
    }

    fn step(&mut self, cycle: u64, ends: &mut Ends) {
        self.last = cycle;
        self.arrive(cycle, ends);
        self.inject_waiting(cycle, ends);
        if self.held > 0 {
            for node in 0..self.routers.len() {
                if self.routers[node].held > 0 {
                    self.switch(node, cycle, ends);
                }
            }
        }
    }

    fn links(&self) -> &[LinkUse] {
        &self.used
    }
}

#[cfg(test)]
mod tests {
    use super::next_in_turn;

    #[test]
    fn turns_go_round() {
        for inputs in 1..32u8 {
            for last in 0..5 {
                let turns = (1..=5).map(|step| (last + step) % 5);
                let expected = turns.into_iter().find(|input| inputs >> input & 1 == 1);
                assert_eq!(
                    Some(next_in_turn(inputs, last)),
                    expected,
                    "{inputs:05b} behind {last}"
                );
            }
        }
    }
}
