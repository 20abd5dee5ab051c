//! Equal slots of several sizes behind a table that says what lies in each.
//!
//! *Invariant:* a slot's word in the table is [`FREE`], or the bytes that were requested of it, which it holds.

use core::ptr::NonNull;

use crate::{ALIGNMENT, BadConfiguration, BadFree, MOST_SIZES, Region, Slots, Statistics, rounded};

/// A slot that nobody has.
const FREE: u32 = u32::MAX;

/// All slots of one size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    pub(crate) count: u32,
    pub(crate) size: u32,
    /// Its first word in the table.
    first: u32,
    /// Where its first slot lies.
    start: u32,
}

/// The slots.
#[derive(Debug)]
pub(crate) struct Table {
    region: Region,
    groups: [Group; MOST_SIZES],
    number: usize,
    pub(crate) statistics: Statistics,
}

impl Table {
    pub(crate) fn new(region: Region, slots: &[Slots]) -> Result<Table, BadConfiguration> {
        if slots.is_empty() || slots.len() > MOST_SIZES {
            return Err(BadConfiguration::Sizes);
        }
        if region.bytes() >= 1 << 31 {
            return Err(BadConfiguration::Large);
        }
        let total: u64 = slots.iter().map(|slots| u64::from(slots.count)).sum();
        let mut end = (4 * total).next_multiple_of(ALIGNMENT as u64);
        let mut groups = [Group::default(); MOST_SIZES];
        let (mut first, mut needed) = (0, end);
        for (group, slots) in groups.iter_mut().zip(slots) {
            let size = rounded(slots.size as usize)
                .filter(|_| slots.size > 0)
                .ok_or(BadConfiguration::Size)?;
            // Beyond the memory these are not used: an error is returned below.
            *group = Group {
                count: slots.count,
                size,
                first,
                start: end as u32,
            };
            first = first.saturating_add(slots.count);
            needed = needed.saturating_add(u64::from(slots.count) * u64::from(size));
            end = needed;
        }
        if needed > region.bytes() as u64 {
            return Err(BadConfiguration::Memory(needed));
        }
        let statistics = Statistics {
            size: region.bytes(),
            footprint: needed as usize,
            ..Statistics::default()
        };
        let mut table = Table {
            region,
            groups,
            number: slots.len(),
            statistics,
        };
        for slot in 0..total as u32 {
            table.region.set_word(4 * slot, FREE);
        }
        Ok(table)
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups[..self.number]
    }

    /// The first free slot of a group.
    pub(crate) fn vacant(&self, group: usize) -> Option<u32> {
        let Group { count, first, .. } = self.groups[group];
        (0..count).find(|slot| self.region.word(4 * (first + slot)) == FREE)
    }

    /// Gives `slot` of `group`, which is free, to a request of `size` bytes.
    pub(crate) fn take(&mut self, group: usize, slot: u32, size: u32) -> NonNull<u8> {
        let of = self.groups[group];
        debug_assert!(
            size <= of.size && slot < of.count,
            "the slot is there and holds the request"
        );
        self.region.set_word(4 * (of.first + slot), size);
        self.statistics.allocated(size as usize);
        self.place(group, slot)
    }

    pub(crate) fn place(&self, group: usize, slot: u32) -> NonNull<u8> {
        let of = self.groups[group];
        self.region.at(of.start + slot * of.size, of.size)
    }

    /// The group and slot that begins at `place`.
    pub(crate) fn slot_of(&self, place: NonNull<u8>) -> Result<(usize, u32), BadFree> {
        let offset = self.region.offset(place).ok_or(BadFree::Foreign)?;
        let within = |group: &Group| {
            offset >= group.start && (offset - group.start) / group.size < group.count
        };
        let found = self
            .groups()
            .iter()
            .position(within)
            .ok_or(BadFree::Foreign)?;
        let group = self.groups[found];
        let behind = offset - group.start;
        if !behind.is_multiple_of(group.size) {
            return Err(BadFree::Foreign);
        }
        Ok((found, behind / group.size))
    }

    /// Requested bytes of a slot that is in use.
    pub(crate) fn requested(&self, group: usize, slot: u32) -> Result<u32, BadFree> {
        let of = self
            .groups()
            .get(group)
            .filter(|of| slot < of.count)
            .ok_or(BadFree::Foreign)?;
        match self.region.word(4 * (of.first + slot)) {
            FREE => Err(BadFree::Double),
            size => Ok(size),
        }
    }

    pub(crate) fn give_back(&mut self, group: usize, slot: u32) -> Result<(), BadFree> {
        let size = self.requested(group, slot)?;
        self.region
            .set_word(4 * (self.groups[group].first + slot), FREE);
        self.statistics.freed(size as usize);
        Ok(())
    }

    /// The largest slot that is free.
    pub(crate) fn largest_free(&self) -> usize {
        let free = (0..self.number).filter(|&group| self.vacant(group).is_some());
        free.map(|group| self.groups[group].size as usize)
            .max()
            .unwrap_or(0)
    }

    /// Bytes that slots and their table take.
    pub(crate) fn bytes(slots: &[Slots]) -> Option<usize> {
        let mut bytes = 0u64;
        for slots in slots {
            let size = u64::from(rounded(slots.size as usize)?);
            bytes = bytes.checked_add(u64::from(slots.count).checked_mul(size)?)?;
        }
        let total: u64 = slots.iter().map(|slots| u64::from(slots.count)).sum();
        usize::try_from(bytes.checked_add((4 * total).next_multiple_of(ALIGNMENT as u64))?).ok()
    }
}
