//! What a page-block is made of: memory that is copied, memory behind a block table, or none.
//!
//! The heap decides in terms of places in the space of its pages, in granules of 16 bytes;
//! a backing knows which memory that is, and what it means that a page-block moves.

use core::ops::Range;

/// The record of a used page-block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Entry of the handle.
    pub owner: u32,
    /// Requested bytes.
    pub size: u32,
}

/// Bytes of a record, at the start of each used page-block.
pub const RECORD: usize = size_of::<Record>();

/// Where a page-block begins: its offset in the space of pages, in granules.
pub type Place = u32;

/// The memory behind the space of pages.
///
/// # Safety
/// Page-blocks that are provided and do not overlap in the space of pages do not overlap in
/// memory, and each is valid for reads and writes. After `carry` over a whole page-block, the target holds what the source held.
pub unsafe trait Backing {
    /// Pages there are room for beside `table` bytes of handles, which the heap takes if all
    /// pages that were ever used are among them.
    fn pages_beside(&mut self, table: usize) -> u32;

    /// Provides memory for `bytes` of page-block at a place. O(bytes) at most.
    fn provide(&mut self, place: Place, bytes: usize) -> bool;

    /// Takes back the memory of a page-block. O(bytes) at most.
    fn withdraw(&mut self, place: Place, bytes: usize);

    /// The record of a provided page-block.
    fn record(&self, place: Place) -> Record;

    /// Sets the record of a provided page-block.
    fn set_record(&mut self, place: Place, record: Record);

    /// Carries a range of the bytes of a page-block into another, which has no memory of its
    /// own. The source keeps its bytes. O(range).
    fn carry(&mut self, from: Place, to: Place, range: Range<usize>);

    /// All was carried: the memory is the target's, the source has none. O(bytes) at most.
    fn leave(&mut self, from: Place, bytes: usize);

    /// What was carried so far is given up: the target has no memory. O(bytes) at most.
    fn forget(&mut self, to: Place, bytes: usize);

    /// Copies bytes of a page-block out, from an offset behind its record.
    fn read(&self, place: Place, offset: usize, bytes: &mut [u8]);

    /// Copies bytes into a page-block, from an offset behind its record.
    fn write(&mut self, place: Place, offset: usize, bytes: &[u8]);

    /// Whether what is written to a source must be written to the part of the target, too,
    /// that was carried already.
    const COPIES: bool;

    /// Bytes of the memory in use for `pages` pages that were ever used.
    fn bytes(&self, pages: u32) -> usize;

    /// Bytes of those that no page-block, used or free, has; `None` where pages lie in memory
    /// as a whole.
    fn spare(&self) -> Option<usize>;

    /// Bytes of records beside those inside page-blocks, for as many pages.
    fn record_bytes(&self, pages: u32) -> usize;
}
