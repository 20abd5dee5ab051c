//! The replay: nodes one after the other, or each a thread.
//!
//! Invariant: one after the other, the same trace gives the same result; as threads, each block is written by who asked for
//! it and read by who frees it, so that two nodes with one block are found.

use std::sync::atomic::{AtomicU64, Ordering};

use metes_heap::Tagged;
use metes_heap::index::Index;
use metes_mesh::{
    Fabric, HeapSpace, Impossible, LocalHeap, Mesh, Node, NotMade, Refusal, Shared, Word,
};
use serde::Serialize;

use crate::trace::{Operation, Trace};

/// Where the address space of the heaps begins, as in the paper (section II), unless a heap is larger than that.
const BASE: u64 = 0x6000_0000;
/// Most nodes that are threads: what any host starts.
const MOST_THREADS: u32 = 1024;
/// Most bytes of all heaps: each has a tag for every 32 of them, all of which are read in the end.
const MOST_BYTES: u64 = 64 << 30;
/// Every block is aligned to this.
const ALIGN: u64 = 8;
/// What a request comes to: nothing yet, refused, or its address, which is greater.
const NOTHING: u64 = 0;
const REFUSED: u64 = 1;

/// How nodes go about their operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricKind {
    /// In the order of the trace, one at a time.
    Sequential,
    /// Each node a thread, which waits where it frees what was not yet asked for.
    Threads,
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
    /// More threads than are started.
    #[error("{nodes} threads: give up to {MOST_THREADS} nodes, or replay them sequentially")]
    Threads {
        /// How many were asked for.
        nodes: u32,
    },
    /// More memory than is looked through in the end.
    #[error("{nodes} heaps of {heap} bytes: give up to {MOST_BYTES} bytes in all")]
    TooMuch {
        /// How many nodes were asked for.
        nodes: u32,
        /// Bytes of each.
        heap: u64,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Operations.
    pub operations: u64,
    /// Requests that were refused.
    pub failed: u64,
    /// Those of them that were refused though a heap could have served: sequentially, every heap is tried by itself; of
    /// threads, those whose refusal is not sure.
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
}

/// Replays `trace` on `nodes` heaps of `heap` bytes each, whose index `index` makes.
///
/// # Errors
/// [`NotReplayed`] says what to change.
pub fn replay<I: Index<Tagged> + Clone + Send>(
    trace: &Trace,
    nodes: u32,
    heap: u64,
    kind: FabricKind,
    index: impl FnMut(Node) -> I,
) -> Result<Replayed, NotReplayed> {
    if kind == FabricKind::Threads && nodes > MOST_THREADS {
        return Err(NotReplayed::Threads { nodes });
    }
    if heap.saturating_mul(nodes.into()) > MOST_BYTES {
        return Err(NotReplayed::TooMuch { nodes, heap });
    }
    let stride = heap.checked_next_power_of_two().unwrap_or(1);
    let space = HeapSpace::new(BASE.next_multiple_of(stride), heap, nodes)?;
    let mut fabric = Shared::new(space, index)?;
    let held = Held::new(trace, space);
    let work = Work {
        trace,
        fabric: &fabric,
        held: &held,
    };
    let done = match kind {
        FabricKind::Sequential => work.one_by_one(),
        FabricKind::Threads => work.all_at_once(),
    };
    let mut replayed = done?;
    for (node, audit) in fabric.audit().into_iter().enumerate() {
        if !audit.whole {
            return Err(NotReplayed::Broken { node });
        }
        replayed.lost_blocks += audit.blocks.abs_diff(audit.used + audit.freed);
    }
    replayed.operations = trace.operations().len() as u64;
    replayed.live_bytes = held
        .live
        .iter()
        .map(|live| live.load(Ordering::Relaxed))
        .sum();
    replayed.node_peaks = held
        .peaks
        .iter()
        .map(|peak| peak.load(Ordering::Relaxed))
        .collect();
    Ok(replayed)
}

/// What is where.
struct Held {
    space: HeapSpace,
    /// What each request came to.
    came_to: Vec<AtomicU64>,
    live: Vec<AtomicU64>,
    peaks: Vec<AtomicU64>,
}

impl Held {
    fn new(trace: &Trace, space: HeapSpace) -> Held {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Held {
            space,
            came_to: zeros(trace.sizes().len()),
            live: zeros(space.nodes() as usize),
            peaks: zeros(space.nodes() as usize),
        }
    }

    fn node(&self, address: u64) -> usize {
        self.space
            .place(address)
            .map_or(0, |place| place.node.0 as usize)
    }

    fn take(&self, request: usize, address: u64, size: u64) {
        let node = self.node(address);
        let live = self.live[node].fetch_add(size, Ordering::Relaxed) + size;
        self.peaks[node].fetch_max(live, Ordering::Relaxed);
        self.came_to[request].store(address, Ordering::Release);
    }

    fn give(&self, address: u64, size: u64) {
        self.live[self.node(address)].fetch_sub(size, Ordering::Relaxed);
    }
}

/// A replay under way.
struct Work<'a, I> {
    trace: &'a Trace,
    fabric: &'a Shared<I>,
    held: &'a Held,
}

impl<I: Index<Tagged> + Clone + Send> Work<'_, I> {
    fn one_by_one(&self) -> Result<Replayed, NotReplayed> {
        let nodes = self.fabric.space().from(Node(0));
        let mut meshes: Vec<_> = nodes.map(|node| Mesh::new(self.fabric, node)).collect();
        let mut replayed = Replayed::default();
        let mut request = 0;
        for &operation in self.trace.operations() {
            let node = match operation {
                Operation::Allocate { node, .. } | Operation::Free { node, .. } => node,
            };
            let mesh = &mut meshes[node as usize];
            if self.step(mesh, operation, request)? == Some(Outcome::Refused { sure: true }) {
                replayed.failed += 1;
                replayed.spurious += u64::from(self.could_serve(self.trace.sizes()[request]));
            }
            request += usize::from(matches!(operation, Operation::Allocate { .. }));
        }
        for mesh in &meshes {
            count(&mut replayed, mesh);
        }
        Ok(replayed)
    }

    fn all_at_once(&self) -> Result<Replayed, NotReplayed> {
        let nodes = self.fabric.space().nodes() as usize;
        // What each node does, requests with their numbers.
        let mut lists = vec![Vec::new(); nodes];
        let mut request = 0;
        for &operation in self.trace.operations() {
            match operation {
                Operation::Allocate { node, .. } => {
                    lists[node as usize].push((operation, request));
                    request += 1;
                }
                Operation::Free { node, request } => {
                    lists[node as usize].push((operation, request))
                }
            }
        }
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = lists
                .iter()
                .enumerate()
                .map(|(node, list)| scope.spawn(move || self.one_node(node as u32, list)))
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut all = Replayed::default();
        for result in results {
            let one = result?;
            all.failed += one.failed;
            all.spurious += one.spurious;
            all.local += one.local;
            all.remote += one.remote;
            all.parked += one.parked;
            all.visits += one.visits;
            all.skips += one.skips;
            all.longest = all.longest.max(one.longest);
        }
        Ok(all)
    }

    fn one_node(&self, node: u32, list: &[(Operation, usize)]) -> Result<Replayed, NotReplayed> {
        let mut mesh = Mesh::new(self.fabric, Node(node));
        let mut replayed = Replayed::default();
        for &(operation, request) in list {
            if let Some(Outcome::Refused { sure }) = self.step(&mut mesh, operation, request)? {
                replayed.failed += 1;
                replayed.spurious += u64::from(!sure);
            }
        }
        count(&mut replayed, &mesh);
        Ok(replayed)
    }

    /// One operation; what came of a request.
    fn step(
        &self,
        mesh: &mut Mesh<'_, Shared<I>>,
        operation: Operation,
        number: usize,
    ) -> Result<Option<Outcome>, NotReplayed> {
        match operation {
            Operation::Allocate { size, .. } => Ok(Some(self.allocate(mesh, number, size))),
            Operation::Free { request, .. } => self.free(mesh, request).map(|()| None),
        }
    }

    fn allocate(&self, mesh: &mut Mesh<'_, Shared<I>>, request: usize, size: u64) -> Outcome {
        match mesh.allocate(size, ALIGN) {
            Ok(address) => {
                self.write(request, address);
                self.held.take(request, address, size);
                Outcome::Served
            }
            Err(refusal) => {
                self.held.came_to[request].store(REFUSED, Ordering::Release);
                Outcome::Refused {
                    sure: refusal == Refusal::Full,
                }
            }
        }
    }

    fn free(&self, mesh: &mut Mesh<'_, Shared<I>>, request: usize) -> Result<(), NotReplayed> {
        // What it waits for stands before it in the trace, so some node can always go on.
        let address = loop {
            match self.held.came_to[request].load(Ordering::Acquire) {
                NOTHING => std::thread::yield_now(),
                REFUSED => return Ok(()),
                address => break address,
            }
        };
        if self.read(address) != Some(request as u64) {
            return Err(NotReplayed::Shared { request });
        }
        self.held.give(address, self.trace.sizes()[request]);
        mesh.free(address)
            .map_err(|_| NotReplayed::Shared { request })
    }

    fn write(&self, request: usize, address: u64) {
        if let Some(memory) = self.fabric.memory(address) {
            // SAFETY: every block has eight bytes, aligned to eight, and this one is this node's.
            unsafe { memory.cast::<u64>().write(request as u64) };
        }
    }

    fn read(&self, address: u64) -> Option<u64> {
        let memory = self.fabric.memory(address)?;
        // SAFETY: as in `write`; who wrote it has told where it is afterwards.
        Some(unsafe { memory.cast::<u64>().read() })
    }

    /// Whether a heap has room though it was said to have none: each by itself, past the protocol. For one node at work.
    fn could_serve(&self, size: u64) -> bool {
        let mut nodes = self.fabric.space().from(Node(0));
        nodes.any(|node| {
            let parked = [Word::Parked, Word::Draining].map(|word| self.fabric.load(node, word));
            let serve = |heap: &mut <Shared<I> as Fabric>::Heap| {
                let served = heap.allocate(size, ALIGN);
                if let Some(offset) = served {
                    // SAFETY: it was given out just now.
                    unsafe { heap.free(offset) };
                }
                served.is_some()
            };
            // SAFETY: nobody else is at work, so no lock is held.
            parked != [0; 2] || unsafe { self.fabric.with_heap(node, serve) }
        })
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Served,
    Refused {
        /// Every heap was looked into.
        sure: bool,
    },
}

fn count<F: Fabric>(replayed: &mut Replayed, mesh: &Mesh<'_, F>) {
    let counts = mesh.counts();
    replayed.local += counts.local;
    replayed.remote += counts.remote;
    replayed.parked += counts.parked;
    replayed.visits += counts.visits;
    replayed.skips += counts.skips;
    replayed.longest = replayed.longest.max(counts.longest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use metes_heap::Tlsf;
    use metes_random::Random;
    use std::fmt::Write as _;

    /// A random trace of so many operations, and how many bytes are not freed.
    fn text(seed: u64, nodes: u64, operations: u64) -> (String, u64) {
        let mut random = Random::new(seed);
        let (mut text, mut in_use, mut sizes) = (String::new(), Vec::new(), Vec::new());
        for _ in 0..operations {
            let node = random.below(nodes);
            if random.below(20) < 11 || in_use.is_empty() {
                let size = random.between(1, 400);
                let _ = writeln!(text, "a,{node},{},{size}", sizes.len());
                in_use.push(sizes.len());
                sizes.push(size);
            } else {
                let block = in_use.swap_remove(random.below(in_use.len() as u64) as usize);
                let _ = writeln!(text, "f,{node},{block}");
            }
        }
        (text, in_use.into_iter().map(|block| sizes[block]).sum())
    }

    fn run(text: &str, nodes: u32, heap: u64, kind: FabricKind) -> Replayed {
        let trace = Trace::read(text.as_bytes(), nodes).expect("a trace");
        replay(&trace, nodes, heap, kind, |_| Tlsf::<8>::new()).expect("heaps fit")
    }

    #[test]
    fn both_ways_agree_where_there_is_room() {
        for nodes in [1, 3, 8] {
            let (text, live) = text(nodes, nodes, 20_000);
            let sequential = run(&text, nodes as u32, 1 << 20, FabricKind::Sequential);
            let threads = run(&text, nodes as u32, 1 << 20, FabricKind::Threads);
            for replayed in [&sequential, &threads] {
                let Replayed {
                    failed,
                    spurious,
                    live_bytes,
                    lost_blocks,
                    ..
                } = *replayed;
                assert_eq!((failed, spurious, live_bytes, lost_blocks), (0, 0, live, 0));
                assert_eq!(replayed.operations, 20_000);
                assert_eq!(replayed.remote, 0);
            }
            // A heap serves its own node alone here, so what it holds in the end is decided; the peak is not.
            assert!(sequential.node_peaks.iter().sum::<u64>() >= live);
        }
    }

    #[test]
    fn refusals_are_true_where_heaps_are_full() {
        let (text, live) = text(7, 4, 40_000);
        let heap = live / 8;
        let sequential = run(&text, 4, heap, FabricKind::Sequential);
        assert!(
            sequential.failed > 100 && sequential.remote > 100,
            "{sequential:?}"
        );
        assert_eq!((sequential.spurious, sequential.lost_blocks), (0, 0));
        assert_eq!(sequential, run(&text, 4, heap, FabricKind::Sequential));
        let threads = run(&text, 4, heap, FabricKind::Threads);
        assert!(threads.failed > 100, "{threads:?}");
        assert_eq!((threads.spurious, threads.lost_blocks), (0, 0));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let trace = Trace::read(&b""[..], 2).expect("a trace");
        let none = |nodes, heap| {
            replay(&trace, nodes, heap, FabricKind::Sequential, |_| {
                Tlsf::<8>::new()
            })
            .err()
        };
        assert_eq!(none(2, 0), Some(NotReplayed::Impossible(Impossible::Empty)));
        assert!(matches!(
            none(2, 64),
            Some(NotReplayed::NotMade(NotMade::TooSmall { .. }))
        ));
        let much = NotReplayed::TooMuch {
            nodes: 2,
            heap: 1 << 62,
        };
        assert_eq!(none(2, 1 << 62), Some(much));
        assert!(matches!(none(0, 1 << 20), Some(NotReplayed::Impossible(_))));
        let many = replay(&trace, 1025, 1 << 16, FabricKind::Threads, |_| {
            Tlsf::<8>::new()
        });
        assert_eq!(many, Err(NotReplayed::Threads { nodes: 1025 }));
    }
}
