//! Processes over one mapping: they write blocks, pass them on and free them, and are killed wherever they are.
//!
//! Blocks are passed on through slots: who has one puts it into a slot at random and takes what was there, which it verifies
//! and frees, or passes on.
//!
//! Invariant: a process that fails a check ends with a status of its own, so the test fails with it.

use std::alloc::Layout;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use metes_heap::Tlsf;
use metes_mesh::{HeapSpace, Mapping, Mesh, Node, Refusal, Shared};
use metes_random::Random;

use crate::{Nodes, accounted, few};

/// Slots through which blocks are passed on.
const SLOTS: usize = 256;
/// Least bytes of a block: its size and its mark.
const LEAST: u64 = 16;

/// Heaps and slots in memory that forked processes share.
struct Common {
    nodes: Nodes,
    slots: Mapping,
    _heaps: Mapping,
}

impl Common {
    fn new(count: u32, bytes: u64) -> Common {
        let space = HeapSpace::new(0x6000_0000, bytes, count).expect("a space");
        let layout = Shared::<Tlsf<8>>::layout(space).expect("a layout");
        let heaps = Mapping::of_processes(layout).expect("there is so much");
        // SAFETY: fresh memory of this layout, zero, which lives as long as what is laid into it.
        let nodes = unsafe { Shared::lay(space, heaps.start(), |_| Tlsf::<8>::new()) };
        let slots = Layout::array::<AtomicU64>(SLOTS + 1).expect("a layout");
        Common {
            nodes: nodes.expect("heaps fit"),
            slots: Mapping::of_processes(slots).expect("there is so much"),
            _heaps: heaps,
        }
    }

    /// The slots, and behind them how many requests were refused.
    fn slots(&self) -> &[AtomicU64] {
        let start = self.slots.start().cast();
        // SAFETY: memory of that layout, zero at first, of which nobody has other references.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), SLOTS + 1) }
    }

    fn refused(&self) -> &AtomicU64 {
        &self.slots()[SLOTS]
    }

    fn words(&self, address: u64) -> *mut [u64; 2] {
        let memory = self.nodes.memory(address).expect("the block is memory");
        memory.as_ptr().cast()
    }

    /// Writes the block's size, and a mark that is its address.
    fn write(&self, address: u64, size: u64) {
        // SAFETY: the block has so many bytes, and is the caller's.
        unsafe { self.words(address).write([size, !address]) };
    }

    fn check(&self, address: u64) {
        // SAFETY: as in `write`.
        let [size, mark] = unsafe { self.words(address).read() };
        assert!(
            mark == !address && size >= LEAST,
            "{address:#x}: {size} {mark:#x}"
        );
    }

    /// Random operations: half requests, and what is taken out of a slot is freed. Tells what was served.
    fn operate(
        &self,
        mesh: &mut Mesh<'_, Nodes>,
        random: &mut Random,
        operations: u64,
        mut served: impl FnMut(u64),
    ) {
        for _ in 0..operations {
            let mut mine = 0;
            if random.below(2) == 0 {
                let size = random.between(LEAST, 200);
                match mesh.allocate(size, 8) {
                    Ok(address) => {
                        self.write(address, size);
                        served(address);
                        mine = address;
                    }
                    Err(Refusal::Full) => {
                        self.refused().fetch_add(1, Ordering::Relaxed);
                    }
                    // Who was killed has left a heap to rebuild, or was put aside by the scheduler.
                    Err(Refusal::Busy) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            let slot = &self.slots()[random.below(SLOTS as u64) as usize];
            let other = slot.swap(mine, Ordering::AcqRel);
            if other != 0 {
                self.check(other);
                mesh.free(other).expect("it is in use");
            }
        }
    }

    /// Frees what is in slots, and what is not there of those that `hands` may have had; then every heap is empty.
    fn end(mut self, hands: &BTreeSet<u64>) {
        let mut mesh = Mesh::new(&self.nodes, Node(0));
        let slots = self.slots()[..SLOTS].iter();
        let in_slots: BTreeSet<_> = slots.map(|slot| slot.load(Ordering::Acquire)).collect();
        for &address in hands.difference(&in_slots) {
            // Most were freed.
            let _ = mesh.free(address);
        }
        for slot in &self.slots()[..SLOTS] {
            let address = slot.swap(0, Ordering::AcqRel);
            if address != 0 {
                self.check(address);
                mesh.free(address).expect("it is in use");
            }
        }
        // Each heap is looked into once more, so that nothing stays parked.
        assert_eq!(mesh.allocate(1 << 20, 8), Err(Refusal::Full));
        let audits = self.nodes.audit();
        accounted(&audits);
        assert!(
            audits
                .iter()
                .all(|audit| audit.blocks == 0 && audit.live == 0 && !audit.left_out),
            "{audits:?}"
        );
    }
}

/// A process that does `life` and ends.
fn fork(life: impl FnOnce()) -> libc::pid_t {
    // SAFETY: of another thread's locks the child waits for none: it works on memory of its own and on what is shared.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a process is there");
    if child == 0 {
        // Where the test fails, nobody is left behind.
        #[cfg(target_os = "linux")]
        // SAFETY: a call without memory of ours.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
        };
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
        // SAFETY: nothing of this process is to be done any more.
        unsafe { libc::_exit(if lived.is_ok() { 0 } else { 1 }) };
    }
    child
}

/// Waits for a process; how it ended.
fn wait(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: a child of this process.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    status
}

#[test]
fn processes_pass_blocks_around() {
    // The long form says how many in all; some say nothing.
    let long = std::env::var("METES_OPERATIONS").ok();
    let long = long.map(|text| text.parse::<u64>().expect("METES_OPERATIONS is a number"));
    for (count, bytes) in [(2, 1 << 13), (4, 1 << 12), (8, 1 << 12)] {
        let operations = long.map_or(few(300_000), |long| long.div_ceil(u64::from(count) * 3));
        let common = Common::new(count, bytes);
        let children: Vec<_> = (0..count)
            .map(|number| {
                fork(|| {
                    let mut mesh = Mesh::new(&common.nodes, Node(number));
                    common.operate(
                        &mut mesh,
                        &mut Random::new(number.into()),
                        operations,
                        |_| {},
                    );
                })
            })
            .collect();
        for child in children {
            assert_eq!(wait(child), 0);
        }
        let refused = common.refused().load(Ordering::Relaxed);
        assert!(refused > 0, "heaps are small enough to be full");
        common.end(&BTreeSet::new());
    }
}

/// Kills a process wherever it is, and takes over what its node had, and its node back.
fn bury(mesh: &mut Mesh<'_, Nodes>, dead: Node, child: libc::pid_t, theirs: &mut BTreeSet<u64>) {
    // SAFETY: a child of this process that was not waited for.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
    assert_eq!(wait(child), libc::SIGKILL);
    mesh.declare_dead(dead);
    let mut adopt = || mesh.adopt(dead, |address| _ = theirs.insert(address));
    while adopt() == Err(Refusal::Busy) {}
    while mesh.readmit(dead) == Err(Refusal::Busy) {}
}

#[test]
fn a_process_may_be_killed_anywhere() {
    const DIES: Node = Node(1);
    let mut taken_over = 0;
    for round in 0..few(40) {
        let common = Common::new(4, 1 << 13);
        let forever = |node: Node, seed| {
            let mut mesh = Mesh::new(&common.nodes, node);
            let mut random = Random::new(seed);
            loop {
                common.operate(&mut mesh, &mut random, 1 << 20, |_| {});
            }
        };
        let mut mesh = Mesh::new(&common.nodes, Node(0));
        let mut random = Random::new(round);
        // What each process has in its hand when it is killed is not in a slot; whose it was when it was served, it is
        // found in the end: by the one that lives, or because it was adopted.
        let mut hands = BTreeSet::new();
        let lives = [Node(2), Node(3)].map(|node| (node, fork(|| forever(node, node.0.into()))));
        for time in 0..10 {
            let dies = fork(|| forever(DIES, round << 8 | time));
            let operations = 500 + time * 137 % 4000;
            let served = |address| _ = hands.insert(address);
            common.operate(&mut mesh, &mut random, operations, served);
            bury(&mut mesh, DIES, dies, &mut hands);
        }
        for (node, child) in lives {
            bury(&mut mesh, node, child, &mut hands);
        }
        taken_over += mesh.counts().taken_over;
        common.end(&hands);
    }
    assert!(taken_over > 0, "some are killed while they hold a heap");
}
