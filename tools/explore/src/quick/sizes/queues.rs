//! Queues of free blocks, in each the earliest place first.
//!
//! A queue is a pairing heap (Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap",
//! 1986). Adding a block takes constant time. So does taking one out of a queue that only
//! ever grew at its front or at its end, as in lists with the latest or the earliest block
//! first: such a queue is a chain. Else it is O(log n), amortised.
//!
//! Invariant: a block's place is less than those of its children; `previous` of a first
//! child is its parent, of another one its left neighbour; a root has neither. The `late`
//! block of a queue is one of its blocks.

/// No block.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    block: T,
    place: u32,
    child: u32,
    next: u32,
    previous: u32,
}

/// A queue by the records of two of its blocks, both [`NONE`] for an empty one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The block with the least place.
    pub(super) first: u32,
    /// Behind this one, a later block enters.
    late: u32,
}

impl Queue {
    /// No blocks.
    pub(super) const EMPTY: Queue = Queue {
        first: NONE,
        late: NONE,
    };
}

/// The blocks of all queues.
#[derive(Clone, Debug)]
pub(super) struct Queues<T> {
    /// By record.
    nodes: Vec<Node<T>>,
}

impl<T: Copy> Queues<T> {
    /// None yet.
    pub(super) const fn new() -> Self {
        Queues { nodes: Vec::new() }
    }

    #[inline(always)]
    fn node(&mut self, record: u32) -> &mut Node<T> {
        &mut self.nodes[record as usize]
    }

    /// The first block of a queue that is not empty.
    #[inline(always)]
    pub(super) fn block(&self, first: u32) -> T {
        self.nodes[first as usize].block
    }

    /// The first place of a queue; all ones for none.
    #[inline(always)]
    pub(super) fn place(&self, first: u32) -> u32 {
        self.nodes
            .get(first as usize)
            .map_or(NONE, |node| node.place)
    }

    /// Adds a block that is in no queue. O(1).
    #[inline(always)]
    pub(super) fn insert(&mut self, queue: &mut Queue, place: u32, record: u32, block: T) {
        let new = Node {
            block,
            place,
            child: NONE,
            next: NONE,
            previous: NONE,
        };
        let index = record as usize;
        if index >= self.nodes.len() {
            self.nodes.resize(index + index / 2 + 64, new);
        }
        self.nodes[index] = new;
        if queue.first == NONE {
            (queue.first, queue.late) = (record, record);
        } else if self.node(queue.late).place < place {
            self.adopt(queue.late, record);
            queue.late = record;
        } else {
            queue.first = self.meld(queue.first, record);
        }
    }

    /// Takes a block of a queue out. Amortised O(log n).
    #[inline(always)]
    pub(super) fn remove(&mut self, queue: &mut Queue, record: u32) {
        let Node {
            child,
            next,
            previous,
            ..
        } = *self.node(record);
        let orphans = self.merge(child);
        if queue.first == record {
            queue.first = orphans;
            if queue.late == record {
                queue.late = orphans;
            }
            return;
        }
        // What was below the block is later than what is above it: it takes its place.
        let mut heir = next;
        if orphans != NONE {
            heir = orphans;
            let node = self.node(orphans);
            (node.next, node.previous) = (next, previous);
            if next != NONE {
                self.node(next).previous = orphans;
            }
        } else if next != NONE {
            self.node(next).previous = previous;
        }
        if self.node(previous).child == record {
            self.node(previous).child = heir;
        } else {
            self.node(previous).next = heir;
        }
        if queue.late == record {
            queue.late = previous;
        }
    }

    /// Puts the root of a queue below an earlier block.
    #[inline(always)]
    fn adopt(&mut self, above: u32, below: u32) {
        let child = self.node(above).child;
        self.node(above).child = below;
        let node = self.node(below);
        (node.next, node.previous) = (child, above);
        if child != NONE {
            self.node(child).previous = below;
        }
    }

    /// One queue of two.
    #[inline(always)]
    fn meld(&mut self, one: u32, other: u32) -> u32 {
        let (above, below) = if self.node(one).place < self.node(other).place {
            (one, other)
        } else {
            (other, one)
        };
        self.adopt(above, below);
        above
    }

    /// One queue of a node's children: in pairs, then from the last pair to the first.
    #[inline(always)]
    fn merge(&mut self, child: u32) -> u32 {
        let mut pairs = NONE;
        let mut at = child;
        while at != NONE {
            let second = self.node(at).next;
            let mut pair = at;
            at = NONE;
            if second != NONE {
                at = self.node(second).next;
                pair = self.meld(pair, second);
            }
            self.node(pair).next = pairs;
            pairs = pair;
        }
        if pairs == NONE {
            return NONE;
        }
        let mut merged = pairs;
        at = self.node(pairs).next;
        while at != NONE {
            let rest = self.node(at).next;
            merged = self.meld(merged, at);
            at = rest;
        }
        merged
    }

    /// Calls `visit` with each place and block of a queue, in no order.
    pub(super) fn each(&self, first: u32, visit: &mut dyn FnMut(u32, T)) {
        let mut left = vec![first];
        while let Some(record) = left.pop() {
            let Some(node) = self.nodes.get(record as usize) else {
                continue;
            };
            visit(node.place, node.block);
            if record != first {
                left.push(node.next);
            }
            left.push(node.child);
        }
    }
}
