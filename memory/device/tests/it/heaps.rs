//! What single heaps must do; random operations on all of them are the campaign's.

use crate::common::Random;
use metes_device::bitmap::BitmapPool;
use metes_device::heap::{Classes, Extent, HandleHeap, ListHeap, Refusal, Unmade, refusable};
use metes_device::hybrid::{HybridHeap, SlotSizes};
use metes_heap::{BadFree, HalfFit};
use proptest::prelude::*;

const EXTENT: Extent = Extent {
    // Miri takes long for large tables.
    bytes: if cfg!(miri) { 1 << 20 } else { 64 << 20 },
    granule: 256,
    blocks: if cfg!(miri) { 100 } else { 1500 },
};

fn slots() -> SlotSizes {
    SlotSizes {
        smallest: 256,
        largest: 4096,
        slabs: if cfg!(miri) { 6 } else { 60 },
    }
}

#[test]
fn hybrid_addresses_inside_slabs_are_no_blocks() {
    let mut heap = HybridHeap::<_, Classes>::new(EXTENT, slots(), ListHeap::direct).unwrap();
    let slot = heap.allocate(300, 1).unwrap();
    let block = heap.allocate(1 << 18, 1).unwrap();
    // 512 bytes a slot, the second of which is not in use.
    assert_eq!(heap.slot_at(slot.offset + 512), Err(BadFree::NotInUse));
    assert_eq!(heap.slot_at(slot.offset + 256), Err(BadFree::Foreign));
    assert_eq!(heap.slot_at(block.offset), Ok(None));
    assert_eq!(heap.slot_at(EXTENT.bytes), Err(BadFree::Foreign));
    let found = heap.slot_at(slot.offset).unwrap().unwrap();
    assert_eq!(metes_device::hybrid::HybridPlace::Slot(found), slot.place);
    // The slab is a block of the lists, which the program must not free.
    let slab = metes_device::hybrid::HybridPlace::Block(slot.offset as usize);
    assert_eq!(heap.free(slab), Err(BadFree::Foreign));
    heap.free(slot.place).unwrap();
    assert_eq!(heap.free(slot.place), Err(BadFree::NotInUse));
    heap.check().unwrap();
}

#[test]
fn sizes_beyond_32_bits_are_served() {
    let extent = Extent {
        bytes: 1 << 45,
        granule: 1 << 16,
        blocks: 10,
    };
    let mut heap = HandleHeap::<Classes>::by_handle(extent).unwrap();
    let first = heap.allocate(5 << 33, 1 << 34).unwrap();
    let second = heap.allocate(1 << 44, 1).unwrap();
    assert_eq!(first.offset % (1 << 34), 0);
    assert_eq!(heap.span(second.place).unwrap().requested, 1 << 44);
    heap.free(first.place).unwrap();
    heap.free(second.place).unwrap();
    heap.check().unwrap();
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let made = |bytes, granule, blocks| {
        HandleHeap::<Classes>::by_handle(Extent {
            bytes,
            granule,
            blocks,
        })
        .map(drop)
    };
    assert_eq!(made(1 << 20, 100, 1), Err(Unmade::Granule(100)));
    assert_eq!(
        made(1000, 256, 1),
        Err(Unmade::Length {
            bytes: 1000,
            granule: 256
        })
    );
    assert_eq!(
        made(0, 256, 1),
        Err(Unmade::Length {
            bytes: 0,
            granule: 256
        })
    );
    assert_eq!(
        made(1 << 40, 256, 1),
        Err(Unmade::Granules {
            bytes: 1 << 40,
            granule: 256
        })
    );
    assert_eq!(made(1 << 20, 256, 0), Err(Unmade::Blocks(0)));
    let mut heap = HandleHeap::<Classes>::by_handle(Extent {
        bytes: 1 << 20,
        granule: 256,
        blocks: 1,
    })
    .unwrap();
    assert_eq!(heap.allocate(0, 1), Err(Refusal::Empty));
    assert_eq!(heap.allocate(10, 3), Err(Refusal::Alignment(3)));
    assert_eq!(heap.allocate(10, 0), Err(Refusal::Alignment(0)));
    let block = heap.allocate(1 << 19, 1).unwrap();
    assert_eq!(heap.allocate(1, 1), Err(Refusal::Blocks(1)));
    assert_eq!(heap.free(block.place), Ok(()));
    assert_eq!(heap.free(block.place), Err(BadFree::NotInUse));
}

#[test]
fn one_block_can_be_in_use_for_every_record() {
    let extent = Extent {
        bytes: 1 << 20,
        granule: 256,
        blocks: 1 << 11,
    };
    let mut heap = HandleHeap::<Classes>::by_handle(extent).unwrap();
    let blocks: Vec<_> = (0..extent.blocks)
        .map(|_| heap.allocate(512, 1).unwrap())
        .collect();
    for block in blocks.iter().step_by(2) {
        heap.free(block.place).unwrap();
    }
    // Every second is free again, and each is cut once more.
    for _ in 0..extent.blocks / 2 {
        heap.allocate(256, 1).unwrap();
    }
    assert_eq!(heap.used(), extent.blocks);
    heap.check().unwrap();
}

/// The least bytes of a free block while a request is refused.
fn largest_free<I>(heap: &HandleHeap<I>) -> u64
where
    I: metes_device::heap::Lists<metes_heap::ByHandle>,
{
    let mut largest = 0;
    heap.walk(|_, size, requested| {
        if requested.is_none() {
            largest = largest.max(size);
        }
    })
    .unwrap();
    largest
}

proptest! {
    /// What [`refusable`] states: no refused request leaves a larger free block.
    #[test]
    fn refusals_are_bounded(
        seed in any::<u64>(),
        scale in 1_u64..14,
    ) {
        let extent = Extent { bytes: 1 << 22, granule: 256, blocks: 4000 };
        let mut heap = HandleHeap::<Classes>::by_handle(extent).unwrap();
        let mut random = Random::new(seed);
        let mut held = Vec::new();
        let mut refused = 0;
        for _ in 0..3000 {
            let most = 256 << random.below(scale + 1);
            let bytes = 1 + random.below(most);
            match heap.allocate(bytes, 1) {
                Ok(block) => held.push(block.place),
                Err(Refusal::NoBlock { .. }) => {
                    refused += 1;
                    let largest = largest_free(&heap);
                    prop_assert!(largest <= refusable(bytes, 256), "{largest} for {bytes}");
                    let place = held.swap_remove(random.below(held.len() as u64) as usize);
                    heap.free(place).unwrap();
                }
                Err(Refusal::TooLarge { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            if random.below(3) == 0 && !held.is_empty() {
                let place = held.swap_remove(random.below(held.len() as u64) as usize);
                heap.free(place).unwrap();
            }
        }
        prop_assert!(scale < 6 || refused > 0);
    }

    #[test]
    fn bitmap_pools_agree_with_a_set(
        slots in 1_u64..9000,
        steps in proptest::collection::vec((any::<bool>(), any::<u32>()), 1..4000),
    ) {
        let mut pool = BitmapPool::new(slots, 4096).unwrap();
        let mut free: std::collections::BTreeSet<u32> = (0..slots as u32).collect();
        for (allocate, number) in steps {
            if allocate {
                prop_assert_eq!(pool.allocate(), free.pop_first());
            } else {
                let slot = number % (slots as u32 + 10);
                let expected = match slot {
                    slot if u64::from(slot) >= slots => Err(BadFree::Foreign),
                    slot if free.contains(&slot) => Err(BadFree::NotInUse),
                    _ => Ok(()),
                };
                prop_assert_eq!(pool.free(slot), expected);
                if expected.is_ok() {
                    free.insert(slot);
                }
            }
            prop_assert_eq!(u64::from(pool.used()), slots - free.len() as u64);
        }
        for slot in 0..slots as u32 {
            prop_assert_eq!(pool.in_use(slot), Ok(!free.contains(&slot)));
        }
        // All that is free is given out, lowest first, and then nothing.
        for slot in free {
            prop_assert_eq!(pool.allocate(), Some(slot));
        }
        prop_assert_eq!(pool.allocate(), None);
    }
}

#[test]
fn bitmap_pools_of_no_slots_or_too_many_are_refused() {
    for (slots, bytes) in [(0, 1), (1, 0), (1 << 32, 1), (1 << 31, 1 << 33)] {
        let error = BitmapPool::new(slots, bytes).unwrap_err();
        assert_eq!((error.slots, error.slot_bytes), (slots, bytes));
    }
    let pool = BitmapPool::new(5, 512).unwrap();
    assert_eq!(pool.at(1024), Ok(2));
    assert_eq!(pool.at(1000), Err(BadFree::Foreign));
    assert_eq!(pool.at(5 * 512), Err(BadFree::Foreign));
    assert_eq!(pool.offset(4), 2048);
}

#[test]
fn a_paper_heap_keeps_one_class_a_power_of_two() {
    // Requests are rounded up to where every block of a class serves: 3 granules need a block
    // of 4, and the 3 that are free do not serve.
    let extent = Extent {
        bytes: 3 * 256,
        granule: 256,
        blocks: 4,
    };
    let mut paper = ListHeap::<_, HalfFit>::hashed(extent).unwrap();
    assert!(matches!(
        paper.allocate(3 * 256, 1),
        Err(Refusal::NoBlock { .. })
    ));
    let mut ours = HandleHeap::<Classes>::by_handle(extent).unwrap();
    assert!(ours.allocate(3 * 256, 1).is_ok());
}
