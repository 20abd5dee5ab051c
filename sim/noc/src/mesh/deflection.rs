//! Routers without queues: a packet that cannot go where it wants to goes elsewhere (hot potato).
//!
//! In each cycle a router delivers the oldest packet that is for its node, gives every other one an output, the oldest first,
//! and takes one from its interface if an output is left. Towards the destination there is an output along the row and one
//! along the column; of two, that along the row is taken first.
//!
//! Every packet that has entered arrives: the oldest in the mesh gets what it wants at each router, and so arrives after at most
//! as many hops as the mesh is across; then another is the oldest. Hence a packet takes at most (1 + packets that entered before
//! and are under way) times diameter hops, of which a mesh holds `hop` a link. That is crude: for closed traffic there are far
//! better bounds (Hajek, "Bounds on evacuation time for deflection routing", Distributed Computing 5, 1991; Brassil and Cruz,
//! "Bounds on maximum delay in networks with deflection routing", IEEE TPDS 6(7), 1995).
//!
//! None of this bounds the wait of a packet in its interface: a router all of whose outputs pass others on takes none, and near
//! saturation, or beside a node that all send to, that lasts.
//!
//! *Invariant:* at each router at most as many packets arrive in a cycle as it has outputs that are not dead, and no packet
//! stays.

use crate::mesh::interfaces::Interfaces;
use crate::mesh::wheel::Wheel;
use crate::mesh::{Deaths, Direction, Ends, Fate, LinkUse, Network, Packet, Reason, Topology};
use crate::parameters::Parameters;

/// Routers that hold nothing. A cycle in which anything moves is linear in nodes, and O(n log n) in packets.
pub struct Deflection {
    topology: Topology,
    hop: u64,
    interface_out: u64,
    deaths: Deaths,
    interfaces: Interfaces,
    /// Packets on links, by the cycle of arrival.
    flights: Wheel<Flight>,
    /// Packets that entered so far: the age of the next.
    entered: u64,
    /// Hops after which a packet can only be astray.
    most_hops: u64,
    last: u64,
    deflections: u64,
    longest_way: u64,
    used: Vec<LinkUse>,
}

/// A packet on a link, in the order of where it arrives, and of age.
#[derive(Clone, Copy)]
struct Flight {
    node: usize,
    /// How many entered before it.
    age: u64,
    link: usize,
    hops: u64,
    packet: Packet,
}

impl Deflection {
    pub(super) fn new(parameters: &Parameters, deaths: Deaths) -> Deflection {
        let topology = parameters.topology();
        Deflection {
            topology,
            hop: parameters.hop(),
            interface_out: parameters.interface_out,
            deaths,
            interfaces: Interfaces::new(topology.nodes()),
            flights: Wheel::new(parameters.hop()),
            entered: 0,
            most_hops: most_hops(topology, parameters.hop()),
            last: 0,
            deflections: 0,
            longest_way: 0,
            used: vec![LinkUse::default(); topology.links()],
        }
    }

    /// Takes the packets that arrive now, by node and age. What comes over a dead link does not.
    fn arrive(&mut self, cycle: u64, ends: &mut Ends) -> Vec<Flight> {
        let mut arrived = self.flights.take(cycle);
        if self.deaths.any() {
            arrived.retain(|flight| {
                let dead = self.deaths.link(flight.link, cycle);
                if dead {
                    ends.file(cycle, (flight.packet, Fate::Dropped(Reason::DeadLink)));
                }
                !dead
            });
        }
        arrived.sort_unstable_by_key(|flight| (flight.node, flight.age));
        arrived
    }

    /// Sends on, delivers and takes what is at a node.
    fn route(&mut self, node: usize, here: &[Flight], cycle: u64, ends: &mut Ends) {
        let outputs = Direction::ALL.map(|direction| {
            self.topology.neighbour(node, direction).is_some()
                && !self.deaths.link(self.topology.link(node, direction), cycle)
        });
        let mut free = outputs;
        let mut delivered = false;
        for flight in here {
            if flight.packet.destination == node && !delivered {
                delivered = true;
                let packet = flight.packet;
                if flight.hops > self.topology.hops(packet.source, packet.destination) as u64 {
                    self.longest_way = self.longest_way.max(flight.hops);
                }
                let cycle = cycle + self.interface_out;
                ends.file(cycle, (flight.packet, Fate::Delivered));
            } else if let Some(reason) = self.hopeless(node, flight, cycle) {
                ends.file(cycle, (flight.packet, Fate::Dropped(reason)));
            } else {
                let direction = self.choose(node, flight.packet.destination, &free, cycle);
                let direction = direction.expect("as many outputs as inputs");
                free[direction as usize] = false;
                self.send(node, direction, *flight, cycle);
            }
        }
        if !self.interfaces.waits(node) {
            return;
        }
        if !outputs.contains(&true) {
            self.interfaces
                .drop_all(node, cycle, Reason::DeadLink, ends);
        } else if free.contains(&true) {
            let packet = self.interfaces.take(node).expect("one waits");
            let direction = self.choose(node, packet.destination, &free, cycle);
            let direction = direction.expect("one is free");
            let entering = Flight {
                node,
                age: self.entered,
                link: 0,
                hops: 0,
                packet,
            };
            self.entered += 1;
            self.send(node, direction, entering, cycle);
        }
    }

    /// Why a packet is not worth to be sent on, if faults make it so. A router knows which of its neighbours are dead.
    fn hopeless(&self, node: usize, flight: &Flight, cycle: u64) -> Option<Reason> {
        if !self.deaths.any() {
            debug_assert!(flight.hops <= self.most_hops, "every packet arrives");
            return None;
        }
        let destination = flight.packet.destination;
        let direction = self.topology.towards(node, destination);
        let cut_off = direction.is_some_and(|direction| {
            self.deaths.link(self.topology.link(node, direction), cycle)
                && self.deaths.node(destination, cycle)
        });
        match cut_off {
            true => Some(Reason::DeadNode),
            false => (flight.hops > self.most_hops).then_some(Reason::Stray),
        }
    }

    /// A free output, one towards the destination if there is one. Which other it is changes from cycle to cycle, so that
    /// none has more of what is deflected.
    fn choose(&self, node: usize, to: usize, free: &[bool; 4], cycle: u64) -> Option<Direction> {
        let is_free = |direction: &Direction| free[*direction as usize];
        let productive = self.topology.productive(node, to);
        let wanted = productive.into_iter().flatten().find(is_free);
        let begin = cycle as usize % 4 + node;
        let mut others = (0..4).map(|step| Direction::ALL[(begin + step) % 4]);
        wanted.or_else(|| others.find(is_free))
    }

    fn send(&mut self, node: usize, direction: Direction, flight: Flight, cycle: u64) {
        let productive = self.topology.productive(node, flight.packet.destination);
        self.deflections += u64::from(!productive.contains(&Some(direction)));
        let link = self.topology.link(node, direction);
        self.used[link].count(1);
        let other = self.topology.neighbour(node, direction);
        let flight = Flight {
            node: other.expect("the output leads somewhere"),
            link,
            hops: flight.hops + 1,
            ..flight
        };
        self.flights.file(cycle + self.hop, flight);
    }
}

/// Hops that no packet exceeds in a mesh without faults: see above.
fn most_hops(topology: Topology, hop: u64) -> u64 {
    topology.real_links().count() as u64 * hop * topology.diameter() as u64
}

impl Network for Deflection {
    fn inject(&mut self, packet: Packet, cycle: u64, ends: &mut Ends) {
        // From a node to itself there is no way: the interface turns it round.
        if packet.source == packet.destination {
            ends.file(cycle + self.interface_out, (packet, Fate::Delivered));
        } else {
            self.interfaces.push(packet, cycle);
        }
    }

    fn next(&self) -> Option<u64> {
        match self.flights.count() + self.interfaces.waiting() {
            0 => self.interfaces.first(),
            _ => Some(self.last + 1),
        }
    }

    fn step(&mut self, cycle: u64, ends: &mut Ends) {
        self.last = cycle;
        self.interfaces.pass(cycle, &self.deaths, ends);
        let arrived = self.arrive(cycle, ends);
        let mut rest = arrived.as_slice();
        for node in 0..self.topology.nodes() {
            let count = rest.iter().take_while(|flight| flight.node == node).count();
            let (here, behind) = rest.split_at(count);
            rest = behind;
            if count > 0 || self.interfaces.waits(node) {
                self.route(node, here, cycle, ends);
            }
        }
        self.flights.restore(cycle, arrived);
    }

    fn links(&self) -> &[LinkUse] {
        &self.used
    }

    fn deflections(&self) -> u64 {
        self.deflections
    }

    fn longest_way(&self) -> u64 {
        self.longest_way
    }
}
