//! Non-moving compact-fit: a block table maps page-blocks to frames of memory, and moving a
//! block changes the table only.
//!
//! The space of pages is logical. A page-block has as many frames of memory as it is long,
//! wherever they are, and only while it is used; compaction rewrites entries of the table and
//! copies no byte of a block. malloc and free O(n) in the frames of the block, dereference
//! O(1) by table, and a block is not contiguous in memory.
//!
//! Invariant: the entries of a used page-block name frames that no other page-block's name,
//! but for the part of a move under way, whose source and target name the same; all other
//! frames below the extent are in the free list.

use core::ops::Range;
use core::ptr::NonNull;

use super::backing::{Backing, Place, RECORD, Record};
use super::handles::{ENTRY, Handles};
use super::heap::{CompactFit, Parts};
use super::layout::Tables;
use super::moving::unique_identities;
use super::options::{GRANULE, Kappa, Options, Unfit};
use crate::store::tagged::Memory;

/// No frame.
const NONE: u32 = u32::MAX;

/// Frames behind a block table. The frame is the granule of the partition.
#[derive(Debug)]
pub struct BlockTable {
    /// Frame of each granule of the space of pages.
    entries: NonNull<u32>,
    /// Entries of the table.
    count: usize,
    /// Logical pages.
    pages: u32,
    frames: NonNull<u8>,
    /// Bytes from the first frame to the end of the handles.
    space: usize,
    frame_log2: u32,
    page_log2: u32,
    first: u32,
    /// Frames that were ever used.
    extent: u32,
    /// Frames that page-blocks have.
    used: u32,
    /// Bytes of handles.
    handles: usize,
}

// SAFETY: the memory is the heap's alone (contract of `Memory`).
unsafe impl Send for BlockTable {}

impl BlockTable {
    #[inline(always)]
    fn entry(&self, index: usize) -> *mut u32 {
        debug_assert!(index < self.count);
        // SAFETY: places lie below the logical pages, for each granule of which there is an
        // entry.
        unsafe { self.entries.as_ptr().add(index) }
    }

    /// The entries of `bytes` of page-block from a place.
    #[inline(always)]
    fn span(&self, place: Place, range: Range<usize>) -> Range<usize> {
        let start = place as usize * GRANULE;
        let frame = 1usize << self.frame_log2;
        (start + range.start) >> self.frame_log2..(start + range.end + frame - 1) >> self.frame_log2
    }

    #[inline(always)]
    fn frame(&self, number: u32) -> NonNull<u8> {
        debug_assert!(number < self.extent);
        // SAFETY: frames below the extent lie within the memory.
        unsafe { self.frames.add((number as usize) << self.frame_log2) }
    }

    /// The memory at an offset into a page-block, and how many bytes follow in its frame.
    #[inline(always)]
    fn at(&self, place: Place, offset: usize) -> (NonNull<u8>, usize) {
        let start = place as usize * GRANULE + offset;
        let frame = 1usize << self.frame_log2;
        let within = start & (frame - 1);
        // SAFETY: the page-block is provided, so the entry names one of its frames.
        let number = unsafe { self.entry(start >> self.frame_log2).read() };
        // SAFETY: `within` is less than a frame.
        (unsafe { self.frame(number).add(within) }, frame - within)
    }

    fn take(&mut self) -> Option<u32> {
        if self.first != NONE {
            let number = self.first;
            // SAFETY: a free frame begins with the number of the next.
            self.first = unsafe { self.frame(number).cast::<u32>().read() };
            return Some(number);
        }
        let end = (self.extent as usize + 1) << self.frame_log2;
        if end + self.handles > self.space {
            return None;
        }
        self.extent += 1;
        Some(self.extent - 1)
    }

    fn give(&mut self, number: u32) {
        // SAFETY: a frame of the heap that nothing names any more.
        unsafe { self.frame(number).cast::<u32>().write(self.first) };
        self.first = number;
    }
}

// SAFETY: page-blocks have frames of their own, by the invariant; a frame is aligned for a
// record, and larger.
unsafe impl Backing for BlockTable {
    const COPIES: bool = false;

    fn pages_beside(&mut self, table: usize) -> u32 {
        let frames = (self.extent as usize) << self.frame_log2;
        if frames + table > self.space {
            return 0;
        }
        self.handles = table;
        self.pages
    }

    fn provide(&mut self, place: Place, bytes: usize) -> bool {
        let span = self.span(place, 0..bytes);
        for index in span.clone() {
            let Some(number) = self.take() else {
                for taken in span.start..index {
                    // SAFETY: written just now.
                    let number = unsafe { self.entry(taken).read() };
                    self.give(number);
                    self.used -= 1;
                }
                return false;
            };
            self.used += 1;
            // SAFETY: an entry of the table.
            unsafe { self.entry(index).write(number) };
        }
        true
    }

    fn withdraw(&mut self, place: Place, bytes: usize) {
        for index in self.span(place, 0..bytes) {
            // SAFETY: the page-block is provided.
            let number = unsafe { self.entry(index).replace(NONE) };
            self.give(number);
            self.used -= 1;
        }
    }

    fn record(&self, place: Place) -> Record {
        // SAFETY: a page-block begins with its record, within one frame.
        unsafe { self.at(place, 0).0.cast::<Record>().read() }
    }

    fn set_record(&mut self, place: Place, record: Record) {
        // SAFETY: as above.
        unsafe { self.at(place, 0).0.cast::<Record>().write(record) }
    }

    fn carry(&mut self, from: Place, to: Place, range: Range<usize>) {
        let source = self.span(from, range.clone());
        let target = self.span(to, range);
        for (from, to) in source.zip(target) {
            // SAFETY: entries of two page-blocks.
            unsafe { self.entry(to).write(self.entry(from).read()) };
        }
    }

    fn leave(&mut self, from: Place, bytes: usize) {
        for index in self.span(from, 0..bytes) {
            // SAFETY: an entry of the table.
            unsafe { self.entry(index).write(NONE) };
        }
    }

    fn forget(&mut self, to: Place, bytes: usize) {
        self.leave(to, bytes);
    }

    fn read(&self, place: Place, offset: usize, bytes: &mut [u8]) {
        let (mut offset, mut rest) = (RECORD + offset, bytes);
        while !rest.is_empty() {
            let (at, left) = self.at(place, offset);
            let length = left.min(rest.len());
            // SAFETY: `length` bytes of the frame follow; `rest` lies outside the heap.
            unsafe {
                at.as_ptr()
                    .copy_to_nonoverlapping(rest.as_mut_ptr(), length)
            };
            rest = &mut rest[length..];
            offset += length;
        }
    }

    fn write(&mut self, place: Place, offset: usize, bytes: &[u8]) {
        let (mut offset, mut rest) = (RECORD + offset, bytes);
        while !rest.is_empty() {
            let (at, left) = self.at(place, offset);
            let length = left.min(rest.len());
            // SAFETY: as above.
            unsafe { at.as_ptr().copy_from_nonoverlapping(rest.as_ptr(), length) };
            rest = &rest[length..];
            offset += length;
        }
    }

    fn bytes(&self, _pages: u32) -> usize {
        (self.extent as usize) << self.frame_log2
    }

    fn spare(&self) -> Option<usize> {
        Some(((self.extent - self.used) as usize) << self.frame_log2)
    }

    fn record_bytes(&self, pages: u32) -> usize {
        ((pages as usize) << (self.page_log2 - self.frame_log2)) * size_of::<u32>()
    }
}

impl CompactFit<BlockTable> {
    /// A heap in `memory` in which no byte of a block is ever copied. Frames are the granules
    /// of the partition; classes are multiples of them.
    ///
    /// # Errors
    /// [`Unfit`] when options contradict each other, or the memory is too small.
    pub fn with_block_table(options: &Options, memory: Memory) -> Result<Self, Unfit> {
        let identity = unique_identities(1).ok_or(Unfit::Identities)?;
        let partition = &options.partition;
        let entry = size_of::<u32>();
        let per_page = partition.page / partition.granule.max(1) * entry;
        // Logical pages cost a record and entries only, so there are more than memory could
        // fill: for page-internal rests, and κ pages a class that are not full.
        let slack = match options.kappa {
            Kappa::Finite(kappa) => kappa.min(8) as usize,
            Kappa::Infinite => 8,
        };
        let tables = Tables::new(options, memory, RECORD, partition.page / 2)?;
        let wanted = memory.bytes() / partition.page * 5 / 4 + tables.classes.len() * slack;
        let pages = (tables.table.count() as usize)
            .min(wanted)
            .min(tables.space / 2 / per_page);
        let entries = tables.base;
        let start = entries.as_ptr().align_offset(entry);
        let behind = start + pages * per_page;
        // SAFETY: within the memory: pages · per_page is at most half of the space.
        let (entries, after) = unsafe { (entries.add(start), entries.add(behind)) };
        let padding = after.as_ptr().align_offset(GRANULE);
        let space = (tables.space).saturating_sub(behind + padding);
        if space < partition.page + ENTRY || pages == 0 {
            return Err(Unfit::TooSmall(partition.page + ENTRY - space));
        }
        let count = pages * per_page / entry;
        let entries = entries.cast::<u32>();
        for index in 0..count {
            // SAFETY: within the part that was taken for entries.
            unsafe { entries.add(index).write(NONE) };
        }
        // SAFETY: the end lies within the memory, and the heap grants what is before it.
        let handles = unsafe { Handles::new(tables.base.add(tables.space), identity) };
        let backing = BlockTable {
            entries,
            count,
            pages: pages as u32,
            // SAFETY: the space behind the padding was found to hold a page.
            frames: unsafe { after.add(padding) },
            space,
            frame_log2: partition.granule.trailing_zeros(),
            page_log2: partition.page.trailing_zeros(),
            first: NONE,
            extent: 0,
            used: 0,
            handles: 0,
        };
        Ok(Self::from_parts(
            options,
            Parts {
                backing,
                table: tables.table,
                classes: tables.classes,
                by_size: tables.by_size,
                handles,
                align: GRANULE,
            },
        ))
    }

    /// Frames that blocks have, and frames that were ever used.
    pub fn frames(&self) -> (u32, u32) {
        (self.backing().used, self.backing().extent)
    }
}
