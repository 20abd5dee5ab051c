//! A heap over virtual pages: a page has a frame only while a block that was touched lies on it.
//!
//! Blocks are placed by any heap whose records lie out of band, so that no tag keeps a page
//! mapped. The pages that a block has to itself are one region; a page that it shares is a region
//! alone, which goes with the last block on it. So every wholly free page is free at once, and a
//! call makes or frees three regions at most, whatever the block's size (RTCSA 2014, IV and V-A,
//! where tags lie in band).
//!
//! Invariant: a page is allocated exactly if a block in use has a byte on it; `sharers` counts the
//! blocks that cover a page in part.

use crate::cover::Cover;
use crate::{Access, Error, Frame, Frames, Index, Links, Mapped, Rights, Space, Tables};

/// Where blocks lie in a range of addresses, known without touching it.
pub trait Placement {
    /// Places a block of `bytes` bytes, at least one, at a multiple of `align`; its offset.
    fn allocate(&mut self, bytes: u64, align: u64) -> Option<u64>;
    /// Frees the block at `offset`; the bytes that were requested of it. `None`: there is none in
    /// use.
    fn free(&mut self, offset: u64) -> Option<u64>;
}

/// Why a request to a heap over pages was refused. The heap is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No free block is large enough, or nothing was asked for.
    NoBlock,
    /// No block in use begins there.
    NoSuchBlock,
    /// The page of an access: see the error.
    Page(Error),
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoBlock => f.write_str("no free block is large enough: ask for less"),
            Self::NoSuchBlock => f.write_str("no block in use begins there"),
            Self::Page(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Refusal {}

/// A heap over virtual pages.
#[derive(Debug)]
pub struct PagedHeap<'a, H, T, I> {
    placement: H,
    space: &'a mut Space<T, I>,
    /// By page: blocks that cover it in part.
    sharers: &'a mut [u16],
    /// log2 of the bytes of a page.
    shift: u32,
    maps: u64,
    unmaps: u64,
}

impl<'a, H: Placement, T: Tables, I: Index> PagedHeap<'a, H, T, I> {
    /// A heap that places blocks by `placement` in a space of which nothing is allocated, pages
    /// being `1 << shift` bytes.
    ///
    /// `placement` manages as many bytes as the space has, starting at 0, and blocks of it begin at
    /// multiples of at least 2^-16 pages. `sharers` are zeroes, one a page. `None` if those do not
    /// suffice, or something is allocated.
    pub fn new(
        placement: H,
        space: &'a mut Space<T, I>,
        sharers: &'a mut [u16],
        shift: u32,
    ) -> Option<Self> {
        let fits = sharers.len() >= space.pages() as usize && space.regions() == 0 && shift < 32;
        fits.then_some(Self {
            placement,
            space,
            sharers,
            shift,
            maps: 0,
            unmaps: 0,
        })
    }

    /// Allocates `bytes` bytes at a multiple of `align`; takes no frame. The time of the placement,
    /// and at most three regions.
    ///
    /// # Errors
    /// [`Refusal::NoBlock`].
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Result<u64, Refusal> {
        if bytes == 0 {
            return Err(Refusal::NoBlock);
        }
        let offset = self
            .placement
            .allocate(bytes, align)
            .ok_or(Refusal::NoBlock)?;
        let cover = Cover::of(offset, bytes, self.shift);
        for page in cover.shared.into_iter().flatten() {
            let sharers = &mut self.sharers[page as usize];
            *sharers += 1;
            if *sharers == 1 {
                self.map(page, 1);
            }
        }
        if cover.own.1 != 0 {
            self.map(cover.own.0, cover.own.1);
        }
        Ok(offset)
    }

    /// Frees the block at `offset`, and the frames of every page that is wholly free now. The time
    /// of the placement, and at most three regions.
    ///
    /// # Errors
    /// [`Refusal::NoSuchBlock`].
    pub fn free<L: Links>(&mut self, offset: u64, frames: &mut Frames<L>) -> Result<(), Refusal> {
        let bytes = self.placement.free(offset).ok_or(Refusal::NoSuchBlock)?;
        let cover = Cover::of(offset, bytes, self.shift);
        for page in cover.shared.into_iter().flatten() {
            let sharers = &mut self.sharers[page as usize];
            *sharers -= 1;
            if *sharers == 0 {
                self.unmap(page, frames);
            }
        }
        if cover.own.1 != 0 {
            self.unmap(cover.own.0, frames);
        }
        Ok(())
    }

    /// Accesses a byte: the frame of its page. A page that is touched for the first time is mapped,
    /// and what is known of the frame's content comes with it. O(levels of the index).
    ///
    /// # Errors
    /// [`Refusal::Page`]: no block there, or no frame left.
    pub fn touch<L: Links>(
        &mut self,
        offset: u64,
        access: Access,
        frames: &mut Frames<L>,
    ) -> Result<(Frame, Option<Mapped>), Refusal> {
        let page = u32::try_from(offset >> self.shift).unwrap_or(u32::MAX);
        match self.space.access(page, access) {
            Ok(frame) => Ok((frame, None)),
            Err(Error::Absent) => {
                let mapped = self.space.map_page(page, frames).map_err(Refusal::Page)?;
                Ok((mapped.frame, Some(mapped)))
            }
            Err(error) => Err(Refusal::Page(error)),
        }
    }

    /// The pages below.
    pub fn space(&self) -> &Space<T, I> {
        self.space
    }

    /// Regions made and freed so far.
    pub fn regions(&self) -> (u64, u64) {
        (self.maps, self.unmaps)
    }

    fn map(&mut self, start: u32, pages: u32) {
        let result = self.space.map_region(start, pages, Rights::READ_WRITE);
        debug_assert_eq!(result, Ok(()), "pages without a block are free");
        self.maps += 1;
    }

    fn unmap<L: Links>(&mut self, start: u32, frames: &mut Frames<L>) {
        let result = self.space.unmap_region(start, frames);
        debug_assert_eq!(result, Ok(()), "pages with a block are allocated");
        self.unmaps += 1;
    }
}
