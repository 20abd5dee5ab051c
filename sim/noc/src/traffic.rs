//! Uniform random traffic, and what a mesh makes of it.
//!
//! *Invariant:* the traffic is the same for every network and does not depend on how quickly it carries: an open loop, as
//! network simulators have it.

use metes_random::Random;

use crate::mesh::{End, Error, Fate, Histogram, Mesh, Statistics};

/// Traffic: each node sends, in each cycle, with the same chance, to any node, itself included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform {
    /// Packets a node and cycle, 0 to 1.
    pub rate: f64,
    /// Cycles before packets are measured.
    pub warm_up: u64,
    /// Cycles in which the packets are sent that are measured.
    pub cycles: u64,
    /// The seed of its random numbers.
    pub seed: u64,
}

/// What became of the packets that were measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Cycles from sending to delivery.
    pub latency: Histogram,
    /// Hops between source and destination, the mean; 0 without packets.
    pub hops: f64,
    /// Packets a node and cycle that arrived while it was measured: below the rate, the network is saturated.
    pub accepted: f64,
    /// What happened from the first cycle to the last packet's end.
    pub statistics: Statistics,
}

impl Uniform {
    /// Sends the traffic over a mesh, which is at cycle 0, until all of it has ended.
    ///
    /// # Errors
    /// [`Error::Late`] when the cycles are more than a mesh can count; [`Error::Past`] when the mesh is not at cycle 0.
    pub fn measure(&self, mesh: &mut Mesh) -> Result<Measured, Error> {
        let topology = mesh.topology();
        let nodes = topology.nodes();
        let mut random = Random::new(self.seed);
        let chance = (self.rate.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64;
        let end = self.warm_up.saturating_add(self.cycles);
        let mut tally = Tally {
            window: self.warm_up..end,
            latency: Histogram::default(),
            arrived: 0,
        };
        let (mut hops, mut sent) = (0, 0u64);
        let mut ends = Vec::new();
        for cycle in 0..end {
            for source in 0..nodes {
                if random.below(1 << 32) < chance {
                    let destination = random.below(nodes as u64) as usize;
                    mesh.send(cycle, source, destination)?;
                    hops += topology.hops(source, destination);
                    sent += 1;
                }
            }
            mesh.advance(cycle, &mut ends);
            tally.add(&mut ends);
        }
        while let Some(next) = mesh.next() {
            mesh.advance(next, &mut ends);
            tally.add(&mut ends);
        }
        Ok(Measured {
            latency: tally.latency,
            hops: hops as f64 / sent.max(1) as f64,
            accepted: tally.arrived as f64 / (self.cycles.max(1) as f64 * nodes as f64),
            statistics: mesh.statistics(),
        })
    }
}

struct Tally {
    window: std::ops::Range<u64>,
    latency: Histogram,
    arrived: u64,
}

impl Tally {
    fn add(&mut self, ends: &mut Vec<End>) {
        for end in ends.drain(..).filter(|end| end.fate == Fate::Delivered) {
            self.arrived += u64::from(self.window.contains(&end.cycle));
            if self.window.contains(&end.packet.sent) {
                self.latency.add(end.cycle - end.packet.sent);
            }
        }
    }
}
