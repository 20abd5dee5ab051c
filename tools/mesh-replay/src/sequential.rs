//! Nodes that take turns, in the order of the trace.
//!
//! Invariant: the same trace gives the same result; each refusal is checked past the protocol.

use metes_heap::Tagged;
use metes_heap::index::Index;
use metes_mesh::{Fabric, LocalHeap, Mesh, Node, Shared, Word};

use crate::board::{Board, NOTHING, Notes, REFUSED, Tally};
use crate::common::Common;
use crate::lists::Lists;
use crate::replay::ALIGN;
use crate::trace::{Operation, Trace};

/// Does a trace; how many requests were refused though a heap had room.
pub(crate) fn run<I: Index<Tagged> + Clone>(
    common: &Common<I>,
    trace: &Trace,
    lists: &Lists,
) -> u64 {
    let (fabric, notes) = (&common.nodes, Notes(common));
    let nodes = fabric.space().from(Node(0));
    let mut meshes: Vec<_> = nodes
        .map(|node| (Mesh::new(fabric, node), Tally::default()))
        .collect();
    let (mut spurious, mut request) = (0, 0);
    let heap = |address| {
        let place = fabric.space().place(address);
        place.map_or(0, |place| place.node.0)
    };
    for &operation in trace.operations() {
        let node = operation.node();
        let (mesh, tally) = &mut meshes[node as usize];
        match operation {
            Operation::Allocate { size, .. } => {
                let came_to = match mesh.allocate(size, ALIGN) {
                    Ok(address) => {
                        common.write(address, size, request as u64);
                        notes.takes(heap(address), size);
                        address
                    }
                    Err(_) => {
                        tally.failed += 1;
                        spurious += u64::from(could_serve(fabric, size));
                        REFUSED
                    }
                };
                notes.comes_to(lists.asked(request), came_to);
                request += 1;
            }
            Operation::Free { request, .. } => {
                let address = notes.came_to(lists.asked(request));
                debug_assert_ne!(address, NOTHING, "it was asked for before");
                if address != REFUSED {
                    let size = trace.sizes()[request];
                    notes.gives(heap(address), size);
                    if !common.holds(address, size, request as u64) || mesh.free(address).is_err() {
                        notes.is_wrong(node, request);
                        return spurious;
                    }
                }
            }
        }
        tally.operations += 1;
    }
    for (mesh, tally) in meshes {
        notes.report(mesh.node().0, tally.with(&mesh));
    }
    spurious
}

/// Whether a heap has room though it was said to have none: each by itself, past the protocol. For one node at work.
fn could_serve<I: Index<Tagged> + Clone>(fabric: &Shared<I>, size: u64) -> bool {
    let mut nodes = fabric.space().from(Node(0));
    nodes.any(|node| {
        let parked = [Word::Parked, Word::Draining].map(|word| fabric.load(node, word));
        let serve = |heap: &mut <Shared<I> as Fabric>::Heap| {
            let served = heap.allocate(size, ALIGN);
            if let Some(offset) = served {
                // SAFETY: it was given out just now.
                unsafe { heap.free(offset) };
            }
            served.is_some()
        };
        // SAFETY: nobody else is at work, so no lock is held.
        parked != [0; 2] || unsafe { fabric.with_heap(node, serve) }
    })
}
