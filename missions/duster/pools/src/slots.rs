//! Slots known by addresses, in the manner of satrs' pools.
//!
//! A request goes to the smallest size that holds it and takes the first free slot there; if all are in use it is
//! refused, or spills into larger ones if the pool was made so. An address is a pair of numbers, not a pointer, so a stale
//! one reaches no memory that is not a slot.
//!
//! *Invariant:* that of the table; sizes ascend.

use core::ptr::NonNull;

use crate::table::Table;
use crate::{BadConfiguration, BadFree, Pool, Region, Slots, Statistics};

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Which size.
    pub pool: u16,
    /// Which of its slots.
    pub slot: u16,
}

/// A pool of slots.
#[derive(Debug)]
pub struct SlotPool {
    table: Table,
    spill: bool,
}

impl SlotPool {
    /// A pool over `region` with `slots` in ascending order of sizes; if `spill`, a request for which all slots of its size are in
    /// use takes one of a larger size.
    ///
    /// # Errors
    /// [`BadConfiguration`].
    pub fn new(region: Region, slots: &[Slots], spill: bool) -> Result<SlotPool, BadConfiguration> {
        if slots.windows(2).any(|pair| pair[0].size >= pair[1].size) {
            return Err(BadConfiguration::Order);
        }
        // Addresses have 16 bits for each part.
        if slots.iter().any(|slots| slots.count > 1 << 16) {
            return Err(BadConfiguration::Size);
        }
        Ok(SlotPool {
            table: Table::new(region, slots)?,
            spill,
        })
    }

    /// Bytes of memory for such slots; `None` if more than there can be.
    pub fn bytes(slots: &[Slots]) -> Option<usize> {
        Table::bytes(slots)
    }

    /// As [`Pool::allocate`], by address.
    pub fn reserve(&mut self, size: usize) -> Option<Address> {
        let found = u32::try_from(size).ok().and_then(|size| {
            let groups = self.table.groups();
            let first = groups.iter().position(|group| size <= group.size)?;
            let last = if self.spill { groups.len() } else { first + 1 };
            (first..last).find_map(|group| Some((group, self.table.vacant(group)?)))
        });
        let Some((group, slot)) = found else {
            self.table.statistics.refusals += 1;
            return None;
        };
        self.table.take(group, slot, size as u32);
        Some(Address {
            pool: group as u16,
            slot: slot as u16,
        })
    }

    /// The block at an address that is in use, and its requested bytes.
    ///
    /// # Errors
    /// [`BadFree`].
    pub fn block(&self, address: Address) -> Result<(NonNull<u8>, usize), BadFree> {
        let (group, slot) = (usize::from(address.pool), u32::from(address.slot));
        let size = self.table.requested(group, slot)?;
        Ok((self.table.place(group, slot), size as usize))
    }

    /// As [`Pool::free`], by address.
    ///
    /// # Errors
    /// [`BadFree`].
    pub fn delete(&mut self, address: Address) -> Result<(), BadFree> {
        self.table
            .give_back(usize::from(address.pool), u32::from(address.slot))
    }
}

impl Pool for SlotPool {
    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        let Address { pool, slot } = self.reserve(size)?;
        Some(self.table.place(usize::from(pool), u32::from(slot)))
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
