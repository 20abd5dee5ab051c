//! The state of a heap as a word: which blocks there are, whose, and what is in them.
//!
//! *Invariant:* it says nothing of free lists, whose order tells who came when.

use metes_mesh::{Audit, Fabric, LocalHeap, Node, Place, Tag, TaggedHeap};

use crate::work::Worker;
use crate::{Index, Nodes};

/// FNV-1a by words.
pub(crate) struct Sum(u32);

impl Sum {
    pub(crate) fn new() -> Self {
        Sum(0x811c_9dc5)
    }

    pub(crate) fn add(&mut self, word: u32) {
        for byte in word.to_be_bytes() {
            self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }

    pub(crate) fn get(&self) -> u32 {
        self.0
    }
}

const APART: u64 = <TaggedHeap<Index> as LocalHeap>::APART;

/// The state of a heap in which blocks have stayed.
///
/// # Safety
/// No node is at work on the heap.
pub(crate) unsafe fn kept(nodes: &Nodes, node: Node, worker: &mut Worker<'_>) -> u32 {
    let mut sum = Sum::new();
    let space = nodes.space();
    for granule in 0..space.size() / APART {
        let Some(tag) = Tag::of(nodes.tag(node, granule)) else {
            continue;
        };
        let offset = granule * APART + if tag.upper { APART / 2 } else { 0 };
        let (content, holds) = worker.look(space.address(Place { node, offset }) as u32);
        worker.expect(holds && tag.owner == node && !tag.freed);
        sum.add(offset as u32);
        sum.add(content);
    }
    // SAFETY: as the caller says.
    let audit = unsafe { nodes.audit_of(node) };
    worker.expect(audit.whole && !audit.left_out && audit.blocks == audit.used);
    sum.add(audit.live as u32);
    sum.add(audit.blocks as u32);
    sum.get()
}

/// The state of a heap in which everything was freed: one free block, as large as at the beginning.
///
/// # Safety
/// No node is at work on the heap.
pub(crate) unsafe fn freed(nodes: &Nodes, node: Node, whole: u32, worker: &mut Worker<'_>) -> u32 {
    // SAFETY: as the caller says.
    let (audit, largest) = unsafe { (nodes.audit_of(node), largest(nodes, node)) };
    worker.expect(
        audit
            == Audit {
                live: 0,
                blocks: 0,
                used: 0,
                freed: 0,
                whole: true,
                left_out: false,
            },
    );
    worker.expect(largest == whole);
    let mut sum = Sum::new();
    sum.add(largest);
    sum.get()
}

/// The largest block that the heap has room for: of one that is empty, all of it.
///
/// # Safety
/// No node is at work on the heap.
pub(crate) unsafe fn largest(nodes: &Nodes, node: Node) -> u32 {
    let fits = |size: u64| {
        // SAFETY: as the caller says; what is taken is given back at once.
        unsafe {
            nodes.with_heap(node, |heap| {
                let taken = heap.allocate(size, 8);
                taken.inspect(|offset| heap.free(*offset)).is_some()
            })
        }
    };
    let (mut least, mut most) = (0, nodes.space().size());
    while least < most {
        let middle = (least + most).div_ceil(2);
        if fits(middle) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    least as u32
}
