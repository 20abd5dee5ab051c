//! The system that the paper compares with: a page table, unmapped page by page, and only at the
//! end of the heap (RTCSA 2014, V-A).
//!
//! Its heap is the same TLSF, with boundary tags in band: a word before each block, and links in
//! free ones. So tags are touched, and a page that holds nothing but a tag has a frame.
//!
//! Invariant: a page has a frame exactly if it was touched since the heap's end last fell below it.

use std::collections::{BTreeMap, BTreeSet};

use metes_pages::{Frame, Placement};

use crate::placement::{Blocks, GRANULE};

/// Bytes of a boundary tag.
const TAG: u64 = 8;
/// Bytes that are touched of a free block: its tag and two links.
const FREE: u64 = 24;

/// A page table, with a free list of frames.
#[derive(Debug)]
#[repr(C)]
pub struct PageTable {
    /// By page: its frame and one, or zero.
    entries: Box<[u32]>,
    /// By frame: the next free one.
    next: Box<[Frame]>,
    head: Frame,
    free: u32,
}

impl PageTable {
    /// `pages` pages and as many frames, nothing mapped.
    pub fn new(pages: u32) -> Self {
        Self {
            entries: vec![0; pages as usize].into_boxed_slice(),
            next: (1..=pages).collect(),
            head: 0,
            free: pages,
        }
    }

    /// The frame of a page; `None`: a fault. O(1).
    #[inline]
    pub fn translate(&self, page: u32) -> Option<Frame> {
        self.entries.get(page as usize)?.checked_sub(1)
    }

    /// Maps a page that is not mapped. O(1). `false`: beyond the table, or no frame.
    #[inline]
    pub fn map_page(&mut self, page: u32) -> bool {
        let Some(entry) = self.entries.get_mut(page as usize) else {
            return false;
        };
        if self.free == 0 {
            return false;
        }
        let frame = self.head;
        self.head = self.next.get(frame as usize).copied().unwrap_or(0);
        self.free -= 1;
        *entry = frame + 1;
        true
    }

    /// Unmaps pages, one after another: linear.
    #[inline]
    pub fn unmap(&mut self, start: u32, end: u32) {
        let Some(entries) = self.entries.get_mut(start as usize..end as usize) else {
            return;
        };
        for entry in entries {
            if let Some(frame) = entry.checked_sub(1) {
                *entry = 0;
                if let Some(next) = self.next.get_mut(frame as usize) {
                    *next = self.head;
                    self.head = frame;
                    self.free += 1;
                }
            }
        }
    }

    /// Pages with a frame.
    pub fn mapped(&self) -> u32 {
        self.next.len() as u32 - self.free
    }
}

/// What a call had to do to pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Pages mapped for tags.
    pub faults: u32,
    /// Pages that were unmapped, one after another.
    pub unmapped: u32,
}

/// TLSF with tags in band over a page table.
#[derive(Debug)]
pub struct Conventional {
    blocks: Blocks,
    table: PageTable,
    shift: u32,
    /// Pages below the end of the heap.
    end: u32,
    /// Blocks in use, by where their bytes begin: where their tag does, and the end. Bookkeeping of
    /// this model, for the end of the last one.
    used: BTreeMap<u64, (u64, u64)>,
}

impl Conventional {
    /// A heap of `pages` pages of `1 << shift` bytes, and as many frames.
    ///
    /// # Errors
    /// Sizes that do not fit, with the remedy.
    pub fn new(pages: u32, shift: u32, blocks: usize) -> Result<Self, metes_device::heap::Unmade> {
        Ok(Self {
            blocks: Blocks::new(u64::from(pages) << shift, blocks)?,
            table: PageTable::new(pages),
            shift,
            end: 0,
            used: BTreeMap::new(),
        })
    }

    /// Allocates `bytes` bytes; where they begin, and the work. `None`: no block.
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Option<(u64, Work)> {
        // The tag lies before the payload, so an aligned block begins a whole alignment earlier.
        let before = TAG.max(if align > GRANULE { align } else { TAG });
        let taken = bytes.checked_add(before)?;
        let taken = taken.checked_next_multiple_of(GRANULE)?;
        let offset = self.blocks.allocate(taken, align.max(GRANULE))?;
        self.used.insert(offset + before, (offset, offset + taken));
        let behind = offset + taken;
        self.end = self.end.max(self.page(behind + FREE - 1) + 1);
        let mut faults = 0;
        // Its own tag; and tag and links of what was left of the free block, or the next tag.
        let touched = [offset, behind, behind + FREE - 1].map(|it| self.page(it));
        for page in BTreeSet::from(touched) {
            faults += u32::from(self.touch_page(page));
        }
        Some((
            offset + before,
            Work {
                faults,
                unmapped: 0,
            },
        ))
    }

    /// Frees a block; the work. `None`: there is none.
    pub fn free(&mut self, payload: u64) -> Option<Work> {
        let (offset, _) = self.used.remove(&payload)?;
        self.blocks.free(offset)?;
        let last = self.used.last_key_value().map_or(0, |(_, &(_, end))| end);
        // Behind the last block lies a free one, with its tag and links.
        let end = self.page(last + FREE - 1) + 1;
        let unmapped = self.end.saturating_sub(end);
        if unmapped != 0 {
            self.table
                .unmap(end, self.end.min(self.table.entries.len() as u32));
            self.end = end;
        }
        Some(Work {
            faults: 0,
            unmapped,
        })
    }

    /// Touches a byte; whether that was a page fault.
    pub fn touch(&mut self, address: u64) -> bool {
        self.touch_page(self.page(address))
    }

    /// Pages with a frame.
    pub fn mapped(&self) -> u32 {
        self.table.mapped()
    }

    fn page(&self, address: u64) -> u32 {
        (address >> self.shift) as u32
    }

    fn touch_page(&mut self, page: u32) -> bool {
        self.table.translate(page).is_none() && self.table.map_page(page)
    }
}
