//! Handles: the one indirection by which blocks may move.
//!
//! The table grows downwards from the end of its memory, an entry of eight bytes a handle.
//! A handle names its entry, how often the entry had been used when the handle was made
//! (its generation), and the heap. So a stale handle, or one of another heap, is refused and
//! never resolves to somebody else's block. An entry that has used up its generations is
//! retired: eight bytes for each 2²⁴ − 1 blocks.
//!
//! Invariant: an entry below `extent` is in use, in the free list, or retired; its generation
//! is that of the one handle that resolves through it, or of the next one to be made.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

const INDEX_BITS: u32 = 24;
/// Most handles of a heap.
pub const MOST_HANDLES: u32 = (1 << INDEX_BITS) - 1;
/// Most pins of a block at once.
pub const MOST_PINS: u32 = 0xff;
const PINS: u32 = 0xff;
/// Largest generation of an entry.
pub(crate) const GENERATION: u32 = 0xff_ffff;
const NONE: u32 = u32::MAX;
/// Bytes of an entry.
pub const ENTRY: usize = size_of::<Entry>();

/// Names a block of a heap in which blocks move. Eight bytes, plain data; stale handles are
/// detected.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(u64);

impl Handle {
    pub(crate) const fn new(identity: u16, generation: u32, index: u32) -> Self {
        Handle((identity as u64) << 48 | (generation as u64) << INDEX_BITS | index as u64)
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

/// Where the block of a handle is.
#[derive(Debug)]
#[repr(C)]
struct Entry {
    /// Place of the block while in use, else the next free entry.
    place: Cell<u32>,
    /// Generation above the pins.
    tag: Cell<u32>,
}

/// The table of a heap's handles.
#[derive(Debug)]
pub(super) struct Handles {
    /// End of the memory: entry i begins i + 1 entries before it.
    top: NonNull<u8>,
    first: u32,
    extent: u32,
    retired: u32,
    identity: u16,
}

impl Handles {
    /// A table that ends at `top`.
    ///
    /// # Safety
    /// `top` is aligned for an entry. The memory before it is valid and used by nothing else
    /// as far as the caller grants it to [`Handles::take`].
    pub(super) unsafe fn new(top: NonNull<u8>, identity: u16) -> Self {
        Handles {
            top,
            first: NONE,
            extent: 0,
            retired: 0,
            identity,
        }
    }

    #[inline(always)]
    fn entry(&self, index: u32) -> &Entry {
        debug_assert!(index < self.extent);
        // SAFETY: entries below `extent` were written by `take` in memory that was granted
        // to it, and are only reached as entries.
        unsafe { self.top.cast::<Entry>().sub(index as usize + 1).as_ref() }
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        self.extent as usize * ENTRY
    }

    /// The entry that the next handle takes; `grow` grants memory for one more. O(1).
    #[inline(always)]
    pub(super) fn take(&mut self, grow: impl FnOnce(usize) -> bool) -> Option<u32> {
        if self.first != NONE {
            let index = self.first;
            self.first = self.entry(index).place.get();
            return Some(index);
        }
        let index = self.extent;
        if index == MOST_HANDLES || !grow(self.bytes() + ENTRY) {
            return None;
        }
        self.extent += 1;
        // SAFETY: `grow` granted the memory of this entry, which is aligned as `top` is.
        unsafe {
            self.top
                .cast::<Entry>()
                .sub(index as usize + 1)
                .write(Entry {
                    place: Cell::new(0),
                    tag: Cell::new(PINS + 1),
                });
        }
        Some(index)
    }

    /// Puts back an entry that was taken and not used. O(1).
    pub(super) fn untake(&mut self, index: u32) {
        self.entry(index).place.set(self.first);
        self.first = index;
    }

    /// The handle of an entry that was taken, for a block at `place`.
    #[inline(always)]
    pub(super) fn bind(&self, index: u32, place: u32) -> Handle {
        let entry = self.entry(index);
        entry.place.set(place);
        Handle::new(self.identity, entry.tag.get() >> 8, index)
    }

    /// The entry of a handle. O(1).
    #[inline(always)]
    fn resolve(&self, handle: Handle) -> Result<&Entry, BadHandle> {
        if handle.identity() != self.identity || handle.index() >= self.extent {
            return Err(BadHandle::Foreign);
        }
        let entry = self.entry(handle.index());
        match entry.tag.get() >> 8 == handle.generation() {
            true => Ok(entry),
            false => Err(BadHandle::Stale),
        }
    }

    /// Where the block of a handle is. O(1).
    #[inline(always)]
    pub(super) fn place(&self, handle: Handle) -> Result<u32, BadHandle> {
        Ok(self.resolve(handle)?.place.get())
    }

    /// Where the block of a handle is, if it may be freed. O(1).
    #[inline(always)]
    pub(super) fn unpinned(&self, handle: Handle) -> Result<u32, BadHandle> {
        let entry = self.resolve(handle)?;
        match entry.tag.get() & PINS {
            0 => Ok(entry.place.get()),
            _ => Err(BadHandle::Pinned),
        }
    }

    /// Ends a handle that resolves. O(1).
    #[inline(always)]
    pub(super) fn release(&mut self, handle: Handle) {
        let entry = self.entry(handle.index());
        let generation = entry.tag.get() >> 8;
        if generation == GENERATION {
            // No handle has generation 0, so none resolves through this entry again.
            entry.tag.set(0);
            self.retired += 1;
            return;
        }
        entry.tag.set((generation + 1) << 8);
        entry.place.set(self.first);
        self.first = handle.index();
    }

    /// A block moved. O(1).
    #[inline(always)]
    pub(super) fn moved(&self, index: u32, place: u32) {
        self.entry(index).place.set(place);
    }

    /// Counts a pin; whether it is the first. O(1).
    pub(super) fn pin(&self, handle: Handle) -> Result<bool, BadHandle> {
        let entry = self.resolve(handle)?;
        let pins = entry.tag.get() & PINS;
        if pins == MOST_PINS {
            return Err(BadHandle::TooManyPins);
        }
        entry.tag.set(entry.tag.get() + 1);
        Ok(pins == 0)
    }

    /// Takes a pin back; whether it was the last. O(1).
    pub(super) fn unpin(&self, handle: Handle) -> Result<bool, BadHandle> {
        let entry = self.resolve(handle)?;
        let pins = entry.tag.get() & PINS;
        if pins == 0 {
            return Err(BadHandle::NotPinned);
        }
        entry.tag.set(entry.tag.get() - 1);
        Ok(pins == 1)
    }

    /// Where the block of a used entry is.
    pub(super) fn place_at(&self, index: u32) -> Option<u32> {
        (index < self.extent).then(|| self.entry(index).place.get())
    }

    /// Entries in use, or `None` if the free list is broken.
    pub(super) fn in_use(&self) -> Option<u32> {
        let mut spare = 0;
        let mut index = self.first;
        while index != NONE {
            if index >= self.extent || spare == self.extent {
                return None;
            }
            spare += 1;
            index = self.entry(index).place.get();
        }
        Some(self.extent - spare - self.retired)
    }
}
