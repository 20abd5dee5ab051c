//! What the pools of a heap take from each memory level.
//!
//! A memory level may have a size: then all pools in it together take no more
//! than that from the system, and each is laid out for a span of that size.
//! Whoever stands behind the pools (a host's arena, a replay) asks here before
//! it grants memory.
//!
//! Invariant: what is taken from a level never exceeds its size.

use crate::description::{Description, GENERAL, LEVELS};

/// Bytes taken from each memory level, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    sizes: [Option<usize>; LEVELS],
    taken: [usize; LEVELS],
    /// Level of each general pool.
    general: [u8; GENERAL],
    /// Bytes that each general pool is laid out for, where it is less than others are.
    spans: [usize; GENERAL],
    /// Level of the object pools.
    objects: u8,
    /// Bytes of the record of one slab.
    record: usize,
    /// Levels up to the last one with a pool.
    count: u8,
}

impl Levels {
    /// The levels of a valid description, with nothing taken: their sizes, or
    /// none for levels without limit.
    pub fn of(description: &Description, sizes: [Option<usize>; LEVELS]) -> Self {
        let mut general = [0; GENERAL];
        let mut spans = [usize::MAX; GENERAL];
        for (number, pool) in description.general.iter().enumerate() {
            general[number] = pool.level;
            spans[number] = pool.index.span(usize::MAX);
        }
        let slabs = description.slabs();
        let highest = description.general.iter().map(|pool| pool.level);
        let highest = highest.chain([slabs.level()]).max();
        Levels {
            sizes,
            taken: [0; LEVELS],
            general,
            spans,
            objects: slabs.level(),
            record: slabs.record_bytes(),
            count: highest.map_or(1, |highest| highest + 1),
        }
    }

    /// The level of a general pool.
    #[inline(always)]
    pub fn of_general(&self, pool: usize) -> usize {
        usize::from(self.general[pool])
    }

    /// The level of the object pools: of their slabs and the table of these.
    #[inline(always)]
    pub fn of_objects(&self) -> usize {
        usize::from(self.objects)
    }

    /// How many levels there are up to the last one with a pool.
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Bytes that a general pool is laid out for, where a pool in a level
    /// without limit is laid out for `span`, unless its index is for less.
    pub fn span(&self, pool: usize, span: usize) -> usize {
        let span = self.sizes[self.of_general(pool)].unwrap_or(span);
        span.min(self.spans[pool])
    }

    /// Takes `bytes` for a general pool, or nothing where the level has not as
    /// much left.
    #[inline(always)]
    pub fn take(&mut self, pool: usize, bytes: usize) -> bool {
        self.take_from(self.of_general(pool), bytes)
    }

    /// Takes a slab of `bytes` and its record, or nothing.
    #[inline(always)]
    pub fn take_slab(&mut self, bytes: usize) -> bool {
        self.take_from(self.of_objects(), bytes + self.record)
    }

    #[inline(always)]
    fn take_from(&mut self, level: usize, bytes: usize) -> bool {
        let left = self.sizes[level].map(|size| size - self.taken[level]);
        if left.is_some_and(|left| bytes > left) {
            return false;
        }
        self.taken[level] += bytes;
        true
    }

    /// Gives back what the last [`take`](Self::take) of a general pool took,
    /// where the memory was refused after all.
    pub fn untake(&mut self, pool: usize, bytes: usize) {
        self.taken[self.of_general(pool)] -= bytes;
    }

    /// Gives back what the last [`take_slab`](Self::take_slab) took.
    pub fn untake_slab(&mut self, bytes: usize) {
        self.taken[self.of_objects()] -= bytes + self.record;
    }

    /// Bytes taken from each level: its part of the footprint.
    pub fn taken(&self) -> [usize; LEVELS] {
        self.taken
    }
}
