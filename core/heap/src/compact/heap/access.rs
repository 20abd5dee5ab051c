//! What programs do with blocks: read, write, resize, pin.
//!
//! Invariant: what is written to a block that is being moved is written to the part of the
//! target, too, that was carried already.

use core::ops::Range;

use super::super::automaton::{Unpinning, of};
use super::super::backing::{Backing, Place, RECORD, Record};
use super::super::handles::{BadHandle, Handle};
use super::super::options::GRANULE;
use super::super::refusal::{Refused, Resize};
use super::CompactFit;

impl<B: Backing> CompactFit<B> {
    /// Requested bytes of a block. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn size(&self, handle: Handle) -> Result<usize, BadHandle> {
        Ok(self.backing.record(self.handles.place(handle)?).size as usize)
    }

    /// Where a block is now: its byte offset in the space of pages. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn offset(&self, handle: Handle) -> Result<usize, BadHandle> {
        Ok(self.handles.place(handle)? as usize * GRANULE + RECORD)
    }

    fn within(&self, handle: Handle, offset: usize, length: usize) -> Result<Place, BadHandle> {
        let place = self.handles.place(handle)?;
        let size = self.backing.record(place).size as usize;
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(place),
            _ => Err(BadHandle::Outside),
        }
    }

    /// Copies bytes of a block out; the right ones, also while it moves. O(bytes).
    ///
    /// # Errors
    /// [`BadHandle`], also when the range is not within the block.
    pub fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        // Handles resolve to the source until the last step, and the source is kept whole.
        let place = self.within(handle, offset, bytes.len())?;
        self.backing.read(place, offset, bytes);
        Ok(())
    }

    /// Copies bytes into a block, also while it moves. O(bytes + moves).
    ///
    /// # Errors
    /// [`BadHandle`], also when the range is not within the block.
    pub fn write(&mut self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        let place = self.within(handle, offset, bytes.len())?;
        self.backing.write(place, offset, bytes);
        if B::COPIES
            && let Some(under) = self
                .under
                .iter()
                .flatten()
                .find(|under| under.from == place)
        {
            let carried = (under.done.saturating_sub(RECORD + offset)).min(bytes.len());
            self.backing.write(under.to, offset, &bytes[..carried]);
        }
        Ok(())
    }

    /// Resizes a block within its class, or moves it to another; the handle stays good.
    /// O(1) within the class, else O(bytes of the page-block). A pinned block is resized
    /// only within its class.
    ///
    /// # Errors
    /// [`Resize`]; the block is as it was.
    pub fn resize(&mut self, handle: Handle, size: usize, align: usize) -> Result<(), Resize> {
        let place = self.handles.place(handle)?;
        let place = self.hasten(place);
        let (class, slot) = self.slot(place);
        let wanted = self
            .class_for(size, align)
            .inspect_err(|_| self.counters.failed())?;
        let record = self.backing.record(place);
        if wanted != class {
            self.handles.unpinned(handle)?;
            let taken = self.page_block(wanted).and_then(|(taken, _)| {
                let to = self.place(wanted, taken);
                let bytes = of(self.classes, wanted).bytes as usize;
                let provided = self.backing.provide(to, bytes);
                if !provided {
                    self.vacate(wanted, taken);
                }
                provided.then_some(to)
            });
            let Some(to) = taken else {
                self.counters.failed();
                return Err(Resize::Refused(Refused::Exhausted));
            };
            let kept = RECORD + size.min(record.size as usize);
            self.copy(place, to, 0..kept);
            self.backing.set_record(
                to,
                Record {
                    owner: record.owner,
                    size: size as u32,
                },
            );
            self.handles.moved(record.owner, to);
            let bytes = of(self.classes, class).bytes as usize;
            self.backing.withdraw(place, bytes);
            self.vacate(class, slot);
        } else {
            self.backing.set_record(
                place,
                Record {
                    owner: record.owner,
                    size: size as u32,
                },
            );
        }
        self.counters.resized(record.size as usize, size);
        Ok(())
    }

    /// Copies bytes between page-blocks of different classes, which both keep their memory.
    fn copy(&mut self, from: Place, to: Place, range: Range<usize>) {
        let mut buffer = [0u8; 64];
        let mut offset = RECORD;
        while offset < range.end {
            let length = buffer.len().min(range.end - offset);
            self.backing
                .read(from, offset - RECORD, &mut buffer[..length]);
            self.backing.write(to, offset - RECORD, &buffer[..length]);
            offset += length;
        }
    }

    /// Counts a pin of a block, which then does not move; the block's place. A move of it is
    /// ended first. O(bytes of the page-block).
    pub(in crate::compact) fn pin_place(&mut self, handle: Handle) -> Result<Place, BadHandle> {
        let first = self.handles.pin(handle)?;
        let place = self.handles.place(handle)?;
        let place = self.hasten(place);
        if first {
            let (class, slot) = self.slot(place);
            self.classes[class].pin(&self.table, slot.page);
        }
        Ok(place)
    }

    /// Takes a pin back. When it was the last of its page and κ pages are not full already,
    /// blocks move into the page until it is full or fewer are: O(π β).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn unpin(&mut self, handle: Handle) -> Result<(), BadHandle> {
        if !self.handles.unpin(handle)? {
            return Ok(());
        }
        let (class, slot) = self.slot(self.handles.place(handle)?);
        loop {
            let (table, supply) = (&self.table, &mut self.supply);
            let give = |number| supply.give(table, number);
            match self.classes[class].unpin(table, slot.page, give) {
                Unpinning::Done => return Ok(()),
                Unpinning::Moves(moved) => self.carry_whole(class, moved),
                Unpinning::Waits => self.hasten_from(slot.page),
            }
        }
    }

    pub(in crate::compact) fn handle_place(&self, handle: Handle) -> Result<Place, BadHandle> {
        self.handles.place(handle)
    }

    /// Ends the move of a block, if it is being moved; its place.
    pub(in crate::compact) fn settled_place(&mut self, handle: Handle) -> Result<Place, BadHandle> {
        let place = self.handles.place(handle)?;
        Ok(self.hasten(place))
    }
}
