//! What goes wrong in a run, said before it: nodes that die, controllers that stand still, packets lost or duplicated.
//!
//! *Invariant:* faults name what there is; a run with faults is repeated as one without.

use metes_noc::ParametersError as NetworkError;
use metes_noc::mesh::{DeadLink, DeadNode};
use serde::{Deserialize, Serialize};

use crate::parameters::in_one_line;

/// What goes wrong.
///
/// ```
/// let faults = metes_platform::Faults::parse(
///     "lost = [3]\n\
///      deaths = [{ node = 2, from = 5000 }]\n\
///      stalls = [{ node = 1, from = 100, cycles = 900 }]",
/// )?;
/// assert_eq!(faults.deaths[0].node, 2);
/// # Ok::<(), metes_platform::NoFaults>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Numbers of packets that are lost.
    pub lost: Vec<u64>,
    /// Numbers of packets of which a copy follows.
    pub duplicated: Vec<u64>,
    /// Links that die.
    pub links: Vec<DeadLink>,
    /// Nodes that die: core, controller and heap, not the router.
    pub deaths: Vec<Death>,
    /// Controllers that stand still for a while.
    pub stalls: Vec<Stall>,
}

/// A node that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Death {
    /// The node.
    pub node: usize,
    /// The cycle.
    pub from: u64,
}

/// A controller whose side at the network stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Its node.
    pub node: usize,
    /// The first cycle.
    pub from: u64,
    /// For how long.
    pub cycles: u64,
}

impl Stall {
    /// When it ends, if it is under way at a cycle.
    pub(crate) fn end_at(&self, cycle: u64) -> Option<u64> {
        let end = self.from.saturating_add(self.cycles);
        (self.from <= cycle && cycle < end).then_some(end)
    }
}

/// Faults that there cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFaults {
    /// The text is no TOML, or says what is not understood.
    #[error("{0}")]
    Syntax(String),
    /// A node that is not there.
    #[error("a fault names node {node}: there are {nodes}, with numbers from 0 on")]
    NoSuchNode {
        /// The node.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// Nobody lives on.
    #[error("all {nodes} nodes die: let one live")]
    NobodyLives {
        /// How many there are.
        nodes: usize,
    },
    /// The network cannot have them.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl Faults {
    /// Reads faults from TOML. Linear.
    ///
    /// # Errors
    /// [`NoFaults::Syntax`].
    pub fn parse(text: &str) -> Result<Faults, NoFaults> {
        let syntax = |error| NoFaults::Syntax(in_one_line(text, &error));
        toml::from_str(text).map_err(syntax)
    }

    /// Whether so many nodes can have them.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self, nodes: usize) -> Result<(), NoFaults> {
        let deaths = self.deaths.iter().map(|death| death.node);
        let stalls = self.stalls.iter().map(|stall| stall.node);
        if let Some(node) = deaths.clone().chain(stalls).find(|node| *node >= nodes) {
            return Err(NoFaults::NoSuchNode { node, nodes });
        }
        let dead: std::collections::BTreeSet<usize> = deaths.collect();
        if dead.len() == nodes {
            return Err(NoFaults::NobodyLives { nodes });
        }
        Ok(())
    }

    /// Whether nothing goes wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Faults::default()
    }

    /// What of it concerns the network.
    pub(crate) fn of_network(&self) -> metes_noc::Faults {
        let dead = self.deaths.iter().map(|death| DeadNode {
            node: death.node,
            from: death.from,
            router: false,
        });
        metes_noc::Faults {
            lost: self.lost.clone(),
            duplicated: self.duplicated.clone(),
            links: self.links.clone(),
            nodes: dead.collect(),
        }
    }
}
