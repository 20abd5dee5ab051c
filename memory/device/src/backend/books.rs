//! The books of strict backends: what is reserved, what exists, and what is mapped where.
//!
//! Invariant: ranges do not overlap, nor do maps, and every map lies in a range and belongs to
//! a memory. A call that the books refuse has changed nothing.

#![cfg_attr(
    not(all(feature = "cuda", feature = "opencl", feature = "vulkan")),
    allow(dead_code, reason = "backends that are left out would use it")
)]

use std::collections::BTreeMap;

use super::{Capacity, Error, Memory, Range};

#[derive(Clone, Copy, Debug)]
struct Existing {
    bytes: u64,
    at: Option<u64>,
}

/// What is reserved, what exists, and what is mapped where.
#[derive(Debug)]
pub(crate) struct Books {
    total: u64,
    used: u64,
    pub(crate) granularity: u64,
    /// Lengths of ranges by their start.
    ranges: BTreeMap<u64, u64>,
    /// Memories by number.
    memories: BTreeMap<u64, Existing>,
    /// Memories by the address at which they are mapped.
    mapped: BTreeMap<u64, Memory>,
    next: u64,
    /// Of a backend that maps only to whole ranges, its name.
    whole: Option<&'static str>,
}

impl Books {
    /// Of a device of `total` bytes that maps memory to whole ranges.
    pub(crate) fn whole(name: &'static str, total: u64, granularity: u64) -> Result<Self, Error> {
        let mut books = Self::new(total, granularity)?;
        books.whole = Some(name);
        Ok(books)
    }

    /// Of a device of `total` bytes that maps memory to parts of ranges.
    pub(crate) fn new(total: u64, granularity: u64) -> Result<Self, Error> {
        if !granularity.is_power_of_two() {
            return Err(Error::Granularity {
                what: "the page",
                value: granularity,
                granularity: granularity.next_power_of_two(),
            });
        }
        Ok(Books {
            total,
            used: 0,
            granularity,
            ranges: BTreeMap::new(),
            memories: BTreeMap::new(),
            mapped: BTreeMap::new(),
            next: 1,
            whole: None,
        })
    }

    pub(crate) fn capacity(&self) -> Capacity {
        Capacity {
            free: self.total - self.used,
            total: self.total,
        }
    }

    pub(crate) fn check_length(&self, what: &'static str, bytes: u64) -> Result<(), Error> {
        if bytes == 0 {
            return Err(Error::Empty(what));
        }
        self.check_multiple(what, bytes)
    }

    fn check_multiple(&self, what: &'static str, value: u64) -> Result<(), Error> {
        if value & (self.granularity - 1) != 0 {
            return Err(Error::Granularity {
                what,
                value,
                granularity: self.granularity,
            });
        }
        Ok(())
    }

    /// The first address behind all ranges.
    fn behind_all(&self) -> u64 {
        self.ranges
            .last_key_value()
            .map_or(0, |(start, bytes)| start + bytes)
    }

    /// Enters a range wherever it is free, for a device whose addresses are offsets.
    pub(crate) fn reserve_behind_all(&mut self, bytes: u64) -> Result<Range, Error> {
        self.check_length("a range", bytes)?;
        let start = self.behind_all();
        // Half the addresses at most, so that an end never overflows.
        if bytes > i64::MAX as u64 - start {
            return Err(Error::Addresses { wanted: bytes });
        }
        let range = Range { start, bytes };
        self.reserved(range);
        Ok(range)
    }

    pub(crate) fn reserved(&mut self, range: Range) {
        let before = self.ranges.insert(range.start, range.bytes);
        debug_assert_eq!(before, None, "a range is reserved once");
    }

    pub(crate) fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        let Range { start, bytes } = range;
        if self.ranges.get(&start) != Some(&bytes) {
            return Err(Error::NotReserved {
                address: start,
                bytes,
            });
        }
        if self.overlaps(start, bytes) {
            return Err(Error::Mapped {
                address: start,
                bytes,
            });
        }
        self.ranges.remove(&start);
        Ok(())
    }

    /// Whether something is mapped in `bytes` bytes from `address` on.
    fn overlaps(&self, address: u64, bytes: u64) -> bool {
        let Some((start, memory)) = self.mapped.range(..address + bytes).next_back() else {
            return false;
        };
        start + self.memories[&memory.0].bytes > address
    }

    /// The memory mapped where `bytes` bytes at `address` wholly are, and how far into it.
    pub(crate) fn at(&self, address: u64, bytes: u64) -> Result<(Memory, u64), Error> {
        let missing = Error::NotMapped { address, bytes };
        let before = self.mapped.range(..=address).next_back();
        let (start, memory) = before.ok_or(missing.clone())?;
        let range = Range {
            start: *start,
            bytes: self.memories[&memory.0].bytes,
        };
        if !range.holds(address, bytes) {
            return Err(missing);
        }
        Ok((*memory, address - start))
    }

    /// Whether memory is mapped to all of `bytes` bytes at `address`, of one memory or several.
    pub(crate) fn check_covered(&self, address: u64, bytes: u64) -> Result<(), Error> {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let (memory, offset) = self.at(at, 1)?;
            at += self.memories[&memory.0].bytes - offset;
        }
        Ok(())
    }

    /// What is mapped: where, and how many bytes.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u64, u64)> {
        let bytes = |memory: &Memory| self.memories[&memory.0].bytes;
        self.mapped
            .iter()
            .map(move |(address, memory)| (*address, bytes(memory)))
    }

    /// What is reserved.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range> {
        let range = |(&start, &bytes)| Range { start, bytes };
        self.ranges.iter().map(range)
    }

    pub(crate) fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.check_length("memory", bytes)?;
        let Capacity { free, total } = self.capacity();
        if bytes > free {
            return Err(Error::OutOfMemory {
                wanted: bytes,
                free,
                total,
            });
        }
        self.used += bytes;
        let memory = Memory(self.next);
        self.next += 1;
        self.memories.insert(memory.0, Existing { bytes, at: None });
        Ok(memory)
    }

    /// Enters a map; returns its length.
    pub(crate) fn map(&mut self, address: u64, memory: Memory) -> Result<u64, Error> {
        let Some(&Existing { bytes, at }) = self.memories.get(&memory.0) else {
            return Err(Error::NoMemory(memory));
        };
        if at.is_some() {
            return Err(Error::InUse(memory));
        }
        self.check_multiple("the address", address)?;
        let within = self.ranges.range(..=address).next_back();
        let within = within.map(|(&start, &bytes)| Range { start, bytes });
        let Some(range) = within.filter(|range| range.holds(address, bytes)) else {
            return Err(Error::NotReserved { address, bytes });
        };
        if let Some(name) = self.whole
            && bytes != range.bytes
        {
            return Err(Error::NotPaged(name));
        }
        if self.overlaps(address, bytes) {
            return Err(Error::Mapped { address, bytes });
        }
        self.mapped.insert(address, memory);
        self.memories.insert(
            memory.0,
            Existing {
                bytes,
                at: Some(address),
            },
        );
        Ok(bytes)
    }

    pub(crate) fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        let memory = match self.mapped.get(&address) {
            Some(memory) if self.memories[&memory.0].bytes == bytes => *memory,
            _ => return Err(Error::NotMapped { address, bytes }),
        };
        self.mapped.remove(&address);
        self.memories.insert(memory.0, Existing { bytes, at: None });
        Ok(memory)
    }

    /// Whether a memory may be released, and its length.
    pub(crate) fn check_release(&self, memory: Memory) -> Result<u64, Error> {
        match self.memories.get(&memory.0) {
            None => Err(Error::NoMemory(memory)),
            Some(Existing { at: Some(_), .. }) => Err(Error::InUse(memory)),
            Some(Existing { bytes, at: None }) => Ok(*bytes),
        }
    }

    /// Removes a memory; returns its length.
    pub(crate) fn release(&mut self, memory: Memory) -> Result<u64, Error> {
        let bytes = self.check_release(memory)?;
        self.memories.remove(&memory.0);
        self.used -= bytes;
        Ok(bytes)
    }
}
