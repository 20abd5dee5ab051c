//! How the record of a place is found: by handle, through a table, or by hashing.

use super::LedgerBlock;

/// How the record of a place is found.
pub trait Lookup {
    /// What the program holds.
    type Place: Copy + Eq + core::fmt::Debug;
    /// Whether room for places can run out, whatever region they lie in.
    const RUNS_OUT: bool;
    /// Whether a place may lead to a record that describes another block by now, so that what
    /// the record says is to be compared with it.
    const STALE: bool = false;
    /// The offset that a place is, where it is one.
    fn offset(&self, place: Self::Place) -> Option<usize>;
    /// Makes the place of a block whose payload begins at `offset`. `None` when
    /// the lookup has no room for it.
    fn insert(&mut self, offset: usize, record: u32, generation: u32) -> Option<Self::Place>;
    /// The record that a place names, with the generation it expects, if any.
    fn find(&self, place: Self::Place) -> Option<(u32, Option<u32>)>;
    /// Forgets the place at `offset`.
    fn remove(&mut self, offset: usize);
    /// Whether one more place can be made, anywhere below offset `end`.
    fn has_room(&self, end: usize) -> bool;
    /// Bytes that the lookup itself takes.
    fn bytes(&self) -> usize;
}

/// A place that names its record and detects its own staleness. O(1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    record: u32,
    generation: u32,
}

/// Finds records by [`Handle`]: O(1), no memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByHandle;

impl Lookup for ByHandle {
    type Place = Handle;
    const RUNS_OUT: bool = false;

    #[inline(always)]
    fn offset(&self, _place: Handle) -> Option<usize> {
        None
    }

    #[inline(always)]
    fn insert(&mut self, _offset: usize, record: u32, generation: u32) -> Option<Handle> {
        Some(Handle { record, generation })
    }

    #[inline(always)]
    fn find(&self, place: Handle) -> Option<(u32, Option<u32>)> {
        Some((place.record, Some(place.generation)))
    }

    #[inline(always)]
    fn remove(&mut self, _offset: usize) {}

    #[inline(always)]
    fn has_room(&self, _end: usize) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Finds records by offset through a table with one entry a granule: O(1).
///
/// Entries are written and never cleared: an entry counts if the record that it names is in use
/// and describes a block at just that offset.
#[derive(Debug)]
pub struct Direct<'a> {
    table: &'a mut [u32],
    granule_shift: u32,
}

impl<'a> Direct<'a> {
    /// A table for `table.len()` granules of `granule` bytes (a power of two).
    ///
    /// # Panics
    /// When `granule` is not a power of two.
    pub fn new(table: &'a mut [u32], granule: usize) -> Self {
        assert!(granule.is_power_of_two(), "the granule is a power of two");
        table.fill(LedgerBlock::NONE);
        Direct {
            table,
            granule_shift: granule.trailing_zeros(),
        }
    }
}

impl Lookup for Direct<'_> {
    type Place = usize;
    const RUNS_OUT: bool = false;
    const STALE: bool = true;

    #[inline(always)]
    fn offset(&self, place: usize) -> Option<usize> {
        Some(place)
    }

    #[inline(always)]
    fn insert(&mut self, offset: usize, record: u32, _generation: u32) -> Option<usize> {
        *self.table.get_mut(offset >> self.granule_shift)? = record;
        Some(offset)
    }

    #[inline(always)]
    fn find(&self, place: usize) -> Option<(u32, Option<u32>)> {
        let record = *self.table.get(place >> self.granule_shift)?;
        // `NONE` is the number of no record.
        Some((record, None))
    }

    #[inline(always)]
    fn remove(&mut self, _offset: usize) {}

    #[inline(always)]
    fn has_room(&self, end: usize) -> bool {
        end <= self.table.len() << self.granule_shift
    }

    fn bytes(&self) -> usize {
        size_of_val(self.table)
    }
}

/// Finds records by offset through an open-addressing hash table (linear
/// probing, deletion by backward shift): expected O(1) while at most half full.
#[derive(Debug)]
pub struct Hashed<'a> {
    table: &'a mut [(usize, u32)],
    shift: u32,
    used: usize,
}

impl<'a> Hashed<'a> {
    /// A hash table over `table`, whose length is a power of two; it serves up
    /// to half that many blocks.
    ///
    /// # Panics
    /// When the length is not a power of two or below two.
    pub fn new(table: &'a mut [(usize, u32)]) -> Self {
        assert!(
            table.len().is_power_of_two() && table.len() >= 2,
            "the length of the hash table is a power of two"
        );
        table.fill((0, LedgerBlock::NONE));
        let shift = u64::BITS - table.len().trailing_zeros();
        Hashed {
            table,
            shift,
            used: 0,
        }
    }

    #[inline(always)]
    fn home(&self, offset: usize) -> usize {
        // Fibonacci hashing (TAOCP 3, 6.4): the high bits of the product are well mixed.
        ((offset as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline(always)]
    fn slot(&self, offset: usize) -> usize {
        let mask = self.table.len() - 1;
        let mut slot = self.home(offset);
        while self.table[slot].1 != LedgerBlock::NONE && self.table[slot].0 != offset {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

impl Lookup for Hashed<'_> {
    type Place = usize;
    const RUNS_OUT: bool = true;

    #[inline(always)]
    fn offset(&self, place: usize) -> Option<usize> {
        Some(place)
    }

    fn insert(&mut self, offset: usize, record: u32, _generation: u32) -> Option<usize> {
        if !self.has_room(offset) {
            return None;
        }
        let slot = self.slot(offset);
        debug_assert_eq!(
            self.table[slot].1,
            LedgerBlock::NONE,
            "an offset is held once"
        );
        self.table[slot] = (offset, record);
        self.used += 1;
        Some(offset)
    }

    fn find(&self, place: usize) -> Option<(u32, Option<u32>)> {
        let record = self.table[self.slot(place)].1;
        (record != LedgerBlock::NONE).then_some((record, None))
    }

    fn remove(&mut self, offset: usize) {
        let mask = self.table.len() - 1;
        let mut hole = self.slot(offset);
        if self.table[hole].1 == LedgerBlock::NONE {
            return;
        }
        self.used -= 1;
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let (key, record) = self.table[slot];
            if record == LedgerBlock::NONE {
                break;
            }
            // An entry may move back to the hole unless its home lies after the hole.
            if slot.wrapping_sub(self.home(key)) & mask >= slot.wrapping_sub(hole) & mask {
                self.table[hole] = self.table[slot];
                hole = slot;
            }
        }
        self.table[hole].1 = LedgerBlock::NONE;
    }

    #[inline(always)]
    fn has_room(&self, _end: usize) -> bool {
        self.used < self.table.len() / 2
    }

    fn bytes(&self) -> usize {
        size_of_val(self.table)
    }
}
