//! How a run looked on the way, for whoever draws it: heaps, locks, links, deaths, at regular cycles.
//!
//! *Invariant:* a look shows what was so at its cycle; between two looks it says how much happened, not when.

use metes_mesh::LocalHeap;
use serde::Serialize;

use crate::counts::Counts;
use crate::hardware::Hardware;
use crate::managers::Manager;
use crate::memory::Audit;
use crate::run::Setup;

/// Looks at a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// Nodes in a row.
    pub columns: usize,
    /// Nodes in a column.
    pub rows: usize,
    /// Bytes of each heap.
    pub heap: u64,
    /// Who manages the heaps.
    pub manager: String,
    /// Cycles between two looks.
    pub every: u64,
    /// Links: the nodes that each leads from and to.
    pub links: Vec<(usize, usize)>,
    /// Looks, in the order of time.
    pub looks: Vec<Look>,
}

/// A look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// The cycle.
    pub cycle: u64,
    /// Of each node.
    pub nodes: Vec<NodeLook>,
    /// Packets that have entered each link since the look before.
    pub links: Vec<u64>,
}

/// A look at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeLook {
    /// Requested bytes in use in its heap, parked ones included.
    pub live: u64,
    /// Bytes of blocks in use and parked, records included.
    pub used: u64,
    /// Bytes of free blocks.
    pub free: u64,
    /// Parked blocks.
    pub parked: u64,
    /// Whether somebody holds its heap.
    pub held: bool,
    /// Whether it has died.
    pub dead: bool,
    /// Since the look before: requests served by its own heap.
    pub home: u64,
    /// Requests served by another.
    pub away: u64,
    /// Requests refused.
    pub refused: u64,
    /// Heaps passed over.
    pub skips: u64,
    /// Cycles that it waited for locks.
    pub lock_wait: u64,
}

/// Makes a recording.
pub(crate) struct Recorder {
    recording: Recording,
    before: Vec<Counts>,
    links_before: Vec<u64>,
    /// The numbers of the links in the mesh.
    numbers: Vec<usize>,
}

/// Most looks that are kept: a run that is longer is shown up to there.
const MOST_LOOKS: usize = 20_000;

impl Recorder {
    pub(crate) fn new(setup: &Setup) -> Recorder {
        let network = &setup.parameters.network;
        let topology = network.topology();
        let nodes = topology.nodes();
        let real = topology.real_links();
        let (numbers, links): (Vec<_>, Vec<_>) =
            real.map(|(link, from, to)| (link, (from, to))).unzip();
        Recorder {
            links_before: vec![0; links.len()],
            numbers,
            before: vec![Counts::default(); nodes],
            recording: Recording {
                columns: network.columns,
                rows: network.rows,
                heap: setup.parameters.heap,
                manager: setup.manager.to_string(),
                every: setup.every,
                links,
                looks: Vec::new(),
            },
        }
    }

    pub(crate) fn look(
        &mut self,
        cycle: u64,
        manager: &Manager,
        hardware: &Hardware,
        audits: &[Audit],
    ) {
        if self.recording.looks.len() >= MOST_LOOKS {
            return;
        }
        let nodes = audits.iter().enumerate();
        let nodes = nodes.map(|(node, audit)| {
            let now = hardware.nodes[node].counts.borrow().clone();
            let before = std::mem::replace(&mut self.before[node], now.clone());
            let lock = &hardware.nodes[node].lock;
            NodeLook {
                live: manager.memory.parts[node].heap.borrow().live(),
                used: audit.used,
                free: audit.free,
                parked: audit.parked,
                held: lock.is_held(),
                dead: hardware.is_dead(node),
                home: now.served_at_home - before.served_at_home,
                away: now.served_away - before.served_away,
                refused: now.refused - before.refused,
                skips: now.skips - before.skips,
                lock_wait: now.lock_wait - before.lock_wait,
            }
        });
        let nodes = nodes.collect();
        let packets = hardware.fabric.statistics().links;
        let packets = self.numbers.iter().map(|link| packets[*link].packets);
        let links = packets.zip(&mut self.links_before);
        let links = links.map(|(now, before)| now - std::mem::replace(before, now));
        let links = links.collect();
        self.recording.looks.push(Look {
            cycle,
            nodes,
            links,
        });
    }

    pub(crate) fn recording(self) -> Recording {
        self.recording
    }
}
