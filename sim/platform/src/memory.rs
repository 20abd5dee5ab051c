//! The memory that nodes share, as the manager of Metes lays it out: words, tags, links and heaps of each node.
//!
//! *Invariant:* it is changed by what a controller does at one node at a time; how long that takes is said elsewhere.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use metes_mesh::{HeapSpace, LocalHeap, Node, Tag, Word};
use metes_noc::Clock;

use crate::heaps::{HeapKind, NodeHeap, TooSmall};

/// The part of a node.
pub(crate) struct Part {
    pub(crate) words: [Cell<u64>; Word::ALL.len()],
    pub(crate) tags: Vec<Cell<u16>>,
    /// Links of parked blocks, by offset.
    pub(crate) links: RefCell<BTreeMap<u64, u64>>,
    pub(crate) heap: RefCell<NodeHeap>,
    /// The cycle at which a block last went back into this heap.
    pub(crate) released: Cell<u64>,
    /// Requested bytes in use, and the most of them.
    pub(crate) live: Cell<u64>,
    pub(crate) peak: Cell<u64>,
    /// Bytes of blocks, in use or free: as many from the beginning to the end.
    pub(crate) whole: u64,
}

/// The memory of all nodes.
pub(crate) struct Memory {
    clock: Clock,
    pub(crate) space: HeapSpace,
    pub(crate) parts: Vec<Part>,
}

/// What a heap holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Bytes of blocks in use, records included.
    pub used: u64,
    /// Bytes of free blocks.
    pub free: u64,
    /// Blocks that the heap has given out.
    pub blocks: u64,
    /// Blocks that tags call in use.
    pub in_use: u64,
    /// Blocks that tags call freed: parked.
    pub parked: u64,
    /// Whether its records are whole.
    pub whole: bool,
}

impl Audit {
    /// Blocks that were given out and of which no tag knows.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.blocks.saturating_sub(self.in_use + self.parked)
    }
}

impl Memory {
    pub(crate) fn new(clock: Clock, space: HeapSpace, kind: HeapKind) -> Result<Memory, TooSmall> {
        let part = |_| -> Result<Part, TooSmall> {
            let granules = space.size().div_ceil(NodeHeap::APART);
            let heap = NodeHeap::new(kind, space.size())?;
            let (used, free) = heap.used_and_free();
            Ok(Part {
                whole: used + free,
                words: Default::default(),
                tags: (0..granules).map(|_| Cell::new(0)).collect(),
                links: RefCell::default(),
                heap: RefCell::new(heap),
                released: Cell::new(0),
                live: Cell::new(0),
                peak: Cell::new(0),
            })
        };
        let parts = space.from(Node(0)).map(part).collect::<Result<_, _>>()?;
        Ok(Memory {
            clock,
            space,
            parts,
        })
    }

    /// Lets `change` at the heap of a node; also how many words of records it read and wrote.
    pub(crate) fn with_heap<T>(
        &self,
        node: usize,
        change: impl FnOnce(&mut NodeHeap) -> T,
    ) -> (T, u64) {
        let part = &self.parts[node];
        let mut heap = part.heap.borrow_mut();
        let (live, accesses) = (heap.live(), heap.accesses());
        let changed = change(&mut heap);
        if heap.live() < live {
            part.released.set(self.clock.now());
        }
        (changed, heap.accesses() - accesses)
    }

    /// Whether a node was taken for dead, which is told to all controllers.
    pub(crate) fn is_declared_dead(&self, node: usize) -> bool {
        self.parts[node].words[Word::Epoch as usize].get() & 1 == 1
    }

    /// What the heap of a node holds, and what its tags say. Linear.
    pub(crate) fn audit(&self, node: usize) -> Audit {
        let part = &self.parts[node];
        let heap = part.heap.borrow();
        let (used, free) = heap.used_and_free();
        let tags = part.tags.iter().filter_map(|tag| Tag::of(tag.get()));
        let (parked, in_use): (Vec<Tag>, Vec<Tag>) = tags.partition(|tag| tag.freed);
        Audit {
            used,
            free,
            blocks: heap.blocks(),
            in_use: in_use.len() as u64,
            parked: parked.len() as u64,
            whole: heap.is_whole(),
        }
    }
}

impl Part {
    /// Counts a block that was given out.
    pub(crate) fn take(&self, size: u64) {
        let live = self.live.get() + size;
        self.live.set(live);
        self.peak.set(self.peak.get().max(live));
    }

    /// Counts a block that was freed.
    pub(crate) fn give(&self, size: u64) {
        self.live.set(self.live.get().saturating_sub(size));
    }
}
