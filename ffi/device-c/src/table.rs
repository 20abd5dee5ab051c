//! Blocks in use by their addresses: a table that is made once.
//!
//! Open addressing with linear probing; what is taken out closes the gap behind it, so no marks
//! of removed entries are left and a search ends at the first empty place. The table has twice
//! as many places as there can be blocks. Expected O(1).
//!
//! Invariant: from the place that an address hashes to up to the one where it is there is no
//! empty place.

use metes_heap::store::ledger::Handle;

/// A block in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) address: u64,
    pub(crate) handle: Handle,
    /// The device's name of the stream that it was allocated for.
    pub(crate) stream: u64,
    /// Of a block of a graph.
    pub(crate) graph: Option<Graph>,
}

/// What is to be known of a block of a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graph {
    /// The number of its pool.
    pub(crate) pool: u32,
    /// Freed, and kept for the pool.
    pub(crate) kept: bool,
    /// Bytes of the request that it serves now.
    pub(crate) requested: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Table {
    places: Box<[Option<Entry>]>,
    used: usize,
}

impl Table {
    /// A table for so many blocks; `None` where the host has no memory for it.
    pub(crate) fn new(blocks: usize) -> Option<Self> {
        let count = (2 * blocks).next_power_of_two();
        let mut places = Vec::new();
        places.try_reserve_exact(count).ok()?;
        places.resize(count, None);
        Some(Table {
            places: places.into_boxed_slice(),
            used: 0,
        })
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Where the search for an address begins: the high bits of its product with 2^64 divided by
    /// the golden ratio (Knuth, volume 3, section 6.4).
    fn home(&self, address: u64) -> usize {
        let bits = self.places.len().trailing_zeros();
        (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits)) as usize
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// The place of an address, or the empty one where it would be.
    fn find(&self, address: u64) -> usize {
        let mut place = self.home(address);
        while self.places[place].is_some_and(|entry| entry.address != address) {
            place = self.after(place);
        }
        place
    }

    /// The block at an address.
    pub(crate) fn get(&self, address: u64) -> Option<Entry> {
        self.places[self.find(address)]
    }

    /// The block at an address, to be changed in what is known of it.
    pub(crate) fn get_mut(&mut self, address: u64) -> Option<&mut Entry> {
        let place = self.find(address);
        self.places[place].as_mut()
    }

    /// Adds a block; the heap has no more of them than the table was made for.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let place = self.find(entry.address);
        debug_assert!(self.places[place].is_none(), "two blocks at one address");
        self.places[place] = Some(entry);
        self.used += 1;
    }

    /// Takes the block at an address out.
    pub(crate) fn remove(&mut self, address: u64) {
        let mut gap = self.find(address);
        if self.places[gap].take().is_none() {
            return;
        }
        self.used -= 1;
        let mut place = self.after(gap);
        while let Some(entry) = self.places[place] {
            // Whoever is searched for from the gap or before it must not stand behind it.
            let mask = self.places.len() - 1;
            let distance = place.wrapping_sub(self.home(entry.address)) & mask;
            if distance >= place.wrapping_sub(gap) & mask {
                self.places[gap] = self.places[place].take();
                gap = place;
            }
            place = self.after(place);
        }
    }

    /// All blocks, in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.places.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use metes_device::heap::{Extent, HandleHeap};

    use super::*;

    #[test]
    fn finds_what_a_map_finds() {
        let extent = Extent {
            bytes: 1 << 20,
            granule: 256,
            blocks: 512,
        };
        let mut heap = HandleHeap::<metes_device::heap::Classes>::by_handle(extent).unwrap();
        let handle = heap.allocate(256, 256).unwrap().place;
        let mut table = Table::new(500).expect("room for some entries");
        let mut map = BTreeMap::new();
        let mut state = 1_u64;
        for number in 0..200_000_u64 {
            // A linear congruential generator (Knuth's MMIX).
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let address = (state >> 33) % 700 * 256;
            assert_eq!(
                table.get(address).map(|entry| entry.stream),
                map.get(&address).copied()
            );
            if map.remove(&address).is_some() {
                table.remove(address);
            } else if map.len() < 500 {
                map.insert(address, number);
                table.insert(Entry {
                    address,
                    handle,
                    stream: number,
                    graph: None,
                });
            }
            assert_eq!(table.used(), map.len());
        }
        assert_eq!(table.entries().count(), map.len());
        table.remove(1);
        assert_eq!(table.used(), map.len());
    }
}
