//! What came of a trace, when no node is at work any more.
//!
//! Invariant: every block is asked for by its tag and by its heap, and both are compared.

use metes_mesh::{Fabric, LocalHeap, Mesh, Node, Refusal, Tag};

use crate::board::{Board, DEAD, Notes};
use crate::lists::Lists;
use crate::replay::{ALIGN, NotReplayed, Replayed};

/// Adds up what nodes have done and what heaps hold; `spurious` are the refusals that are not sure.
///
/// # Errors
/// A block that two had, a heap that is not whole, nobody who lives.
///
/// # Safety
/// No node is at work, nor will be.
pub unsafe fn account<F: Fabric, B: Board>(
    fabric: &F,
    board: &B,
    lists: &Lists,
) -> Result<Replayed, NotReplayed> {
    let (notes, nodes) = (Notes(board), lists.nodes());
    let mut all = Replayed::default();
    let mut done = 0;
    for node in 0..nodes {
        if let Some(request) = notes.wrong(node) {
            return Err(NotReplayed::Shared { request });
        }
        let tally = notes.tally(node);
        all.operations += lists.operations(node);
        done += tally.operations;
        all.failed += tally.failed;
        all.spurious += tally.unsure;
        all.local += tally.local;
        all.remote += tally.remote;
        all.parked += tally.parked;
        all.visits += tally.visits;
        all.skips += tally.skips;
        all.longest = all.longest.max(tally.longest);
        all.node_peaks.push(notes.peak(node));
        all.live_bytes += notes.live(node);
    }
    all.undone = all.operations - done;
    all.dead = (0..nodes).filter(|&node| notes.says(node, DEAD)).collect();
    if !all.dead.is_empty() {
        settle(fabric, notes, nodes)?;
    }
    all.adopted = (0..nodes).map(|node| notes.adopted(node)).sum();
    let mut live = 0;
    for node in fabric.space().from(Node(0)) {
        // SAFETY: as the caller says.
        let heap = unsafe { look(fabric, node) };
        let heap = heap.ok_or(NotReplayed::Broken {
            node: node.0 as usize,
        })?;
        live += heap.live;
        all.lost_blocks += heap.blocks.abs_diff(heap.tags);
    }
    if !all.dead.is_empty() {
        // Who dies in an operation has told half of it; but nothing is parked any more.
        all.live_bytes = live;
    }
    Ok(all)
}

/// What the dead have left and nobody has adopted is adopted, their heaps are made whole, and nothing stays parked.
fn settle<F: Fabric, B: Board>(
    fabric: &F,
    notes: Notes<'_, B>,
    nodes: u32,
) -> Result<(), NotReplayed> {
    let lives = (0..nodes).find(|&node| !notes.says(node, DEAD));
    let heir = lives.ok_or(NotReplayed::NobodyLives)?;
    let mut mesh = Mesh::new(fabric, Node(heir));
    for dead in (0..nodes).filter(|&node| notes.says(node, DEAD)) {
        // Nobody holds a heap: neither is refused as busy. What cannot be made whole is left out.
        let _ = mesh.adopt(Node(dead), |_| notes.adopts(heir));
        let _ = mesh.readmit(Node(dead));
    }
    let all = mesh.allocate(fabric.space().size(), ALIGN);
    debug_assert_eq!(all, Err(Refusal::Full), "a heap has records, too");
    Ok(())
}

struct Found {
    live: u64,
    blocks: u64,
    tags: u64,
}

/// What a heap holds, unless it is broken.
///
/// # Safety
/// No node is at work.
unsafe fn look<F: Fabric>(fabric: &F, node: Node) -> Option<Found> {
    let granules = fabric.space().size().div_ceil(F::Heap::APART);
    let tags = (0..granules).filter(|&granule| Tag::of(fabric.tag(node, granule)).is_some());
    let tags = tags.count() as u64;
    // SAFETY: as the caller says.
    unsafe {
        fabric.with_heap(node, |heap| {
            heap.is_whole().then(|| Found {
                live: heap.live(),
                blocks: heap.blocks(),
                tags,
            })
        })
    }
}
