//! What goes wrong, said before the run: packets lost or duplicated by number, links and nodes dead from a cycle on.
//!
//! *Invariant:* a link is dead in both directions or in none, so a router has as many dead inputs as dead outputs. A packet
//! that is on a link when that dies is lost: it has arrived before, or not at all.

use serde::{Deserialize, Serialize};

use crate::mesh::{Direction, Topology};
use crate::parameters::ParametersError;

/// What goes wrong.
///
/// ```
/// let faults = metes_noc::Faults::parse(
///     "lost = [3]\n\
///      duplicated = [5, 6]\n\
///      links = [{ between = [0, 1], from = 100 }]\n\
///      nodes = [{ node = 5, from = 0, router = true }]",
/// )?;
/// assert_eq!(faults.links[0].from, 100);
/// # Ok::<(), metes_noc::ParametersError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Numbers of packets that are discarded at their destination, as by a failed check: they load the mesh as others do.
    pub lost: Vec<u64>,
    /// Numbers of packets of which a copy follows, as by a repetition that was not needed. The copy of a packet that is lost
    /// is delivered.
    pub duplicated: Vec<u64>,
    /// Links that die.
    pub links: Vec<DeadLink>,
    /// Nodes that die.
    pub nodes: Vec<DeadNode>,
}

/// A link that dies, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLink {
    /// The neighbours that it is between.
    pub between: [usize; 2],
    /// The first cycle at which nothing arrives over it.
    pub from: u64,
}

/// A node that dies: its packets and those for it are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadNode {
    /// The node.
    pub node: usize,
    /// The first cycle at which it neither sends nor takes anything.
    pub from: u64,
    /// Whether its router dies, too, with all its links; else it goes on forwarding.
    #[serde(default)]
    pub router: bool,
}

impl Faults {
    /// Reads faults from TOML. Linear.
    ///
    /// # Errors
    /// [`ParametersError::Syntax`] when the text is none, or names what there is not.
    pub fn parse(text: &str) -> Result<Faults, ParametersError> {
        toml::from_str(text).map_err(ParametersError::syntax)
    }
}

/// When each link and each node dies.
#[derive(Clone, Debug)]
pub(crate) struct Deaths {
    links: Vec<u64>,
    nodes: Vec<u64>,
    any: bool,
}

const NEVER: u64 = u64::MAX;

impl Deaths {
    pub(crate) fn new(topology: Topology, faults: &Faults) -> Result<Deaths, ParametersError> {
        let mut deaths = Deaths {
            links: vec![NEVER; topology.links()],
            nodes: vec![NEVER; topology.nodes()],
            any: !faults.links.is_empty() || !faults.nodes.is_empty(),
        };
        for &DeadLink { between, from } in &faults.links {
            let [one, other] = between;
            let direction = [one, other].iter().all(|node| *node < topology.nodes());
            let direction = direction.then(|| topology.towards(one, other)).flatten();
            let direction = direction.ok_or(ParametersError::NoSuchLink { one, other })?;
            deaths.kill(topology, one, direction, from);
        }
        for &DeadNode { node, from, router } in &faults.nodes {
            if node >= topology.nodes() {
                return Err(ParametersError::NoSuchNode {
                    node,
                    nodes: topology.nodes(),
                });
            }
            deaths.nodes[node] = deaths.nodes[node].min(from);
            if router {
                for direction in Direction::ALL {
                    deaths.kill(topology, node, direction, from);
                }
            }
        }
        Ok(deaths)
    }

    fn kill(&mut self, topology: Topology, node: usize, direction: Direction, from: u64) {
        if let Some(other) = topology.neighbour(node, direction) {
            let there = topology.link(node, direction);
            let back = topology.link(other, direction.opposite());
            for link in [there, back] {
                self.links[link] = self.links[link].min(from);
            }
        }
    }

    /// Whether a link is dead at a cycle.
    pub(crate) fn link(&self, link: usize, cycle: u64) -> bool {
        self.links[link] <= cycle
    }

    /// Whether a node is dead at a cycle.
    pub(crate) fn node(&self, node: usize, cycle: u64) -> bool {
        self.nodes[node] <= cycle
    }

    /// Whether any link or node dies.
    pub(crate) fn any(&self) -> bool {
        self.any
    }
}
