//! Moving compact-fit: a page-block is memory, and moving a block copies it.
//!
//! malloc O(1), free O(β), dereference O(1) with one indirection.

use core::ops::Range;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU16, Ordering};

use super::backing::{Backing, Place, RECORD, Record};
use super::handles::{BadHandle, Handle, Handles};
use super::heap::{CompactFit, Parts};
use super::layout::Tables;
use super::options::{GRANULE, Options, Unfit};
use crate::store::tagged::Memory;

/// Pages side by side in one memory.
///
/// Invariant: the record of the page-block at place p begins p granules behind `base`.
#[derive(Clone, Copy, Debug)]
pub struct Copying {
    pub(super) base: NonNull<u8>,
    /// Bytes from `base` to the end of the handles.
    pub(super) space: usize,
    pub(super) page_log2: u32,
}

// SAFETY: the memory is the heap's alone (contract of `Memory`).
unsafe impl Send for Copying {}

impl Copying {
    /// Pages there are room for beside `table` bytes of handles.
    #[inline(always)]
    pub(super) fn room(&self, table: usize) -> u32 {
        (self.space.saturating_sub(table) >> self.page_log2) as u32
    }

    #[inline(always)]
    fn at(&self, place: Place) -> NonNull<u8> {
        // SAFETY: places of page-blocks lie below the pages that `pages_beside` granted.
        unsafe { self.base.add(place as usize * GRANULE) }
    }

    /// The block at a place.
    #[inline(always)]
    pub(super) fn block(&self, place: Place) -> NonNull<u8> {
        // SAFETY: a page-block holds its record and the block.
        unsafe { self.at(place).add(RECORD) }
    }
}

// SAFETY: page-blocks are disjoint parts of one memory, in the order of their places.
unsafe impl Backing for Copying {
    const COPIES: bool = true;

    #[inline(always)]
    fn pages_beside(&mut self, table: usize) -> u32 {
        self.room(table)
    }

    #[inline(always)]
    fn provide(&mut self, _place: Place, _bytes: usize) -> bool {
        true
    }

    #[inline(always)]
    fn withdraw(&mut self, _place: Place, _bytes: usize) {}

    #[inline(always)]
    fn leave(&mut self, _from: Place, _bytes: usize) {}

    #[inline(always)]
    fn forget(&mut self, _to: Place, _bytes: usize) {}

    #[inline(always)]
    fn record(&self, place: Place) -> Record {
        // SAFETY: a used page-block begins with its record; it lies half a granule before
        // a multiple of the granule, which suffices for two words of four bytes.
        unsafe { self.at(place).cast::<Record>().read() }
    }

    #[inline(always)]
    fn set_record(&mut self, place: Place, record: Record) {
        // SAFETY: as above.
        unsafe { self.at(place).cast::<Record>().write(record) }
    }

    #[inline(always)]
    fn carry(&mut self, from: Place, to: Place, range: Range<usize>) {
        // SAFETY: the range lies within both page-blocks, which are disjoint.
        unsafe {
            ptr::copy_nonoverlapping(
                self.at(from).as_ptr().add(range.start),
                self.at(to).as_ptr().add(range.start),
                range.end - range.start,
            );
        }
    }

    #[inline(always)]
    fn read(&self, place: Place, offset: usize, bytes: &mut [u8]) {
        // SAFETY: the heap checked the range against the block; `bytes` is borrowed from
        // outside it.
        unsafe {
            ptr::copy_nonoverlapping(
                self.block(place).as_ptr().add(offset),
                bytes.as_mut_ptr(),
                bytes.len(),
            );
        }
    }

    #[inline(always)]
    fn write(&mut self, place: Place, offset: usize, bytes: &[u8]) {
        // SAFETY: as above.
        unsafe {
            ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.block(place).as_ptr().add(offset),
                bytes.len(),
            );
        }
    }

    fn bytes(&self, pages: u32) -> usize {
        (pages as usize) << self.page_log2
    }

    fn spare(&self) -> Option<usize> {
        None
    }

    fn record_bytes(&self, _pages: u32) -> usize {
        0
    }
}

/// Tells the heaps of a program apart.
static IDENTITIES: AtomicU16 = AtomicU16::new(0);

/// The first of `count` identities that no other heap of the program has got from here;
/// `None` after 65 535.
pub fn unique_identities(count: u16) -> Option<u16> {
    IDENTITIES
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            last.checked_add(count)
        })
        .ok()
}

impl CompactFit<Copying> {
    /// A heap in `memory`.
    ///
    /// # Errors
    /// [`Unfit`] when options contradict each other, or the memory is too small.
    pub fn new(options: &Options, memory: Memory) -> Result<Self, Unfit> {
        let identity = unique_identities(1).ok_or(Unfit::Identities)?;
        let tables = Tables::new(options, memory, RECORD, options.partition.page)?;
        // SAFETY: the end of the memory; what lies before it is granted by the heap.
        let handles = unsafe { Handles::new(tables.base.add(tables.space), identity) };
        let backing = Copying {
            base: tables.base,
            space: tables.space,
            page_log2: options.partition.page.trailing_zeros(),
        };
        Ok(Self::from_parts(
            options,
            Parts {
                backing,
                table: tables.table,
                classes: tables.classes,
                by_size: tables.by_size,
                handles,
                align: tables.align,
            },
        ))
    }

    /// Pins a block and gives its address, which stays good until it is
    /// [unpinned](CompactFit::unpin) as often as it was pinned. Pages with pinned blocks do
    /// not count towards κ. A move of the block is ended first. O(1), else O(β). Who writes
    /// through the address writes initialised bytes: others may read them as such.
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn pin(&mut self, handle: Handle) -> Result<NonNull<u8>, BadHandle> {
        let place = self.pin_place(handle)?;
        Ok(self.backing().block(place))
    }

    /// The bytes of a block. O(1): one indirection.
    ///
    /// # Errors
    /// [`BadHandle`].
    #[inline]
    pub fn bytes(&self, handle: Handle) -> Result<&[u8], BadHandle> {
        let place = self.handle_place(handle)?;
        let size = self.backing().record(place).size as usize;
        // SAFETY: the block has `size` bytes, which are initialised, as all memory of pages is
        // from the beginning, and moves only under `&mut self`.
        Ok(unsafe { core::slice::from_raw_parts(self.backing().block(place).as_ptr(), size) })
    }

    /// The bytes of a block, to be changed. A move of the block is ended first.
    ///
    /// # Errors
    /// [`BadHandle`].
    #[inline]
    pub fn bytes_mut(&mut self, handle: Handle) -> Result<&mut [u8], BadHandle> {
        let place = self.settled_place(handle)?;
        let size = self.backing().record(place).size as usize;
        // SAFETY: as above, and the heap is borrowed exclusively.
        Ok(unsafe { core::slice::from_raw_parts_mut(self.backing().block(place).as_ptr(), size) })
    }
}
