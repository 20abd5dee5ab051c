//! The table behind handles: an entry says where a block is, and for which handle.
//!
//! The table grows downwards from the end of its memory, an entry of eight bytes a handle.
//!
//! Invariant: an entry below `extent` is in use, in the free list, or retired. Its generation
//! is that of the one handle that resolves through it, or of the next one to be made; while it
//! is not in use it is marked, and no handle resolves through it. Generations only grow.
//!
//! Where several threads use the table: an entry in use is written only by who holds what
//! guards the contents of its block; the free list by who holds the reserve.

use core::ptr::NonNull;

use super::cells::Word;
use super::handles::{BadHandle, Handle, MOST_HANDLES, MOST_PINS, PINS};

const NONE: u32 = u32::MAX;
/// The pins of an entry that is not in use.
const UNUSED: u32 = PINS;

/// Where the block of a handle is.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry<W> {
    /// Place of the block while in use, else the next free entry.
    place: W,
    /// Generation above the pins.
    tag: W,
}

/// The entries of a heap's handles.
#[derive(Debug)]
pub(super) struct Entries<W> {
    /// End of the memory: entry i begins i + 1 entries before it.
    top: NonNull<u8>,
    /// Entries that were ever used.
    extent: W,
    identity: u16,
}

// SAFETY: the memory is the table's alone, and bound to no thread.
unsafe impl<W: Send> Send for Entries<W> {}

/// Entries that are not in use.
#[derive(Debug)]
pub(super) struct Spare {
    first: u32,
    retired: u32,
}

impl<W: Word> Entries<W> {
    /// Bytes of an entry.
    pub(super) const ENTRY: usize = size_of::<Entry<W>>();

    /// A table that ends at `top`.
    ///
    /// # Safety
    /// `top` is aligned for an entry. The memory before it is valid and used by nothing else
    /// as far as the caller grants it to [`Spare::take`].
    pub(super) unsafe fn new(top: NonNull<u8>, identity: u16) -> Self {
        Entries {
            top,
            extent: W::new(0),
            identity,
        }
    }

    #[inline(always)]
    fn at(&self, index: u32) -> NonNull<Entry<W>> {
        // SAFETY: `Spare::take` was granted this memory, or will be before it is used.
        unsafe { self.top.cast::<Entry<W>>().sub(index as usize + 1) }
    }

    #[inline(always)]
    fn entry(&self, index: u32) -> &Entry<W> {
        debug_assert!(index < self.extent.get());
        // SAFETY: entries below `extent` were written by `Spare::take` in memory that was
        // granted to it, and are only reached as entries.
        unsafe { self.at(index).as_ref() }
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        self.extent.get() as usize * Self::ENTRY
    }

    /// The handle of an entry that was taken, for a block at `place`. O(1).
    #[inline(always)]
    pub(super) fn bind(&self, index: u32, place: u32) -> Handle {
        let entry = self.entry(index);
        let tag = entry.tag.get() - UNUSED;
        // In this order: who sees the handle resolve, sees the place.
        entry.place.set(place);
        entry.tag.set(tag);
        Handle::tagged(self.identity, tag, index)
    }

    /// The entry of a handle, and its place while the handle resolves. O(1).
    #[inline(always)]
    fn resolve(&self, handle: Handle) -> Result<(&Entry<W>, u32), BadHandle> {
        if handle.identity() != self.identity || handle.index() >= self.extent.get() {
            return Err(BadHandle::Foreign);
        }
        let entry = self.entry(handle.index());
        // In this order: as generations only grow, a handle that resolves afterwards
        // resolved when the place was read.
        let place = entry.place.get();
        // Same generation, and not marked.
        match entry.tag.get().wrapping_sub(handle.tag()) < UNUSED {
            true => Ok((entry, place)),
            false => Err(BadHandle::Stale),
        }
    }

    /// Where the block of a handle is. O(1).
    #[inline(always)]
    pub(super) fn place(&self, handle: Handle) -> Result<u32, BadHandle> {
        Ok(self.resolve(handle)?.1)
    }

    /// Whether the block of a handle is at `place`, asked by who holds what guards the
    /// contents there. O(1).
    #[inline(always)]
    pub(super) fn stands(&self, handle: Handle, place: u32) -> Result<bool, BadHandle> {
        let (entry, found) = self.resolve(handle)?;
        // Once more: the entry may have been bound between place and tag.
        Ok(found == place && entry.place.get() == place)
    }

    /// Where the block of a handle is, if it may be freed. O(1).
    #[inline(always)]
    pub(super) fn unpinned(&self, handle: Handle) -> Result<u32, BadHandle> {
        let (entry, place) = self.resolve(handle)?;
        match entry.tag.get() == handle.tag() {
            true => Ok(place),
            false => Err(BadHandle::Pinned),
        }
    }

    /// Ends the handle of a block that may be freed; its entry is then to be put back. O(1).
    #[inline(always)]
    pub(super) fn close(&self, handle: Handle) {
        // The next generation, and marked. The last one is followed by 0, which no handle has.
        let next = handle.tag().wrapping_add((1 << 8) + UNUSED);
        self.entry(handle.index()).tag.set(next);
    }

    /// A block moved. O(1).
    #[inline(always)]
    pub(super) fn moved(&self, index: u32, place: u32) {
        self.entry(index).place.set(place);
    }

    /// Counts a pin; whether it is the first. O(1).
    pub(super) fn pin(&self, handle: Handle) -> Result<bool, BadHandle> {
        let (entry, _) = self.resolve(handle)?;
        let tag = entry.tag.get();
        if tag & PINS == MOST_PINS {
            return Err(BadHandle::TooManyPins);
        }
        entry.tag.set(tag + 1);
        Ok(tag & PINS == 0)
    }

    /// Takes a pin back; whether it was the last. O(1).
    pub(super) fn unpin(&self, handle: Handle) -> Result<bool, BadHandle> {
        let (entry, _) = self.resolve(handle)?;
        let tag = entry.tag.get();
        if tag & PINS == 0 {
            return Err(BadHandle::NotPinned);
        }
        entry.tag.set(tag - 1);
        Ok(tag & PINS == 1)
    }

    /// Where the block of a used entry is.
    pub(super) fn place_at(&self, index: u32) -> Option<u32> {
        (index < self.extent.get()).then(|| self.entry(index).place.get())
    }
}

impl Spare {
    pub(super) const NONE: Spare = Spare {
        first: NONE,
        retired: 0,
    };

    /// The entry that the next handle takes; `grow` grants memory for one more. O(1).
    #[inline(always)]
    pub(super) fn take<W: Word>(
        &mut self,
        entries: &Entries<W>,
        grow: impl FnOnce(usize) -> bool,
    ) -> Option<u32> {
        if self.first != NONE {
            let index = self.first;
            self.first = entries.entry(index).place.get();
            return Some(index);
        }
        let index = entries.extent.get();
        if index == MOST_HANDLES || !grow(entries.bytes() + Entries::<W>::ENTRY) {
            return None;
        }
        // SAFETY: `grow` granted the memory of this entry, which is aligned as `top` is.
        unsafe {
            entries.at(index).write(Entry {
                place: W::new(0),
                tag: W::new(1 << 8 | UNUSED),
            });
        }
        entries.extent.set(index + 1);
        Some(index)
    }

    /// Puts back an entry that is not in use. O(1).
    #[inline(always)]
    pub(super) fn put<W: Word>(&mut self, entries: &Entries<W>, index: u32) {
        let entry = entries.entry(index);
        if entry.tag.get() == UNUSED {
            self.retired += 1;
            return;
        }
        entry.place.set(self.first);
        self.first = index;
    }

    /// Entries in use, or `None` if the free list is broken.
    pub(super) fn in_use<W: Word>(&self, entries: &Entries<W>) -> Option<u32> {
        let extent = entries.extent.get();
        let mut spare = 0;
        let mut index = self.first;
        while index != NONE {
            if index >= extent || spare == extent {
                return None;
            }
            spare += 1;
            index = entries.entry(index).place.get();
        }
        Some(extent - spare - self.retired)
    }
}
