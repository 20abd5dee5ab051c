//! A heap over the cores of a LEON3: each core is a node of `metes_mesh::Mesh`.
//!
//! The cores run at the same time: they take blocks, of others' heaps when their own is full, fill them, pass them on, find in
//! them what was filled in, and free what others have taken. Who is served when depends on the machine. What is left in the end
//! does not: it is printed as a sum of each heap's state, which is the same on every machine and at every speed. Lines that
//! begin with `#` tell of the way there, which is not.
//!
//! *Invariant:* a core prints after all others have come to the barrier before.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod barrier;
mod machine;
mod state;
#[path = "../uart.rs"]
mod uart;
mod work;

use core::fmt::Write;
use core::panic::PanicInfo;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use metes_heap::Tlsf;
use metes_mesh::{HeapSpace, Node, NotMade, Shared};

use barrier::Barrier;
use machine::{MOST_NODES, ROUNDS};
use state::{freed, kept, largest};
use uart::Uart;
use work::{Keepers, Worker};

/// Bytes of each heap.
const HEAP: u32 = 8 << 10;

type Index = Tlsf<8>;
type Nodes = Shared<Index>;

static BARRIER: Barrier = Barrier::new();
/// What came of each node.
static RESULTS: [Results; MOST_NODES] = [const { Results::new() }; MOST_NODES];

struct Results {
    kept: AtomicU32,
    freed: AtomicU32,
    /// Requests served by the own heap, by others, refused; blocks parked; wrong contents and other failures.
    counts: [AtomicU32; 5],
}

impl Results {
    const fn new() -> Self {
        Results {
            kept: AtomicU32::new(0),
            freed: AtomicU32::new(0),
            counts: [const { AtomicU32::new(0) }; 5],
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn main(number: u32) -> ! {
    if number == 0 {
        match begin() {
            Ok(()) => {}
            Err(error) => failed(format_args!("{error}")),
        }
        machine::start_others();
    }
    let done = space()
        .map_err(|_| NotMade::NoMemory)
        // SAFETY: core 0 has laid the nodes at this place before it started the others.
        .and_then(|space| unsafe { Nodes::attach(space, memory()) });
    match done {
        Ok(nodes) => live(&nodes, Node(number)),
        Err(error) => failed(format_args!("{error}")),
    }
    if number == 0 { tell() } else { machine::rest() }
}

fn space() -> Result<HeapSpace, metes_mesh::Impossible> {
    let base = memory().addr().get() as u64;
    HeapSpace::new(base, HEAP.into(), machine::nodes())
}

fn memory() -> NonNull<u8> {
    let address = machine::shared() as usize;
    NonNull::new(core::ptr::with_exposed_provenance_mut(address)).expect("memory is not at 0")
}

/// Lays the nodes into memory.
fn begin() -> Result<(), NotMade> {
    let space = space().map_err(|_| NotMade::NoMemory)?;
    let size = Nodes::layout(space)?.size();
    let heaps = (space.stride() * u64::from(space.nodes())) as usize;
    for offset in (heaps..size & !3).step_by(4) {
        // SAFETY: the memory of the nodes, which nobody uses yet.
        unsafe { memory().add(offset).cast::<u32>().write(0) };
    }
    machine::tell_homes(&Nodes::stripes(space)?.map(|stripe| {
        let begin = memory().addr().get() + stripe.begin;
        (begin as u32, stripe.each as u32)
    }));
    // SAFETY: the memory is the nodes' alone, and zero behind the heaps.
    unsafe { Nodes::lay(space, memory(), |_| Index::new()) }.map(|_| ())
}

/// The life of a node.
fn live(nodes: &Nodes, me: Node) {
    let all = machine::nodes();
    let results = &RESULTS[me.0 as usize];
    // SAFETY: no other node looks into this heap before the barrier.
    let whole = unsafe { largest(nodes, me) };
    let mut worker = Worker::new(nodes, me);
    let keepers = Keepers::taken(&mut worker);
    BARRIER.wait(all);
    worker.rounds(ROUNDS.load(Ordering::Relaxed));
    BARRIER.wait(all);
    // Nobody passes blocks on any more.
    worker.free_what_was_passed_on();
    BARRIER.wait(all);
    // Nobody parks any more.
    worker.drain();
    BARRIER.wait(all);
    // SAFETY: no node is at work on this heap.
    let sum = unsafe { kept(nodes, me, &mut worker) };
    results.kept.store(sum, Ordering::Relaxed);
    work::publish(me, &keepers);
    BARRIER.wait(all);
    // Each frees what its neighbour has kept.
    worker.free_keepers_of(Node((me.0 + 1) % all));
    BARRIER.wait(all);
    worker.drain();
    BARRIER.wait(all);
    // SAFETY: no node is at work on this heap.
    let sum = unsafe { freed(nodes, me, whole, &mut worker) };
    results.freed.store(sum, Ordering::Relaxed);
    for (place, count) in results.counts.iter().zip(worker.counts()) {
        place.store(count, Ordering::Relaxed);
    }
    BARRIER.wait(all);
}

/// Prints what came of it, and ends the run.
fn tell() -> ! {
    let mut counts = [0; 5];
    let mut sum = state::Sum::new();
    let all = machine::nodes() as usize;
    for (number, results) in RESULTS.iter().enumerate().take(all) {
        let kept = results.kept.load(Ordering::Relaxed);
        let freed = results.freed.load(Ordering::Relaxed);
        let _ = writeln!(Uart, "heap {number} kept {kept:08x} freed {freed:08x}");
        sum.add(kept);
        sum.add(freed);
        for (all, count) in counts.iter_mut().zip(&results.counts) {
            *all += count.load(Ordering::Relaxed);
        }
    }
    let [local, remote, refused, parked, wrong] = counts;
    let _ = writeln!(
        Uart,
        "# local {local} remote {remote} refused {refused} parked {parked}"
    );
    let sum = sum.get();
    let _ = writeln!(Uart, "nodes {all} state {sum:08x} wrong {wrong}");
    if wrong == 0 {
        machine::end_passed()
    } else {
        machine::end_failed()
    }
}

fn failed(why: core::fmt::Arguments<'_>) -> ! {
    let _ = writeln!(Uart, "FAILED: {why}");
    machine::end_failed()
}

#[unsafe(no_mangle)]
extern "C" fn trapped(kind: u32, at: usize) -> ! {
    failed(format_args!("trap {kind:#04x} at {at:#x}"))
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    failed(format_args!("{info}"))
}
