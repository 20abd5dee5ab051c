//! `Counted`: counts every read and write of a record.
//!
//! The counts are of record words as the wrapped store's geometry lays them
//! out: a header, a footer or a link is one word. Navigation that needs no
//! memory in that geometry (`after` of boundary tags) costs nothing, so that a
//! counted `Ledger` with the geometry of `Tagged` predicts what `Tagged` does.
//!
//! Invariant: wrapping a store changes no decision.

use core::cell::Cell;

use super::{
    BadFree, DamagedRegion, Extent, Geometry, Header, Laid, Overwritten, Plan, RegionError, Store,
};

/// A store that counts the record words read and written through it.
#[derive(Debug, Default)]
pub struct Counted<S> {
    store: S,
    reads: Cell<u64>,
    writes: Cell<u64>,
    /// Writes that are left before the next one panics.
    #[cfg(test)]
    left: Cell<Option<u64>>,
}

impl<S> Counted<S> {
    /// Wraps a store, with both counts at zero.
    pub const fn new(store: S) -> Self {
        Counted {
            store,
            reads: Cell::new(0),
            writes: Cell::new(0),
            #[cfg(test)]
            left: Cell::new(None),
        }
    }

    /// Record words read so far.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// Record words written so far.
    pub fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Panics before the write after so many words, so that an operation is broken off there.
    #[cfg(test)]
    pub(crate) fn dies_after(&self, words: u64) {
        self.left.set(Some(words));
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    #[inline(always)]
    fn read(&self, words: u32) {
        self.reads.set(self.reads.get() + u64::from(words));
    }

    #[inline(always)]
    fn write(&self, words: u32) {
        #[cfg(test)]
        if let Some(left) = self.left.get() {
            let left = left.checked_sub(u64::from(words));
            self.left.set(Some(left.expect("a write too many")));
        }
        self.writes.set(self.writes.get() + u64::from(words));
    }
}

impl<S: Store> Counted<S> {
    /// Words that a step to a physical neighbour reads: none with boundary tags.
    #[inline(always)]
    fn step(&self) -> u32 {
        u32::from(self.store.geometry().header == 0)
    }
}

impl<S> super::sealed::Sealed for Counted<S> {}

impl<S: Store> Store for Counted<S> {
    type Block = S::Block;
    type Place = S::Place;
    type Region = S::Region;
    const STATISTICS: bool = S::STATISTICS;
    const MERGED: bool = S::MERGED;
    const VERIFIES: bool = S::VERIFIES;
    const GEOMETRY: Option<Geometry> = S::GEOMETRY;
    const ADDRESSED: bool = S::ADDRESSED;
    const NUMBERED: bool = S::NUMBERED;

    #[inline(always)]
    fn geometry(&self) -> Geometry {
        self.store.geometry()
    }

    #[inline(always)]
    fn block_for(&self, size: usize) -> Option<usize> {
        self.store.block_for(size)
    }

    #[inline(always)]
    fn alignment(&self, align: usize) -> usize {
        self.store.alignment(align)
    }

    fn lay(&mut self, region: S::Region, plan: Plan) -> Result<Laid<S::Block>, RegionError> {
        self.store.lay(region, plan)
    }

    unsafe fn extend(&mut self, bytes: usize) -> Option<S::Block> {
        self.read(1);
        self.write(2);
        // SAFETY: the caller's contract is the wrapped store's.
        unsafe { self.store.extend(bytes) }
    }

    fn footprint(&self) -> usize {
        self.store.footprint()
    }

    fn offset(&self, block: S::Block) -> usize {
        self.store.offset(block)
    }

    #[inline(always)]
    fn precedes(&self, first: S::Block, second: S::Block) -> bool {
        self.store.precedes(first, second)
    }

    #[inline(always)]
    fn distance(&self, first: S::Block, second: S::Block) -> usize {
        self.store.distance(first, second)
    }

    fn sentinel(&self) -> S::Block {
        self.store.sentinel()
    }

    fn region(&self, number: usize) -> Option<Result<Extent<S::Block>, DamagedRegion>> {
        self.store.region(number)
    }

    fn can_be_listed(&self, block: S::Block) -> bool {
        self.store.can_be_listed(block)
    }

    fn sound_request(&self, block: S::Block) -> Option<usize> {
        self.store.sound_request(block)
    }

    #[inline(always)]
    fn head(&self, number: usize) -> S::Block {
        self.store.head(number)
    }

    #[inline(always)]
    fn table(&self) -> *mut u8 {
        self.store.table()
    }

    #[inline(always)]
    fn number(&self, at: usize) -> u32 {
        self.store.number(at)
    }

    #[inline(always)]
    fn set_number(&mut self, at: usize, number: u32) {
        self.store.set_number(at, number);
    }

    fn number_heads_from(&mut self, first: usize) {
        self.store.number_heads_from(first);
    }

    #[inline(always)]
    fn head_number(&self, head: S::Block) -> usize {
        self.store.head_number(head)
    }

    #[inline(always)]
    fn header(&self, block: S::Block) -> Header {
        self.read(1);
        self.store.header(block)
    }

    #[inline(always)]
    fn set_header(&mut self, block: S::Block, header: Header) {
        self.write(1);
        self.store.set_header(block, header);
    }

    #[inline(always)]
    fn mark_previous_free(&mut self, block: S::Block) {
        // The heap has just read that header.
        self.write(1);
        self.store.mark_previous_free(block);
    }

    #[inline(always)]
    fn clear_previous_free(&mut self, block: S::Block) {
        self.read(1);
        self.write(1);
        self.store.clear_previous_free(block);
    }

    #[inline(always)]
    fn size_beside(&self, header: Header, flags: usize) -> usize {
        self.store.size_beside(header, flags)
    }

    #[inline(always)]
    fn free_size(&self, block: S::Block) -> usize {
        self.read(1);
        self.store.free_size(block)
    }

    #[inline(always)]
    fn lone_free_size(&self, block: S::Block) -> usize {
        self.read(1);
        self.store.lone_free_size(block)
    }

    #[inline(always)]
    fn taken(&mut self, block: S::Block, size: usize) {
        self.store.taken(block, size);
    }

    #[inline(always)]
    fn set_footer(&mut self, block: S::Block, size: usize) {
        self.write(1 - self.step());
        self.store.set_footer(block, size);
    }

    #[inline(always)]
    fn after(&self, block: S::Block, size: usize) -> S::Block {
        self.read(self.step());
        self.store.after(block, size)
    }

    #[inline(always)]
    fn before(&self, block: S::Block) -> S::Block {
        self.read(1);
        self.store.before(block)
    }

    #[inline(always)]
    fn next(&self, block: S::Block) -> S::Block {
        self.read(1);
        self.store.next(block)
    }

    #[inline(always)]
    fn set_next(&mut self, block: S::Block, next: S::Block) {
        self.write(1);
        self.store.set_next(block, next);
    }

    #[inline(always)]
    fn previous(&self, block: S::Block) -> S::Block {
        self.read(1);
        self.store.previous(block)
    }

    #[inline(always)]
    fn set_previous(&mut self, block: S::Block, previous: S::Block) {
        self.write(1);
        self.store.set_previous(block, previous);
    }

    #[inline(always)]
    fn carve(&mut self, block: S::Block, size: usize) -> Option<S::Block> {
        // A new record outside the managed memory is tied to both neighbours.
        self.read(self.step());
        self.write(4 * self.step());
        self.store.carve(block, size)
    }

    #[inline(always)]
    fn join(&mut self, first: S::Block, second: S::Block) {
        self.read(self.step());
        self.write(2 * self.step());
        self.store.join(first, second);
    }

    #[inline(always)]
    fn occupy(&mut self, block: S::Block, header: Header, requested: usize) -> S::Place {
        self.write(1);
        self.store.occupy(block, header, requested)
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.store.has_room()
    }

    #[inline(always)]
    fn requested(&self, block: S::Block) -> usize {
        self.store.requested(block)
    }

    #[inline(always)]
    fn usable(&self, block: S::Block) -> usize {
        self.read(1);
        self.store.usable(block)
    }

    #[inline(always)]
    fn resolve(&self, place: S::Place) -> Result<S::Block, BadFree> {
        self.read(self.step());
        self.store.resolve(place)
    }

    #[inline(always)]
    fn fetch_at(&self, block: S::Block, bytes: usize) {
        self.store.fetch_at(block, bytes);
    }

    #[inline(always)]
    fn fetch_behind(&self, place: S::Place, size: usize) {
        self.store.fetch_behind(place, size);
    }

    #[inline(always)]
    fn vacate(&mut self, block: S::Block) {
        self.write(self.step());
        self.store.vacate(block);
    }

    #[inline(always)]
    fn renew(&mut self, block: S::Block) -> S::Block {
        self.store.renew(block)
    }

    fn place_offset(&self, place: S::Place) -> usize {
        self.store.place_offset(place)
    }

    #[inline(always)]
    fn misalignment(&self, block: S::Block, align: usize) -> usize {
        self.store.misalignment(block, align)
    }

    fn copy(&mut self, from: S::Place, to: S::Place, bytes: usize) {
        self.store.copy(from, to, bytes);
    }

    fn zero(&mut self, place: S::Place, bytes: usize) {
        self.store.zero(place, bytes);
    }

    #[inline(always)]
    fn touch(&self, reads: u32, writes: u32) {
        self.read(reads);
        self.write(writes);
    }

    fn fault(&self) -> Option<Overwritten> {
        self.store.fault()
    }

    fn forget_fault(&self) {
        self.store.forget_fault();
    }

    #[inline(always)]
    fn free_is_sound(&self, block: S::Block) -> bool {
        // A verification is not counted: the counts are those of the operations.
        self.store.free_is_sound(block)
    }

    #[inline(always)]
    fn forward_is_sound(&self, block: S::Block) -> bool {
        self.store.forward_is_sound(block)
    }

    #[inline(always)]
    fn backward_is_sound(&self, block: S::Block) -> bool {
        self.store.backward_is_sound(block)
    }

    fn end_is_sound(&self) -> bool {
        self.store.end_is_sound()
    }

    #[inline(always)]
    fn free_end_is_sound(&self, block: S::Block, header: Header) -> bool {
        self.store.free_end_is_sound(block, header)
    }

    #[inline(always)]
    fn list_is_sound(&self, block: S::Block) -> bool {
        self.store.list_is_sound(block)
    }

    #[inline(always)]
    fn sound_first(&self, head: S::Block) -> Option<S::Block> {
        self.read(1);
        self.store.sound_first(head)
    }

    #[inline(always)]
    fn surroundings_are_sound(&self, block: S::Block) -> bool {
        self.store.surroundings_are_sound(block)
    }

    fn outside_bytes(&self) -> usize {
        self.store.outside_bytes()
    }
}
