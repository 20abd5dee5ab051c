//! A mesh: packets of one flit between the nodes of a grid.
//!
//! A packet passes the interface of its source, routers and links, and the interface of its destination. How routers carry
//! it is one of three models behind one trait ([`Network`]); interfaces, faults and statistics are the same for all.
//!
//! ```
//! use metes_noc::{Faults, Kind, Mesh, Parameters};
//! let mut mesh = Mesh::new(&Parameters::new(3, 2, Kind::Timelines), &Faults::default())?;
//! let number = mesh.send(0, 0, 5)?;
//! let mut ends = Vec::new();
//! mesh.advance(10, &mut ends);
//! // Three hops of a cycle each, and a cycle in each interface.
//! assert_eq!((ends[0].packet.number, ends[0].cycle), (number, 5));
//! # Ok::<(), metes_noc::mesh::Error>(())
//! ```
//!
//! *Invariant:* of packets that were sent and copies that a fault made of them, each is in the mesh, was delivered or was
//! dropped, and exactly one of these ([`Counts::in_flight`]).

mod buffered;
mod deflection;
mod faults;
mod interfaces;
mod statistics;
mod timelines;
mod topology;
mod wheel;

use crate::event::Queue;
use crate::parameters::{Kind, Parameters, ParametersError};

pub use buffered::Buffered;
pub use deflection::Deflection;
pub use faults::{DeadLink, DeadNode, Faults};
pub use statistics::{Counts, Histogram, LinkUse, Statistics};
pub use timelines::{Timeline, Timelines};
pub use topology::{Direction, Topology};

pub(crate) use faults::Deaths;

/// A packet of one flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// How many were sent before it; a copy has the number of what it is a copy of.
    pub number: u64,
    /// The node that sent it.
    pub source: usize,
    /// The node that it is for.
    pub destination: usize,
    /// The cycle at which it was sent.
    pub sent: u64,
    /// Whether a fault made it.
    pub copy: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is at its destination.
    Delivered,
    /// It is gone.
    Dropped(Reason),
}

/// Why a packet is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its number is among those that are lost.
    Lost,
    /// Its way led over a dead link.
    DeadLink,
    /// Its source or its destination is dead.
    DeadNode,
    /// Faults kept it from its destination until it was given up.
    Stray,
}

/// The end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The packet.
    pub packet: Packet,
    /// The cycle of its delivery or loss.
    pub cycle: u64,
    /// What became of it.
    pub fate: Fate,
}

/// Where a network files the ends of packets: a delivery at the cycle at which the packet has passed the interface of its
/// destination.
pub type Ends = Queue<(Packet, Fate)>;

/// What cannot be asked of a mesh.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its parameters or faults are impossible.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// A node that it does not have.
    #[error(
        "there is no node {node}: the mesh has nodes 0 to {last}; send to one of these, or enlarge columns or rows"
    )]
    NoSuchNode {
        /// The node that was named.
        node: usize,
        /// The last that there is.
        last: usize,
    },
    /// A packet of an earlier cycle than one that is over.
    #[error(
        "a packet cannot be sent at cycle {cycle}: the mesh is at cycle {now}; send in the order of time"
    )]
    Past {
        /// The cycle that was named.
        cycle: u64,
        /// The cycle of the mesh.
        now: u64,
    },
    /// A packet of a cycle beyond [`LAST`].
    #[error(
        "a packet cannot be sent at cycle {cycle}: cycles are counted up to {LAST}; begin a new mesh"
    )]
    Late {
        /// The cycle that was named.
        cycle: u64,
    },
}

/// The last cycle at which packets are sent: 2⁶², so that no sum of delays is too large for a word.
pub const LAST: u64 = 1 << 62;

/// How routers carry packets.
///
/// Packets are given in the order of the cycle at which they leave their interface. The mesh calls [`step`](Self::step) at
/// each cycle that [`next`](Self::next) names, in order, and after all packets of that cycle were given.
pub trait Network {
    /// Takes a packet that leaves the interface of its source at `cycle` at the earliest.
    fn inject(&mut self, packet: Packet, cycle: u64, ends: &mut Ends);

    /// The next cycle at which routers do something; none if nothing is in them.
    fn next(&self) -> Option<u64>;

    /// Does what routers do in a cycle.
    fn step(&mut self, cycle: u64, ends: &mut Ends);

    /// What each link carried so far, by [`Topology::link`].
    fn links(&self) -> &[LinkUse];

    /// How often a packet was sent elsewhere than towards its destination.
    fn deflections(&self) -> u64 {
        0
    }

    /// The most hops of a packet that was deflected and has arrived; 0 if there is none.
    fn longest_way(&self) -> u64 {
        0
    }
}

/// A network with its interfaces, faults and statistics.
pub struct Mesh {
    topology: Topology,
    network: Box<dyn Network>,
    interface_in: u64,
    deaths: Deaths,
    lost: Vec<u64>,
    duplicated: Vec<u64>,
    now: u64,
    /// Ends that were foreseen or have not been told.
    ends: Ends,
    counts: Counts,
    latency: Histogram,
}

impl Mesh {
    /// A mesh at cycle 0. Linear in nodes and faults.
    ///
    /// # Errors
    /// [`Error::Parameters`] when the parameters are impossible, or a fault names what is not there.
    pub fn new(parameters: &Parameters, faults: &Faults) -> Result<Mesh, Error> {
        parameters.check()?;
        let topology = parameters.topology();
        let deaths = Deaths::new(topology, faults)?;
        let network: Box<dyn Network> = match parameters.network {
            Kind::Timelines => Box::new(Timelines::new(parameters, deaths.clone())),
            Kind::Buffered => Box::new(Buffered::new(parameters, deaths.clone())),
            Kind::Deflection => Box::new(Deflection::new(parameters, deaths.clone())),
        };
        let sorted = |numbers: &[u64]| {
            let mut numbers = numbers.to_vec();
            numbers.sort_unstable();
            numbers
        };
        Ok(Mesh {
            topology,
            network,
            interface_in: parameters.interface_in,
            deaths,
            lost: sorted(&faults.lost),
            duplicated: sorted(&faults.duplicated),
            now: 0,
            ends: Ends::new(),
            counts: Counts::default(),
            latency: Histogram::default(),
        })
    }

    /// Its nodes and links.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// The cycle up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How often a packet goes on its way: 1, or 2 if a fault makes a copy of it. O(log n) of the faults.
    #[must_use]
    pub fn copies(&self, number: u64) -> u64 {
        1 + u64::from(self.duplicated.binary_search(&number).is_ok())
    }

    /// Sends a packet and returns its number. O(log n) of the packets in flight, with `Timelines` once a hop.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`]; [`Error::Past`] when `cycle` is over, or a packet of a later one was sent; [`Error::Late`]
    /// beyond [`LAST`].
    pub fn send(&mut self, cycle: u64, source: usize, destination: usize) -> Result<u64, Error> {
        let nodes = self.topology.nodes();
        if let Some(node) = [source, destination]
            .into_iter()
            .find(|node| *node >= nodes)
        {
            return Err(Error::NoSuchNode {
                node,
                last: nodes - 1,
            });
        }
        if cycle < self.now {
            return Err(Error::Past {
                cycle,
                now: self.now,
            });
        }
        if cycle > LAST {
            return Err(Error::Late { cycle });
        }
        if cycle > self.now {
            // What routers do before does not know of this packet, and its place among others is by time.
            self.carry(cycle);
        }
        let packet = Packet {
            number: self.counts.injected,
            source,
            destination,
            sent: cycle,
            copy: false,
        };
        self.counts.injected += 1;
        self.leave(packet);
        if self.copies(packet.number) > 1 {
            self.counts.duplicated += 1;
            self.leave(Packet {
                copy: true,
                ..packet
            });
        }
        Ok(packet.number)
    }

    fn leave(&mut self, packet: Packet) {
        if self.deaths.node(packet.source, packet.sent) {
            let fate = Fate::Dropped(Reason::DeadNode);
            self.ends.file(packet.sent, (packet, fate));
        } else {
            let cycle = packet.sent + self.interface_in;
            self.network.inject(packet, cycle, &mut self.ends);
        }
    }

    /// The next cycle at which something happens: none if no packet is in flight. O(log n) of the packets in flight.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let first = |cycle: u64| cycle.max(self.now);
        let end = self.ends.first().map(first);
        [end, self.network.next()].into_iter().flatten().min()
    }

    /// Lets everything happen up to `cycle` and that included, and adds the ends of packets, in the order of time. As long
    /// as routers do something, linear in cycles and nodes.
    pub fn advance(&mut self, cycle: u64, ends: &mut Vec<End>) {
        self.carry(cycle);
        while self.ends.first().is_some_and(|end| end <= cycle) {
            let (cycle, (packet, fate)) = self.ends.take().expect("there is one");
            ends.push(self.end(packet, cycle, fate));
        }
    }

    /// Lets routers do what they do up to a cycle.
    fn carry(&mut self, cycle: u64) {
        while let Some(next) = self.network.next().filter(|next| *next <= cycle) {
            self.network.step(next, &mut self.ends);
        }
        self.now = self.now.max(cycle);
    }

    fn end(&mut self, packet: Packet, cycle: u64, fate: Fate) -> End {
        let lost = !packet.copy && self.lost.binary_search(&packet.number).is_ok();
        let fate = match fate {
            Fate::Delivered if self.deaths.node(packet.destination, cycle) => {
                Fate::Dropped(Reason::DeadNode)
            }
            Fate::Delivered if lost => Fate::Dropped(Reason::Lost),
            fate => fate,
        };
        self.counts.count(fate);
        if fate == Fate::Delivered {
            self.latency.add(cycle - packet.sent);
        }
        End {
            packet,
            cycle,
            fate,
        }
    }

    /// What happened so far. Linear in links.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            counts: self.counts,
            latency: self.latency.clone(),
            links: self.network.links().to_vec(),
            deflections: self.network.deflections(),
            longest_way: self.network.longest_way(),
            cycles: self.now,
        }
    }
}
