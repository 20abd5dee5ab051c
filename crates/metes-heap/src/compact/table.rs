//! The records of pages, outside the pages, and the lists through them.
//!
//! Invariant: a page's record and bitmaps are touched only by who holds the class that
//! owns the page, or the supply while no class owns it; a page is in at most one list,
//! the one that its record names.

use super::bits::Bits;
use super::cells::{Cell, Hint};

/// No page.
pub(super) const NONE: u32 = u32::MAX;

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
            class: Hint::new(u8::MAX),
            place: Cell::new(Place::Unowned),
        }
    }
}

/// The records and bitmaps of all pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    pub(super) pages: &'a [Page],
    pub(super) words: &'a [core::cell::Cell<usize>],
    /// Words of bitmaps a page.
    pub(super) stride: usize,
}

impl<'a> Table<'a> {
    #[inline(always)]
    pub(super) fn page(&self, number: u32) -> &'a Page {
        &self.pages[number as usize]
    }

    #[inline(always)]
    pub(super) fn bits(&self, number: u32) -> Bits<'a> {
        let from = number as usize * self.stride;
        Bits(&self.words[from..from + self.stride])
    }

    /// Bytes of the record and the bitmaps of a page.
    pub(super) const fn record_bytes(stride: usize) -> usize {
        size_of::<Page>() + stride * size_of::<usize>()
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
            let page = table.pages.get(number as usize)?;
            if page.place.get() != Place::Unowned || count == self.extent {
                return None;
            }
            count += 1;
            number = page.next.get();
        }
        Some(count)
    }
}
