//! True best fit over ordered trees: what constant-time heaps are compared with.
//!
//! The smallest free block that suffices, of equal ones the lowest; neighbours merge at once.
//! O(log n), and it takes host memory as it goes: no heap for a device, a yardstick.
//!
//! Invariant: free blocks are not empty and no two are neighbours; both trees hold the same.

use std::collections::{BTreeMap, BTreeSet};

use metes_device::heap::Extent;

use super::subject::Subject;

/// The heap.
#[derive(Debug)]
pub struct BestFit {
    /// Free blocks: bytes, offset.
    by_size: BTreeSet<(u64, u64)>,
    /// Free blocks: offset, bytes.
    by_offset: BTreeMap<u64, u64>,
    granule: u64,
}

impl BestFit {
    /// A heap over `extent`, however many blocks it has.
    pub fn new(extent: Extent) -> Self {
        let mut heap = BestFit {
            by_size: BTreeSet::new(),
            by_offset: BTreeMap::new(),
            granule: extent.granule,
        };
        heap.insert(0, extent.bytes);
        heap
    }

    fn insert(&mut self, offset: u64, bytes: u64) {
        self.by_size.insert((bytes, offset));
        self.by_offset.insert(offset, bytes);
    }

    fn remove(&mut self, offset: u64, bytes: u64) {
        self.by_size.remove(&(bytes, offset));
        self.by_offset.remove(&offset);
    }
}

impl Subject for BestFit {
    /// Offset and bytes.
    type Place = (u64, u64);

    fn allocate(&mut self, bytes: u64) -> Option<(u64, u64)> {
        let wanted = bytes.next_multiple_of(self.granule);
        let (found, offset) = *self.by_size.range((wanted, 0)..).next()?;
        self.remove(offset, found);
        if found > wanted {
            self.insert(offset + wanted, found - wanted);
        }
        Some((offset, wanted))
    }

    fn free(&mut self, (mut offset, mut bytes): (u64, u64)) {
        let left = self.by_offset.range(..offset).next_back();
        if let Some((&before, &length)) = left
            && before + length == offset
        {
            self.remove(before, length);
            offset = before;
            bytes += length;
        }
        if let Some(&length) = self.by_offset.get(&(offset + bytes)) {
            self.remove(offset + bytes, length);
            bytes += length;
        }
        self.insert(offset, bytes);
    }

    fn offset(&self, (offset, _): (u64, u64)) -> u64 {
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_suffices_is_taken_and_neighbours_merge() {
        let mut heap = BestFit::new(Extent {
            bytes: 100,
            granule: 1,
            blocks: 9,
        });
        let held: Vec<_> = [10, 5, 20, 5, 7, 5]
            .map(|bytes| heap.allocate(bytes))
            .into();
        let held: Vec<(u64, u64)> = held.into_iter().flatten().collect();
        assert_eq!(held.len(), 6);
        for freed in [0, 2, 4] {
            heap.free(held[freed]);
        }
        // Free: 10 at 0, 20 at 15, 7 at 40, 48 at 52.
        assert_eq!(heap.allocate(6), Some((40, 6)));
        assert_eq!(heap.allocate(11), Some((15, 11)));
        heap.free((15, 11));
        heap.free(held[1]);
        // 0 to 35 is one block again.
        assert_eq!(heap.by_offset.get(&0), Some(&35));
        assert_eq!(heap.allocate(49), None);
        assert_eq!(heap.allocate(48), Some((52, 48)));
        assert_eq!(heap.by_size.len(), heap.by_offset.len());
    }
}
