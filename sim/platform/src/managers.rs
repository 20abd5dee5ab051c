//! Who manages the heaps: three managers of the papers, and that of Metes.
//!
//! | manager | where a block is looked for | a heap that somebody holds | full |
//! | --- | --- | --- | --- |
//! | `c-private` | the own heap, by code of the core | nobody holds it | the own heap is |
//! | `c-single` | one heap over all memories, by code of the core | waits | it is |
//! | `microcoded` | heaps in the order of a priority table, by controllers | waits | all are |
//! | `proposed` | the own heap, then all others, by controllers | waits for the own, passes over others | none served: it may have been passed over |
//! | `metes` | the own heap, then others from the one that served last on, by controllers | waits in line | all are |
//!
//! *Invariant:* a manager reaches heaps by the hardware alone, and pays for each step; what it decides follows from what is in
//! the heaps.

mod c;
mod metes;
mod papers;
mod steps;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use metes_heap::{Fit, IndexKind, Limits, Links, Order};
use metes_mesh::{LocalHeap, Node, Place};
use serde::{Deserialize, Serialize};

use crate::hardware::{Hardware, Reply, Service};
use crate::heaps::{HeapKind, NodeHeap};
use crate::memory::Memory;
use crate::run::NotRun;
use crate::view::Caller;

/// Which manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManagerKind {
    /// A heap in C in each node's memory, of its own alone (Mamagkakis et al., ISLPED 2006, as the paper has it).
    CPrivate,
    /// A heap in C over all memories, under one lock.
    CSingle,
    /// Microcode and priority tables (Anagnostopoulos et al., IEEE Embedded Systems Letters 2011).
    Microcoded,
    /// Heap space map and lazy selection (Koutras et al., IEEE Embedded Systems Letters 2016).
    Proposed,
    /// `metes-mesh`.
    Metes,
}

impl ManagerKind {
    /// All of them.
    pub const ALL: [ManagerKind; 5] = [
        ManagerKind::CPrivate,
        ManagerKind::CSingle,
        ManagerKind::Microcoded,
        ManagerKind::Proposed,
        ManagerKind::Metes,
    ];

    /// Whether nodes serve each other, so that a block may be freed by any.
    #[must_use]
    pub fn shares(self) -> bool {
        self != ManagerKind::CPrivate
    }
}

impl fmt::Display for ManagerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ManagerKind::CPrivate => "c-private",
            ManagerKind::CSingle => "c-single",
            ManagerKind::Microcoded => "microcoded",
            ManagerKind::Proposed => "proposed",
            ManagerKind::Metes => "metes",
        })
    }
}

/// No manager has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no manager `{0}`: take c-private, c-single, microcoded, proposed or metes")]
pub struct NoSuchManager(String);

impl FromStr for ManagerKind {
    type Err = NoSuchManager;

    fn from_str(text: &str) -> Result<ManagerKind, NoSuchManager> {
        let mut all = ManagerKind::ALL.into_iter();
        let found = all.find(|kind| kind.to_string() == text);
        found.ok_or_else(|| NoSuchManager(text.to_owned()))
    }
}

/// The heaps of the papers: first fit, lowest address first, split and merged at once.
pub const FIRST_FIT: HeapKind = HeapKind {
    index: IndexKind::List {
        fit: Fit::First,
        order: Order::Address,
        depth_percent: 100,
        max_fit_percent: 0,
        links: Links::Double,
    },
    limits: Limits::NONE,
};

/// Every block is aligned to this.
pub(crate) const ALIGN: u64 = 8;

/// What a request comes to.
pub(crate) struct Served {
    pub(crate) place: Option<Place>,
    pub(crate) visits: u64,
    pub(crate) skips: u64,
}

/// The manager of a run.
pub(crate) struct Manager {
    pub(crate) kind: ManagerKind,
    pub(crate) hardware: Rc<Hardware>,
    pub(crate) memory: Rc<Memory>,
    /// The one heap of `c-single`.
    single: Option<RefCell<NodeHeap>>,
    /// The managers of Metes, a node each.
    callers: Vec<Caller>,
}

impl Manager {
    pub(crate) fn new(
        kind: ManagerKind,
        hardware: Rc<Hardware>,
        heaps: HeapKind,
    ) -> Result<Manager, NotRun> {
        let parameters = &hardware.parameters;
        let nodes = parameters.nodes();
        let space = parameters.space()?;
        let each = if kind == ManagerKind::Metes {
            heaps
        } else {
            FIRST_FIT
        };
        let memory = Rc::new(Memory::new(hardware.clock.clone(), space, each)?);
        let single = match kind {
            ManagerKind::CSingle => {
                let bytes = parameters.heap * nodes as u64;
                Some(RefCell::new(NodeHeap::new(FIRST_FIT, bytes)?))
            }
            _ => None,
        };
        let callers = match kind {
            ManagerKind::Metes => {
                let caller = |node| Caller::new(Rc::clone(&memory), node, parameters.controller);
                (0..nodes).map(caller).collect()
            }
            _ => Vec::new(),
        };
        Ok(Manager {
            kind,
            hardware,
            memory,
            single,
            callers,
        })
    }

    /// A block for a node; its address.
    pub(crate) async fn allocate(&self, node: usize, size: u64) -> Option<u64> {
        let hardware = &self.hardware;
        let turn = hardware.nodes[node].calls.acquire().await;
        let begin = hardware.clock.now();
        let served = match self.kind {
            ManagerKind::CPrivate => self.allocate_in_c(node, size).await,
            ManagerKind::CSingle => self.allocate_in_one(node, size).await,
            ManagerKind::Microcoded => self.allocate_by_table(node, size).await,
            ManagerKind::Proposed => self.allocate_lazily(node, size).await,
            ManagerKind::Metes => self.allocate_by_mesh(node, size).await,
        };
        let cycles = hardware.clock.now() - begin;
        let spurious = served.place.is_none() && self.has_had_room(begin, size);
        hardware.count(node, |counts| {
            counts.allocate.add(cycles);
            counts.visits += served.visits;
            counts.skips += served.skips;
            counts.most_visits = counts.most_visits.max(served.visits + served.skips);
            match served.place {
                Some(place) if place.node.0 as usize == node => counts.served_at_home += 1,
                Some(_) => {
                    counts.served_away += 1;
                    counts.remote.add(cycles);
                }
                None => {
                    counts.refused += 1;
                    counts.spurious += u64::from(spurious);
                }
            }
        });
        drop(turn);
        let place = served.place?;
        self.memory.parts[place.node.0 as usize].take(size);
        Some(self.memory.space.address(place))
    }

    /// Frees a block; false if none begins there.
    pub(crate) async fn free(&self, node: usize, address: u64, size: u64) -> bool {
        let Some(place) = self.memory.space.place(address) else {
            return false;
        };
        let hardware = &self.hardware;
        let turn = hardware.nodes[node].calls.acquire().await;
        let begin = hardware.clock.now();
        let freed = match self.kind {
            ManagerKind::CPrivate => self.free_in_c(node, place).await,
            ManagerKind::CSingle => self.free_in_one(node, place).await,
            ManagerKind::Microcoded => self.free_by_message(node, place, 0).await,
            ManagerKind::Proposed => {
                let map = hardware.parameters.core.map_free;
                self.free_by_message(node, place, map).await
            }
            ManagerKind::Metes => self.free_by_mesh(node, place).await,
        };
        let cycles = hardware.clock.now() - begin;
        hardware.count(node, |counts| counts.free.add(cycles));
        drop(turn);
        if freed {
            self.memory.parts[place.node.0 as usize].give(size);
        }
        freed
    }

    /// Whether a heap of a living node has room now, and has had it since a cycle, as nothing was freed into it.
    fn has_had_room(&self, since: u64, size: u64) -> bool {
        if let Some(single) = &self.single {
            return single.borrow_mut().has_room(size, ALIGN);
        }
        let mut parts = self.memory.parts.iter().enumerate();
        parts.any(|(node, part)| {
            let untouched = part.released.get() < since && !self.hardware.is_dead(node);
            untouched && part.heap.borrow_mut().has_room(size, ALIGN)
        })
    }

    /// A request to the heap of a node whose lock is held: what it gives, and cycles.
    fn take(&self, node: usize, size: u64) -> (Option<u64>, u64) {
        self.memory
            .with_heap(node, |heap| heap.allocate(size, ALIGN))
    }

    /// A free into the heap of a node whose lock is held: whether there was such a block, and words of records.
    fn give(&self, node: usize, offset: u64) -> (bool, u64) {
        self.memory.with_heap(node, |heap| heap.release(offset))
    }

    /// The side of a controller at the network: serves requests, one at a time.
    pub(crate) async fn serve(self: Rc<Self>, node: usize) {
        loop {
            let (from, number, service) = self.hardware.next_request(node).await;
            let reply = match service {
                Service::Visit => self.visit(node, from, number).await,
                _ => self.do_for(node, from, number, service).await,
            };
            if let Some(reply) = reply {
                self.hardware.answer(node, from, number, reply).await;
            }
        }
    }
}

fn place(node: usize, offset: u64) -> Place {
    Place {
        node: Node(node as u32),
        offset,
    }
}

/// What a refused or passed over heap's reply means.
fn offset_of(reply: Option<Reply>) -> Option<u64> {
    match reply {
        Some(Reply::Block(offset)) => offset,
        _ => None,
    }
}
