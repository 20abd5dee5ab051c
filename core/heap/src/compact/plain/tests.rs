//! Non-compacting compact-fit against a naive model, and against the slabs of composite
//! heaps, which cut memory in the same way and decide the same.

use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::NonCompacting;
use crate::compact::{Partition, Refused};
use crate::objects::{ObjectPools, Slabs};
use crate::store::BadFree;
use crate::store::tagged::Memory;

const PAGES: usize = 12;

fn partitions() -> impl Strategy<Value = Partition> {
    let page = prop_oneof![Just(256usize), Just(1024), Just(4096)];
    (page, 1usize..5, 2usize..6).prop_map(|(page, smallest, largest)| Partition {
        page,
        smallest: 16 * smallest,
        largest: page / largest,
        ..Partition::DEFAULT
    })
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(usize, u32),
    Free(usize),
    /// Frees what no block begins at: the address of a block and so many bytes.
    Misuse(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0usize..2100, 0u32..13).prop_map(|(size, align)| Step::Allocate(size, align)),
        4 => any::<usize>().prop_map(Step::Free),
        1 => (any::<usize>(), 1usize..5000).prop_map(|(which, by)| Step::Misuse(which, by)),
    ];
    prop::collection::vec(step, 1..400)
}

/// Memory that the heap may use as long as the test.
fn memory(words: &mut [u128]) -> Memory {
    let length = size_of_val(words);
    // SAFETY: the words outlive the heap, which alone uses them.
    unsafe { Memory::from_raw(NonNull::from(words).cast(), length) }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 256 },
        // Files are not to be had under Miri.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn blocks_are_disjoint_aligned_and_where_slabs_put_them(
        partition in partitions(),
        steps in steps(),
    ) {
        prop_assume!(partition.validate(0).is_ok());
        let mut words = vec![0u128; (partition.page * PAGES + 8192) / 16];
        let Ok(mut heap) = NonCompacting::<true>::new(&partition, memory(&mut words)) else {
            return Ok(());
        };
        let slabs = Slabs::Classes(partition);
        let mut table = vec![0; slabs.memory_words(1024)];
        let mut twin = ObjectPools::new(&slabs, &mut table, &mut []);
        // Address to bytes; place is the address less that of the first page.
        let mut blocks: BTreeMap<usize, usize> = BTreeMap::new();
        let base = heap.base.as_ptr() as usize;
        for step in steps {
            match step {
                Step::Allocate(size, align) => {
                    let align = 1usize << align;
                    let served = heap.serves(size, align);
                    let Some(block) = heap.allocate(size, align) else {
                        let room = heap.supply.extent < heap.supply.limit
                            || heap.supply.spare(&heap.table) != Some(0);
                        prop_assert!(served.is_err() || !room, "{size} {align} {served:?}");
                        prop_assert_eq!(served == Err(Refused::TooLarge), size > partition.largest);
                        continue;
                    };
                    prop_assert!(served.is_ok());
                    let address = block.as_ptr() as usize;
                    prop_assert!(address.is_multiple_of(align));
                    let capacity = heap.capacity(block).unwrap();
                    prop_assert!(capacity >= size);
                    let before = blocks.range(..address + capacity).next_back();
                    if let Some((at, bytes)) = before {
                        prop_assert!(at + bytes <= address, "overlap");
                    }
                    prop_assert!(address + capacity <= base + heap.footprint());
                    blocks.insert(address, capacity);
                    let place = match align <= 16 {
                        true => twin.allocate(size, align, |_| true),
                        // Slabs serve no such alignments; a request of the class does the same.
                        false => twin.allocate(capacity.min(partition.largest), 1, |_| true),
                    };
                    prop_assert_eq!(place, Some(address - base));
                }
                Step::Free(which) => {
                    let Some(&address) = blocks.keys().nth(which % blocks.len().max(1)) else {
                        continue;
                    };
                    blocks.remove(&address);
                    let block = NonNull::new(address as *mut u8).unwrap();
                    prop_assert_eq!(heap.free(block), Ok(()));
                    prop_assert_eq!(heap.free(block), Err(BadFree::NotInUse));
                    prop_assert!(twin.free(address - base).is_ok());
                }
                Step::Misuse(which, by) => {
                    let Some(&address) = blocks.keys().nth(which % blocks.len().max(1)) else {
                        continue;
                    };
                    if blocks.contains_key(&(address + by)) {
                        continue;
                    }
                    let block = NonNull::new((address + by) as *mut u8).unwrap();
                    prop_assert!(heap.free(block).is_err());
                }
            }
            let statistics = heap.statistics();
            prop_assert_eq!(statistics.blocks, blocks.len());
            prop_assert_eq!(statistics.live, blocks.values().sum::<usize>());
        }
        prop_assert_eq!(heap.check(), Ok(()));
        prop_assert!(twin.check().is_ok());
        let all: Vec<usize> = blocks.keys().copied().collect();
        for address in all {
            heap.free(NonNull::new(address as *mut u8).unwrap()).unwrap();
        }
        prop_assert_eq!(heap.check(), Ok(()));
        prop_assert!(heap.states().all(|class| class.pages == 0 && class.used == 0));
        prop_assert_eq!(heap.statistics().free_bytes, 0);
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let mut words = vec![0u128; 8];
    let refused = NonCompacting::<true>::new(&Partition::DEFAULT, memory(&mut words));
    assert!(matches!(refused, Err(crate::compact::Unfit::TooSmall(_))));
}
