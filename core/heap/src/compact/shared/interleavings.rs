//! Every interleaving of a few threads on small heaps, under the model checker loom.
//!
//! loom runs a scenario once for each order in which its threads can pass locks and atomic
//! accesses, up to a bound on preemptions, with the weak memory of C11, and reports accesses to
//! page records and moves that nothing orders. After every critical section of a class its whole
//! state is verified, n ≤ κ among it ([`Classes::hold`](super::locks::Classes::hold)).
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p metes-heap --lib interleavings -- --nocapture`

use std::boxed::Box;
use std::collections::BTreeMap;
use std::format;
use std::println;
use std::string::String;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::vec;
use std::vec::Vec;

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::super::{
    BadHandle, Granularity, Handle, Instances, Kappa, Options, Partition, Population,
    SharedCompactFit, Sharing, Transition,
};
use crate::lock::Lock;
use crate::store::tagged::Memory;

struct Checked(loom::sync::Mutex<()>);

// SAFETY: the guard lives as long as the body runs.
unsafe impl Lock for Checked {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock().unwrap();
        body()
    }
}

fn checked() -> Checked {
    Checked(loom::sync::Mutex::new(()))
}

type Heap = SharedCompactFit<Checked>;

/// Bytes of a block: with its record two increments.
const SIZE: usize = 40;
const INCREMENT: usize = 24;
const MEMORY: usize = 16 << 10;

/// What the executions of all scenarios did.
#[derive(Default)]
struct Log {
    executions: AtomicU64,
    transitions: Mutex<BTreeMap<String, u64>>,
}

impl Log {
    fn note(&self, transition: Transition) {
        let mut transitions = self.transitions.lock().unwrap();
        *transitions.entry(format!("{transition:?}")).or_default() += 1;
    }
}

/// One heap of one execution, in memory that goes with it.
struct Scene {
    heap: Heap,
    log: Arc<Log>,
    _memory: Box<[MaybeUninit<u8>]>,
}

fn memory() -> (Memory, Box<[MaybeUninit<u8>]>) {
    let mut bytes = Box::new_uninit_slice(MEMORY);
    let start = NonNull::from(&mut *bytes).cast();
    // SAFETY: kept beside the heap, and used by it alone.
    (unsafe { Memory::from_raw(start, MEMORY) }, bytes)
}

/// Page-blocks of `256 / blocks` bytes; with `mixed`, a second class of whole pages.
fn options(blocks: usize, kappa: u32, mixed: bool) -> Options {
    let block = 256 / blocks / 16 * 16;
    Options {
        partition: Partition {
            page: 256,
            smallest: block,
            largest: if mixed { 240 } else { block - 8 },
            factor: 2000,
            ..Partition::DEFAULT
        },
        kappa: Kappa::Finite(kappa),
        increment: Some(INCREMENT),
    }
}

impl Scene {
    fn allocate(&self, byte: u8) -> Handle {
        let (handle, transition) = self.heap.allocate_traced(SIZE, 8).unwrap();
        self.log.note(transition);
        self.heap.write(handle, 0, &[byte; SIZE]).unwrap();
        handle
    }

    fn free(&self, handle: Handle) {
        let (transition, mut compaction) = self.heap.begin_free(handle).unwrap();
        self.log.note(transition);
        while let Some(more) = compaction {
            compaction = self.heap.step(more);
        }
    }

    fn holds(&self, handle: Handle, byte: u8) {
        let mut bytes = [0; SIZE];
        self.heap.read(handle, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [byte; SIZE]);
    }
}

/// Threads of a scenario, and what must hold when they have ended.
type Actor = Box<dyn Fn(&Scene, &[Handle]) + Send + Sync>;

struct Scenario {
    name: &'static str,
    options: Options,
    /// Blocks that are there at first; block i holds bytes i.
    blocks: u8,
    actors: Vec<Actor>,
    end: Actor,
    /// Most preemptions of an execution; every interleaving without.
    preemptions: Option<usize>,
}

fn actor(actor: impl Fn(&Scene, &[Handle]) + Send + Sync + 'static) -> Actor {
    Box::new(actor)
}

impl Scenario {
    fn explore(self, granularity: Granularity, log: &Arc<Log>) {
        let before = log.executions.load(Ordering::Relaxed);
        let (name, preemptions) = (self.name, self.preemptions);
        let (scenario, of_run) = (Arc::new(self), log.clone());
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.max_branches = 100_000;
        builder.check(move || scenario.execute(granularity, &of_run));
        let executions = log.executions.load(Ordering::Relaxed) - before;
        println!(
            "{name}, {granularity:?} locks, preemptions {preemptions:?}: {executions} executions"
        );
        assert!(executions > 1);
    }

    /// One execution.
    fn execute(self: &Arc<Self>, granularity: Granularity, log: &Arc<Log>) {
        log.executions.fetch_add(1, Ordering::Relaxed);
        let (memory, bytes) = memory();
        let sharing = Sharing {
            granularity,
            threads: self.actors.len() + 1,
        };
        let heap = Heap::with_identity(&self.options, sharing, memory, checked, 0).unwrap();
        let scene = Arc::new(Scene {
            heap,
            log: log.clone(),
            _memory: bytes,
        });
        let blocks: Arc<Vec<Handle>> =
            Arc::new((0..self.blocks).map(|byte| scene.allocate(byte)).collect());
        let threads: Vec<_> = (0..self.actors.len())
            .map(|number| {
                let (scenario, scene, blocks) = (self.clone(), scene.clone(), blocks.clone());
                loom::thread::spawn(move || scenario.actors[number](&scene, &blocks))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        (self.end)(&scene, &blocks);
        let mut scene = Arc::into_inner(scene).expect("the threads have ended");
        assert_eq!(scene.heap.check(), Ok(()));
        assert_eq!(scene.heap.moves(), 0);
        for state in scene.heap.states() {
            let kappa = self.options.kappa.limit();
            let bound = state.used / state.blocks + state.not_full.min(kappa) + state.held;
            assert!(state.pages <= bound, "{state:?}");
        }
    }
}

/// Two full pages and one with one block, or three with π = 3: what is freed first compacts.
fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "a block is written and read while it moves",
            options: options(2, 1, false),
            blocks: 5,
            actors: vec![
                actor(|scene, blocks| scene.free(blocks[0])),
                actor(|scene, blocks| {
                    scene.heap.write(blocks[4], 0, &[9; SIZE]).unwrap();
                    scene.holds(blocks[4], 9);
                }),
            ],
            end: actor(|scene, blocks| scene.holds(blocks[4], 9)),
            preemptions: None,
        },
        Scenario {
            name: "a request takes back a move",
            options: options(2, 1, false),
            blocks: 5,
            actors: vec![
                actor(|scene, blocks| scene.free(blocks[0])),
                actor(|scene, _| {
                    let handle = scene.allocate(8);
                    scene.holds(handle, 8);
                }),
            ],
            end: actor(|scene, blocks| (1..5).for_each(|i| scene.holds(blocks[i], i as u8))),
            preemptions: None,
        },
        Scenario {
            name: "a block is freed while it moves",
            options: options(2, 1, false),
            blocks: 5,
            actors: vec![
                actor(|scene, blocks| scene.free(blocks[0])),
                actor(|scene, blocks| scene.free(blocks[4])),
            ],
            end: actor(|scene, blocks| (1..4).for_each(|i| scene.holds(blocks[i], i as u8))),
            preemptions: None,
        },
        Scenario {
            name: "a move is led elsewhere",
            options: options(2, 1, false),
            blocks: 5,
            actors: vec![
                actor(|scene, blocks| scene.free(blocks[0])),
                actor(|scene, blocks| {
                    scene.free(blocks[1]);
                    scene.free(blocks[2]);
                }),
            ],
            end: actor(|scene, blocks| {
                [3, 4].iter().for_each(|&i| scene.holds(blocks[i], i as u8))
            }),
            preemptions: None,
        },
        Scenario {
            name: "three threads free and allocate, three blocks a page",
            options: options(3, 1, false),
            blocks: 8,
            actors: vec![
                actor(|scene, blocks| scene.free(blocks[0])),
                actor(|scene, blocks| scene.free(blocks[6])),
                actor(|scene, _| {
                    scene.allocate(8);
                }),
            ],
            end: actor(|scene, blocks| {
                [1, 2, 3, 4, 5, 7]
                    .iter()
                    .for_each(|&i| scene.holds(blocks[i], i as u8))
            }),
            preemptions: Some(3),
        },
        Scenario {
            name: "a block is pinned while it moves, and κ holds when it is unpinned",
            options: options(2, 1, false),
            blocks: 5,
            actors: vec![
                actor(|scene, blocks| scene.free(blocks[0])),
                actor(|scene, blocks| {
                    let address = scene.heap.pin(blocks[4]).unwrap();
                    assert_eq!(scene.heap.free(blocks[4]), Err(BadHandle::Pinned));
                    // SAFETY: pinned, and nobody else accesses the block.
                    let bytes = unsafe { address.cast::<[u8; SIZE]>().as_mut() };
                    assert_eq!(*bytes, [4; SIZE]);
                    bytes.fill(9);
                    scene.heap.unpin(blocks[4]).unwrap();
                }),
            ],
            end: actor(|scene, blocks| scene.holds(blocks[4], 9)),
            preemptions: None,
        },
        Scenario {
            name: "a pinned page drains and opens",
            options: options(2, 1, false),
            blocks: 6,
            actors: vec![
                actor(|scene, blocks| {
                    scene.heap.pin(blocks[0]).unwrap();
                    scene.free(blocks[1]);
                    scene.heap.unpin(blocks[0]).unwrap();
                }),
                actor(|scene, blocks| scene.free(blocks[2])),
            ],
            end: actor(|scene, blocks| {
                [0, 3, 4, 5]
                    .iter()
                    .for_each(|&i| scene.holds(blocks[i], i as u8))
            }),
            preemptions: None,
        },
        Scenario {
            name: "a page changes its class under a stale handle",
            options: options(2, 2, true),
            blocks: 1,
            actors: vec![
                actor(|scene, blocks| {
                    scene.free(blocks[0]);
                    let (handle, transition) = scene.heap.allocate_traced(240, 8).unwrap();
                    scene.log.note(transition);
                    scene.heap.write(handle, 0, &[7; 240]).unwrap();
                }),
                actor(|scene, blocks| {
                    let mut bytes = [0; SIZE];
                    match scene.heap.read(blocks[0], 0, &mut bytes) {
                        Ok(()) => assert_eq!(bytes, [0; SIZE]),
                        Err(bad) => assert_eq!(bad, BadHandle::Stale),
                    }
                }),
            ],
            end: actor(|_, _| {}),
            preemptions: None,
        },
        Scenario {
            name: "a block changes its class while it is read and its page compacts",
            options: options(2, 1, true),
            blocks: 3,
            actors: vec![
                actor(|scene, blocks| scene.heap.resize(blocks[0], 240, 8).unwrap()),
                actor(|scene, blocks| scene.holds(blocks[0], 0)),
            ],
            end: actor(|scene, blocks| (0..3).for_each(|i| scene.holds(blocks[i], i as u8))),
            preemptions: None,
        },
        Scenario {
            name: "two threads free the same block",
            options: options(2, 1, false),
            blocks: 3,
            actors: vec![
                actor(|scene, blocks| {
                    let _ = scene.heap.free(blocks[0]);
                }),
                actor(|scene, blocks| {
                    let _ = scene.heap.free(blocks[0]);
                }),
            ],
            end: actor(|scene, blocks| {
                assert_eq!(scene.heap.free(blocks[0]), Err(BadHandle::Stale));
                assert_eq!(scene.heap.statistics().frees, 1);
            }),
            preemptions: None,
        },
    ]
}

fn explore(granularity: Granularity) {
    let log = Arc::new(Log::default());
    for scenario in scenarios() {
        scenario.explore(granularity, &log);
    }
    let transitions = log.transitions.lock().unwrap();
    println!(
        "{granularity:?} locks: {} executions, transitions {transitions:?}",
        log.executions.load(Ordering::Relaxed)
    );
    assert_eq!(transitions.len(), 8, "a transition was never made");
}

#[test]
fn class_locks() {
    explore(Granularity::Class);
}

#[test]
fn page_locks() {
    explore(Granularity::Page);
}

/// One thread frees what another allocated, which allocates meanwhile.
#[test]
fn instances() {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let (memory, bytes) = memory();
        let population = Population {
            threads: 2,
            instances: 2,
            degree: 1,
            spill: false,
        };
        let options = options(2, 1, false);
        let heaps =
            Instances::new(&options, Granularity::Class, population, memory, checked).unwrap();
        let heaps = Arc::new((heaps, bytes));
        let blocks: Vec<Handle> = (0..3)
            .map(|_| heaps.0.member(0).unwrap().allocate(SIZE, 8).unwrap())
            .collect();
        let other = heaps.clone();
        let freed = blocks[0];
        let thread = loom::thread::spawn(move || {
            let own = other.0.member(1).unwrap().allocate(SIZE, 8).unwrap();
            other.0.free(freed).unwrap();
            other.0.free(own).unwrap();
        });
        let member = heaps.0.member(0).unwrap();
        heaps.0.write(blocks[2], 0, &[5; SIZE]).unwrap();
        let more = member.allocate(SIZE, 8).unwrap();
        heaps.0.free(more).unwrap();
        thread.join().unwrap();
        let mut held = [0; SIZE];
        heaps.0.read(blocks[2], 0, &mut held).unwrap();
        assert_eq!(held, [5; SIZE]);
        let (mut heaps, _bytes) = Arc::into_inner(heaps).expect("the thread has ended");
        assert_eq!(heaps.check(), Ok(()));
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("instances: {executions} executions");
    assert!(executions > 1);
}
