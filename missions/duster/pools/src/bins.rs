//! Bins of fixed buffers, in the manner of F´'s buffer manager.
//!
//! Buffers are looked at one after the other, bin by bin in the order that was given, and the first that is free and large
//! enough serves, whatever its size. Where the original ends the program over a bad return, an error is given.
//!
//! *Invariant:* that of the table.

use core::ptr::NonNull;

use crate::table::Table;
use crate::{BadConfiguration, BadFree, Pool, Region, Slots, Statistics};

/// A pool of bins.
#[derive(Debug)]
pub struct BinPool {
    table: Table,
}

impl BinPool {
    /// A pool over `region` with `bins` in any order.
    ///
    /// # Errors
    /// [`BadConfiguration`].
    pub fn new(region: Region, bins: &[Slots]) -> Result<BinPool, BadConfiguration> {
        Ok(BinPool {
            table: Table::new(region, bins)?,
        })
    }

    /// Bytes of memory for such bins; `None` if more than there can be.
    pub fn bytes(bins: &[Slots]) -> Option<usize> {
        Table::bytes(bins)
    }
}

impl Pool for BinPool {
    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        let found = u32::try_from(size).ok().and_then(|size| {
            let groups = self.table.groups();
            let large = (0..groups.len()).filter(|&group| size <= groups[group].size);
            large
                .into_iter()
                .find_map(|group| Some((group, self.table.vacant(group)?)))
        });
        let Some((group, slot)) = found else {
            self.table.statistics.refusals += 1;
            return None;
        };
        Some(self.table.take(group, slot, size as u32))
    }

    fn free(&mut self, place: NonNull<u8>) -> Result<(), BadFree> {
        let (group, slot) = self.table.slot_of(place)?;
        self.table.give_back(group, slot)
    }

    fn statistics(&self) -> Statistics {
        self.table.statistics
    }

    fn largest_free(&self) -> usize {
        self.table.largest_free()
    }
}
