//! Virtual memory as anyone would write it: a map of regions, a map of pages, linear unmapping.
//!
//! It shares nothing with what it judges but the words for errors.

use std::collections::{BTreeMap, BTreeSet};

use metes_pages::{Access, Error, Frame, Rights};

/// The naive model of one space.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) pages: u32,
    /// Allocated regions by their start: pages and rights.
    pub(crate) regions: BTreeMap<u32, (u32, Rights)>,
    /// Mapped pages.
    pub(crate) mapped: BTreeMap<u32, Frame>,
}

impl Model {
    pub(crate) fn new(pages: u32) -> Self {
        Self {
            pages,
            regions: BTreeMap::new(),
            mapped: BTreeMap::new(),
        }
    }

    /// The allocated region that a page lies in.
    pub(crate) fn region(&self, page: u32) -> Option<(u32, u32, Rights)> {
        let (&start, &(pages, rights)) = self.regions.range(..=page).next_back()?;
        (page < start + pages).then_some((start, pages, rights))
    }

    pub(crate) fn map_region(
        &mut self,
        start: u32,
        pages: u32,
        rights: Rights,
    ) -> Result<(), Error> {
        if pages == 0 {
            return Err(Error::Empty);
        }
        if u64::from(start) + u64::from(pages) > u64::from(self.pages) {
            return Err(Error::Beyond);
        }
        if (self.region(start).is_some())
            || self.regions.range(start..start + pages).next().is_some()
        {
            return Err(Error::Overlap);
        }
        self.regions.insert(start, (pages, rights));
        Ok(())
    }

    /// The frames that became free.
    pub(crate) fn unmap_region(&mut self, start: u32) -> Result<BTreeSet<Frame>, Error> {
        if start >= self.pages {
            return Err(Error::Beyond);
        }
        let (pages, _) = self.regions.remove(&start).ok_or(Error::Unmapped)?;
        let gone: Vec<u32> = self
            .mapped
            .range(start..start + pages)
            .map(|(&page, _)| page)
            .collect();
        Ok(gone
            .into_iter()
            .map(|page| self.mapped.remove(&page).expect("listed"))
            .collect())
    }

    /// What a page fault there meets, but for the frames.
    pub(crate) fn may_map(&self, page: u32) -> Result<(), Error> {
        if page >= self.pages {
            Err(Error::Beyond)
        } else if self.region(page).is_none() {
            Err(Error::Unmapped)
        } else if self.mapped.contains_key(&page) {
            Err(Error::Present)
        } else {
            Ok(())
        }
    }

    pub(crate) fn access(&self, page: u32, access: Access) -> Result<Frame, Error> {
        if page >= self.pages {
            return Err(Error::Beyond);
        }
        let (_, _, rights) = self.region(page).ok_or(Error::Unmapped)?;
        if !rights.allow(access.rights()) {
            return Err(Error::Rights);
        }
        self.mapped.get(&page).copied().ok_or(Error::Absent)
    }
}
