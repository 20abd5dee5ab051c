//! Partitions beside a plain list of what is live.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::declared::PARTITION_TC;

fn partition() -> Partition {
    let memory = std::vec![0; PARTITIONS[PARTITION_TC].size].leak();
    Partition::new(PARTITION_TC, memory)
}

proptest! {
    #[test]
    fn blocks_are_disjoint_and_counted(steps in proptest::collection::vec((any::<bool>(), 1usize..2000), 1..200)) {
        let mut partition = partition();
        let mut live: Vec<(Block, u8)> = Vec::new();
        let mut mark = 0u8;
        for (allocates, size) in steps {
            if allocates {
                if let Some(mut block) = partition.allocate(size) {
                    mark = mark.wrapping_add(1);
                    block.bytes_mut().fill(mark);
                    live.push((block, mark));
                }
            } else if !live.is_empty() {
                let (block, mark) = live.swap_remove(size % live.len());
                prop_assert!(block.bytes().iter().all(|&byte| byte == mark));
                partition.free(block);
            }
            let used: usize = live.iter().map(|(block, _)| block.bytes().len()).sum();
            let told = partition.statistics();
            prop_assert_eq!(told.used as usize, used);
            prop_assert_eq!((told.allocations - told.frees) as usize, live.len());
            prop_assert!(told.peak >= told.used);
        }
        for (block, mark) in live {
            prop_assert!(block.bytes().iter().all(|&byte| byte == mark));
            partition.free(block);
        }
        prop_assert_eq!(partition.statistics().used, 0);
    }
}

#[cfg(not(any(
    feature = "cfe-pools",
    feature = "satrs-pools",
    feature = "fprime-bins"
)))]
#[test]
fn what_is_told_free_can_be_had() {
    let mut partition = partition();
    let kept = partition.allocate(5000).expect("there is room");
    let largest = partition.statistics().largest_free as usize;
    let block = partition.allocate(largest).expect("so it was told");
    assert!(partition.allocate(largest).is_none());
    assert_eq!(partition.statistics().refusals, 1);
    partition.free(block);
    partition.free(kept);
}
