//! A virtual address space: regions of pages, mapped and unmapped in constant time.
//!
//! Source: RTCSA 2014, IV. What the paper leaves open or gets wrong, and what stands here instead:
//!
//! - its `mapVRH(A, a)` has no size: [`Space::map_region`] splits twice;
//! - a region united with an *allocated* neighbour would take over freed pages: headers say what is
//!   allocated, and only free neighbours are united;
//! - Lemma 1 needs, silently, that splits happen in free regions only, and that the stack of every
//!   start that disappears is emptied: both are checked here, in release builds, too;
//! - its list of a region's frames needs a head and a tail: bottom and top of the stack are those.
//!
//! Invariant: a page `b` is mapped exactly if, with `(a, k)` its record, `k` is below the count of
//! the header of `a` and slot `a + k` holds `b`. Free regions are never neighbours; the slot of a
//! free region's first page holds its last page; headers of all pages where no allocated region
//! begins are zero.

use crate::{Access, Domain, Error, Frame, Frames, Header, Index, Links, Origin, Rights, Tables};

/// A virtual address space of up to [`Tables::PAGES`] pages, over frames that it may share.
///
/// All zero is a space of no pages, so a static one costs no initialised memory; [`Space::open`]
/// gives it its pages.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Space<T, I> {
    pages: u32,
    regions: u32,
    mapped: u32,
    domain: Domain,
    tables: T,
    index: I,
}

/// A page that was just mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The frame it is mapped to.
    pub frame: Frame,
    /// Whose content the frame may still hold: [`Origin::Foreign`] must be cleared.
    pub origin: Origin,
}

/// A region: where it begins, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first page.
    pub start: u32,
    /// Its pages.
    pub pages: u32,
    /// Those of them that are mapped.
    pub mapped: u32,
    /// What it allows; `None`: it is free.
    pub rights: Option<Rights>,
}

impl<T: Tables + Default, I: Index + Default> Default for Space<T, I> {
    fn default() -> Self {
        Self::new(T::default(), I::default())
    }
}

impl<T: Tables, I: Index> Space<T, I> {
    /// A space over tables and an index, to be [opened](Space::open).
    ///
    /// Headers and index are as their constructors make them, or all zero. Whatever else is in the
    /// tables does not matter (Lemma 1).
    pub const fn new(tables: T, index: I) -> Self {
        const { assert!(T::PAGES <= I::PAGES) };
        Self {
            pages: 0,
            regions: 0,
            mapped: 0,
            domain: Domain::FIRST,
            tables,
            index,
        }
    }

    /// Gives a space that has none its pages, all of them one free region. O(1).
    ///
    /// # Errors
    /// [`Error::Beyond`] if the tables are too small or there are to be no pages;
    /// [`Error::Open`] if the space has pages already.
    pub fn open(&mut self, pages: u32, domain: Domain) -> Result<(), Error> {
        if self.pages != 0 {
            return Err(Error::Open);
        }
        if pages == 0 || pages as usize > T::PAGES {
            return Err(Error::Beyond);
        }
        (self.pages, self.domain) = (pages, domain);
        self.tables.set_slot(0, pages - 1);
        Ok(())
    }

    /// Pages of the space.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Allocated regions.
    pub fn regions(&self) -> u32 {
        self.regions
    }

    /// Mapped pages.
    pub fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Makes `start..start + pages` a region, of which no page is mapped yet (the paper's
    /// `mapVRH`). O(levels of the index), whatever `pages` is.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Beyond`]; [`Error::Overlap`] if a page of it is allocated;
    /// [`Error::NoFrame`] if there is no memory for [hierarchical tables](crate::Sparse). The space is
    /// as it was.
    #[inline]
    pub fn map_region(&mut self, start: u32, pages: u32, rights: Rights) -> Result<(), Error> {
        if start >= self.pages || pages.wrapping_sub(1) >= self.pages - start {
            return Err(if pages == 0 {
                Error::Empty
            } else {
                Error::Beyond
            });
        }
        let free = self.index.find(start);
        if self.tables.header(free).is_allocated() {
            return Err(Error::Overlap);
        }
        let (end, free_last) = (start + pages, self.free_last(free));
        if end > free_last {
            if end - 1 > free_last {
                return Err(Error::Overlap);
            }
            self.tables.cover(start, pages)?;
        } else {
            self.tables.cover(start, pages)?;
            debug_assert_eq!(self.tables.header(end), Header::FREE);
            self.tables.set_slot(end, free_last);
            self.index.insert(end);
        }
        if free != start {
            debug_assert_eq!(self.tables.header(start), Header::FREE);
            self.tables.set_slot(free, start - 1);
            self.index.insert(start);
        }
        self.tables.set_header(start, Header::allocated(rights));
        self.regions += 1;
        Ok(())
    }

    /// Frees the region that begins at `start`: invalidates all of its pages, and puts their frames
    /// on the free list of this domain. O(levels of the index), however many pages there are.
    ///
    /// # Errors
    /// [`Error::Beyond`]; [`Error::Unmapped`] if no allocated region begins there, so that a
    /// region cannot be freed twice. The space is as it was.
    #[inline]
    pub fn unmap_region<L: Links>(
        &mut self,
        start: u32,
        frames: &mut Frames<L>,
    ) -> Result<(), Error> {
        if start >= self.pages {
            return Err(Error::Beyond);
        }
        let header = self.tables.header(start);
        if !header.is_allocated() {
            return Err(Error::Unmapped);
        }
        let count = header.count();
        if count != 0 {
            let (bottom, top) = (start, start + count - 1);
            let first = self.tables.frame(self.tables.slot(bottom), bottom);
            let last = self.tables.frame(self.tables.slot(top), top);
            frames.splice(self.domain, first, last, count);
        }
        // From here on none of its pages is valid.
        self.tables.set_header(start, Header::FREE);
        self.mapped -= count;
        self.regions -= 1;

        let next = self.index.next(start).unwrap_or(self.pages);
        self.tables.uncover(start, next - start);
        let mut last = next - 1;
        if next < self.pages && !self.tables.header(next).is_allocated() {
            last = self.free_last(next);
            self.index.remove(next);
        }
        let mut free = start;
        if start != 0 {
            let before = self.index.find(start - 1);
            if !self.tables.header(before).is_allocated() {
                self.index.remove(start);
                free = before;
            }
        }
        self.tables.set_slot(free, last);
        Ok(())
    }

    /// Maps a page of an allocated region to a frame: what a page fault does. O(levels of the
    /// index).
    ///
    /// # Errors
    /// In this order: [`Error::Beyond`], [`Error::Unmapped`], [`Error::Present`] if it is mapped
    /// already, [`Error::NoFrame`].
    #[inline]
    pub fn map_page<L: Links>(
        &mut self,
        page: u32,
        frames: &mut Frames<L>,
    ) -> Result<Mapped, Error> {
        if page >= self.pages {
            return Err(Error::Beyond);
        }
        let start = self.index.find(page);
        let header = self.tables.header(start);
        if !header.is_allocated() {
            return Err(Error::Unmapped);
        }
        if self.slot_of(page).is_some() {
            return Err(Error::Present);
        }
        let count = header.count();
        self.tables.reserve(page, start + count)?;
        let (frame, origin) = frames.take(self.domain).ok_or(Error::NoFrame)?;
        if count != 0 {
            let top = start + count - 1;
            frames.link(self.tables.frame(self.tables.slot(top), top), frame);
        }
        self.tables.push(start, header, page, frame);
        self.mapped += 1;
        Ok(Mapped { frame, origin })
    }

    /// The frame that an access goes to; `None`: a fault. What hardware does at every access:
    /// constant, without a look at the index.
    #[inline]
    pub fn translate(&self, page: u32, access: Access) -> Option<Frame> {
        // Beyond the space, no slot holds the page: that check is the last one's, too.
        let (start, position) = self.tables.record(page);
        let header = self.tables.header(start);
        let slot = start.wrapping_add(position);
        (header.allows(access) && position < header.count() && self.tables.slot(slot) == page)
            .then(|| self.tables.frame(page, slot))
    }

    /// Accesses a page: its frame, or why there is none. O(1) for a page that is mapped, else
    /// O(levels of the index).
    ///
    /// # Errors
    /// In this order: [`Error::Beyond`], [`Error::Unmapped`], [`Error::Rights`], [`Error::Absent`]:
    /// then [`Space::map_page`] and access it again.
    #[inline]
    pub fn access(&self, page: u32, access: Access) -> Result<Frame, Error> {
        match self.translate(page, access) {
            Some(frame) => Ok(frame),
            None => Err(self.fault(page, access)),
        }
    }

    /// Why an access to a page found no frame.
    #[cold]
    fn fault(&self, page: u32, access: Access) -> Error {
        if page >= self.pages {
            return Error::Beyond;
        }
        let header = self.tables.header(self.index.find(page));
        if !header.is_allocated() {
            Error::Unmapped
        } else if !header.allows(access) {
            Error::Rights
        } else {
            Error::Absent
        }
    }

    /// The first page of the region that `page` belongs to. O(levels of the index).
    #[inline]
    pub fn find(&self, page: u32) -> u32 {
        self.index.find(page)
    }

    /// The region that `page` belongs to; `None` beyond the space. O(levels of the index).
    pub fn region(&self, page: u32) -> Option<Region> {
        (page < self.pages).then(|| {
            let start = self.index.find(page);
            let end = self.index.next(page).unwrap_or(self.pages);
            let header = self.tables.header(start);
            Region {
                start,
                pages: end - start,
                mapped: header.count(),
                rights: header.is_allocated().then(|| header.rights()),
            }
        })
    }

    /// The tables, for tests that fill them with garbage.
    #[doc(hidden)]
    pub fn tables_mut(&mut self) -> &mut T {
        &mut self.tables
    }

    /// The last page of the free region that begins at `start`.
    #[inline(always)]
    fn free_last(&self, start: u32) -> u32 {
        match self.tables.free_last(start) {
            Some(last) => last,
            None => self.index.next(start).unwrap_or(self.pages) - 1,
        }
    }

    /// Where on the stacks a page lies, if it is mapped: the test of Lemma 1.
    #[inline]
    fn slot_of(&self, page: u32) -> Option<u32> {
        let (start, position) = self.tables.record(page);
        let slot = start.wrapping_add(position);
        (position < self.tables.header(start).count() && self.tables.slot(slot) == page)
            .then_some(slot)
    }
}
