//! An order on a heap for each thread (docs/threads.md): its own code, driven by one thread.
//!
//! A thread has its heap from its first request to its last one (a run may keep it longer), the first thread to the end. Blocks that are too large
//! for pages come from the heap behind, which is replayed.
//!
//! Invariant: the heaps decide as they would under the program, and touch none of its memory.

use core::ptr::NonNull;

use metes_config::{Config, ThreadHeap};
use metes_explore::{EventsBuilder, Operation, Options, Replayer};
use metes_threads::{Driven, LARGEST, stays};

use crate::threads::Threads;

/// Where a block lies.
#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Thread(NonNull<u8>),
    Behind,
}

/// Bytes that a heap for each thread takes on an order; `None` where the system gives no addresses for it, or the order is
/// no interleaving. O(events).
#[must_use]
pub fn per_thread_footprint(threads: &Threads, order: &[u32]) -> Option<u64> {
    let heap = ThreadHeap::default();
    let count = threads.threads().len();
    let mut own = Driven::new(heap.threads, count)?;
    let mut behind = EventsBuilder::new();
    let blocks = threads.steps().iter().map(|step| step.block as usize + 1);
    let mut places = vec![Place::Nowhere; blocks.max().unwrap_or(0)];
    for &event in order {
        let step = &threads.steps()[event as usize];
        let thread = step.thread as usize;
        let place = &mut places[step.block as usize];
        let (size, align) = (step.size as usize, step.align.max(1) as usize);
        let block = u64::from(step.block);
        let mut ask = |own: &mut Driven, align: usize| {
            let small = match size <= LARGEST {
                true => own.allocate(thread, size, align),
                false => None,
            };
            match small {
                Some(block) => Some(Place::Thread(block)),
                None => (behind.push(Operation::Allocate, block, step.size, align as u64))
                    .ok()
                    .map(|()| Place::Behind),
            }
        };
        *place = match (step.operation, *place) {
            (Operation::Allocate, _) => ask(&mut own, align)?,
            (Operation::Free, Place::Thread(block)) => {
                own.free(thread, block).ok()?;
                Place::Nowhere
            }
            (Operation::Resize, Place::Thread(before)) => {
                if !stays(own.usable(before).ok()?, size) {
                    *place = ask(&mut own, 1)?;
                    own.free(thread, before).ok()?;
                }
                *place
            }
            (operation, Place::Behind) => {
                behind
                    .push(operation, block, step.size, align as u64)
                    .ok()?;
                match operation {
                    Operation::Free => Place::Nowhere,
                    _ => Place::Behind,
                }
            }
            (_, Place::Nowhere) => return None,
        };
        // The one that began the program waits for the others.
        if thread > 0 && threads.threads()[thread].len() == step.place as usize + 1 {
            own.end(thread);
        }
    }
    let config = metes_config::spec_on_host(BEHIND).ok()?;
    Some(own.footprint() as u64 + footprint(&config, behind))
}

/// The heap behind.
const BEHIND: &str = "tlsf";

fn footprint(heap: &Config, events: EventsBuilder) -> u64 {
    let outcome = Replayer::new().outcome(&heap.heap, &events.finish(), &Options::of(heap));
    outcome.footprint
}
