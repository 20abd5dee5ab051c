//! What a ledger keeps of a block: of any heap, or as densely as can be.
//!
//! Invariant: the record of a block in use has an odd generation, all others an even one, and
//! a generation only ever grows; the first is 2, after the last one comes 0.

use core::fmt::Debug;

use super::LedgerBlock;
use crate::store::Header;

/// A layout of records. Offsets and sizes are bytes; `shift` is log2 of the granule.
pub trait Layout: Copy + Debug + sealed::Sealed {
    /// A record that describes nothing yet, to fill the array with.
    const SPARE: Self;
    /// Whether a heap counts in granules, and the record of a free block has its size in place
    /// of its offset, which is known from the block behind it: that is never free.
    const UNITS: bool = false;
    /// The largest region in bytes.
    fn most(shift: u32) -> usize;

    /// Describes a block without flags that begins at `offset` between two others; its
    /// generation stays.
    fn describe(&mut self, offset: usize, after: u32, before: u32, shift: u32);
    /// Where the block begins.
    fn offset(&self, shift: u32) -> usize;
    /// Sets where it begins, where [`UNITS`](Layout::UNITS) are kept.
    #[inline(always)]
    fn set_offset(&mut self, offset: usize) {
        let (after, before) = (self.after(), self.before());
        self.describe(offset, after, before, 0);
    }
    /// Its size; `offset_of` tells where the block of a record begins.
    fn size(&self, shift: u32, offset_of: impl FnOnce(u32) -> usize) -> usize;
    /// The size of a free block, where [`UNITS`](Layout::UNITS) are kept.
    #[inline(always)]
    fn free_size(&self) -> usize {
        self.offset(0)
    }
    /// Its flags.
    fn flags(&self) -> usize;
    /// Sets size and flags.
    fn set_header(&mut self, header: Header);
    /// Marks it as preceded by a free block.
    fn mark_previous_free(&mut self);
    /// Takes that mark away.
    fn clear_previous_free(&mut self);

    /// Record of the block behind it in memory.
    fn after(&self) -> u32;
    /// Sets [`after`](Layout::after).
    fn set_after(&mut self, after: u32);
    /// Record of the block in front of it.
    fn before(&self) -> u32;
    /// Sets [`before`](Layout::before).
    fn set_before(&mut self, before: u32);
    /// Forward link of its list. Not of a block in use.
    fn next(&self) -> u32;
    /// Sets [`next`](Layout::next).
    fn set_next(&mut self, next: u32);
    /// Backward link of its list. Not of a block in use.
    fn previous(&self) -> u32;
    /// Sets [`previous`](Layout::previous).
    fn set_previous(&mut self, previous: u32);

    /// Requested bytes. Of a block in use only.
    fn requested(&self) -> usize;
    /// Sets [`requested`](Layout::requested) of a block that comes into use.
    fn set_requested(&mut self, bytes: usize);
    /// Odd while the program holds the block; a handle keeps the value it saw.
    fn generation(&self) -> u32;
    /// Makes the generation odd if it is not; whether it was, and what it is now.
    #[inline(always)]
    fn hold(&mut self) -> (bool, u32) {
        match self.generation() & 1 {
            0 => (false, self.next_generation()),
            _ => (true, self.generation()),
        }
    }
    /// Goes on to the next generation; 0 after the last one.
    fn next_generation(&mut self) -> u32;
    /// Leaves one allocation and free before the generations are used up.
    #[cfg(test)]
    fn age(&mut self);
}

mod sealed {
    /// Layouts are those of this file.
    pub trait Sealed {}
}

/// What records of both layouts have: neighbours and links by number.
macro_rules! linked {
    () => {
        #[inline(always)]
        fn after(&self) -> u32 {
            self.after
        }

        #[inline(always)]
        fn set_after(&mut self, after: u32) {
            self.after = after;
        }

        #[inline(always)]
        fn before(&self) -> u32 {
            self.before
        }

        #[inline(always)]
        fn set_before(&mut self, before: u32) {
            self.before = before;
        }

        #[inline(always)]
        fn next(&self) -> u32 {
            self.next
        }

        #[inline(always)]
        fn set_next(&mut self, next: u32) {
            self.next = next;
        }

        #[inline(always)]
        fn previous(&self) -> u32 {
            self.previous
        }

        #[inline(always)]
        fn set_previous(&mut self, previous: u32) {
            self.previous = previous;
        }
    };
}

/// What records of 24 bytes have: the requested bytes in place of the links, and the generation
/// beside the flags.
macro_rules! tagged {
    () => {
        #[inline(always)]
        fn requested(&self) -> usize {
            (u64::from(self.previous) << 32 | u64::from(self.next)) as usize
        }

        #[inline(always)]
        fn set_requested(&mut self, bytes: usize) {
            self.next = bytes as u32;
            self.previous = (bytes as u64 >> 32) as u32;
        }

        #[inline(always)]
        fn generation(&self) -> u32 {
            self.tag / GENERATION
        }

        #[inline(always)]
        fn next_generation(&mut self) -> u32 {
            self.tag = self.tag.wrapping_add(GENERATION);
            self.generation()
        }

        #[cfg(test)]
        fn age(&mut self) {
            self.tag = (u32::MAX / GENERATION - 1) * GENERATION + (self.tag & (GENERATION - 1));
        }

        #[inline(always)]
        fn hold(&mut self) -> (bool, u32) {
            let held = self.tag & GENERATION != 0;
            // The next generation of an even one is odd.
            self.tag |= GENERATION;
            (held, self.generation())
        }
    };
}

/// The record of one block: 48 bytes on a 64-bit target, for regions of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Size above three bits of flags, whatever the granule.
    header: usize,
    offset: usize,
    requested: usize,
    next: u32,
    previous: u32,
    after: u32,
    before: u32,
    generation: u32,
}

const SIZE_SHIFT: u32 = 3;

impl Record {
    /// [`Layout::SPARE`].
    pub const SPARE: Record = Record {
        header: 0,
        offset: 0,
        requested: 0,
        next: LedgerBlock::NONE,
        previous: LedgerBlock::NONE,
        after: LedgerBlock::NONE,
        before: LedgerBlock::NONE,
        generation: 2,
    };
}

impl sealed::Sealed for Record {}

impl Layout for Record {
    const SPARE: Self = Record::SPARE;

    fn most(_shift: u32) -> usize {
        usize::MAX >> SIZE_SHIFT
    }

    #[inline(always)]
    fn describe(&mut self, offset: usize, after: u32, before: u32, _shift: u32) {
        self.header = 0;
        self.offset = offset;
        self.after = after;
        self.before = before;
    }

    #[inline(always)]
    fn offset(&self, _shift: u32) -> usize {
        self.offset
    }

    #[inline(always)]
    fn size(&self, _shift: u32, _offset_of: impl FnOnce(u32) -> usize) -> usize {
        self.header >> SIZE_SHIFT
    }

    #[inline(always)]
    fn flags(&self) -> usize {
        self.header & Header::FLAGS
    }

    #[inline(always)]
    fn set_header(&mut self, header: Header) {
        // Flags lie below the size: a sum is one instruction less than a union.
        self.header = (header.size << SIZE_SHIFT) + header.flags();
    }

    #[inline(always)]
    fn mark_previous_free(&mut self) {
        self.header |= Header::PREVIOUS_FREE;
    }

    #[inline(always)]
    fn clear_previous_free(&mut self) {
        self.header &= !Header::PREVIOUS_FREE;
    }

    linked!();

    #[inline(always)]
    fn requested(&self) -> usize {
        self.requested
    }

    #[inline(always)]
    fn set_requested(&mut self, bytes: usize) {
        self.requested = bytes;
    }

    #[inline(always)]
    fn generation(&self) -> u32 {
        self.generation
    }

    #[inline(always)]
    fn next_generation(&mut self) -> u32 {
        self.generation = self.generation.wrapping_add(1);
        self.generation
    }

    #[cfg(test)]
    fn age(&mut self) {
        self.generation = u32::MAX - 1;
    }
}

/// What the tag grows by with a generation.
const GENERATION: u32 = Header::FLAGS as u32 + 1;

/// The record of one block in 24 bytes, of a heap that counts in granules, up to 2³² − 1 of
/// them, and always merges: offsets, sizes, lengths of regions and alignments of blocks are
/// granules there, and only what is requested is bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRecord {
    /// Where the block begins; of a free block its size instead.
    place: u32,
    after: u32,
    before: u32,
    /// Forward link, or the low half of the requested bytes.
    next: u32,
    /// Backward link, or the high half.
    previous: u32,
    /// Generation above three bits of flags.
    tag: u32,
}

const _: () = assert!(size_of::<UnitRecord>() == 24);

impl UnitRecord {
    /// [`Layout::SPARE`].
    pub const SPARE: UnitRecord = UnitRecord {
        place: 0,
        after: LedgerBlock::NONE,
        before: LedgerBlock::NONE,
        next: LedgerBlock::NONE,
        previous: LedgerBlock::NONE,
        tag: 2 * GENERATION,
    };
}

impl sealed::Sealed for UnitRecord {}

impl Layout for UnitRecord {
    const SPARE: Self = UnitRecord::SPARE;
    const UNITS: bool = true;

    fn most(_shift: u32) -> usize {
        u32::MAX as usize
    }

    #[inline(always)]
    fn describe(&mut self, offset: usize, after: u32, before: u32, _shift: u32) {
        // Spare records have no flags.
        self.place = offset as u32;
        self.after = after;
        self.before = before;
    }

    /// Of a free block its size.
    #[inline(always)]
    fn offset(&self, _shift: u32) -> usize {
        self.place as usize
    }

    #[inline(always)]
    fn size(&self, _shift: u32, offset_of: impl FnOnce(u32) -> usize) -> usize {
        match self.tag & Header::FREE as u32 {
            0 => offset_of(self.after) - self.place as usize,
            _ => self.place as usize,
        }
    }

    #[inline(always)]
    fn flags(&self) -> usize {
        self.tag as usize & Header::FLAGS
    }

    #[inline(always)]
    fn set_header(&mut self, header: Header) {
        self.tag = (self.tag & !(Header::FLAGS as u32)) + header.flags() as u32;
        if header.free() {
            self.place = header.size as u32;
        }
    }

    #[inline(always)]
    fn mark_previous_free(&mut self) {
        self.tag |= Header::PREVIOUS_FREE as u32;
    }

    #[inline(always)]
    fn clear_previous_free(&mut self) {
        self.tag &= !(Header::PREVIOUS_FREE as u32);
    }

    linked!();
    tagged!();
}
