//! A heap that threads share: blocks never overlap, and come back from wherever they go.

use std::sync::Mutex;
use std::thread;

use crate::common::Random;
use metes_device::heap::{Classes, Extent, HandleHeap, ListHeap, Refusal, Unmade};
use metes_device::shared::{NoParts, SharedHeap};
use metes_heap::ByHandle;

const EXTENT: Extent = Extent {
    bytes: 8 << 20,
    granule: 256,
    blocks: 2000,
};

fn shared(parts: usize) -> SharedHeap<HandleHeap> {
    SharedHeap::new(EXTENT, parts, ListHeap::<ByHandle, Classes>::by_handle).unwrap()
}

/// Threads allocate and pass every second block on, to be freed by whoever gets it.
#[test]
fn blocks_are_disjoint_whoever_frees_them() {
    let operations = if cfg!(debug_assertions) {
        10_000
    } else {
        1_000_000
    };
    let heap = shared(3);
    // A granule's owner: threads write their number where they have a block.
    let granules = (EXTENT.bytes / EXTENT.granule) as usize;
    let owners: Vec<_> = (0..granules)
        .map(|_| std::sync::atomic::AtomicU32::new(0))
        .collect();
    let passed = Mutex::new(Vec::new());
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    thread::scope(|scope| {
        for thread in 1..=4 {
            let (heap, owners, passed) = (&heap, &owners, &passed);
            scope.spawn(move || {
                let mut random = Random::new(thread.into());
                let mut held = Vec::new();
                let free = |(place, offset, bytes): (_, u64, u64)| {
                    for owner in
                        &owners[(offset / 256) as usize..(offset + bytes).div_ceil(256) as usize]
                    {
                        assert_ne!(owner.swap(0, relaxed), 0, "a block has an owner");
                    }
                    heap.free(place).unwrap();
                };
                for _ in 0..operations {
                    match random.below(5) {
                        0..3 => {
                            let most = 1 << random.below(17);
                            let bytes = 1 + random.below(most);
                            let Ok(block) = heap.allocate(bytes, 1) else {
                                continue;
                            };
                            let range = (block.offset / 256) as usize
                                ..(block.offset + bytes).div_ceil(256) as usize;
                            for owner in &owners[range] {
                                assert_eq!(owner.swap(thread, relaxed), 0, "two owners");
                            }
                            let block = (block.place, block.offset, bytes);
                            match random.below(2) {
                                0 => held.push(block),
                                _ => passed.lock().unwrap().push(block),
                            }
                        }
                        3 if !held.is_empty() => {
                            let at = random.below(held.len() as u64) as usize;
                            free(held.swap_remove(at));
                        }
                        _ => {
                            let block = passed.lock().unwrap().pop();
                            block.map(free);
                        }
                    }
                }
                held.into_iter().for_each(free);
            });
        }
    });
    heap.check().unwrap();
    for (place, _, _) in passed.into_inner().unwrap() {
        heap.free(place).unwrap();
        assert!(heap.free(place).is_err());
    }
    assert_eq!(heap.used(), 0);
}

#[test]
fn other_parts_serve_when_the_own_is_full() {
    let heap = shared(4);
    let blocks: Vec<_> = (0..4)
        .map(|_| heap.allocate(EXTENT.bytes / 4, 1).unwrap())
        .collect();
    assert!(matches!(heap.allocate(1, 1), Err(Refusal::NoBlock { .. })));
    assert!(matches!(
        heap.allocate(EXTENT.bytes / 2, 1),
        Err(Refusal::TooLarge { .. })
    ));
    let mut offsets: Vec<_> = blocks.iter().map(|block| block.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 2 << 20, 4 << 20, 6 << 20]);
    for block in blocks {
        assert_eq!(heap.span(block.place).unwrap().offset, block.offset);
        heap.free(block.place).unwrap();
    }
    assert_eq!(heap.used(), 0);
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let made = |extent, parts| {
        SharedHeap::new(extent, parts, ListHeap::<ByHandle, Classes>::by_handle).map(drop)
    };
    for parts in [0, 1 << 17] {
        assert!(matches!(made(EXTENT, parts), Err(NoParts::Parts { .. })));
    }
    let small = Extent {
        bytes: 512,
        ..EXTENT
    };
    assert!(matches!(made(small, 3), Err(NoParts::Parts { .. })));
    let none = Extent {
        blocks: 0,
        ..EXTENT
    };
    assert_eq!(made(none, 1), Err(NoParts::Heap(Unmade::Blocks(0))));
}
