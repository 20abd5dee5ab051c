//! What accesses to memory cost: nothing (flat), or private L1 caches in front of a shared bus.
//!
//! The caches are those of LEON3 as the papers configure it: direct mapped or a few ways with replacement of the least
//! recently used, the data cache written through and filled by loads alone (GRIP LEON3, "Data cache"). Only tags are
//! kept: data always comes from memory, so cores see each other's stores at once, as with LEON3's snooping.
//!
//! Invariant: costs change no result but time.

use serde::{Deserialize, Serialize};

/// A cache: its size and what it is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Bytes in all, a power of two.
    pub bytes: u32,
    /// Bytes of a line, a power of two.
    pub line: u32,
    /// Ways, a power of two.
    pub ways: u32,
}

impl Geometry {
    /// 16 KiB in lines of 16 bytes, one way: the papers' private caches.
    pub const PAPER: Geometry = Geometry {
        bytes: 16 << 10,
        line: 16,
        ways: 1,
    };

    /// Whether there is such a cache: lines of a word to 4 KiB, at least one in each way, 16 MiB at most.
    pub(crate) fn possible(&self) -> bool {
        let powers = [self.bytes, self.line, self.ways].map(u32::is_power_of_two);
        powers == [true; 3]
            && (4..=4096).contains(&self.line)
            && self.bytes <= 1 << 24
            && self.bytes / self.line >= self.ways
    }
}

/// What an access to the bus costs, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The first word from memory, including arbitration.
    pub first: u32,
    /// Each further word of a burst.
    pub further: u32,
    /// A word written to memory, which the bus is busy for.
    pub write: u32,
    /// A register of a device read.
    pub device_read: u32,
    /// A register of a device written.
    pub device_write: u32,
}

impl Cost {
    /// Nothing costs more than the instruction.
    pub const NOTHING: Cost = Cost {
        first: 0,
        further: 0,
        write: 0,
        device_read: 0,
        device_write: 0,
    };

    /// Memory as quick as a hit; a peripheral register 3 cycles more to read, 1 to write: the bridge's setup and enable
    /// phases and the main bus before them (an assumption; GRLIB's bridge adds two wait states).
    pub const FLAT: Cost = Cost {
        device_read: 3,
        device_write: 1,
        ..Cost::NOTHING
    };

    /// A word from memory after 6 cycles (arbitration, address, 3 wait states of an SDRAM or SRAM, an assumption), each
    /// further one of a burst after 2; a write keeps the bus for 4.
    pub const CACHES: Cost = Cost {
        first: 6,
        further: 2,
        write: 4,
        ..Cost::FLAT
    };
}

/// A cache's tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cache {
    line_shift: u32,
    sets: u32,
    ways: usize,
    /// Line numbers plus one, the ways of a set from the latest used to the earliest; 0 is none.
    tags: Vec<u32>,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

impl Cache {
    pub(crate) fn new(geometry: Geometry) -> Cache {
        let lines = geometry.bytes / geometry.line;
        Cache {
            line_shift: geometry.line.ilog2(),
            sets: lines / geometry.ways,
            ways: geometry.ways as usize,
            tags: vec![0; lines as usize],
            hits: 0,
            misses: 0,
        }
    }

    /// Whether `address` is there; if not, it is now.
    #[inline]
    pub(crate) fn fill(&mut self, address: u32) -> bool {
        let line = address >> self.line_shift;
        let set = (line & (self.sets - 1)) as usize * self.ways;
        let tags = &mut self.tags[set..set + self.ways];
        let place = tags.iter().position(|&tag| tag == line + 1);
        tags[..=place.unwrap_or(self.ways - 1)].rotate_right(1);
        tags[0] = line + 1;
        match place {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        place.is_some()
    }

    /// Whether `other` is of the same geometry.
    pub(crate) fn is_like(&self, other: &Cache) -> bool {
        (self.line_shift, self.sets, self.ways, self.tags.len())
            == (other.line_shift, other.sets, other.ways, other.tags.len())
    }

    /// Nothing is there any more.
    pub(crate) fn flush(&mut self) {
        self.tags.fill(0);
    }

    /// Words of a line.
    pub(crate) fn words(&self) -> u32 {
        1 << (self.line_shift - 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Beside sets that are lists, the latest used first.
        #[test]
        fn lines_are_replaced_in_the_order_of_their_use(addresses in proptest::collection::vec(0u32..4096, 1..500), ways in 0u32..3) {
            let geometry = Geometry { bytes: 512, line: 16, ways: 1 << ways };
            let mut cache = Cache::new(geometry);
            let sets = 512 / 16 / geometry.ways;
            let mut plain = vec![VecDeque::new(); sets as usize];
            for address in addresses {
                let line = address / 16;
                let set = &mut plain[(line % sets) as usize];
                let there = set.iter().position(|&other| other == line);
                if let Some(place) = there { set.remove(place); }
                set.push_front(line);
                set.truncate(geometry.ways as usize);
                prop_assert_eq!(cache.fill(address), there.is_some());
            }
        }
    }
}
