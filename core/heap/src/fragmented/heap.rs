//! The heap of objects in pieces; see the [module](super).
//!
//! Invariant, verified by [`Fragmented::check`]: an object of s bytes has exactly
//! [`Options::blocks`]`(s)` blocks, no two objects share one, and all others are free.

use super::blocks::{Blocks, Kind, NONE};
use super::options::{LINK, Options, Shape, Unfit};
use super::{BadHandle, Handle, chain, tree};
use crate::heap::Corruption;
use crate::statistics::{Counters, Statistics};
use crate::store::tagged::Memory;

/// Why an object was not allocated. The heap is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Not even all blocks of the heap would suffice.
    TooLarge,
    /// Fewer blocks are free than the object needs.
    Exhausted,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Refused::TooLarge => "the request exceeds all blocks of the heap",
            Refused::Exhausted => "fewer blocks are free than the request needs",
        })
    }
}

impl core::error::Error for Refused {}

/// Why an object was not resized. It is as it was.
pub type Resize = crate::compact::Resize<Refused>;

impl From<Refused> for Resize {
    fn from(refused: Refused) -> Self {
        Resize::Refused(refused)
    }
}

/// What is left of a range of an object.
struct Pieces {
    head: u32,
    at: usize,
    end: usize,
    /// The block of the piece before, or none.
    block: u32,
}

/// A heap whose objects are chains or trees of equal blocks.
#[derive(Debug)]
pub struct Fragmented {
    blocks: Blocks,
    options: Options,
    counters: Counters,
}

impl Fragmented {
    /// A heap in `memory`: as many blocks as fit with [`TAG`](super::TAG) bytes each beside
    /// them, at most 2²⁴ − 1. O(1).
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn new(options: &Options, memory: Memory) -> Result<Self, Unfit> {
        options.validate()?;
        let identity = crate::compact::moving::unique_identities(1).ok_or(Unfit::Identities)?;
        Ok(Fragmented {
            blocks: Blocks::new(options, memory, identity)?,
            options: *options,
            counters: Counters::NEW,
        })
    }

    /// Whether so many more blocks can be had for an object of `size` bytes.
    fn served(&self, size: usize, more: u64) -> Result<(), Refused> {
        let free = self.blocks.free();
        if more <= free.into() && u32::try_from(size).is_ok() {
            return Ok(());
        }
        let all = free + self.blocks.used();
        match self.options.blocks(size as u64) > all.into() || u32::try_from(size).is_err() {
            true => Err(Refused::TooLarge),
            false => Err(Refused::Exhausted),
        }
    }

    /// Allocates an object of `size` bytes, all zero. Served exactly when
    /// [`Options::blocks`]`(size)` blocks are free. O(n).
    ///
    /// # Errors
    /// [`Refused`]; the heap is unchanged.
    pub fn allocate(&mut self, size: usize) -> Result<Handle, Refused> {
        let count = self.options.blocks(size as u64);
        self.served(size, count)
            .inspect_err(|_| self.counters.failed())?;
        let head = match self.options.shape {
            Shape::Chain => chain::build(&mut self.blocks, count),
            Shape::Tree => tree::build(&mut self.blocks, &self.options, size),
        };
        self.set_size(head, size);
        self.counters.allocated(size);
        Ok(self.blocks.handle(head))
    }

    /// Which word of the first block holds the size.
    fn size_word(&self) -> usize {
        usize::from(self.options.shape == Shape::Chain)
    }

    fn set_size(&mut self, head: u32, size: usize) {
        self.blocks.set_word(head, self.size_word(), size as u32);
    }

    fn size_of(&self, head: u32) -> usize {
        self.blocks.word(head, self.size_word()) as usize
    }

    /// Frees an object. O(n).
    ///
    /// # Errors
    /// [`BadHandle`]; the heap is unchanged.
    pub fn free(&mut self, handle: Handle) -> Result<(), BadHandle> {
        let head = self.blocks.head(handle)?;
        let size = self.size_of(head);
        match self.options.shape {
            Shape::Chain => chain::give(&mut self.blocks, head),
            Shape::Tree => tree::give(&mut self.blocks, &self.options, head, size),
        }
        self.counters.freed(size);
        Ok(())
    }

    /// The bytes of an object. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn size(&self, handle: Handle) -> Result<usize, BadHandle> {
        Ok(self.size_of(self.blocks.head(handle)?))
    }

    fn within(&self, handle: Handle, offset: usize, length: usize) -> Result<u32, BadHandle> {
        let head = self.blocks.head(handle)?;
        match offset.checked_add(length) {
            Some(end) if end <= self.size_of(head) => Ok(head),
            _ => Err(BadHandle::Outside),
        }
    }

    /// The pieces of a range of an object.
    fn pieces(&self, head: u32, offset: usize, length: usize) -> Pieces {
        Pieces {
            head,
            at: offset,
            end: offset + length,
            block: NONE,
        }
    }

    /// The next piece: block, where in it, bytes.
    fn piece(&self, pieces: &mut Pieces) -> Option<(u32, usize, usize)> {
        if pieces.at == pieces.end {
            return None;
        }
        let Options { block, shape } = self.options;
        let (found, within) = match shape {
            Shape::Chain if pieces.block == NONE => {
                chain::find(&self.blocks, block, pieces.head, pieces.at)
            }
            Shape::Chain => (self.blocks.word(pieces.block, 0), LINK),
            Shape::Tree => {
                let object = (pieces.head, self.size_of(pieces.head));
                tree::find(&self.blocks, &self.options, object, pieces.at)
            }
        };
        let length = (pieces.end - pieces.at).min(block - within);
        pieces.at += length;
        pieces.block = found;
        Some((found, within, length))
    }

    /// Copies bytes of an object out. A chain takes O(n), a tree O(log n) for each block
    /// touched.
    ///
    /// # Errors
    /// [`BadHandle`], also when the range is not within the object.
    pub fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        let head = self.within(handle, offset, bytes.len())?;
        let mut done = 0;
        let mut pieces = self.pieces(head, offset, bytes.len());
        while let Some((block, at, length)) = self.piece(&mut pieces) {
            self.blocks.read(block, at, &mut bytes[done..done + length]);
            done += length;
        }
        Ok(())
    }

    /// Copies bytes into an object. As [`read`](Fragmented::read).
    ///
    /// # Errors
    /// As [`read`](Fragmented::read).
    pub fn write(&mut self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        let head = self.within(handle, offset, bytes.len())?;
        let mut done = 0;
        let mut pieces = self.pieces(head, offset, bytes.len());
        while let Some((block, at, length)) = self.piece(&mut pieces) {
            self.blocks.write(block, at, &bytes[done..done + length]);
            done += length;
        }
        Ok(())
    }

    /// Changes the size of an object, whose handle stays good. Bytes stay as far as both sizes
    /// reach, new ones are zero. Served exactly when the blocks that it lacks are free. O(n).
    ///
    /// # Errors
    /// [`Resize`]; the object is as it was.
    pub fn resize(&mut self, handle: Handle, size: usize) -> Result<(), Resize> {
        let head = self.blocks.head(handle)?;
        let before = self.size_of(head);
        let (old, new) = (
            self.options.blocks(before as u64),
            self.options.blocks(size as u64),
        );
        self.served(size, new.saturating_sub(old))
            .inspect_err(|_| self.counters.failed())?;
        match self.options.shape {
            Shape::Chain => chain::resize(&mut self.blocks, head, old, new),
            Shape::Tree => tree::resize(&mut self.blocks, &self.options, head, before, size),
        }
        self.set_size(head, size);
        if size > before {
            // What an earlier, larger size left behind in the block that was the last.
            let stale = (size - before).min(self.options.block);
            let mut pieces = self.pieces(head, before, stale);
            while let Some((block, at, length)) = self.piece(&mut pieces) {
                self.blocks.zero(block, at, length);
            }
        }
        self.counters.resized(before, size);
        Ok(())
    }

    /// How objects are cut into blocks.
    pub const fn options(&self) -> Options {
        self.options
    }

    /// Blocks in use, and blocks there are for use.
    pub fn blocks(&self) -> (u32, u32) {
        let used = self.blocks.used();
        (used, used + self.blocks.free())
    }

    /// Bytes that the heap has taken: blocks that were ever used, and their records.
    pub fn footprint(&self) -> usize {
        self.options.bytes(self.blocks.extent().into()) as usize
    }

    /// What the heap holds and has held. O(log² n).
    pub fn statistics(&self) -> Statistics {
        let free = self.blocks.free() as usize;
        let extent = self.blocks.extent() as usize;
        let largest = self.options.most(free as u64).unwrap_or(0);
        self.counters.report(
            self.footprint(),
            largest as usize,
            free,
            free * self.options.block,
            extent * super::TAG,
        )
    }

    /// Verifies every invariant. O(blocks · log n).
    ///
    /// # Errors
    /// [`Corruption::List`] when a block is not where it should be,
    /// [`Corruption::Statistics`] when a count disagrees.
    pub fn check(&self) -> Result<(), Corruption> {
        if !self.blocks.listed() {
            return Err(Corruption::List);
        }
        let (mut live, mut objects, mut used) = (0, 0, 0);
        for head in (0..self.blocks.extent()).filter(|&block| self.blocks.is(block, Kind::Head)) {
            let size = self.size_of(head);
            let expected = self.options.blocks(size as u64);
            let found = match self.options.shape {
                Shape::Chain => chain::verify(&self.blocks, head, expected),
                Shape::Tree => tree::verify(&self.blocks, &self.options, head, size),
            };
            if found != Some(expected) {
                return Err(Corruption::List);
            }
            live += size;
            objects += 1;
            used += expected;
        }
        match used == self.blocks.used().into() && self.counters.agree(live, objects) {
            true => Ok(()),
            false => Err(Corruption::Statistics),
        }
    }

    #[cfg(test)]
    pub(super) fn age(&mut self, handle: Handle, generation: u32) -> Option<Handle> {
        let head = self.blocks.head(handle).ok()?;
        self.blocks.age(head, generation);
        Some(self.blocks.handle(head))
    }
}
