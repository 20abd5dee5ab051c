//! Regions of pages in addresses that are reserved once (Linux), and when their memory goes back.
//!
//! Which pages belong to which region is bookkeeping outside the pages: size classes over page numbers, so
//! mapping and unmapping a region decide in O(1), whatever its size. What takes time is the kernel: it
//! takes frames back one by one, so `munmap` of 256 MiB takes tens of thousands of times that of a page.
//! A [`Policy`] says who pays that, and when:
//!
//! | policy | an unmap does | footprint | a stale access |
//! | --- | --- | --- | --- |
//! | [`Retain`](Policy::Retain) | no system call | never falls | is not noticed |
//! | [`Bounded`](Policy::Bounded) | at most k pages, by one system call, as does every other call | falls by at most k pages a call | is not noticed |
//! | [`Graveyard`](Policy::Graveyard) | moves page tables: an entry for 512 pages | falls as the reaper gets to it | traps |
//! | [`Immediate`](Policy::Immediate) | returns every page | falls at once | traps |
//!
//! **No policy makes the return of memory constant in time on Linux**: there is no call that takes x pages
//! away in less than x steps, or x/512. What the policies guarantee is stated of each; system calls
//! themselves have no bound that a program could rely on, so [`Statistics`] measure the worst of every
//! operation.
//!
//! ```
//! use metes_regions::{Options, Policy, Regions};
//!
//! let mut regions = Regions::reserve(Options::new(1 << 30, Policy::Immediate))?;
//! let region = regions.map(300)?;
//! // SAFETY: 300 pages, all zero, of this program's own.
//! unsafe { region.start.write_bytes(7, 300 * metes_regions::PAGE) };
//! assert_eq!(regions.statistics().mapped, 300);
//! regions.unmap(region.start)?;
//! assert!(regions.unmap(region.start).is_err(), "it is not mapped any more");
//! # Ok::<(), metes_regions::Error>(())
//! ```
//!
//! Invariant: every address of the arena belongs to the manager until it is dropped; pages of a region
//! are readable and writable, and under [`Immediate`](Policy::Immediate) and
//! [`Graveyard`](Policy::Graveyard) no other page of the arena is, nor has a frame.
#![cfg(target_os = "linux")]

mod addresses;
mod graveyard;
mod kept;
mod kernel;
mod raw;
mod statistics;

use std::io;
use std::ptr::NonNull;

use addresses::{Addresses, BadRegion};
use graveyard::Graveyard;
use kept::Kept;
use kernel::Range;

pub use statistics::{Operation, Statistics};

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Pages of a page table: what the kernel can move by one entry. Regions of as many pages begin at a
/// multiple of it under [`Policy::Graveyard`].
pub const TABLE: usize = 512;
/// Most pages that an arena is aligned to: a GiB.
const MOST_ALIGNED: usize = TABLE * TABLE;

/// When frames of unmapped regions go back to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Never. An unmap is no system call, and pages that were used before fault no more; regions are
    /// mapped with what was in them. Guaranteed: O(1) and x/64 words for x pages, no system call but for
    /// addresses never used before; frames at most those of the highest address ever used.
    Retain,
    /// By at most so many pages with each call, whichever it is. Guaranteed: besides what
    /// [`Retain`](Policy::Retain) does, a call makes one system call for at most so many pages, and looks
    /// at as many words. What is mapped again before is not returned, so what waits is never more than
    /// the arena has had in use.
    Bounded(usize),
    /// Soon, by another: the region's page tables move to a window of addresses, where frames are taken
    /// `slice` pages at a time, by a thread (`threaded`) or by calls of [`Regions::pay`]. Guaranteed for x
    /// pages: ⌈x/512⌉ entries of page tables and at most 511 single ones are moved, and no frame is
    /// returned, by the call; accesses trap when it returns. Regions below 512 pages are returned at once. What
    /// waits is never more than the most that regions had at once: a region beyond it is returned at
    /// once, too, as is one that cannot be moved, and counted among the
    /// [fallbacks](Statistics::fallbacks). The thread runs where a processor is idle, and where none is with
    /// the least weight, so that it takes none from the program.
    Graveyard {
        /// Pages that go back at a time, between which others may change mappings.
        slice: usize,
        /// Whether a thread does it.
        threaded: bool,
    },
    /// By the call that unmaps, in time linear in the pages that were touched. Guaranteed: accesses trap,
    /// and the frames are the system's, when it returns.
    Immediate,
}

/// What a manager is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of addresses to reserve; whole pages.
    pub bytes: usize,
    /// When frames go back.
    pub policy: Policy,
    /// Most regions at once.
    pub regions: usize,
    /// Where the addresses should lie, if they are free there; 0: anywhere.
    pub place: usize,
    /// Whether operations are timed: two clocks, twice an operation.
    pub timed: bool,
}

impl Options {
    /// Up to 16,384 regions anywhere, not timed.
    pub const fn new(bytes: usize, policy: Policy) -> Self {
        Options {
            bytes,
            policy,
            regions: 1 << 14,
            place: 0,
            timed: false,
        }
    }
}

/// Why a manager was not made or a call refused. The regions are as they were.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A region of no pages, or a manager of none.
    #[error("zero pages: ask for at least one")]
    Zero,
    /// More than the arena has.
    #[error("{pages} pages are more than the {most} of the arena: reserve more addresses")]
    TooLong {
        /// Pages asked for, or their alignment.
        pages: usize,
        /// Pages of the arena.
        most: usize,
    },
    /// No range of addresses is long enough.
    #[error(
        "no {pages} pages of addresses are free one behind the other: unmap some, or reserve more"
    )]
    Addresses {
        /// Pages asked for.
        pages: usize,
    },
    /// As many regions as the manager was made for.
    #[error("{0} regions are mapped, as many as there may be: unmap some, or allow more")]
    Regions(usize),
    /// An alignment that is no power of two.
    #[error(
        "an alignment of {0} pages is no power of two, or too large: give a smaller one that is"
    )]
    Alignment(usize),
    /// An address outside the arena.
    #[error("{0:#x} is no address of this arena: give the start of a region that it mapped")]
    Foreign(usize),
    /// No region begins or lies there: it was unmapped already, or never mapped.
    #[error("no region is mapped at {0:#x}: it was unmapped before, or never mapped")]
    NotMapped(usize),
    /// An address inside a region, which is unmapped as a whole.
    #[error(
        "{address:#x} lies inside the region at {start:#x}: give its start; a region is not split"
    )]
    Inside {
        /// What was given.
        address: usize,
        /// Where the region begins.
        start: usize,
    },
    /// The kernel cannot move pages and leave their addresses mapped.
    #[error("this kernel cannot move pages away (Linux 5.7 can): choose another policy")]
    Unsupported,
    /// The kernel refused.
    #[error("the kernel refused {what}: {cause}; free memory, or ask for less")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// Its answer.
        cause: io::Error,
    },
}

/// A region just mapped or resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it begins.
    pub start: NonNull<u8>,
    /// Its pages.
    pub pages: usize,
    /// Whether pages that are new in it are known to be zero.
    pub zeroed: bool,
}

/// What becomes of pages that no region has.
#[derive(Debug)]
enum Returns {
    Kept { kept: Kept, each: usize },
    Buried(Graveyard),
    AtOnce,
}

/// A manager of regions.
#[derive(Debug)]
pub struct Regions {
    arena: Range,
    /// Pages that the arena is aligned to.
    alignment: usize,
    addresses: Addresses,
    returns: Returns,
    statistics: Statistics,
    timed: bool,
}

impl Regions {
    /// Reserves addresses; no memory is taken but for records.
    ///
    /// # Errors
    /// [`Error::Zero`]; [`Error::Unsupported`] under [`Policy::Graveyard`] on old kernels;
    /// [`Error::System`] where the kernel grants no such addresses (`ulimit -v`).
    pub fn reserve(options: Options) -> Result<Self, Error> {
        let Options {
            bytes,
            policy,
            regions,
            place,
            timed,
        } = options;
        let pages = bytes / PAGE;
        if pages == 0 || regions == 0 {
            return Err(Error::Zero);
        }
        let alignment = (1 << pages.ilog2()).clamp(TABLE, MOST_ALIGNED);
        let arena = Range::reserve(pages * PAGE, alignment * PAGE, place)?;
        let returns = match policy {
            Policy::Retain => Returns::Kept {
                kept: Kept::new(pages)?,
                each: 0,
            },
            Policy::Bounded(0) => return Err(Error::Zero),
            Policy::Bounded(each) => Returns::Kept {
                kept: Kept::new(pages)?,
                each,
            },
            Policy::Graveyard { slice: 0, .. } => return Err(Error::Zero),
            Policy::Graveyard { slice, threaded } => {
                let bytes = (pages * PAGE).next_multiple_of(TABLE * PAGE);
                let behind = arena.page(pages).addr().get();
                let place = if place == 0 { 0 } else { behind };
                Returns::Buried(Graveyard::new(bytes, place, slice, threaded)?)
            }
            Policy::Immediate => Returns::AtOnce,
        };
        Ok(Regions {
            arena,
            alignment,
            addresses: Addresses::new(pages, regions)?,
            returns,
            statistics: Statistics::default(),
            timed,
        })
    }

    /// Maps a region of so many pages.
    ///
    /// # Errors
    /// [`Error`]; nothing is changed.
    pub fn map(&mut self, pages: usize) -> Result<Region, Error> {
        self.map_aligned(pages, 1)
    }

    /// Maps a region whose address is a multiple of `align` pages. O(1) and a system call, or none and a bit
    /// a page where frames stay.
    ///
    /// # Errors
    /// [`Error`]; nothing is changed. [`Error::Alignment`] for what is no power of two, or beyond both a
    /// GiB and the arena's own size.
    pub fn map_aligned(&mut self, pages: usize, align: usize) -> Result<Region, Error> {
        let begun = self.begin();
        if align > self.alignment {
            return Err(Error::Alignment(align));
        }
        let first = self.addresses.take(pages, align.max(self.align(pages)))?;
        let opened = match self.open(first, pages) {
            Ok(zeroed) => Ok(self.region(first, pages, zeroed)),
            Err(why) => {
                self.addresses.give(first);
                Err(why)
            }
        };
        if opened.is_ok() {
            self.statistics.map_pages(pages, self.addresses.regions());
        }
        self.pay_a_little();
        self.end(begun, |statistics| &mut statistics.map);
        opened
    }

    /// Makes a region longer or shorter, where it is if that can be; else it moves: by page tables, or by
    /// a copy where frames stay where they are. What both have in common is kept.
    ///
    /// # Errors
    /// [`Error`]; the region is as it was.
    pub fn resize(&mut self, start: NonNull<u8>, pages: usize) -> Result<Region, Error> {
        let begun = self.begin();
        let (first, held) = self.find(start)?;
        if pages == 0 {
            return Err(Error::Zero);
        }
        let resized = match pages.cmp(&held) {
            std::cmp::Ordering::Less => self.cut(first, held, pages),
            std::cmp::Ordering::Equal => Ok(self.region(first, pages, true)),
            std::cmp::Ordering::Greater => self.lengthen(first, held, pages),
        };
        if resized.is_ok() {
            self.statistics.resize_pages(held, pages);
        }
        self.pay_a_little();
        self.end(begun, |statistics| &mut statistics.resize);
        resized
    }

    /// Unmaps a region: how many pages it had. What the policy says of time holds of this.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::NotMapped`], [`Error::Inside`]: always, when no region begins there, and
    /// nothing is changed.
    pub fn unmap(&mut self, start: NonNull<u8>) -> Result<usize, Error> {
        let begun = self.begin();
        let (first, pages) = self.find(start)?;
        self.give_back(first, pages)?;
        self.addresses.give(first);
        self.statistics.unmap_pages(pages);
        self.note_waiting();
        self.pay_a_little();
        self.end(begun, |statistics| &mut statistics.unmap);
        Ok(pages)
    }

    /// Gives back at most `most` pages that wait: how many; none while the reaper's thread does it. Where
    /// frames stay, these lie one behind the other, and at most `most` words are looked at for them, so
    /// there may be none though some wait. O(most).
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn pay(&mut self, most: usize) -> Result<usize, Error> {
        let begun = self.begin();
        let mut paid = 0;
        match &mut self.returns {
            Returns::Kept { kept, .. } => {
                paid = kept.pay(&self.arena, most)?;
                self.statistics.released += paid;
            }
            Returns::Buried(graveyard) => paid = graveyard.pay(most),
            Returns::AtOnce => {}
        }
        self.end(begun, |statistics| &mut statistics.pay);
        Ok(paid)
    }

    /// Where the arena begins.
    pub fn start(&self) -> NonNull<u8> {
        self.arena.page(0)
    }

    /// Pages of the region that begins at an address.
    ///
    /// # Errors
    /// As [`unmap`](Self::unmap).
    pub fn pages(&self, start: NonNull<u8>) -> Result<usize, Error> {
        self.find(start).map(|(_, pages)| pages)
    }

    /// What was done, what waits, and the worst times.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        statistics.regions = self.addresses.regions();
        statistics.waiting = self.waiting();
        let tables = match &self.returns {
            Returns::Kept { kept, .. } => kept.record_bytes(),
            Returns::Buried(graveyard) => {
                statistics.released += graveyard.released();
                graveyard.record_bytes()
            }
            Returns::AtOnce => 0,
        };
        statistics.record_bytes = self.addresses.record_bytes() + tables;
        statistics
    }

    /// Whether a thread gives back what waits.
    pub fn has_reaper(&self) -> bool {
        matches!(&self.returns, Returns::Buried(graveyard) if graveyard.is_threaded())
    }

    /// Verifies the records. O(regions).
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.addresses.check()
    }

    // ------------------------------------------------------------------ Pages

    /// To how many pages a region of so many begins aligned.
    fn align(&self, pages: usize) -> usize {
        match self.returns {
            Returns::Buried(_) if pages >= TABLE => TABLE,
            _ => 1,
        }
    }

    fn region(&self, first: usize, pages: usize, zeroed: bool) -> Region {
        Region {
            start: self.arena.page(first),
            pages,
            zeroed,
        }
    }

    /// The first page of the region at an address, and its pages.
    fn find(&self, start: NonNull<u8>) -> Result<(usize, usize), Error> {
        let address = start.addr().get();
        let offset = self.arena.offset(start).ok_or(Error::Foreign(address))?;
        match self.addresses.find(offset) {
            Ok(pages) => Ok((offset / PAGE, pages)),
            Err(BadRegion::NotMapped) => Err(Error::NotMapped(address)),
            Err(BadRegion::Inside(first)) => Err(Error::Inside {
                address,
                start: self.arena.page(first).addr().get(),
            }),
        }
    }

    /// Gives a region's addresses pages: whether these are zero.
    fn open(&mut self, first: usize, pages: usize) -> Result<bool, Error> {
        match &mut self.returns {
            Returns::Kept { kept, .. } => kept.take(&self.arena, first, pages),
            _ => kernel::open(self.arena.page(first), pages * PAGE).map(|()| true),
        }
    }

    /// Takes pages from a region, as the policy has it.
    fn give_back(&mut self, first: usize, pages: usize) -> Result<(), Error> {
        let place = self.arena.page(first);
        match &mut self.returns {
            Returns::Kept { kept, .. } => {
                kept.give(first, pages);
                return Ok(());
            }
            Returns::Buried(graveyard)
                if pages >= TABLE && graveyard.waiting() + pages > self.statistics.most_mapped =>
            {
                self.statistics.fallbacks += 1;
            }
            Returns::Buried(graveyard) if pages >= TABLE => match graveyard.bury(place, pages) {
                Ok(true) => {
                    let closed = kernel::close_empty(place, pages * PAGE);
                    graveyard.wake();
                    return closed;
                }
                Ok(false) | Err(_) => self.statistics.fallbacks += 1,
            },
            Returns::Buried(_) | Returns::AtOnce => {}
        }
        kernel::close(place, pages * PAGE)?;
        self.statistics.released += pages;
        // What waits in a child of a fork came with it: without a burial of its own it would wait for ever.
        if let Returns::Buried(graveyard) = &mut self.returns
            && graveyard.waiting() != 0
        {
            graveyard.wake();
        }
        Ok(())
    }

    /// Makes a region shorter.
    fn cut(&mut self, first: usize, held: usize, pages: usize) -> Result<Region, Error> {
        self.give_back(first + pages, held - pages)?;
        let fitted = self.addresses.fit(first, pages);
        debug_assert!(fitted, "what is shorter fits");
        self.note_waiting();
        Ok(self.region(first, pages, true))
    }

    /// Makes a region longer.
    fn lengthen(&mut self, first: usize, held: usize, pages: usize) -> Result<Region, Error> {
        // One that will be buried by page tables is to begin at one.
        let begins_well = first.is_multiple_of(self.align(pages));
        if begins_well && self.addresses.fit(first, pages) {
            return match self.open(first + held, pages - held) {
                Ok(zeroed) => Ok(self.region(first, pages, zeroed)),
                Err(why) => {
                    self.addresses.fit(first, held);
                    Err(why)
                }
            };
        }
        let new = self.addresses.take(pages, self.align(pages))?;
        match self.move_to(first, held, new, pages) {
            Ok(zeroed) => {
                self.addresses.give(first);
                self.note_waiting();
                Ok(self.region(new, pages, zeroed))
            }
            Err(why) => {
                self.addresses.give(new);
                Err(why)
            }
        }
    }

    /// Moves what is in a region to a longer one, whose addresses were taken; the old one's are empty
    /// then. Whether what is new is zero.
    fn move_to(
        &mut self,
        first: usize,
        held: usize,
        new: usize,
        pages: usize,
    ) -> Result<bool, Error> {
        let (from, to) = (self.arena.page(first), self.arena.page(new));
        let bytes = held * PAGE;
        if !matches!(self.returns, Returns::Kept { .. }) && kernel::carry(from, bytes, to).is_ok() {
            if let Err(why) = self.open(new + held, pages - held) {
                kernel::carry(to, bytes, from)?;
                kernel::close_empty(to, bytes)?;
                return Err(why);
            }
            kernel::close_empty(from, bytes)?;
            return Ok(true);
        }
        let zeroed = self.open(new, pages)?;
        // SAFETY: two disjoint ranges of the arena, both open, of at least so many bytes.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
        self.give_back(first, held)?;
        Ok(zeroed)
    }

    // ------------------------------------------------------------- What waits

    /// Pages that belong to no region, and wait to be given back.
    pub fn waiting(&self) -> usize {
        match &self.returns {
            Returns::Kept { kept, .. } => kept.waiting(),
            Returns::Buried(graveyard) => graveyard.waiting(),
            Returns::AtOnce => 0,
        }
    }

    fn note_waiting(&mut self) {
        self.statistics.most_waiting = self.statistics.most_waiting.max(self.waiting());
    }

    /// What every call pays under [`Policy::Bounded`]. What the kernel refuses waits on.
    fn pay_a_little(&mut self) {
        if let Returns::Kept { kept, each } = &mut self.returns {
            self.statistics.released += kept.pay(&self.arena, *each).unwrap_or(0);
        }
    }

    fn begin(&self) -> Option<[u64; 2]> {
        self.timed.then(statistics::now)
    }

    fn end(
        &mut self,
        begun: Option<[u64; 2]>,
        which: impl FnOnce(&mut Statistics) -> &mut Operation,
    ) {
        which(&mut self.statistics).note(begun);
    }
}
