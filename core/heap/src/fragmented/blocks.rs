//! Equal blocks, and which of them are free.
//!
//! ```text
//! | block 0 | block 1 | … →            ← … | tag 1 | tag 0 |
//! ```
//!
//! Invariant: blocks below `extent` have a tag; those of kind [`Kind::Free`] are in the list,
//! whose links are their first words. A tag's generation is that of the one handle that may
//! name the block, or of the next one to be made.

use core::ptr::{self, NonNull};

use super::options::{MOST_BLOCKS, Options, TAG, Unfit};
use crate::compact::handles::GENERATION;
use crate::compact::{BadHandle, Handle};
use crate::store::tagged::Memory;

/// No block.
pub(super) const NONE: u32 = u32::MAX;
const WORD: usize = size_of::<u32>();

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Free = 0,
    /// The first of an object.
    Head = 1,
    /// A further one.
    Member = 2,
    /// Free for ever: its generations are used up.
    Retired = 3,
}

/// The blocks of a heap.
#[derive(Debug)]
pub(super) struct Blocks {
    base: NonNull<u8>,
    /// End of the tags: tag i begins i + 1 tags before it.
    top: NonNull<u8>,
    bytes: usize,
    identity: u16,
    first: u32,
    /// Blocks that were ever used.
    extent: u32,
    /// Blocks there are.
    count: u32,
    used: u32,
    retired: u32,
}

// SAFETY: the memory is the heap's alone (contract of `Memory`).
unsafe impl Send for Blocks {}

impl Blocks {
    pub(super) fn new(options: &Options, memory: Memory, identity: u16) -> Result<Self, Unfit> {
        options.validate()?;
        let padding = memory.start().as_ptr().align_offset(WORD);
        let length = memory.bytes().saturating_sub(padding) & !(WORD - 1);
        let count = (length / (options.block + TAG)).min(MOST_BLOCKS);
        if count == 0 {
            return Err(Unfit::TooSmall);
        }
        // SAFETY: a block fits behind the padding, so both lie within the memory or at its end.
        let (base, top) = unsafe {
            (
                memory.start().add(padding),
                memory.start().add(padding + length),
            )
        };
        Ok(Blocks {
            base,
            top,
            bytes: options.block,
            identity,
            first: NONE,
            extent: 0,
            count: count as u32,
            used: 0,
            retired: 0,
        })
    }

    fn tag(&self, index: u32) -> NonNull<u32> {
        assert!(index < self.count, "a link leads to no block");
        // SAFETY: there are `count` tags before the top, all words aligned for a word.
        unsafe { self.top.cast::<u32>().sub(index as usize + 1) }
    }

    fn tag_of(&self, index: u32) -> u32 {
        assert!(index < self.extent, "a link leads to no used block");
        // SAFETY: tags below the extent were written by `take`.
        unsafe { self.tag(index).read() }
    }

    fn set_tag(&mut self, index: u32, generation: u32, kind: Kind) {
        // SAFETY: a tag of this heap.
        unsafe { self.tag(index).write(generation << 8 | kind as u32) }
    }

    pub(super) fn is(&self, index: u32, kind: Kind) -> bool {
        index < self.extent && self.tag_of(index) & 0xff == kind as u32
    }

    /// Where `length` bytes lie in a block that was taken.
    fn at(&self, index: u32, offset: usize, length: usize) -> NonNull<u8> {
        let inside = offset <= self.bytes && length <= self.bytes - offset;
        assert!(index < self.extent && inside, "outside the blocks");
        // SAFETY: blocks below the extent lie behind the base, before the tags.
        unsafe { self.base.add(index as usize * self.bytes + offset) }
    }

    /// A word of a block that was taken.
    pub(super) fn word(&self, index: u32, word: usize) -> u32 {
        // SAFETY: a word inside the block, which `take` has written; blocks and words are
        // aligned for a word.
        unsafe { self.at(index, word * WORD, WORD).cast().read() }
    }

    pub(super) fn set_word(&mut self, index: u32, word: usize, value: u32) {
        // SAFETY: as above.
        unsafe { self.at(index, word * WORD, WORD).cast().write(value) }
    }

    pub(super) fn read(&self, index: u32, offset: usize, bytes: &mut [u8]) {
        let from = self.at(index, offset, bytes.len());
        // SAFETY: inside the block, all of which `take` has written; `bytes` is borrowed from
        // elsewhere.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
    }

    pub(super) fn write(&mut self, index: u32, offset: usize, bytes: &[u8]) {
        let to = self.at(index, offset, bytes.len());
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }

    pub(super) fn zero(&mut self, index: u32, offset: usize, length: usize) {
        // SAFETY: inside the block.
        unsafe { self.at(index, offset, length).write_bytes(0, length) };
    }

    /// Copies bytes from one block to another.
    pub(super) fn copy(&mut self, from: (u32, usize), to: (u32, usize), length: usize) {
        let (from, to) = (self.at(from.0, from.1, length), self.at(to.0, to.1, length));
        // SAFETY: both inside their blocks; `copy` allows for one block.
        unsafe { ptr::copy(from.as_ptr(), to.as_ptr(), length) };
    }

    /// Blocks that can be taken.
    pub(super) fn free(&self) -> u32 {
        self.count - self.used - self.retired
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn extent(&self) -> u32 {
        self.extent
    }

    /// Takes a block, of which the caller knows that it is there: all zeros. O(block).
    pub(super) fn take(&mut self, kind: Kind) -> u32 {
        let index = match self.first {
            NONE => {
                let index = self.extent;
                self.extent += 1;
                self.set_tag(index, 1, kind);
                index
            }
            index => {
                self.first = self.word(index, 0);
                self.set_tag(index, self.tag_of(index) >> 8, kind);
                index
            }
        };
        self.used += 1;
        self.zero(index, 0, self.bytes);
        index
    }

    /// Gives a block back; ends the handle of a head. O(1).
    pub(super) fn give(&mut self, index: u32) {
        let mut generation = self.tag_of(index) >> 8;
        self.used -= 1;
        if self.is(index, Kind::Head) {
            if generation == GENERATION {
                self.set_tag(index, 0, Kind::Retired);
                self.retired += 1;
                return;
            }
            generation += 1;
        }
        self.set_tag(index, generation, Kind::Free);
        self.set_word(index, 0, self.first);
        self.first = index;
    }

    /// The handle of a head.
    pub(super) fn handle(&self, head: u32) -> Handle {
        Handle::new(self.identity, self.tag_of(head) >> 8, head)
    }

    /// The head that a handle names. O(1).
    pub(super) fn head(&self, handle: Handle) -> Result<u32, BadHandle> {
        let index = handle.index();
        if handle.identity() != self.identity || index >= self.extent {
            return Err(BadHandle::Foreign);
        }
        match self.tag_of(index) == handle.generation() << 8 | Kind::Head as u32 {
            true => Ok(index),
            false => Err(BadHandle::Stale),
        }
    }

    /// Whether the list holds exactly the free blocks. O(blocks).
    pub(super) fn listed(&self) -> bool {
        let (mut index, mut listed) = (self.first, 0);
        while index != NONE {
            if !self.is(index, Kind::Free) || listed == self.extent {
                return false;
            }
            listed += 1;
            index = self.word(index, 0);
        }
        let of = |kind| {
            (0..self.extent)
                .filter(|&index| self.is(index, kind))
                .count() as u32
        };
        of(Kind::Free) == listed
            && of(Kind::Retired) == self.retired
            && self.extent - listed - self.retired == self.used
    }

    /// Ages a free block or head, for tests of what happens at the end of its life.
    #[cfg(test)]
    pub(super) fn age(&mut self, index: u32, generation: u32) {
        let kind = if self.is(index, Kind::Head) {
            Kind::Head
        } else {
            Kind::Free
        };
        self.set_tag(index, generation, kind);
    }
}
