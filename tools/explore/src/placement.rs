//! Two rolling hashes that say whether a run did what a replay predicted.
//!
//! *requests*: what the program asked for (operation, size). *placements*: also
//! where the heap put it. Equal requests and equal placements mean that every
//! block lay exactly where it was predicted; equal requests and different
//! placements that the heap decided otherwise. The definition is shared with
//! the preload libraries: FNV-1a over 64-bit words with an extra fold, start
//! value and prime those of FNV. Failed requests are not hashed.

use crate::events::Operation;

/// Offsets of blocks in general pool `n` have `n` above this bit.
pub const POOL_SHIFT: u32 = 44;
/// Offsets inside the slab range have this bit set.
pub const SLAB_BIT: u64 = 1 << 60;

/// A mapped block has its number, in the order in which they were made, above this.
pub const MAPPED_BIT: u64 = 1 << 61;

/// Both hashes, updated event by event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placements {
    /// Over operation, offset and size.
    pub placements: u64,
    /// Over operation and size.
    pub requests: u64,
}

impl Placements {
    /// The hashes of no events.
    pub const EMPTY: Placements = Placements {
        placements: 0xcbf2_9ce4_8422_2325,
        requests: 0xcbf2_9ce4_8422_2325,
    };

    /// Adds an event; `size` is 0 for a free.
    #[inline(always)]
    pub fn add(&mut self, operation: Operation, offset: u64, size: u64) {
        let operation = match operation {
            Operation::Allocate => 1,
            Operation::Free => 2,
            Operation::Resize => 3,
        };
        self.placements = fold(fold(fold(self.placements, operation), offset), size);
        self.requests = fold(fold(self.requests, operation), size);
    }
}

#[inline(always)]
const fn fold(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x100_0000_01b3);
    hash ^ hash >> 29
}
