//! How much two threads do on a shared heap, over what one does: each makes and frees blocks of
//! 1 KiB to 1 MiB, a thousand of them held at a time. Prints ratios of five rounds, with a part
//! for each thread and with one for both.

use std::thread;
use std::time::Instant;

use metes_device::heap::{Classes, Extent, ListHeap};
use metes_device::shared::SharedHeap;
use metes_heap::ByHandle;

const OPERATIONS: u64 = 3_000_000;
const HELD: usize = 1000;

fn main() {
    println!("operations of two threads over those of one (1 part a thread; 1 part for both)");
    for _ in 0..5 {
        let one = rate(2, 1);
        println!("{:.2}  {:.2}", rate(2, 2) / one, rate(1, 2) / one);
    }
}

/// Operations a second of all threads.
fn rate(parts: usize, threads: u64) -> f64 {
    let extent = Extent {
        bytes: 1 << 34,
        granule: 256,
        blocks: 2 * HELD,
    };
    let heap = match SharedHeap::new(extent, parts, ListHeap::<ByHandle, Classes>::by_handle) {
        Ok(heap) => heap,
        Err(error) => panic!("the extent is sound: {error}"),
    };
    let start = Instant::now();
    thread::scope(|scope| {
        for thread in 0..threads {
            let heap = &heap;
            scope.spawn(move || work(heap, thread + 1));
        }
    });
    (threads * OPERATIONS) as f64 / start.elapsed().as_secs_f64()
}

fn work(heap: &SharedHeap<ListHeap<ByHandle>>, mut state: u64) {
    let mut held = [const { None }; HELD];
    for _ in 0..OPERATIONS {
        // Marsaglia's xorshift: enough for sizes and slots.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let slot = &mut held[state as usize % HELD];
        *slot = match slot.take() {
            Some(place) => {
                let freed = heap.free(place);
                debug_assert_eq!(freed, Ok(()));
                None
            }
            None => {
                let bytes = 1024 + (state >> 32) % (1 << 20);
                heap.allocate(bytes, 1).ok().map(|block| block.place)
            }
        };
    }
}
