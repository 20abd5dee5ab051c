//! Handles: the one indirection by which blocks may move.
//!
//! A handle names an entry of the heap's table, how often the entry had been used when the
//! handle was made (its generation), and the heap. So a stale handle, or one of another heap,
//! is refused and never resolves to somebody else's block. An entry that has used up its
//! generations is retired: eight bytes for each 2²⁴ − 1 blocks.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use super::entries::{Entries, Spare};

const INDEX_BITS: u32 = 24;
/// Most handles of a heap.
pub const MOST_HANDLES: u32 = (1 << INDEX_BITS) - 1;
/// Most pins of a block at once.
pub const MOST_PINS: u32 = PINS - 1;
pub(super) const PINS: u32 = 0xff;
/// Largest generation of an entry.
pub(crate) const GENERATION: u32 = 0xff_ffff;
/// Bytes of an entry.
pub const ENTRY: usize = Entries::<Cell<u32>>::ENTRY;

/// Names a block of a heap in which blocks move. Eight bytes, plain data; stale handles are
/// detected.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(u64);

impl Handle {
    pub(crate) const fn new(identity: u16, generation: u32, index: u32) -> Self {
        Handle((identity as u64) << 48 | (generation as u64) << INDEX_BITS | index as u64)
    }

    /// Of the entry whose tag is `tag`, without pins.
    #[inline(always)]
    pub(crate) const fn tagged(identity: u16, tag: u32, index: u32) -> Self {
        Handle((identity as u64) << 48 | (tag as u64) << (INDEX_BITS - 8) | index as u64)
    }

    /// The tag of its entry while the block is not pinned.
    #[inline(always)]
    pub(crate) const fn tag(self) -> u32 {
        (self.0 >> (INDEX_BITS - 8)) as u32 & !PINS
    }

    pub(crate) const fn index(self) -> u32 {
        self.0 as u32 & MOST_HANDLES
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> INDEX_BITS) as u32 & GENERATION
    }

    pub(crate) const fn identity(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The handle as a number, for other languages.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The handle with this number. One that no heap gave out is refused when it is used.
    pub const fn from_bits(bits: u64) -> Self {
        Handle(bits)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Handle({} of heap {}, generation {})",
            self.index(),
            self.identity(),
            self.generation()
        )
    }
}

/// Why a handle was refused. The heap is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHandle {
    /// Another heap made it, or none.
    Foreign,
    /// Its block was freed.
    Stale,
    /// Its block is pinned: unpin it first.
    Pinned,
    /// Its block is not pinned.
    NotPinned,
    /// Its block has as many pins as can be counted.
    TooManyPins,
    /// The access runs over the end of the block.
    Outside,
}

impl fmt::Display for BadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadHandle::Foreign => "the handle is of another heap, or of none",
            BadHandle::Stale => "the handle is stale: its block was freed",
            BadHandle::Pinned => "the block is pinned: unpin it first",
            BadHandle::NotPinned => "the block is not pinned",
            BadHandle::TooManyPins => "the block has as many pins as can be counted",
            BadHandle::Outside => "the access runs over the end of the block",
        })
    }
}

impl core::error::Error for BadHandle {}

/// The table of the handles of a heap that one thread uses.
#[derive(Debug)]
pub(super) struct Handles {
    entries: Entries<Cell<u32>>,
    spare: Spare,
}

impl Handles {
    /// A table that ends at `top`.
    ///
    /// # Safety
    /// That of [`Entries::new`].
    pub(super) unsafe fn new(top: NonNull<u8>, identity: u16) -> Self {
        Handles {
            // SAFETY: promised by the caller.
            entries: unsafe { Entries::new(top, identity) },
            spare: Spare::NONE,
        }
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// The entry that the next handle takes; `grow` grants memory for one more. O(1).
    #[inline(always)]
    pub(super) fn take(&mut self, grow: impl FnOnce(usize) -> bool) -> Option<u32> {
        self.spare.take(&self.entries, grow)
    }

    /// Puts back an entry that was taken and not used. O(1).
    pub(super) fn untake(&mut self, index: u32) {
        self.spare.put(&self.entries, index);
    }

    /// The handle of an entry that was taken, for a block at `place`.
    #[inline(always)]
    pub(super) fn bind(&self, index: u32, place: u32) -> Handle {
        self.entries.bind(index, place)
    }

    /// Where the block of a handle is. O(1).
    #[inline(always)]
    pub(super) fn place(&self, handle: Handle) -> Result<u32, BadHandle> {
        self.entries.place(handle)
    }

    /// Where the block of a handle is, if it may be freed. O(1).
    #[inline(always)]
    pub(super) fn unpinned(&self, handle: Handle) -> Result<u32, BadHandle> {
        self.entries.unpinned(handle)
    }

    /// Ends a handle that resolves. O(1).
    #[inline(always)]
    pub(super) fn release(&mut self, handle: Handle) {
        self.entries.close(handle);
        self.spare.put(&self.entries, handle.index());
    }

    /// A block moved. O(1).
    #[inline(always)]
    pub(super) fn moved(&self, index: u32, place: u32) {
        self.entries.moved(index, place);
    }

    /// Counts a pin; whether it is the first. O(1).
    pub(super) fn pin(&self, handle: Handle) -> Result<bool, BadHandle> {
        self.entries.pin(handle)
    }

    /// Takes a pin back; whether it was the last. O(1).
    pub(super) fn unpin(&self, handle: Handle) -> Result<bool, BadHandle> {
        self.entries.unpin(handle)
    }

    /// Where the block of a used entry is.
    pub(super) fn place_at(&self, index: u32) -> Option<u32> {
        self.entries.place_at(index)
    }

    /// Entries in use, or `None` if the free list is broken.
    pub(super) fn in_use(&self) -> Option<u32> {
        self.spare.in_use(&self.entries)
    }
}
