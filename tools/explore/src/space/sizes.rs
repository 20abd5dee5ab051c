//! The sizes that a program asks for, and what they suggest.
//!
//! Invariant: what is suggested depends on how often each size is requested and
//! on nothing else.

use std::collections::HashMap;

use metes_heap::compact::Partition;
use metes_heap::compact::options::LARGEST_PAGE;
use metes_heap::description::{DEDICATED, DedicatedPool, List, OBJECTS, ObjectPoolKind};
use metes_heap::objects::{GRANULE, LARGEST, SLOTS};
use metes_heap::{Geometry, Limits};

use crate::events::{Events, Operation};
use crate::target::Target;

/// How many dedicated or object pools are tried.
pub(super) const COUNTS: [usize; 9] = [0, 1, 2, 3, 4, 6, 8, 12, 16];
/// Most blocks that their lists keep: without a limit nothing finite is proved of them.
pub(super) const LIMITS: [Option<u32>; 2] = [None, Some(16)];

/// Shares of the requests, in percent, that size classes of pages serve.
const SHARES: [u64; 4] = [50, 90, 99, 100];
/// Growth of such classes, in thousandths.
const FACTORS: [u32; 3] = [1063, 1125, 1250];

/// The object pools of a set that slabs of one size can hold.
pub(super) fn objects(set: &[usize], slab: usize) -> List<ObjectPoolKind, OBJECTS> {
    let mut list = List::EMPTY;
    for &size in set {
        if size <= slab / 2 && slab / size <= SLOTS {
            list.push(ObjectPoolKind {
                size,
                slab,
                level: 0,
            });
        }
    }
    list
}

/// How often each size is requested.
pub(super) struct Sizes {
    /// Size and allocations, most often first.
    pub(super) by_count: Vec<(usize, u64)>,
    pub(super) total: u64,
    /// Of the blocks that requests need.
    geometry: Geometry,
}

impl Sizes {
    pub(super) fn of(events: &Events, target: Target) -> Self {
        Sizes::of_runs([(events, 1)], target)
    }

    /// Those of several runs, each as often as its share says.
    pub(super) fn of_runs<'e>(
        runs: impl IntoIterator<Item = (&'e Events, u64)>,
        target: Target,
    ) -> Self {
        let mut counts: HashMap<usize, u64> = HashMap::new();
        for (events, share) in runs {
            for event in events.as_slice() {
                if event.operation() != Operation::Free {
                    *counts.entry(event.size()).or_insert(0) += share;
                }
            }
        }
        let total = counts.values().sum();
        let mut by_count: Vec<_> = counts.into_iter().collect();
        by_count.sort_unstable_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        Sizes {
            by_count,
            total,
            geometry: target.geometry(),
        }
    }

    /// Sizes of slots for the requests that object pools can serve, and how many
    /// requests, most often first.
    fn slot_counts(&self) -> Vec<(usize, u64)> {
        let mut slots: HashMap<usize, u64> = HashMap::new();
        for &(size, count) in &self.by_count {
            if size <= LARGEST {
                *slots.entry(size.next_multiple_of(GRANULE)).or_insert(0) += count;
            }
        }
        let mut slots: Vec<_> = slots.into_iter().collect();
        slots.sort_unstable_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        slots
    }

    /// Sizes of slots, those that serve most requests first.
    pub(super) fn slots(&self) -> Vec<usize> {
        self.slot_counts().into_iter().map(|slot| slot.0).collect()
    }

    /// Sizes (of slots) of object pools: none, the most frequent ones, and
    /// ladders without gaps.
    pub(super) fn object_sets(&self) -> Vec<Vec<usize>> {
        let slots = self.slot_counts();
        let mut sets = vec![Vec::new()];
        for count in COUNTS.into_iter().filter(|&count| count > 0) {
            let mut set: Vec<usize> = slots.iter().take(count).map(|&(size, _)| size).collect();
            set.sort_unstable();
            sets.push(set);
        }
        for most in [64, 128, 256] {
            let largest = slots
                .iter()
                .map(|slot| slot.0)
                .filter(|&size| size <= most)
                .max();
            sets.push(
                (1..=largest.unwrap_or(0) / GRANULE)
                    .map(|n| n * GRANULE)
                    .collect(),
            );
        }
        sets.dedup();
        sets
    }

    /// Classes of pages of compact-fit: for half, nearly all and all requests that a
    /// page can serve, growing by little or by more.
    pub(super) fn partitions(&self) -> Vec<Partition> {
        let mut small: Vec<_> = self.by_count.clone();
        small.retain(|&(size, _)| size <= LARGEST_PAGE / 8);
        small.sort_unstable();
        let total: u64 = small.iter().map(|&(_, count)| count).sum();
        let quantile = |share: u64| {
            let mut seen = 0;
            let at = small.iter().find(|&&(_, count)| {
                seen += count;
                seen * 100 >= total * share
            });
            at.map(|&(size, _)| size.max(1).next_multiple_of(GRANULE))
        };
        let mut largest: Vec<usize> = SHARES.into_iter().filter_map(quantile).collect();
        largest.dedup();
        let mut partitions = Vec::new();
        for largest in largest {
            for factor in FACTORS {
                partitions.push(Partition {
                    smallest: GRANULE,
                    largest,
                    factor,
                    ..Partition::DEFAULT
                });
            }
        }
        partitions
    }

    /// The `count` most frequent sizes that object pools up to `largest` leave,
    /// each with a block of its own, most often first. A size stands for all
    /// requests that need its block: it is the largest of them.
    pub(super) fn frequent(&self, largest: usize, count: usize) -> Vec<usize> {
        let mut blocks: Vec<usize> = Vec::new();
        for &(size, _) in &self.by_count {
            if blocks.len() == count {
                break;
            }
            let Some(block) = self.geometry.block_for(size) else {
                continue;
            };
            if size > largest && !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        let sizes = blocks.into_iter();
        sizes.map(|block| block - self.geometry.header).collect()
    }

    /// Dedicated pools for the [`frequent`](Self::frequent) sizes.
    pub(super) fn dedicated(
        &self,
        count: usize,
        limit: Option<u32>,
        largest: usize,
    ) -> List<DedicatedPool, DEDICATED> {
        let mut sizes = self.frequent(largest, count);
        sizes.sort_unstable();
        let mut list = List::EMPTY;
        for size in sizes {
            list.push(DedicatedPool {
                limit,
                ..DedicatedPool::new(size, 0)
            });
        }
        list
    }

    /// Sizes at which to split requests among two general pools: powers of two
    /// with at least one in a hundred requests on either side.
    pub(super) fn splits(&self) -> Vec<usize> {
        (5..20)
            .map(|log2| 1_usize << log2)
            .filter(|&split| {
                let below: u64 = self
                    .by_count
                    .iter()
                    .filter(|&&(size, _)| size <= split)
                    .map(|&(_, count)| count)
                    .sum();
                let least = (self.total / 100).max(1);
                below >= least && self.total - below >= least
            })
            .collect()
    }

    /// Limits of merging and splitting: none, never, and blocks at quartiles of
    /// the requested sizes.
    pub(super) fn limits(&self) -> Vec<Limits> {
        let mut sizes: Vec<_> = self.by_count.clone();
        sizes.sort_unstable();
        let quartile = |share: u64| {
            let mut seen = 0;
            let at = sizes.iter().find(|&&(_, count)| {
                seen += count;
                seen * 100 >= self.total * share
            });
            at.and_then(|&(size, _)| self.geometry.block_for(size))
        };
        let mut blocks: Vec<usize> = [50, 75, 95].into_iter().filter_map(quartile).collect();
        blocks.dedup();
        let mut merges = vec![usize::MAX, 0];
        // What merges into one block of this size is at most twice as large as
        // one that the program asks for.
        merges.extend(blocks.iter().map(|block| block.saturating_mul(2)));
        let mut splits = vec![0, usize::MAX];
        splits.extend(
            blocks
                .iter()
                .copied()
                .filter(|&block| block > self.geometry.minimum),
        );
        let mut limits = Vec::new();
        for &coalesce_up_to in &merges {
            for &split_down_to in &splits {
                limits.push(Limits {
                    coalesce_up_to,
                    split_down_to,
                });
            }
        }
        limits
    }
}
