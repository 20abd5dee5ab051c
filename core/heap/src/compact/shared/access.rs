//! Reading, writing and pinning blocks while they may move.
//!
//! Invariant: a block is read and written only while its contents are held, at the place that
//! its handle names then; so a move, a free and an access never overlap.

use core::ptr::NonNull;

use super::super::automaton::Unpinning;
use super::super::backing::{Backing, Place, RECORD};
use super::super::handles::{BadHandle, Handle};
use super::super::options::GRANULE;
use super::SharedCompactFit;
use super::moves::Compaction;
use crate::lock::Lock;

impl<L: Lock + 'static> SharedCompactFit<L> {
    /// Requested bytes of a block. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn size(&self, handle: Handle) -> Result<usize, BadHandle> {
        self.at_block(handle, |place| self.backing.record(place).size as usize)
    }

    /// Where a block is now, or was a moment ago: its byte offset in the space of pages. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn offset(&self, handle: Handle) -> Result<usize, BadHandle> {
        Ok(self.entries.place(handle)? as usize * GRANULE + RECORD)
    }

    fn within(&self, place: Place, offset: usize, length: usize) -> Result<(), BadHandle> {
        let size = self.backing.record(place).size as usize;
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(()),
            _ => Err(BadHandle::Outside),
        }
    }

    /// Copies bytes of a block out, in one critical section. O(bytes).
    ///
    /// # Errors
    /// [`BadHandle`], also when the range is not within the block.
    pub fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        self.at_block(handle, |place| {
            self.within(place, offset, bytes.len())?;
            self.backing.read(place, offset, bytes);
            Ok(())
        })?
    }

    /// Copies bytes into a block, in one critical section. O(bytes + moves).
    ///
    /// # Errors
    /// [`BadHandle`], also when the range is not within the block.
    pub fn write(&self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        self.at_block(handle, |place| {
            self.within(place, offset, bytes.len())?;
            let mut backing = self.backing;
            backing.write(place, offset, bytes);
            self.mirror(place, offset, bytes);
            Ok(())
        })?
    }

    /// Pins a block and gives its address, which stays good until it is
    /// [unpinned](SharedCompactFit::unpin) as often as it was pinned. Pages with pinned blocks
    /// do not count towards κ. A move of the block is ended first, in increments.
    /// O(bytes of the page-block).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn pin(&self, handle: Handle) -> Result<NonNull<u8>, BadHandle> {
        loop {
            let pinned = self.in_class(handle, |class, _, place| {
                let first =
                    self.in_contents_of(place, || match self.entries.stands(handle, place)? {
                        false => Ok(None),
                        true => match self.under_way_from(place) {
                            Some(compaction) => Ok(Some(Err(compaction))),
                            None => Ok(Some(Ok(self.entries.pin(handle)?))),
                        },
                    })?;
                if let Some(Ok(true)) = first {
                    class.pin(&self.table, self.page_of(place));
                }
                Ok(first.map(|first| first.map(|_| place)))
            })?;
            match pinned {
                Ok(place) => return Ok(self.backing.block(place)),
                Err(compaction) => self.complete(Some(compaction)),
            }
        }
    }

    /// Takes a pin back. When it was the last of its page and κ pages are not full already,
    /// blocks move into the page until it is full or fewer are, in increments: O(π β).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn unpin(&self, handle: Handle) -> Result<(), BadHandle> {
        let last = self.in_class(handle, |_, index, place| {
            let last =
                self.in_contents_of(place, || match self.entries.stands(handle, place)? {
                    false => Ok(None),
                    true => Ok(Some(self.entries.unpin(handle)?)),
                })?;
            Ok(last.map(|last| last.then_some((index, self.page_of(place)))))
        })?;
        // The page is held until its own count of pins goes down, whoever frees the block.
        if let Some((index, page)) = last {
            while let Some(compaction) = self.unpin_page(index, page) {
                self.complete(compaction);
            }
        }
        Ok(())
    }

    /// Takes a pin of a page back, or begins what must be done first.
    fn unpin_page(&self, index: usize, page: u32) -> Option<Option<Compaction>> {
        self.classes.hold(index, |class| {
            match class.unpin(&self.table, page, |page| self.give(page)) {
                Unpinning::Done => None,
                Unpinning::Moves(moved) => Some(self.begin(class, index, moved)),
                Unpinning::Waits => Some(self.under_way_out_of(index, page)),
            }
        })
    }
}
