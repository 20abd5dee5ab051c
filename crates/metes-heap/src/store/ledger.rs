//! `Ledger`: records outside the managed memory.
//!
//! The memory itself is never touched: it may be on a device, in a file, or
//! not exist at all, as when heaps are explored. Records stand in an array that
//! the caller provides; a [`Lookup`] says how the record of a place is found.
//!
//! Invariant: the records in use are the heads, one sentinel a region,
//! and one record a block; `after` and `before` link the blocks of a region in
//! address order; all other records are on the list of spare ones. A record
//! whose block is not in use by the program does not resolve.

use super::{BadFree, Geometry, Header, Laid, Plan, RegionError, Store};

/// Identifies a record. An index into the array of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LedgerBlock(u32);

impl LedgerBlock {
    const NONE: u32 = u32::MAX;

    /// The position of the block's record in the array. While a block is not merged, cut
    /// off or given out, no other has this position.
    #[inline(always)]
    pub const fn record(self) -> usize {
        self.0 as usize
    }

    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The record of one block: 48 bytes on a 64-bit target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    header: usize,
    /// Bytes from the beginning of the region's memory.
    offset: usize,
    requested: usize,
    next: u32,
    previous: u32,
    after: u32,
    before: u32,
    /// Odd while the program holds the block; a handle keeps the value it saw.
    generation: u32,
}

impl Record {
    /// A record that describes nothing yet, to fill the array with.
    pub const SPARE: Record = Record {
        header: 0,
        offset: 0,
        requested: 0,
        next: LedgerBlock::NONE,
        previous: LedgerBlock::NONE,
        after: LedgerBlock::NONE,
        before: LedgerBlock::NONE,
        generation: 0,
    };
}

/// How the record of a place is found.
pub trait Lookup {
    /// What the program holds.
    type Place: Copy + Eq + core::fmt::Debug;
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

    #[inline(always)]
    fn insert(&mut self, offset: usize, record: u32, _generation: u32) -> Option<usize> {
        *self.table.get_mut(offset >> self.granule_shift)? = record;
        Some(offset)
    }

    #[inline(always)]
    fn find(&self, place: usize) -> Option<(u32, Option<u32>)> {
        // Blocks begin at granules: an address inside one names no block.
        if place & ((1 << self.granule_shift) - 1) != 0 {
            return None;
        }
        let record = *self.table.get(place >> self.granule_shift)?;
        (record != LedgerBlock::NONE).then_some((record, None))
    }

    #[inline(always)]
    fn remove(&mut self, offset: usize) {
        if let Some(entry) = self.table.get_mut(offset >> self.granule_shift) {
            *entry = LedgerBlock::NONE;
        }
    }

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

/// Records outside the managed memory, found through `L`.
#[derive(Debug)]
pub struct Ledger<'a, L> {
    records: &'a mut [Record],
    lookup: L,
    geometry: Geometry,
    /// First spare record, linked by `next`.
    spare: u32,
    /// First block of the first region, and the last region's sentinel.
    first: u32,
    sentinel: u32,
    footprint: usize,
}

impl<'a, L: Lookup> Ledger<'a, L> {
    /// A ledger that keeps its records in `records` and cuts blocks as
    /// `geometry` says. Needs a record per block, per list head, and one more.
    ///
    /// # Panics
    /// When there are 2³² records or more, or sizes are not powers of two.
    pub fn new(records: &'a mut [Record], lookup: L, geometry: Geometry) -> Self {
        assert!(
            records.len() < LedgerBlock::NONE as usize,
            "records are numbered in 32 bits"
        );
        assert!(
            geometry.granule.is_power_of_two(),
            "the granule is a power of two"
        );
        let count = records.len() as u32;
        for (index, record) in records.iter_mut().enumerate() {
            *record = Record::SPARE;
            let next = index as u32 + 1;
            record.next = if next < count {
                next
            } else {
                LedgerBlock::NONE
            };
        }
        let spare = if count == 0 { LedgerBlock::NONE } else { 0 };
        Ledger {
            records,
            lookup,
            geometry,
            spare,

            first: LedgerBlock::NONE,
            sentinel: LedgerBlock::NONE,
            footprint: 0,
        }
    }

    #[inline(always)]
    fn record(&self, block: LedgerBlock) -> &Record {
        debug_assert!(block.index() < self.records.len());
        // SAFETY: only `take_spare` makes blocks, from indices that `new` put on
        // the list of spares, and links hold blocks only; the ends of chains
        // (`NONE`) are compared with, never followed: a region's blocks lie
        // before a sentinel, and nobody asks what is after that.
        unsafe { self.records.get_unchecked(block.index()) }
    }

    #[inline(always)]
    fn record_mut(&mut self, block: LedgerBlock) -> &mut Record {
        debug_assert!(block.index() < self.records.len());
        // SAFETY: as `record`.
        unsafe { self.records.get_unchecked_mut(block.index()) }
    }

    #[inline(always)]
    fn take_spare(&mut self) -> Option<LedgerBlock> {
        let block = LedgerBlock(self.spare);
        if self.spare == LedgerBlock::NONE {
            return None;
        }
        self.spare = self.record(block).next;
        Some(block)
    }

    #[inline(always)]
    fn give_spare(&mut self, block: LedgerBlock) {
        let spare = self.spare;
        let record = self.record_mut(block);
        record.header = 0;
        record.next = spare;
        self.spare = block.0;
    }
}

impl<L> super::sealed::Sealed for Ledger<'_, L> {}

/// Header words of a ledger keep the size above three flag bits, whatever the granule.
const SIZE_SHIFT: u32 = 3;

impl<L: Lookup> Store for Ledger<'_, L> {
    type Block = LedgerBlock;
    type Place = L::Place;
    /// Bytes of a region that begins at offset zero; one region only.
    type Region = usize;
    const STATISTICS: bool = true;

    #[inline(always)]
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn lay(&mut self, length: usize, plan: Plan) -> Result<Laid<LedgerBlock>, RegionError> {
        if self.first != LedgerBlock::NONE {
            return Err(RegionError::OneRegionOnly);
        }
        let heads = plan.heads;
        let needed = self.geometry.control(plan) + self.geometry.minimum;
        if length < needed {
            return Err(RegionError::TooSmall(needed - length));
        }
        if length > usize::MAX >> SIZE_SHIFT {
            return Err(RegionError::SpanExceeded);
        }
        if self.records.len() < heads + 2 || !self.lookup.has_room(length) {
            return Err(RegionError::OutOfRecords);
        }
        // Spare records come in order, so head `c` is record `c`.
        for _ in 0..heads {
            let head = self.take_spare().ok_or(RegionError::OutOfRecords)?;
            self.set_next(head, head);
            self.set_previous(head, head);
        }
        let first = self.take_spare().ok_or(RegionError::OutOfRecords)?;
        let sentinel = self.take_spare().ok_or(RegionError::OutOfRecords)?;
        let start = self.geometry.first_block(heads, plan.align);
        let size = (length - self.geometry.control(plan)) & !(plan.unit - 1);
        *self.record_mut(first) = Record {
            offset: start,
            after: sentinel.0,
            ..Record::SPARE
        };
        *self.record_mut(sentinel) = Record {
            offset: start + size,
            before: first.0,
            ..Record::SPARE
        };
        self.first = first.0;
        self.sentinel = sentinel.0;
        self.footprint = start + size + self.geometry.sentinel;
        Ok(Laid { block: first, size })
    }

    unsafe fn extend(&mut self, bytes: usize) -> Option<LedgerBlock> {
        if self.first == LedgerBlock::NONE || bytes == 0 {
            return None;
        }
        if !self.lookup.has_room(self.footprint + bytes) {
            return None;
        }
        let block = LedgerBlock(self.sentinel);
        let flags = self.header(block).flags();
        // The old sentinel's record becomes the new room; a new one ends the region.
        let sentinel = self.take_spare()?;
        let offset = self.record(block).offset + bytes;
        let generation = self.record(sentinel).generation;
        *self.record_mut(sentinel) = Record {
            offset,
            before: block.0,
            generation,
            ..Record::SPARE
        };
        self.record_mut(block).after = sentinel.0;
        self.set_header(block, Header::new(bytes, flags));
        self.sentinel = sentinel.0;
        self.footprint += bytes;
        Some(block)
    }

    fn footprint(&self) -> usize {
        self.footprint
    }

    #[inline(always)]
    fn offset(&self, block: LedgerBlock) -> usize {
        self.record(block).offset
    }

    #[inline(always)]
    fn precedes(&self, first: LedgerBlock, second: LedgerBlock) -> bool {
        self.record(first).offset < self.record(second).offset
    }

    #[inline(always)]
    fn distance(&self, first: LedgerBlock, second: LedgerBlock) -> usize {
        self.record(second).offset - self.record(first).offset
    }

    fn sentinel(&self) -> LedgerBlock {
        LedgerBlock(self.sentinel)
    }

    fn first(&self, number: usize) -> Option<LedgerBlock> {
        (number == 0 && self.first != LedgerBlock::NONE).then_some(LedgerBlock(self.first))
    }

    #[inline(always)]
    fn head(&self, number: usize) -> LedgerBlock {
        LedgerBlock(number as u32)
    }

    #[inline(always)]
    fn head_number(&self, head: LedgerBlock) -> usize {
        head.index()
    }

    #[inline(always)]
    fn header(&self, block: LedgerBlock) -> Header {
        let word = self.record(block).header;
        Header::new(word >> SIZE_SHIFT, word & Header::FLAGS)
    }

    #[inline(always)]
    fn set_header(&mut self, block: LedgerBlock, header: Header) {
        // Flags lie below the size: a sum is one instruction less than a union.
        self.record_mut(block).header = (header.size << SIZE_SHIFT) + header.flags();
    }

    #[inline(always)]
    fn mark_previous_free(&mut self, block: LedgerBlock) {
        self.record_mut(block).header |= Header::PREVIOUS_FREE;
    }

    #[inline(always)]
    fn clear_previous_free(&mut self, block: LedgerBlock) {
        self.record_mut(block).header &= !Header::PREVIOUS_FREE;
    }

    #[inline(always)]
    fn set_footer(&mut self, _block: LedgerBlock, _size: usize) {}

    #[inline(always)]
    fn after(&self, block: LedgerBlock, _size: usize) -> LedgerBlock {
        LedgerBlock(self.record(block).after)
    }

    #[inline(always)]
    fn before(&self, block: LedgerBlock) -> LedgerBlock {
        LedgerBlock(self.record(block).before)
    }

    #[inline(always)]
    fn next(&self, block: LedgerBlock) -> LedgerBlock {
        LedgerBlock(self.record(block).next)
    }

    #[inline(always)]
    fn set_next(&mut self, block: LedgerBlock, next: LedgerBlock) {
        self.record_mut(block).next = next.0;
    }

    #[inline(always)]
    fn previous(&self, block: LedgerBlock) -> LedgerBlock {
        LedgerBlock(self.record(block).previous)
    }

    #[inline(always)]
    fn set_previous(&mut self, block: LedgerBlock, previous: LedgerBlock) {
        self.record_mut(block).previous = previous.0;
    }

    #[inline(always)]
    fn carve(&mut self, block: LedgerBlock, size: usize) -> Option<LedgerBlock> {
        let second = self.take_spare()?;
        let Record { offset, after, .. } = *self.record(block);
        self.record_mut(block).after = second.0;
        self.record_mut(LedgerBlock(after)).before = second.0;
        let record = self.record_mut(second);
        record.header = 0;
        record.offset = offset + size;
        record.after = after;
        record.before = block.0;
        Some(second)
    }

    #[inline(always)]
    fn join(&mut self, first: LedgerBlock, second: LedgerBlock) {
        let after = self.record(second).after;
        self.record_mut(first).after = after;
        self.record_mut(LedgerBlock(after)).before = first.0;
        self.give_spare(second);
    }

    #[inline(always)]
    fn occupy(&mut self, block: LedgerBlock, header: Header, requested: usize) -> L::Place {
        self.set_header(block, header);
        let payload = self.record(block).offset + self.geometry.header;
        let record = self.record_mut(block);
        record.requested = requested;
        // Resizing in place occupies again, and the program's handle stays good.
        if record.generation & 1 == 0 {
            record.generation = record.generation.wrapping_add(1);
        } else {
            self.lookup.remove(payload);
        }
        let generation = self.record(block).generation;
        match self.lookup.insert(payload, block.0, generation) {
            Some(place) => place,
            None => unreachable!("the heap asked has_room before it took the block"),
        }
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.lookup.has_room(self.footprint)
    }

    #[inline(always)]
    fn requested(&self, block: LedgerBlock) -> usize {
        self.record(block).requested
    }

    #[inline(always)]
    fn resolve(&self, place: L::Place) -> Result<LedgerBlock, BadFree> {
        let (record, generation) = self.lookup.find(place).ok_or(BadFree::Foreign)?;
        let found = self.records.get(record as usize).ok_or(BadFree::Foreign)?;
        if found.generation & 1 == 0 || generation.is_some_and(|g| g != found.generation) {
            return Err(BadFree::NotInUse);
        }
        Ok(LedgerBlock(record))
    }

    #[inline(always)]
    fn vacate(&mut self, block: LedgerBlock) {
        let payload = self.record(block).offset + self.geometry.header;
        self.lookup.remove(payload);
        let record = self.record_mut(block);
        record.generation = record.generation.wrapping_add(1);
    }

    fn place_offset(&self, place: L::Place) -> usize {
        let found = self
            .lookup
            .find(place)
            .and_then(|(record, _)| self.records.get(record as usize));
        found.map_or(usize::MAX, |record| record.offset + self.geometry.header)
    }

    #[inline(always)]
    fn misalignment(&self, block: LedgerBlock, align: usize) -> usize {
        (self.record(block).offset + self.geometry.header).wrapping_neg() & (align - 1)
    }

    fn copy(&mut self, _from: L::Place, _to: L::Place, _bytes: usize) {}

    fn zero(&mut self, _place: L::Place, _bytes: usize) {}

    fn outside_bytes(&self) -> usize {
        size_of_val(self.records) + self.lookup.bytes()
    }
}
