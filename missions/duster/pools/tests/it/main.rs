//! The pools beside a naive model: who has which bytes, and who should have been served.
//!
//! Invariant: the model knows the rule of each pool by counting alone, nothing of where blocks lie.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use metes_duster_pools::{
    ALIGNMENT, Address, BadConfiguration, BadFree, BinPool, BucketPool, Pool, Region, SlotPool,
    Slots,
};
use proptest::prelude::*;

fn region(bytes: usize) -> Region {
    Region::from_static(Box::leak(Box::new_uninit_slice(bytes)) as &'static mut [MaybeUninit<u8>])
}

const SLOTS: [Slots; 3] = [
    Slots { count: 6, size: 32 },
    Slots {
        count: 4,
        size: 100,
    },
    Slots {
        count: 2,
        size: 1024,
    },
];
const SIZES: [u32; 4] = [16, 64, 200, 1024];

#[derive(Clone, Copy, Debug)]
enum Step {
    Allocate(usize),
    Free(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size =
        prop_oneof![4 => 0usize..40, 4 => 0usize..300, 1 => 0usize..1400, 1 => Just(1024usize)];
    let step =
        prop_oneof![5 => size.prop_map(Step::Allocate), 4 => any::<usize>().prop_map(Step::Free)];
    prop::collection::vec(step, 1..300)
}

/// What of a pool's rule can be told by counts.
enum Rule {
    /// Carved so far, and free blocks a bucket.
    Buckets { left: usize, free: [u32; 4] },
    /// Free slots a size, and into how many larger ones a request may spill.
    Slots { free: [u32; 3], spill: bool },
}

impl Rule {
    /// The size class that serves, or none.
    fn allocate(&mut self, size: usize) -> Option<usize> {
        match self {
            Rule::Buckets { left, free } => {
                let bucket = SIZES.iter().position(|&held| size <= held as usize)?;
                if free[bucket] > 0 {
                    free[bucket] -= 1;
                } else {
                    // Twelve bytes of a descriptor before each, whole up to the alignment.
                    *left = left.checked_sub(16 + (SIZES[bucket] as usize).next_multiple_of(8))?;
                }
                Some(bucket)
            }
            Rule::Slots { free, spill } => {
                let held =
                    |group: &usize| size <= (SLOTS[*group].size as usize).next_multiple_of(8);
                let first = (0..3).find(held)?;
                let last = if *spill { 3 } else { first + 1 };
                let group = (first..last).find(|&group| free[group] > 0)?;
                free[group] -= 1;
                Some(group)
            }
        }
    }

    fn free(&mut self, class: usize) {
        match self {
            Rule::Buckets { free, .. } => free[class] += 1,
            Rule::Slots { free, .. } => free[class] += 1,
        }
    }
}

/// Drives a pool and the rule side by side; every block is filled with its number and must keep it.
fn drive(pool: &mut dyn Pool, rule: &mut Rule, steps: &[Step]) {
    let mut held: Vec<(NonNull<u8>, usize, usize, u8)> = Vec::new();
    let mut intervals: BTreeMap<usize, usize> = BTreeMap::new();
    let (mut peak, mut refusals) = (0, 0);
    for (number, &step) in steps.iter().enumerate() {
        match step {
            Step::Allocate(size) => {
                let before = pool.largest_free();
                let place = pool.allocate(size);
                let class = rule.allocate(size);
                assert_eq!(
                    place.is_some(),
                    class.is_some(),
                    "request {number} of {size} bytes"
                );
                let (Some(place), Some(class)) = (place, class) else {
                    refusals += 1;
                    continue;
                };
                assert!(
                    size <= before,
                    "largest_free said {before}, {size} was served"
                );
                let start = place.addr().get();
                assert!(start.is_multiple_of(ALIGNMENT));
                let below = intervals.range(..=start).next_back();
                assert!(
                    below.is_none_or(|(&at, &bytes)| at + bytes <= start),
                    "overlaps the block before"
                );
                let above = intervals.range(start..).next();
                assert!(
                    above.is_none_or(|(&at, _)| start + size.max(1) <= at),
                    "overlaps the block behind"
                );
                intervals.insert(start, size.max(1));
                // SAFETY: the block was just given out and has `size` bytes.
                unsafe { place.write_bytes(number as u8, size) };
                held.push((place, size, class, number as u8));
            }
            Step::Free(which) if !held.is_empty() => {
                let (place, size, class, fill) = held.swap_remove(which % held.len());
                // SAFETY: the block is in use, has `size` bytes, and they were written.
                let bytes = unsafe { std::slice::from_raw_parts(place.as_ptr(), size) };
                assert!(
                    bytes.iter().all(|&byte| byte == fill),
                    "nobody else wrote there"
                );
                assert_eq!(pool.free(place), Ok(()));
                assert_eq!(pool.free(place), Err(BadFree::Double));
                intervals.remove(&place.addr().get());
                rule.free(class);
            }
            Step::Free(_) => {}
        }
        let used: usize = held.iter().map(|(_, size, ..)| size).sum();
        peak = peak.max(used);
        let statistics = pool.statistics();
        assert_eq!(
            (statistics.used, statistics.peak, statistics.refusals),
            (used, peak, refusals)
        );
        assert_eq!(statistics.allocations - statistics.frees, held.len() as u64);
        assert!(statistics.used <= statistics.footprint && statistics.footprint <= statistics.size);
    }
}

proptest! {
    #[test]
    fn buckets_decide_as_counts_say(steps in steps()) {
        let mut pool = BucketPool::new(region(6000), &SIZES).unwrap();
        let left = pool.statistics().size;
        drive(&mut pool, &mut Rule::Buckets { left, free: [0; 4] }, &steps);
    }

    #[test]
    fn slots_decide_as_counts_say(steps in steps(), spill in any::<bool>()) {
        let mut pool = SlotPool::new(region(8 + SlotPool::bytes(&SLOTS).unwrap()), &SLOTS, spill).unwrap();
        drive(&mut pool, &mut Rule::Slots { free: [6, 4, 2], spill }, &steps);
    }

    #[test]
    fn ascending_bins_decide_as_slots_that_spill(steps in steps()) {
        let mut pool = BinPool::new(region(8 + BinPool::bytes(&SLOTS).unwrap()), &SLOTS).unwrap();
        drive(&mut pool, &mut Rule::Slots { free: [6, 4, 2], spill: true }, &steps);
    }
}

fn pools() -> Vec<Box<dyn Pool>> {
    vec![
        Box::new(BucketPool::new(region(8192), &SIZES).unwrap()),
        Box::new(SlotPool::new(region(8192), &SLOTS, true).unwrap()),
        Box::new(BinPool::new(region(8192), &SLOTS).unwrap()),
    ]
}

#[test]
fn foreign_pointers_are_refused() {
    for mut pool in pools() {
        let place = pool.allocate(100).unwrap();
        let mut elsewhere = 0u8;
        assert_eq!(
            pool.free(NonNull::from(&mut elsewhere)),
            Err(BadFree::Foreign)
        );
        // SAFETY: within the block of 100 bytes.
        let (odd, within) = unsafe { (place.add(3), place.add(32)) };
        assert_eq!(pool.free(odd), Err(BadFree::Foreign));
        assert!(pool.free(within).is_err());
        assert_eq!(pool.statistics().frees, 0);
        assert_eq!(pool.free(place), Ok(()));
    }
}

#[test]
fn an_overwritten_descriptor_is_found() {
    let mut pool = BucketPool::new(region(8192), &SIZES).unwrap();
    let [first, second] = [pool.allocate(64).unwrap(), pool.allocate(64).unwrap()];
    // SAFETY: written beyond the first block, but within memory that is the pool's.
    unsafe { first.add(64).write_bytes(0xff, 8) };
    assert_eq!(pool.free(second), Err(BadFree::Overwritten));
    assert_eq!(pool.free(first), Ok(()));
}

#[test]
fn memory_of_one_bucket_serves_no_other() {
    let mut pool = BucketPool::new(region(4096), &SIZES).unwrap();
    let blocks: Vec<_> = std::iter::from_fn(|| pool.allocate(16)).collect();
    for block in blocks {
        pool.free(block).unwrap();
    }
    assert_eq!((pool.statistics().used, pool.largest_free()), (0, 16));
    assert_eq!(pool.allocate(64), None);
}

#[test]
fn bins_are_searched_in_their_order() {
    let bins = [
        Slots {
            count: 1,
            size: 512,
        },
        Slots { count: 1, size: 64 },
    ];
    let mut pool = BinPool::new(region(1024), &bins).unwrap();
    assert!(pool.allocate(10).is_some());
    assert_eq!(pool.largest_free(), 64, "the large buffer came first");
}

#[test]
fn addresses_outlive_no_block() {
    let mut pool = SlotPool::new(region(8192), &SLOTS, false).unwrap();
    let address = pool.reserve(90).unwrap();
    assert_eq!(address, Address { pool: 1, slot: 0 });
    assert_eq!(pool.block(address).unwrap().1, 90);
    assert_eq!(pool.delete(address), Ok(()));
    assert_eq!(pool.delete(address), Err(BadFree::Double));
    assert_eq!(pool.block(address), Err(BadFree::Double));
    for address in [Address { pool: 3, slot: 0 }, Address { pool: 1, slot: 4 }] {
        assert_eq!(pool.delete(address), Err(BadFree::Foreign));
    }
}

#[test]
fn impossible_pools_are_refused() {
    let bad = |sizes: &[u32]| BucketPool::new(region(64), sizes).unwrap_err();
    assert_eq!(bad(&[]), BadConfiguration::Sizes);
    assert_eq!(bad(&[1; 21]), BadConfiguration::Sizes);
    assert_eq!(bad(&[0, 8]), BadConfiguration::Size);
    assert_eq!(bad(&[64, 64]), BadConfiguration::Order);
    assert_eq!(bad(&[1 << 31]), BadConfiguration::Size);
    let slots = |count, size| [Slots { count, size }];
    let bad = |slots: &[Slots]| SlotPool::new(region(64), slots, true).unwrap_err();
    assert_eq!(bad(&slots(4, 32)), BadConfiguration::Memory(144));
    assert_eq!(bad(&slots(u32::MAX, 32)), BadConfiguration::Size);
    assert_eq!(bad(&slots(1, 0)), BadConfiguration::Size);
    let bins = BinPool::new(region(64), &slots(u32::MAX, u32::MAX >> 1)).unwrap_err();
    assert!(matches!(bins, BadConfiguration::Memory(_)));
    let most = [Slots {
        count: u32::MAX,
        size: 1 << 30,
    }; 20];
    assert!(matches!(
        BinPool::new(region(64), &most),
        Err(BadConfiguration::Memory(_))
    ));
}
