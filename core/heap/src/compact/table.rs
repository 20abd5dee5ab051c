//! The records of pages, outside the pages, and the lists through them.
//!
//! Invariant: a page's record and bitmaps are touched only by who holds the class that
//! owns the page, or the supply while no class owns it; a page is in at most one list,
//! the one that its record names.

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::bits::{self, Bits};
use super::cells::{Cell, Hint};

/// No page.
pub(super) const NONE: u32 = u32::MAX;

const _: () = assert!(size_of::<Page>().is_multiple_of(align_of::<usize>()));

/// Which list of its class a page is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Place {
    /// Not-full, with room and without pins: blocks come here, and leave from here.
    Open = 0,
    /// Not-full and without room, because the rest are sources of moves.
    Blocked = 1,
    /// Not-full, with room, and holding pinned page-blocks: blocks only come.
    Held = 2,
    /// In no list of its class: full, pinned without room, or nothing but sources.
    Apart = 3,
    /// Of no class.
    Unowned = 4,
}

/// Lists that a class keeps: those of the places below [`Place::Apart`].
pub(super) const LISTS: usize = 3;

/// The record of one page.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Page {
    pub(super) next: Cell<u32>,
    pub(super) previous: Cell<u32>,
    /// Used page-blocks, u in the automaton; targets of moves are used.
    pub(super) used: Cell<u16>,
    /// Page-blocks that are being moved away.
    pub(super) sources: Cell<u16>,
    /// Used page-blocks that are pinned.
    pub(super) pins: Cell<u16>,
    /// Its class, or the one that owned it last.
    pub(super) class: Hint,
    pub(super) place: Cell<Place>,
}

impl Page {
    pub(super) fn unowned() -> Self {
        Page {
            next: Cell::new(NONE),
            previous: Cell::new(NONE),
            used: Cell::new(0),
            sources: Cell::new(0),
            pins: Cell::new(0),
            class: Hint::new(0),
            place: Cell::new(Place::Unowned),
        }
    }
}

/// The records and bitmaps of all pages: each record is followed by its page's bitmaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    first: NonNull<Page>,
    count: u32,
    /// Words of one bitmap of a page.
    words: u32,
    /// Bytes from a record to the next.
    stride: usize,
    life: PhantomData<&'a Page>,
}

// SAFETY: a table only says where the records are; who may touch one is the classes' matter.
unsafe impl Send for Table<'_> {}

impl<'a> Table<'a> {
    /// Bytes of the record and the bitmaps of a page of up to `blocks` page-blocks.
    pub(super) const fn record_bytes(blocks: usize) -> usize {
        size_of::<Page>() + bits::words_for(blocks) * size_of::<usize>()
    }

    /// A table of `count` pages of up to `blocks` page-blocks, none of them owned.
    ///
    /// # Safety
    /// `first` is aligned for a word; `count` times [`record_bytes`](Table::record_bytes) from
    /// there are valid for `'a` and reached through this table and its copies only.
    pub(super) unsafe fn new(first: NonNull<u8>, count: u32, blocks: usize) -> Self {
        let table = Table {
            first: first.cast(),
            count,
            words: (bits::words_for(blocks) / 2) as u32,
            stride: Self::record_bytes(blocks),
            life: PhantomData,
        };
        for number in 0..count {
            // SAFETY: within the bytes promised; the record size is a multiple of its alignment.
            unsafe {
                let page = first.add(number as usize * table.stride);
                page.cast::<Page>().write(Page::unowned());
                let words = page.add(size_of::<Page>()).cast::<usize>();
                words.write_bytes(0, bits::words_for(blocks));
            }
        }
        table
    }

    /// How many pages it describes.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Bytes from a record to the next.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    #[inline(always)]
    pub(super) fn page(&self, number: u32) -> &'a Page {
        debug_assert!(number < self.count);
        // SAFETY: numbers of pages come from a supply whose limit is at most `count`, and
        // `new` wrote the records.
        unsafe { self.first.byte_add(number as usize * self.stride).as_ref() }
    }

    /// The page of a number that may be wrong.
    pub(super) fn get(&self, number: u32) -> Option<&'a Page> {
        (number < self.count).then(|| self.page(number))
    }

    #[inline(always)]
    pub(super) fn bits(&self, number: u32) -> Bits<'a> {
        debug_assert!(number < self.count);
        // SAFETY: the words follow the record that lies there, and are only reached as cells.
        unsafe {
            let page = self.first.byte_add(number as usize * self.stride);
            Bits::new(page.add(1).cast().as_ptr(), self.words as usize)
        }
    }

    /// All pages with their numbers.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u32, &'a Page)> + '_ {
        (0..self.count).map(|number| (number, self.page(number)))
    }
}

/// A list of pages with two ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl List {
    pub(super) const EMPTY: List = List {
        first: NONE,
        last: NONE,
    };

    /// Puts a page in front.
    #[inline(always)]
    pub(super) fn push(&mut self, table: &Table<'_>, number: u32) {
        let page = table.page(number);
        page.next.set(self.first);
        page.previous.set(NONE);
        match self.first {
            NONE => self.last = number,
            first => table.page(first).previous.set(number),
        }
        self.first = number;
    }

    /// Takes a page of the list out.
    #[inline(always)]
    pub(super) fn remove(&mut self, table: &Table<'_>, number: u32) {
        let page = table.page(number);
        let (next, previous) = (page.next.get(), page.previous.get());
        match next {
            NONE => self.last = previous,
            next => table.page(next).previous.set(previous),
        }
        match previous {
            NONE => self.first = next,
            previous => table.page(previous).next.set(next),
        }
    }
}

/// The pages of no class, shared by all classes.
///
/// Invariant: pages below `extent` were handed out at least once; those of them that
/// are in the list belong to no class.
#[derive(Debug)]
pub(super) struct Supply {
    first: u32,
    /// Pages that were ever used.
    pub(super) extent: u32,
    /// Pages there may be.
    pub(super) limit: u32,
    /// Pages that classes own.
    pub(super) owned: u32,
}

impl Supply {
    pub(super) const fn new(limit: u32) -> Self {
        Supply {
            first: NONE,
            extent: 0,
            limit,
            owned: 0,
        }
    }

    /// A page for a class; one that was used before, if there is any. O(1).
    pub(super) fn take(&mut self, table: &Table<'_>) -> Option<u32> {
        let number = match self.first {
            NONE if self.extent == self.limit => return None,
            NONE => {
                self.extent += 1;
                self.extent - 1
            }
            first => {
                self.first = table.page(first).next.get();
                first
            }
        };
        self.owned += 1;
        Some(number)
    }

    /// Takes a page back. O(1).
    pub(super) fn give(&mut self, table: &Table<'_>, number: u32) {
        let page = table.page(number);
        page.place.set(Place::Unowned);
        page.next.set(self.first);
        self.first = number;
        self.owned -= 1;
    }

    /// Pages in the list, or `None` if it is broken.
    pub(super) fn spare(&self, table: &Table<'_>) -> Option<u32> {
        let mut count = 0;
        let mut number = self.first;
        while number != NONE {
            let page = table.get(number)?;
            if page.place.get() != Place::Unowned || count == self.extent {
                return None;
            }
            count += 1;
            number = page.next.get();
        }
        Some(count)
    }
}
