//! A translation look-aside buffer whose entries know their region.
//!
//! The paper calls a TLB orthogonal (footnote 3). It is not: a translation that is buffered when its
//! region is unmapped would go on to be used, and dropping the translations of a region one by one
//! takes as long as the region has pages. Entries tagged with their region go by one associative
//! clear, all at once in hardware; a model in software looks at each of its entries, of which there
//! are a fixed number.
//!
//! Invariant: every entry in use is what [`Space::translate`] gives for its page and access.

use crate::{Access, Error, Frame, Frames, Index, Links, Space, Tables};

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: u32,
    region: u32,
    frame: Frame,
    /// Kinds of access that were seen allowed; none: not in use.
    allowed: u8,
}

/// A direct-mapped buffer of `ENTRIES` translations of one space, and how often it served.
#[derive(Clone, Debug)]
pub struct Tlb<const ENTRIES: usize> {
    entries: [Entry; ENTRIES],
    hits: u64,
    misses: u64,
}

impl<const ENTRIES: usize> Default for Tlb<ENTRIES> {
    fn default() -> Self {
        let empty = Entry {
            page: 0,
            region: 0,
            frame: 0,
            allowed: 0,
        };
        Self {
            entries: [empty; ENTRIES],
            hits: 0,
            misses: 0,
        }
    }
}

impl<const ENTRIES: usize> Tlb<ENTRIES> {
    /// As [`Space::access`], out of the buffer where it can.
    ///
    /// # Errors
    /// Those of [`Space::access`]. Faults are not buffered.
    pub fn access<T: Tables, I: Index>(
        &mut self,
        space: &Space<T, I>,
        page: u32,
        access: Access,
    ) -> Result<Frame, Error> {
        let entry = &mut self.entries[page as usize % ENTRIES];
        let same = entry.allowed != 0 && entry.page == page;
        if same && entry.allowed & access as u8 != 0 {
            self.hits += 1;
            return Ok(entry.frame);
        }
        self.misses += 1;
        let frame = space.access(page, access)?;
        let allowed = if same { entry.allowed } else { 0 } | access as u8;
        *entry = Entry {
            page,
            region: space.find(page),
            frame,
            allowed,
        };
        Ok(frame)
    }

    /// Unmaps a region and drops its translations: O(`ENTRIES`), in hardware one step.
    ///
    /// # Errors
    /// Those of [`Space::unmap_region`]; then nothing is dropped.
    pub fn unmap_region<T: Tables, I: Index, L: Links>(
        &mut self,
        space: &mut Space<T, I>,
        start: u32,
        frames: &mut Frames<L>,
    ) -> Result<(), Error> {
        space.unmap_region(start, frames)?;
        for entry in &mut self.entries {
            if entry.region == start {
                entry.allowed = 0;
            }
        }
        Ok(())
    }

    /// Accesses that the buffer served.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Accesses that went to the tables.
    pub fn misses(&self) -> u64 {
        self.misses
    }
}
