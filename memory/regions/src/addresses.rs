//! Which pages of the arena belong to which region: a heap of size classes over page numbers, its records
//! elsewhere. As TLSF, but a few holes of a request's own class are tried first, so that a region mostly
//! gets the addresses of one of its size that was freed.
//!
//! Invariant: regions are disjoint ranges of whole pages inside the arena, and `starts` names the record
//! of each region at its first page and nothing elsewhere.

use std::mem::ManuallyDrop;

use metes_heap::index::classes::SegregatedFit;
use metes_heap::store::ledger::{Ledger, Lookup, Record};
use metes_heap::{BadFree, Geometry, Heap, RegionError, State};

use crate::kernel::{Range, Table};
use crate::{Error, PAGE};

/// List heads of the index, each a record, and sentinels.
const HEADS: usize = 2048;

/// Finds the record of a region by its first page: a word a page, zero where none begins, so that the
/// table takes memory only where regions begin.
#[derive(Debug)]
struct Starts(Table<u32>);

impl Lookup for Starts {
    type Place = usize;
    const RUNS_OUT: bool = false;

    fn offset(&self, place: usize) -> Option<usize> {
        Some(place)
    }

    fn insert(&mut self, offset: usize, record: u32, _generation: u32) -> Option<usize> {
        *self.0.get_mut(offset / PAGE)? = record + 1;
        Some(offset)
    }

    fn find(&self, place: usize) -> Option<(u32, Option<u32>)> {
        let entry = *self.0.get(place / PAGE)?;
        Some((entry.checked_sub(1)?, None))
    }

    fn remove(&mut self, offset: usize) {
        if let Some(entry) = self.0.get_mut(offset / PAGE) {
            *entry = 0;
        }
    }

    fn has_room(&self, end: usize) -> bool {
        end <= self.0.len() * PAGE
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Classes per power of two, and holes of the own class that are tried.
type Index = SegregatedFit<32, 8>;
type Books = Heap<Index, Ledger<'static, Starts>>;

/// Taken and free pages.
#[derive(Debug)]
pub(crate) struct Addresses {
    books: ManuallyDrop<Books>,
    /// What the records lie in: dropped after the books, which borrow it.
    records: ManuallyDrop<Range>,
    pages: usize,
    regions: usize,
    most: usize,
}

// SAFETY: the records are owned, and reached through the books only.
unsafe impl Send for Addresses {}

impl Addresses {
    /// `pages` pages, all free, for at most `most` regions.
    pub(crate) fn new(pages: usize, most: usize) -> Result<Self, Error> {
        // Of two holes without a region between there is one, so a region has at most one beside it.
        let count = 2 * most.min(pages) + HEADS;
        let records = Range::zeros(count * size_of::<Record>())?;
        // SAFETY: fresh zeros with room for so many, aligned to a page; `Ledger::new` writes each before it
        // is read, zeros are a record, too, and they are given back after the ledger, by `drop`.
        let held: &'static mut [Record] =
            unsafe { std::slice::from_raw_parts_mut(records.page(0).as_ptr().cast(), count) };
        let ledger = Ledger::new(
            held,
            Starts(Table::new(pages)?),
            Geometry::out_of_band(PAGE),
        );
        let mut books = Heap::new(Index::new(), ledger);
        books.add_region(pages * PAGE).map_err(|why| match why {
            RegionError::OutOfRecords => Error::Regions(most),
            _ => Error::TooLong {
                pages,
                most: usize::MAX / PAGE,
            },
        })?;
        Ok(Addresses {
            books: ManuallyDrop::new(books),
            records: ManuallyDrop::new(records),
            pages,
            regions: 0,
            most,
        })
    }

    /// Regions now.
    pub(crate) fn regions(&self) -> usize {
        self.regions
    }

    /// Takes `pages` pages, the first a multiple of `align` pages: its number. O(1).
    pub(crate) fn take(&mut self, pages: usize, align: usize) -> Result<usize, Error> {
        if pages == 0 {
            return Err(Error::Zero);
        }
        if !align.is_power_of_two() {
            return Err(Error::Alignment(align));
        }
        if pages > self.pages || align > self.pages {
            return Err(Error::TooLong {
                pages: pages.max(align),
                most: self.pages,
            });
        }
        if self.regions == self.most {
            return Err(Error::Regions(self.most));
        }
        let taken = self.books.allocate(pages * PAGE, align * PAGE);
        let offset = taken.ok_or(Error::Addresses { pages })?;
        self.regions += 1;
        Ok(offset / PAGE)
    }

    /// Frees the region that begins at a page. O(1).
    pub(crate) fn give(&mut self, first: usize) {
        let given = self.books.release_place(first * PAGE);
        debug_assert_eq!(given, Ok(()));
        self.regions -= 1;
    }

    /// Makes a region longer or shorter where it is: whether that could be. O(1).
    pub(crate) fn fit(&mut self, first: usize, pages: usize) -> bool {
        if pages > self.pages {
            return false;
        }
        // SAFETY: a ledger resolves blocks in use only and touches no memory.
        let fitted = unsafe { (self.books).resize_where_it_is(first * PAGE, pages * PAGE, PAGE) };
        fitted == Ok(true)
    }

    /// Pages of the region that begins at an offset in bytes. O(1); where there is none, who asked is
    /// told why in O(regions).
    pub(crate) fn find(&self, offset: usize) -> Result<usize, BadRegion> {
        if offset.is_multiple_of(PAGE) {
            // SAFETY: as above.
            match unsafe { self.books.requested(offset) } {
                Ok(bytes) => return Ok(bytes / PAGE),
                Err(BadFree::Foreign | BadFree::NotInUse | BadFree::Overwritten(_)) => {}
            }
        }
        let mut inside = None;
        let walked = self.books.walk(|block| {
            if let State::Used(bytes) = block.state
                && (block.offset..block.offset + bytes).contains(&offset)
            {
                inside = Some(block.offset / PAGE);
            }
        });
        debug_assert_eq!(walked, Ok(()));
        Err(match inside {
            Some(first) => BadRegion::Inside(first),
            None => BadRegion::NotMapped,
        })
    }

    /// Bytes of the records and of the table of starts, as far as they may be written.
    pub(crate) fn record_bytes(&self) -> usize {
        self.records.bytes() + self.books.store().lookup().bytes()
    }

    /// Verifies the records. O(regions).
    pub(crate) fn check(&self) -> Result<(), String> {
        self.books.check().map_err(|corrupt| format!("{corrupt:?}"))
    }
}

/// Why no region begins at an address of the arena.
pub(crate) enum BadRegion {
    /// The address lies inside the region that begins at a page.
    Inside(usize),
    NotMapped,
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: each once, the books, which borrow the records, first.
        unsafe {
            ManuallyDrop::drop(&mut self.books);
            ManuallyDrop::drop(&mut self.records);
        }
    }
}
