//! Remapped blocks against a naive model: each keeps its bytes, and a request is refused only
//! if the pool has too few frames.

use std::ptr::NonNull;

use metes_heap::BadFree;
use metes_remap::{Error, FRAME, RemappedHeap};
use proptest::prelude::*;

fn fill(block: NonNull<u8>, bytes: usize, value: u8) {
    // SAFETY: a block of so many bytes.
    unsafe { block.as_ptr().write_bytes(value, bytes) };
}

fn holds(block: NonNull<u8>, bytes: usize, value: u8) -> bool {
    // SAFETY: a block of so many bytes, written before or zero.
    let held = unsafe { std::slice::from_raw_parts(block.as_ptr(), bytes) };
    held.iter().all(|&byte| byte == value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn refuses_only_what_does_not_fit(
        steps in prop::collection::vec((any::<bool>(), 1usize..9 * FRAME, any::<usize>()), 1..200),
    ) {
        const LIVE: usize = 64 * FRAME;
        let mut heap = RemappedHeap::for_demand(LIVE as u64, 9 * FRAME as u64, FRAME as u64).unwrap();
        let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        for (number, (frees, size, which)) in steps.into_iter().enumerate() {
            if frees && !live.is_empty() {
                let (block, size, value) = live.swap_remove(which % live.len());
                prop_assert!(holds(block, size, value));
                heap.free(block).unwrap();
                prop_assert!(matches!(heap.free(block), Err(Error::BadFree(_))));
            } else {
                let free = heap.frames().0;
                match heap.allocate(size) {
                    Ok(block) => {
                        prop_assert!(holds(block, size, 0));
                        fill(block, size, number as u8);
                        live.push((block, size, number as u8));
                    }
                    Err(Error::Frames { wanted, .. }) => prop_assert!(wanted > free),
                    // Beyond the demand, addresses may run out.
                    Err(Error::Addresses(_)) => {
                        let bytes: usize = live.iter().map(|(_, size, _)| size).sum();
                        prop_assert!(bytes + size > LIVE);
                    }
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
            prop_assert_eq!(heap.check(), Ok(()));
        }
        for (block, size, value) in live {
            prop_assert!(holds(block, size, value));
            heap.free(block).unwrap();
        }
        let (free, all) = heap.frames();
        prop_assert_eq!(free, all);
    }
}

#[test]
fn half_the_pool_serves_one_block_when_every_other_frame_is_free() {
    const FRAMES: usize = 2048;
    let bytes = (FRAMES * FRAME) as u64;
    let mut heap = RemappedHeap::for_demand(bytes / 2, bytes / 4, FRAME as u64).unwrap();
    assert_eq!(heap.frames(), (FRAMES, FRAMES));
    let blocks: Vec<_> = (0..FRAMES).map(|_| heap.allocate(FRAME).unwrap()).collect();
    for block in blocks.iter().step_by(2) {
        heap.free(*block).unwrap();
    }
    let large = heap.allocate(FRAMES / 2 * FRAME).unwrap();
    fill(large, FRAMES / 2 * FRAME, 7);
    assert!(holds(blocks[1], FRAME, 0), "frames are not shared");
    assert_eq!(heap.frames().0, 0);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn bad_input_is_named() {
    assert!(matches!(RemappedHeap::new(0, 1), Err(Error::Zero)));
    assert!(matches!(
        RemappedHeap::for_demand(1 << 20, 1 << 19, 0),
        Err(Error::Zero)
    ));
    assert!(matches!(
        RemappedHeap::for_demand(1 << 12, 1 << 19, 4096),
        Err(Error::Demand(_))
    ));
    assert!(matches!(
        RemappedHeap::new(1 << 30, 1 << 30),
        Err(Error::Mappings { .. })
    ));
    let mut heap = RemappedHeap::new(4, 4).unwrap();
    assert!(matches!(heap.allocate(0), Err(Error::Zero)));
    assert!(matches!(
        heap.allocate(5 * FRAME),
        Err(Error::Frames { wanted: 5, free: 4 })
    ));
    let block = heap.allocate(2 * FRAME).unwrap();
    // SAFETY: both within the block.
    let (inside, odd) = unsafe { (block.add(FRAME), block.add(8)) };
    for wrong in [inside, odd, NonNull::from(&mut 5u8)] {
        assert!(matches!(
            heap.free(wrong),
            Err(Error::BadFree(BadFree::Foreign | BadFree::NotInUse))
        ));
    }
    assert_eq!(heap.capacity(block).unwrap(), 2 * FRAME);
    assert!(heap.capacity(inside).is_err());
    heap.free(block).unwrap();
}
