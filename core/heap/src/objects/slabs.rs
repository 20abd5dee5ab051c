//! How slabs are cut: into the slots of object pools, or into the page-blocks of
//! compact-fit's size classes.
//!
//! Invariant: of valid [`Slabs`] the sizes of slots rise, each is a multiple of
//! [`GRANULE`](super::GRANULE) and at most the slab, and a slab's slots have a bit each.

use super::table::{Slab, head_words};
use super::{BITS, GRANULE, PLAIN, Pool, SLOTS};
use crate::compact::Partition;
use crate::description::{List, OBJECTS, ObjectPoolKind};

/// How the slabs of a heap are cut.
#[expect(
    clippy::large_enum_variant,
    reason = "plain data that is made once a heap, and nothing may be allocated"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slabs {
    /// Into the slots of object pools; no pools, no slabs.
    Pools(List<ObjectPoolKind, OBJECTS>),
    /// Into page-blocks: a page is a slab, a size class a pool (compact-fit that
    /// never compacts and needs no indirection).
    Classes(Partition),
}

impl Slabs {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Slabs::Pools(pools) if pools.is_empty())
    }

    /// Bytes of a slab; 0 where there are none.
    pub fn bytes(&self) -> usize {
        match self {
            Slabs::Pools(pools) => pools.iter().next().map_or(0, |pool| pool.slab),
            Slabs::Classes(partition) => partition.page,
        }
    }

    /// The memory level in which they lie.
    pub fn level(&self) -> u8 {
        match self {
            Slabs::Pools(pools) => pools.iter().next().map_or(0, |pool| pool.level),
            Slabs::Classes(_) => 0,
        }
    }

    /// Sizes of slots in bytes, rising.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        let (pools, classes) = match self {
            Slabs::Pools(pools) => (Some(pools.iter().map(|pool| pool.size)), None),
            Slabs::Classes(partition) => (None, Some(partition.classes(0))),
        };
        pools
            .into_iter()
            .flatten()
            .chain(classes.into_iter().flatten())
    }

    /// Bytes of the largest request that a slot serves; 0 where there are none.
    pub fn largest(&self) -> usize {
        match self {
            Slabs::Pools(pools) => pools.iter().last().map_or(0, |pool| pool.size),
            Slabs::Classes(partition) => partition.largest,
        }
    }

    /// Most slots of a slab that its record has room for.
    pub fn slots(&self) -> usize {
        match self {
            Slabs::Pools(_) => SLOTS,
            Slabs::Classes(partition) => {
                let smallest = partition.classes(0).next().unwrap_or(GRANULE);
                partition.page / smallest
            }
        }
    }

    /// Whether records have a word that says which words of the bitmap are not full.
    pub fn summarised(&self) -> bool {
        self.slots() > PLAIN * BITS
    }

    /// Words of a slab's bitmap, a summary included.
    pub fn words(&self) -> usize {
        self.slots().div_ceil(BITS) + usize::from(self.summarised())
    }

    /// Bytes of a slab's record.
    pub fn record_bytes(&self) -> usize {
        size_of::<Slab>() + self.words() * size_of::<usize>()
    }

    /// Entries of the table that finds the pool of a size.
    pub(super) fn entries(&self) -> usize {
        self.largest().div_ceil(GRANULE) + 1
    }

    /// Words of the tables in front of the records.
    pub(super) fn table_words(&self) -> usize {
        let pools = self.sizes().count() * size_of::<Pool>();
        (pools + self.entries()).div_ceil(size_of::<usize>())
    }

    /// Words of memory that [`ObjectPools`](super::ObjectPools) need for `count` slabs.
    pub fn memory_words(&self, count: usize) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.table_words() + count * (head_words() + self.words())
    }

    /// Slabs for which `words` of memory suffice.
    pub fn count_in(&self, words: usize) -> usize {
        let left = words.saturating_sub(self.memory_words(0));
        left / (head_words() + self.words())
    }
}
