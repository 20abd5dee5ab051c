//! The replay: nodes one after the other, each a thread, or each a process.
//!
//! Invariant: one after the other, the same trace gives the same result; all at once, each block is written by who asked for
//! it and read by who frees it, so that two nodes with one block are found.

use std::str::FromStr;

use metes_heap::Tagged;
use metes_heap::index::Index;
use metes_mesh::{HeapSpace, Impossible, Node, NotMade};
use serde::{Deserialize, Serialize};

use crate::account::account;
use crate::common::Common;
use crate::lists::Lists;
use crate::trace::Trace;
use crate::{sequential, threads};

/// Where the address space of the heaps begins, as in the paper (section II), unless a heap is larger than that.
const BASE: u64 = 0x6000_0000;
/// Most nodes that are threads or processes: what any host starts.
const MOST_THREADS: u32 = 1024;
/// Most bytes of all heaps: each has a tag for every 32 of them, all of which are read in the end.
const MOST_BYTES: u64 = 64 << 30;
/// Of processes, whose memory is taken when it is read, too.
const MOST_BYTES_SHARED: u64 = 8 << 30;
/// Every block is aligned to this.
pub(crate) const ALIGN: u64 = 8;

/// How nodes go about their operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricKind {
    /// In the order of the trace, one at a time.
    Sequential,
    /// Each node a thread, which waits where it frees what was not yet asked for.
    Threads,
    /// Each node a process over one mapping, which waits likewise.
    Processes,
}

/// Where a node dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Which one.
    pub node: u32,
    /// Operations of its own that it has done then.
    pub operation: u64,
    /// Accesses to what nodes share that it has made since.
    pub step: u64,
}

/// As it is written: `NODE@OPERATION` or `NODE@OPERATION.STEP`.
impl FromStr for Kill {
    type Err = NotWhere;

    fn from_str(text: &str) -> Result<Kill, NotWhere> {
        let (node, after) = text.split_once('@').ok_or(NotWhere)?;
        let (operation, step) = after.split_once('.').unwrap_or((after, "0"));
        Ok(Kill {
            node: node.parse().map_err(|_| NotWhere)?,
            operation: operation.parse().map_err(|_| NotWhere)?,
            step: step.parse().map_err(|_| NotWhere)?,
        })
    }
}

/// It does not say where a node dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("name a node and its operation, such as 2@100 or 2@100.7")]
pub struct NotWhere;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// How many nodes.
    pub nodes: u32,
    /// Bytes of each heap.
    pub heap: u64,
    /// What nodes are.
    pub fabric: FabricKind,
    /// Which of them die where, each once at most.
    pub kills: &'a [Kill],
}

/// Why nothing was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReplayed {
    /// There is no such address space.
    #[error(transparent)]
    Impossible(#[from] Impossible),
    /// There are no such heaps.
    #[error(transparent)]
    NotMade(#[from] NotMade),
    /// More threads or processes than are started.
    #[error("{nodes} at once: give up to {MOST_THREADS} nodes, or replay them sequentially")]
    Threads {
        /// How many were asked for.
        nodes: u32,
    },
    /// More memory than is looked through in the end.
    #[error("{nodes} heaps of {heap} bytes: give up to {most} bytes in all")]
    TooMuch {
        /// How many nodes were asked for.
        nodes: u32,
        /// Bytes of each.
        heap: u64,
        /// Most bytes in all.
        most: u64,
    },
    /// A node that takes turns was to die.
    #[error("nodes that take turns do not die: let each be a thread or a process")]
    Immortal,
    /// A node that is not there was to die.
    #[error("there is no node {node}: nodes are 0 to {}", nodes - 1)]
    NoVictim {
        /// Which one.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// A node was to die twice.
    #[error("node {node} dies once: name it once")]
    Twice {
        /// Which one.
        node: u32,
    },
    /// Nobody was to live, or nobody did.
    #[error("all nodes die: let one live, to adopt what they leave")]
    NobodyLives,
    /// A node was to die after operations that it does not have.
    #[error("node {node} has {operations} operations: let it die after as many at most")]
    Longer {
        /// Which one.
        node: u32,
        /// How many operations it has.
        operations: u64,
    },
    /// The system does not start a process.
    #[error("the process of node {node} is not started: {}; give fewer nodes, or let them be threads", std::io::Error::from_raw_os_error(*error))]
    NotStarted {
        /// Its node.
        node: u32,
        /// The system's number of the error.
        error: i32,
    },
    /// A block did not hold what was written to it, or a heap is not whole: a bug.
    #[error(
        "block {request} does not hold what was written to it: two nodes were given the same bytes; report this"
    )]
    Shared {
        /// Number of the request, from 0.
        request: usize,
    },
    /// A heap's records or tags are not as the protocol leaves them: a bug.
    #[error("the heap of node {node} is not whole at the end; report this")]
    Broken {
        /// Its node.
        node: usize,
    },
}

/// What came of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Operations.
    pub operations: u64,
    /// Requests that were refused.
    pub failed: u64,
    /// Those of them that were refused though a heap could have served: sequentially, every heap is tried by itself; of
    /// nodes that work at once, those whose refusal is not sure.
    pub spurious: u64,
    /// Bytes of requests that were not freed.
    pub live_bytes: u64,
    /// Blocks that a heap has given out and no tag knows.
    pub lost_blocks: u64,
    /// Most bytes of requests that each node's heap held at a time.
    pub node_peaks: Vec<u64>,
    /// Requests that the node's own heap served.
    pub local: u64,
    /// Requests that another heap served.
    pub remote: u64,
    /// Blocks freed without their heap's lock.
    pub parked: u64,
    /// Heaps looked into.
    pub visits: u64,
    /// Heaps passed over, as another node held them.
    pub skips: u64,
    /// Most heaps that one request looked into or passed over.
    pub longest: u64,
    /// Nodes that died.
    pub dead: Vec<u32>,
    /// Blocks of theirs that others adopted.
    pub adopted: u64,
    /// Operations that were not done: of the dead, and frees of what they did not ask for any more.
    pub undone: u64,
}

/// The death of a node, if it dies.
pub(crate) fn kill_of(kills: &[Kill], node: u32) -> Option<Kill> {
    kills.iter().copied().find(|kill| kill.node == node)
}

/// The space of the heaps.
///
/// # Errors
/// [`NotReplayed`] says what to change: so many nodes with heaps of that size, and such deaths of theirs, cannot be.
pub fn check(lists: &Lists, setting: Setting<'_>) -> Result<HeapSpace, NotReplayed> {
    let Setting {
        nodes,
        heap,
        fabric,
        kills,
    } = setting;
    if fabric != FabricKind::Sequential && nodes > MOST_THREADS {
        return Err(NotReplayed::Threads { nodes });
    }
    let most = match fabric {
        FabricKind::Processes => MOST_BYTES_SHARED,
        _ => MOST_BYTES,
    };
    if heap.saturating_mul(nodes.into()) > most {
        return Err(NotReplayed::TooMuch { nodes, heap, most });
    }
    for (
        number,
        &Kill {
            node, operation, ..
        },
    ) in kills.iter().enumerate()
    {
        if fabric == FabricKind::Sequential {
            return Err(NotReplayed::Immortal);
        }
        if node >= nodes {
            return Err(NotReplayed::NoVictim { node, nodes });
        }
        if kill_of(&kills[..number], node).is_some() {
            return Err(NotReplayed::Twice { node });
        }
        let operations = lists.operations(node);
        if operation > operations {
            return Err(NotReplayed::Longer { node, operations });
        }
    }
    if !kills.is_empty() && kills.len() as u64 >= u64::from(nodes) {
        return Err(NotReplayed::NobodyLives);
    }
    let stride = heap.checked_next_power_of_two().unwrap_or(1);
    Ok(HeapSpace::new(BASE.next_multiple_of(stride), heap, nodes)?)
}

/// Replays `trace` on `nodes` heaps of `heap` bytes each, whose index `index` makes.
///
/// # Errors
/// [`NotReplayed`] says what to change.
pub fn replay<I: Index<Tagged> + Clone + Send>(
    trace: &Trace,
    nodes: u32,
    heap: u64,
    fabric: FabricKind,
    index: impl FnMut(Node) -> I,
) -> Result<Replayed, NotReplayed> {
    let setting = Setting {
        nodes,
        heap,
        fabric,
        kills: &[],
    };
    replay_with(trace, setting, index, |_, _| {})
}

/// Replays `trace` on heaps whose index `index` makes; `started` is told each node that is a process, and the process.
///
/// # Errors
/// [`NotReplayed`] says what to change.
pub fn replay_with<I: Index<Tagged> + Clone + Send>(
    trace: &Trace,
    setting: Setting<'_>,
    index: impl FnMut(Node) -> I,
    mut started: impl FnMut(u32, u32),
) -> Result<Replayed, NotReplayed> {
    let lists = Lists::new(trace, setting.nodes);
    let space = check(&lists, setting)?;
    let common = match setting.fabric {
        FabricKind::Processes => Common::of_processes(space, &lists, index),
        _ => Common::of_threads(space, &lists, index),
    }?;
    let mut spurious = None;
    match setting.fabric {
        FabricKind::Sequential => spurious = Some(sequential::run(&common, trace, &lists)),
        FabricKind::Threads => threads::run(&common, &lists, setting.kills),
        #[cfg(unix)]
        FabricKind::Processes => {
            crate::processes::run(&common, &lists, setting.kills, &mut started)?;
        }
        // There is no such mapping, so nothing that was made.
        #[cfg(not(unix))]
        FabricKind::Processes => {
            let _ = &mut started;
        }
    }
    // SAFETY: all that were at work have ended.
    let mut replayed = unsafe { account(&common.nodes, &common, &lists) }?;
    if let Some(spurious) = spurious {
        replayed.spurious = spurious;
    }
    Ok(replayed)
}

#[cfg(test)]
mod tests;
