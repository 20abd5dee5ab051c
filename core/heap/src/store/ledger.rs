//! `Ledger`: records outside the managed memory.
//!
//! The memory itself is never touched: it may be on a device, in a file, or
//! not exist at all, as when heaps are explored. Records stand in an array that
//! the caller provides; a [`Lookup`] says how the record of a place is found.
//!
//! Invariant: the records in use are the heads, one sentinel a region,
//! and one record a block; `after` and `before` link the blocks of a region in
//! address order; all other records are on the list of spare ones, or retired. A record
//! whose block is not in use by the program does not resolve, and a handle never resolves
//! again once its block was freed: a record whose generations are used up is retired, unless
//! that very free finds no spare one.

mod lookup;
mod record;

pub use lookup::{ByHandle, Direct, Handle, Hashed, Lookup};
pub use record::{Layout, Record, UnitRecord};

use super::{BadFree, DamagedRegion, Extent, Geometry, Header, Laid, Plan, RegionError, Store};

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

/// Records of layout `R` outside the managed memory, found through `L`.
#[derive(Debug)]
pub struct Ledger<'a, L, R = Record> {
    records: &'a mut [R],
    lookup: L,
    geometry: Geometry,
    /// First spare record, linked by `next`.
    spare: u32,
    /// First block of the first region, and the last region's sentinel.
    first: u32,
    sentinel: u32,
    footprint: usize,
    /// log2 of the granule.
    shift: u32,
}

impl<'a, L: Lookup, R: Layout> Ledger<'a, L, R> {
    /// A ledger that keeps its records in `records` and cuts blocks as
    /// `geometry` says. Needs a record per block, per list head, and one more.
    ///
    /// # Panics
    /// When there are 2³² records or more, or sizes are not powers of two.
    pub fn new(records: &'a mut [R], lookup: L, geometry: Geometry) -> Self {
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
            *record = R::SPARE;
            let next = index as u32 + 1;
            record.set_next(match next < count {
                true => next,
                false => LedgerBlock::NONE,
            });
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
            shift: geometry.granule.trailing_zeros(),
        }
    }

    /// How records are found.
    pub fn lookup(&self) -> &L {
        &self.lookup
    }

    /// log2 of what offsets and sizes are counted in.
    #[inline(always)]
    fn shift(&self) -> u32 {
        match R::UNITS {
            false => self.shift,
            true => 0,
        }
    }

    /// An offset in the bytes that lookups take.
    #[inline(always)]
    fn bytes(&self, offset: usize) -> usize {
        match R::UNITS {
            false => offset,
            true => offset << self.shift,
        }
    }

    /// Where the payload of a block begins that is in use, or was just taken to be.
    #[inline(always)]
    fn payload(&self, block: LedgerBlock) -> usize {
        self.record(block).offset(self.shift()) + self.geometry().header
    }

    /// Where the block begins whose record has this number: of a free one, before the block
    /// behind it, which is in use.
    #[inline(always)]
    fn start(&self, record: u32) -> usize {
        let found = self.record(LedgerBlock(record));
        if R::UNITS && found.flags() & Header::FREE != 0 {
            let after = self.record(LedgerBlock(found.after()));
            return after.offset(0) - found.free_size();
        }
        found.offset(self.shift())
    }

    /// The free block that the record at a position describes; `None` where it describes none.
    pub fn free_block(&self, record: usize) -> Option<LedgerBlock> {
        let found = self.records.get(record)?;
        (found.flags() & Header::FREE != 0).then_some(LedgerBlock(record as u32))
    }

    #[inline(always)]
    fn record(&self, block: LedgerBlock) -> &R {
        debug_assert!(block.index() < self.records.len());
        // SAFETY: only `take_spare` makes blocks, from indices that `new` put on
        // the list of spares, and links hold blocks only; the ends of chains
        // (`NONE`) are compared with, never followed: a region's blocks lie
        // before a sentinel, and nobody asks what is after that.
        unsafe { self.records.get_unchecked(block.index()) }
    }

    #[inline(always)]
    fn record_mut(&mut self, block: LedgerBlock) -> &mut R {
        Self::among(self.records, block)
    }

    /// The record of a block among the records that the caller has at hand. What is written to one
    /// could be, for all that the compiler knows, where the others are: it looks again for
    /// `self.records` after each, but not for a variable's.
    #[inline(always)]
    fn among(records: &mut [R], block: LedgerBlock) -> &mut R {
        debug_assert!(block.index() < records.len());
        // SAFETY: as `record`.
        unsafe { records.get_unchecked_mut(block.index()) }
    }

    /// Describes a block that begins at `offset` between two others, without flags.
    #[inline(always)]
    fn describe(&mut self, block: LedgerBlock, offset: usize, after: u32, before: u32) {
        let shift = self.shift();
        self.record_mut(block)
            .describe(offset, after, before, shift);
    }

    #[inline(always)]
    fn take_spare(&mut self) -> Option<LedgerBlock> {
        let block = LedgerBlock(self.spare);
        if self.spare == LedgerBlock::NONE {
            return None;
        }
        self.spare = self.record(block).next();
        Some(block)
    }

    #[inline(always)]
    fn give_spare(&mut self, block: LedgerBlock) {
        let spare = self.spare;
        let record = self.record_mut(block);
        record.set_header(Header::new(0, 0));
        if record.generation() == 0 {
            // Used up: handles of its first generations must stay stale.
            return;
        }
        record.set_next(spare);
        self.spare = block.0;
    }

    /// The generations of a record are used up: a spare one describes its block from now on,
    /// and it is never used again.
    #[cold]
    fn retire(&mut self, block: LedgerBlock) -> LedgerBlock {
        let Some(fresh) = self.take_spare() else {
            return block;
        };
        let (offset, header) = (self.offset(block), self.header(block));
        let (after, before) = (self.record(block).after(), self.record(block).before());
        self.describe(fresh, offset, after, before);
        self.record_mut(LedgerBlock(after)).set_before(fresh.0);
        match before {
            LedgerBlock::NONE => self.first = fresh.0,
            before => self.record_mut(LedgerBlock(before)).set_after(fresh.0),
        }
        self.set_header(fresh, header);
        fresh
    }
}

impl<L, R> super::sealed::Sealed for Ledger<'_, L, R> {}

impl<L: Lookup, R: Layout> Store for Ledger<'_, L, R> {
    type Block = LedgerBlock;
    type Place = L::Place;
    /// Bytes of a region that begins at offset zero; one region only.
    type Region = usize;
    const STATISTICS: bool = true;
    const MERGED: bool = R::UNITS;
    const NUMBERED: bool = true;

    #[inline(always)]
    fn geometry(&self) -> Geometry {
        match R::UNITS {
            false => self.geometry,
            true => Geometry::out_of_band(1),
        }
    }

    #[inline(always)]
    fn block_for(&self, size: usize) -> Option<usize> {
        match R::UNITS {
            false => self.geometry.block_for(size),
            // No request needs a granule, as elsewhere.
            true => Some((size.saturating_sub(1) >> self.shift) + 1),
        }
    }

    #[inline(always)]
    fn alignment(&self, align: usize) -> usize {
        match R::UNITS {
            false => align,
            true => align >> self.shift,
        }
    }

    #[inline(always)]
    fn free_size(&self, block: LedgerBlock) -> usize {
        match R::UNITS {
            false => self.header(block).size,
            true => self.record(block).free_size(),
        }
    }

    #[inline(always)]
    fn taken(&mut self, block: LedgerBlock, size: usize) {
        if R::UNITS {
            let records = &mut *self.records;
            let after = Self::among(records, block).after();
            let end = Self::among(records, LedgerBlock(after)).offset(0);
            Self::among(records, block).set_offset(end - size);
        }
    }

    fn lay(&mut self, length: usize, plan: Plan) -> Result<Laid<LedgerBlock>, RegionError> {
        if self.first != LedgerBlock::NONE {
            return Err(RegionError::OneRegionOnly);
        }
        let heads = plan.heads;
        let geometry = self.geometry();
        let needed = geometry.control(plan) + geometry.minimum.max(plan.unit);
        if length < needed {
            return Err(RegionError::TooSmall(needed - length));
        }
        if length > R::most(self.shift()) {
            return Err(RegionError::SpanExceeded);
        }
        if self.records.len() < heads + 2 || !self.lookup.has_room(self.bytes(length)) {
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
        let start = geometry.first_block(heads, plan.align);
        let size = (length - geometry.control(plan)) & !(plan.unit - 1);
        self.describe(first, start, sentinel.0, LedgerBlock::NONE);
        // Nothing follows a sentinel: its size is the way to itself.
        self.describe(sentinel, start + size, sentinel.0, first.0);
        self.first = first.0;
        self.sentinel = sentinel.0;
        self.footprint = start + size + geometry.sentinel;
        Ok(Laid { block: first, size })
    }

    unsafe fn extend(&mut self, bytes: usize) -> Option<LedgerBlock> {
        if self.first == LedgerBlock::NONE || bytes == 0 {
            return None;
        }
        if !self.lookup.has_room(self.bytes(self.footprint + bytes))
            || self.footprint.checked_add(bytes)? > R::most(self.shift())
        {
            return None;
        }
        let block = LedgerBlock(self.sentinel);
        let flags = self.header(block).flags();
        // The old sentinel's record becomes the new room; a new one ends the region.
        let sentinel = self.take_spare()?;
        let offset = self.offset(block) + bytes;
        self.describe(sentinel, offset, sentinel.0, block.0);
        self.record_mut(block).set_after(sentinel.0);
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
        self.start(block.0)
    }

    #[inline(always)]
    fn precedes(&self, first: LedgerBlock, second: LedgerBlock) -> bool {
        self.offset(first) < self.offset(second)
    }

    #[inline(always)]
    fn distance(&self, first: LedgerBlock, second: LedgerBlock) -> usize {
        self.offset(second) - self.offset(first)
    }

    fn sentinel(&self) -> LedgerBlock {
        LedgerBlock(self.sentinel)
    }

    fn region(&self, number: usize) -> Option<Result<Extent<LedgerBlock>, DamagedRegion>> {
        let first = LedgerBlock(self.first);
        (number == 0 && self.first != LedgerBlock::NONE).then(|| {
            let room = self.distance(first, self.sentinel());
            Ok(Extent { first, room })
        })
    }

    #[inline(always)]
    fn head(&self, number: usize) -> LedgerBlock {
        LedgerBlock(number as u32)
    }

    #[inline(always)]
    fn number(&self, at: usize) -> u32 {
        // A head has no neighbours.
        let record = self.record(self.head(at / 2));
        match at % 2 {
            0 => record.after(),
            _ => record.before(),
        }
    }

    #[inline(always)]
    fn set_number(&mut self, at: usize, number: u32) {
        let record = self.record_mut(LedgerBlock((at / 2) as u32));
        match at % 2 {
            0 => record.set_after(number),
            _ => record.set_before(number),
        }
    }

    #[inline(always)]
    fn head_number(&self, head: LedgerBlock) -> usize {
        head.index()
    }

    #[inline(always)]
    fn header(&self, block: LedgerBlock) -> Header {
        let record = self.record(block);
        let size = record.size(self.shift(), |after| self.start(after));
        Header::new(size, record.flags())
    }

    #[inline(always)]
    fn set_header(&mut self, block: LedgerBlock, header: Header) {
        self.record_mut(block).set_header(header);
        debug_assert_eq!(self.header(block), header);
    }

    #[inline(always)]
    fn mark_previous_free(&mut self, block: LedgerBlock) {
        self.record_mut(block).mark_previous_free();
    }

    #[inline(always)]
    fn clear_previous_free(&mut self, block: LedgerBlock) {
        self.record_mut(block).clear_previous_free();
    }

    #[inline(always)]
    fn set_footer(&mut self, _block: LedgerBlock, _size: usize) {}

    #[inline(always)]
    fn after(&self, block: LedgerBlock, _size: usize) -> LedgerBlock {
        LedgerBlock(self.record(block).after())
    }

    #[inline(always)]
    fn before(&self, block: LedgerBlock) -> LedgerBlock {
        LedgerBlock(self.record(block).before())
    }

    #[inline(always)]
    fn next(&self, block: LedgerBlock) -> LedgerBlock {
        LedgerBlock(self.record(block).next())
    }

    #[inline(always)]
    fn set_next(&mut self, block: LedgerBlock, next: LedgerBlock) {
        self.record_mut(block).set_next(next.0);
    }

    #[inline(always)]
    fn previous(&self, block: LedgerBlock) -> LedgerBlock {
        LedgerBlock(self.record(block).previous())
    }

    #[inline(always)]
    fn set_previous(&mut self, block: LedgerBlock, previous: LedgerBlock) {
        self.record_mut(block).set_previous(previous.0);
    }

    #[inline(always)]
    fn carve(&mut self, block: LedgerBlock, size: usize) -> Option<LedgerBlock> {
        let second = self.take_spare()?;
        let shift = self.shift();
        let records = &mut *self.records;
        let first = Self::among(records, block);
        let (offset, after) = (first.offset(shift), first.after());
        first.set_after(second.0);
        Self::among(records, LedgerBlock(after)).set_before(second.0);
        Self::among(records, second).describe(offset + size, after, block.0, shift);
        Some(second)
    }

    #[inline(always)]
    fn join(&mut self, first: LedgerBlock, second: LedgerBlock) {
        let records = &mut *self.records;
        let after = Self::among(records, second).after();
        Self::among(records, first).set_after(after);
        Self::among(records, LedgerBlock(after)).set_before(first.0);
        self.give_spare(second);
    }

    #[inline(always)]
    fn occupy(&mut self, block: LedgerBlock, header: Header, requested: usize) -> L::Place {
        self.set_header(block, header);
        let payload = self.bytes(self.payload(block));
        let record = self.record_mut(block);
        record.set_requested(requested);
        // Resizing in place occupies again, and the program's handle stays good.
        let (held, generation) = record.hold();
        if held {
            self.lookup.remove(payload);
        }
        match self.lookup.insert(payload, block.0, generation) {
            Some(place) => place,
            None => unreachable!("the heap asked has_room before it took the block"),
        }
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        // Where places lie all over the region, `lay` has seen to it.
        !L::RUNS_OUT || self.lookup.has_room(self.bytes(self.footprint))
    }

    #[inline(always)]
    fn requested(&self, block: LedgerBlock) -> usize {
        self.record(block).requested()
    }

    #[inline(always)]
    fn usable(&self, block: LedgerBlock) -> usize {
        let size = self.header(block).size - self.geometry().header;
        match R::UNITS {
            false => size,
            true => size << self.shift,
        }
    }

    #[inline(always)]
    fn resolve(&self, place: L::Place) -> Result<LedgerBlock, BadFree> {
        let (record, generation) = self.lookup.find(place).ok_or(BadFree::Foreign)?;
        let found = self.records.get(record as usize).ok_or(BadFree::Foreign)?;
        let now = found.generation();
        if now & 1 == 0 || generation.is_some_and(|generation| generation != now) {
            return Err(BadFree::NotInUse);
        }
        let block = LedgerBlock(record);
        if L::STALE && self.lookup.offset(place) != Some(self.bytes(self.payload(block))) {
            return Err(BadFree::Foreign);
        }
        Ok(block)
    }

    #[inline(always)]
    fn vacate(&mut self, block: LedgerBlock) {
        let payload = self.bytes(self.payload(block));
        self.lookup.remove(payload);
        self.record_mut(block).next_generation();
    }

    #[inline(always)]
    fn renew(&mut self, block: LedgerBlock) -> LedgerBlock {
        match self.record(block).generation() {
            0 => self.retire(block),
            _ => block,
        }
    }

    #[inline(always)]
    fn link_after(&mut self, before: LedgerBlock, block: LedgerBlock) -> LedgerBlock {
        let records = &mut *self.records;
        let next = Self::among(records, before).next();
        let record = Self::among(records, block);
        record.set_next(next);
        record.set_previous(before.0);
        // `next` may be the head, whose links take the write: no branch is needed.
        Self::among(records, LedgerBlock(next)).set_previous(block.0);
        Self::among(records, before).set_next(block.0);
        LedgerBlock(next)
    }

    #[inline(always)]
    fn unlink(&mut self, block: LedgerBlock) -> (LedgerBlock, LedgerBlock) {
        let records = &mut *self.records;
        let record = Self::among(records, block);
        let (before, next) = (record.previous(), record.next());
        Self::among(records, LedgerBlock(next)).set_previous(before);
        Self::among(records, LedgerBlock(before)).set_next(next);
        (LedgerBlock(before), LedgerBlock(next))
    }

    fn place_offset(&self, place: L::Place) -> usize {
        match self.lookup.find(place) {
            Some((record, _)) if (record as usize) < self.records.len() => {
                self.offset(LedgerBlock(record)) + self.geometry().header
            }
            _ => usize::MAX,
        }
    }

    #[inline(always)]
    fn misalignment(&self, block: LedgerBlock, align: usize) -> usize {
        self.payload(block).wrapping_neg() & (align - 1)
    }

    fn copy(&mut self, _from: L::Place, _to: L::Place, _bytes: usize) {}

    fn zero(&mut self, _place: L::Place, _bytes: usize) {}

    fn outside_bytes(&self) -> usize {
        size_of_val(self.records) + self.lookup.bytes()
    }
}

#[cfg(test)]
mod tests;
