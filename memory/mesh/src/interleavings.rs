//! Every order in which two nodes may take the steps of a request or a free (`scripts/test model`).
//!
//! Invariant: the fabric has the orders of memory that every fabric has, and cells that are accessed out of order are
//! found by the model checker.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU16, AtomicU64, Ordering, fence};
use loom::thread;
use std::vec::Vec;

use crate::fabric::{EXCHANGE, Fabric, LOAD, STORE, Word};
use crate::local::LocalHeap;
use crate::mesh::{Mesh, OPEN, Options};
use crate::refusal::{BadFree, Refusal};
use crate::space::{HeapSpace, Node};
use crate::words::{Holder, Work};

const APART: u64 = 16;

/// A heap of some blocks of one size.
struct Slots(Vec<bool>);

impl LocalHeap for Slots {
    const APART: u64 = APART;

    fn allocate(&mut self, _size: u64, _align: u64) -> Option<u64> {
        let free = self.0.iter().position(|used| !used)?;
        self.0[free] = true;
        Some(free as u64 * APART)
    }

    unsafe fn free(&mut self, offset: u64) {
        let slot = &mut self.0[(offset / APART) as usize];
        assert!(*slot, "a block is freed once");
        *slot = false;
    }

    unsafe fn rebuild(&mut self, used: impl Iterator<Item = u64> + Clone) -> bool {
        self.0.fill(false);
        used.for_each(|offset| self.0[(offset / APART) as usize] = true);
        true
    }

    fn live(&self) -> u64 {
        self.blocks()
    }

    fn blocks(&self) -> u64 {
        self.0.iter().filter(|used| **used).count() as u64
    }

    fn is_whole(&self) -> bool {
        true
    }
}

struct Part {
    words: Vec<AtomicU64>,
    tags: Vec<AtomicU16>,
    links: Vec<UnsafeCell<u64>>,
    heap: UnsafeCell<Slots>,
}

/// Some nodes, of which two work at the same time.
struct Pair {
    parts: Vec<Part>,
    /// Loads are exchanges of a value for itself.
    latest: bool,
    barrier: bool,
}

impl Pair {
    fn new(nodes: usize, blocks: usize, latest: bool) -> Pair {
        let part = |_| Part {
            words: Word::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            tags: (0..blocks).map(|_| AtomicU16::new(0)).collect(),
            links: (0..blocks).map(|_| UnsafeCell::new(0)).collect(),
            heap: UnsafeCell::new(Slots(std::vec![false; blocks])),
        };
        Pair {
            parts: (0..nodes).map(part).collect(),
            latest,
            barrier: false,
        }
    }

    /// With the way without a lock open at the first node.
    fn open(nodes: usize, blocks: usize, latest: bool) -> Pair {
        let pair = Pair {
            barrier: true,
            ..Pair::new(nodes, blocks, latest)
        };
        pair.store(Node(0), Word::Bias, OPEN);
        pair
    }

    fn part(&self, node: Node) -> &Part {
        &self.parts[node.0 as usize]
    }
}

impl Fabric for Pair {
    type Heap = Slots;

    fn space(&self) -> HeapSpace {
        HeapSpace::new(
            0,
            self.parts[0].tags.len() as u64 * APART,
            self.parts.len() as u32,
        )
        .expect("a space")
    }

    fn load(&self, node: Node, word: Word) -> u64 {
        let word = &self.part(node).words[word as usize];
        if self.latest {
            word.fetch_or(0, EXCHANGE)
        } else {
            word.load(LOAD)
        }
    }

    fn store(&self, node: Node, word: Word, value: u64) {
        self.part(node).words[word as usize].store(value, STORE);
    }

    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64> {
        let word = &self.part(node).words[word as usize];
        word.compare_exchange(current, new, EXCHANGE, LOAD)
            .map(|_| ())
    }

    fn tag(&self, node: Node, granule: u64) -> u16 {
        let tag = &self.part(node).tags[granule as usize];
        if self.latest {
            tag.fetch_or(0, EXCHANGE)
        } else {
            tag.load(LOAD)
        }
    }

    fn set_tag(&self, node: Node, granule: u64, tag: u16) {
        self.part(node).tags[granule as usize].store(tag, STORE);
    }

    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16> {
        let tag = &self.part(node).tags[granule as usize];
        tag.compare_exchange(current, new, EXCHANGE, LOAD)
            .map(|_| ())
    }

    unsafe fn link(&self, node: Node, offset: u64) -> u64 {
        let link = &self.part(node).links[(offset / APART) as usize];
        // SAFETY: the model checker watches the cell.
        link.with(|link| unsafe { *link })
    }

    unsafe fn set_link(&self, node: Node, offset: u64, value: u64) {
        let link = &self.part(node).links[(offset / APART) as usize];
        // SAFETY: as in `link`.
        link.with_mut(|link| unsafe { *link = value });
    }

    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut Slots) -> T) -> T {
        // SAFETY: as in `link`.
        self.part(node)
            .heap
            .with_mut(|heap| change(unsafe { &mut *heap }))
    }

    fn barrier(&self) -> bool {
        fence(Ordering::SeqCst);
        self.barrier
    }

    /// The model has no barrier that one node makes others pass: both sides pass one.
    fn near_barrier(&self) {
        fence(Ordering::SeqCst);
    }

    fn relax(&self) {
        thread::yield_now();
    }
}

const OPTIONS: Options = Options {
    drained: 1,
    tries: 2,
    passes: 1,
    alone: 256,
};

/// The first two nodes at work at the same time; what each brings.
fn both<T: 'static>(
    pair: &Arc<Pair>,
    first: impl FnOnce(&mut Mesh<'_, Pair>) -> T + 'static,
    second: impl FnOnce(&mut Mesh<'_, Pair>) -> T + 'static,
) -> (T, T) {
    let other = Arc::clone(pair);
    let thread = thread::spawn(move || second(&mut Mesh::with_options(&*other, Node(1), OPTIONS)));
    let brought = first(&mut Mesh::with_options(&**pair, Node(0), OPTIONS));
    (brought, thread.join().expect("it ends"))
}

/// Runs a scenario in every order with up to three switches that no node asks for, twice; says how many those are. The
/// checker compares each access with the last one of its word alone, so that a load in front of an exchange hides other
/// nodes' loads from it: once, loads are exchanges, of which it tries every order, and once they are loads, which may
/// bring older values.
fn every(name: &'static str, scenario: impl Fn(bool) + Sync + Send + 'static) {
    let scenario = std::sync::Arc::new(scenario);
    for latest in [true, false] {
        let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (counted, scenario) = (
            std::sync::Arc::clone(&runs),
            std::sync::Arc::clone(&scenario),
        );
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            scenario(latest);
        });
        let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
        std::println!(
            "loom {name}, loads {}: {runs} executions",
            if latest { "as exchanges" } else { "as loads" }
        );
        assert!(runs > 5 || !latest, "{runs} executions");
    }
}

/// What is taken after everything else: all that is left.
fn rest(pair: &Pair) -> usize {
    let mut mesh = Mesh::with_options(pair, Node(0), OPTIONS);
    let mut taken = 0;
    loop {
        match mesh.allocate(8, 8) {
            Ok(_) => taken += 1,
            Err(refusal) => {
                assert_eq!(refusal, Refusal::Full);
                return taken;
            }
        }
    }
}

/// Takes so many blocks before the others begin.
fn taken(pair: &Pair, node: u32, count: usize) -> Vec<u64> {
    let mut mesh = Mesh::with_options(pair, Node(node), OPTIONS);
    let taken = (0..count).map(|_| mesh.allocate(8, 8).expect("there is room"));
    taken.collect()
}

#[test]
fn no_block_is_given_out_twice() {
    every("one block for two", |latest| {
        let pair = Arc::new(Pair::new(2, 1, latest));
        // Both want the one that is left.
        taken(&pair, 1, 1);
        let take = |mesh: &mut Mesh<'_, Pair>| mesh.allocate(8, 8);
        let (first, second) = both(&pair, take, take);
        let mut both = [first, second];
        both.sort_by_key(Result::is_err);
        assert!(
            matches!(both, [Ok(_), Err(Refusal::Full | Refusal::Busy)]),
            "{both:?}"
        );
    });
}

#[test]
fn what_is_parked_is_served_again() {
    every("a parked block", |latest| {
        let pair = Arc::new(Pair::new(2, 1, latest));
        let own = taken(&pair, 0, 2)[0];
        let (served, freed) = both(
            &pair,
            |mesh| mesh.allocate(8, 8).map(|_| ()),
            move |mesh| mesh.free(own).map_err(|_| Refusal::Busy),
        );
        assert_eq!(freed, Ok(()));
        assert!(
            matches!(served, Ok(()) | Err(Refusal::Full | Refusal::Busy)),
            "{served:?}"
        );
        assert_eq!(usize::from(served.is_ok()) + rest(&pair), 1);
    });
}

#[test]
fn a_block_is_freed_once() {
    every("a block freed by two", |latest| {
        let pair = Arc::new(Pair::new(2, 1, latest));
        let block = taken(&pair, 0, 1)[0];
        let (first, second) = both(
            &pair,
            move |mesh| mesh.free(block),
            move |mesh| mesh.free(block),
        );
        let mut both = [first, second];
        both.sort_by_key(Result::is_err);
        assert_eq!(both, [Ok(()), Err(BadFree::NotInUse)]);
        assert_eq!(rest(&pair), 2);
    });
}

#[test]
fn chains_grow_while_they_are_drained() {
    every("a chain that grows", |latest| {
        let pair = Arc::new(Pair::new(2, 2, latest));
        let blocks = taken(&pair, 0, 4);
        let served = both(
            &pair,
            |mesh| [(); 2].map(|()| mesh.allocate(8, 8).is_ok()),
            move |mesh| [blocks[0], blocks[1]].map(|block| mesh.free(block).is_ok()),
        );
        assert_eq!(served.1, [true, true]);
        let served = served.0.into_iter().filter(|served| *served).count();
        assert_eq!(served + rest(&pair), 2);
    });
}

#[test]
fn one_node_takes_over() {
    every("a dead holder", |latest| {
        let pair = Arc::new(Pair::new(3, 1, latest));
        let block = taken(&pair, 0, 1)[0];
        taken(&pair, 1, 1);
        // The third node has parked a block of the first heap, taken the chain off, and died with the lock.
        let mut dead = Mesh::with_options(&*pair, Node(2), OPTIONS);
        dead.free(block).expect("it is in use");
        let holder = Holder {
            node: Node(2),
            epoch: 0,
        };
        pair.store(Node(0), Word::Lock, Holder::word(Some(holder)));
        let chain = pair.load(Node(0), Word::Parked);
        pair.store(Node(0), Word::Parked, 0);
        pair.store(Node(0), Word::Draining, chain);
        pair.store(Node(0), Word::Work, Work::Free(0).word());
        dead.declare_dead(Node(2));
        let take = |mesh: &mut Mesh<'_, Pair>| mesh.allocate(8, 8);
        let (first, second) = both(&pair, take, take);
        let mut both = [first, second];
        both.sort_by_key(Result::is_err);
        assert!(
            matches!(both, [Ok(_), Err(Refusal::Full | Refusal::Busy)]),
            "{both:?}"
        );
    });
}

#[test]
fn one_of_both_sees_the_other() {
    every("a heap held without its lock", |latest| {
        let pair = Arc::new(Pair::open(2, 1, latest));
        let take = |mesh: &mut Mesh<'_, Pair>| mesh.allocate_home(8, 8);
        let come_by = |mesh: &mut Mesh<'_, Pair>| mesh.allocate_away(8, 8);
        let (first, second) = both(&pair, take, come_by);
        let served = [first, second].into_iter().filter(Result::is_ok).count();
        assert!(served <= 1);
        // The second heap's, too.
        assert_eq!(served + rest(&pair), 2);
    });
}

#[test]
fn a_freed_block_is_in_the_heap_once() {
    every("a free without the lock", |latest| {
        let pair = Arc::new(Pair::open(2, 1, latest));
        let block = taken(&pair, 0, 1)[0];
        let (freed, served) = both(
            &pair,
            move |mesh| mesh.free(block).is_ok(),
            |mesh| mesh.allocate_away(8, 8).is_ok(),
        );
        assert!(freed);
        assert_eq!(usize::from(served) + rest(&pair), 2);
    });
}

#[test]
fn who_was_late_sees_that_the_way_is_closed() {
    every("another one that comes by twice", |latest| {
        let pair = Arc::new(Pair::open(2, 2, latest));
        let (first, second) = both(
            &pair,
            |mesh| usize::from(mesh.allocate_home(8, 8).is_ok()),
            |mesh| {
                let mut come_by = || usize::from(mesh.allocate_away(8, 8).is_ok());
                come_by() + come_by()
            },
        );
        assert_eq!(first + second + rest(&pair), 4);
    });
}
