//! Looking at a heap: walk, check, statistics. All linear, none changes it.

use super::Heap;
use crate::index::Index;
use crate::statistics::Statistics;
use crate::store::{DamagedRegion, Extent, Geometry, Header, Plan, Store};

/// What is wrong with a heap, as found by [`Heap::check`]; offsets in bytes
/// from the beginning of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// A block's size is no multiple of the granule, too small, or runs beyond its region.
    Size {
        /// Where the block is.
        offset: usize,
    },
    /// What the memory says of where a region ends and the next begins was overwritten.
    Region {
        /// Which region, in the order of addition.
        number: usize,
    },
    /// A block's requested size is more than it holds, or what a hardened heap keeps
    /// behind it was overwritten.
    Request {
        /// Where the block is.
        offset: usize,
    },
    /// A block's previous-free mark or footer contradicts the block before it.
    Neighbour {
        /// Where the block is.
        offset: usize,
    },
    /// Two free neighbours that should have been merged.
    Uncoalesced {
        /// Where the second one is.
        offset: usize,
    },
    /// A list is broken, or holds a block that is not free or not of its class.
    List,
    /// The index holds another number of blocks than there are free ones.
    Unlisted {
        /// Free and retained blocks in memory.
        free: usize,
        /// Blocks in the lists.
        listed: usize,
    },
    /// Live bytes or blocks differ from the statistics.
    Statistics,
}

impl core::fmt::Display for Corruption {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Corruption::Size { offset } => write!(f, "the block at {offset} has no valid size"),
            Corruption::Region { number } => {
                write!(
                    f,
                    "the record of where region {number} ends was overwritten"
                )
            }
            Corruption::Request { offset } => {
                write!(
                    f,
                    "the requested size of the block at {offset}, or what is behind the block, \
                     was overwritten"
                )
            }
            Corruption::Neighbour { offset } => {
                write!(f, "the block at {offset} and the one before it disagree")
            }
            Corruption::Uncoalesced { offset } => {
                write!(
                    f,
                    "the free block at {offset} was not merged with the one before it"
                )
            }
            Corruption::List => f.write_str("a free list is broken"),
            Corruption::Unlisted { free, listed } => {
                write!(f, "{free} blocks are free but the lists hold {listed}")
            }
            Corruption::Statistics => f.write_str("the statistics disagree with the blocks"),
        }
    }
}

impl core::error::Error for Corruption {}

/// What a block is, as [`Heap::walk`] reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Held by the program, with this many requested bytes.
    Used(usize),
    /// Free, in the index.
    Free,
    /// Freed, kept by a dedicated pool.
    Retained,
}

/// A block as [`Heap::walk`] reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Region number, in the order of addition.
    pub region: usize,
    /// Bytes from the beginning of the region to the block's record.
    pub offset: usize,
    /// Bytes of the block, record included.
    pub size: usize,
    /// Who has it.
    pub state: State,
}

impl<I: Index<S>, S: Store> Heap<I, S> {
    /// Calls `visit` with every block in address order, region by region.
    /// Linear. Stops at what was overwritten and returns the fault; nothing outside the
    /// regions is read.
    ///
    /// # Errors
    /// [`Corruption::Size`], [`Corruption::Region`], [`Corruption::Request`].
    pub fn walk(&self, mut visit: impl FnMut(BlockInfo)) -> Result<(), Corruption> {
        self.walk_blocks(&mut |region, offset, block, header| {
            let state = if header.size == 0 {
                return Ok(());
            } else if header.free() {
                State::Free
            } else if header.retained() {
                State::Retained
            } else {
                let requested = self.store.sound_request(block);
                State::Used(requested.ok_or(Corruption::Request { offset })?)
            };
            visit(BlockInfo {
                region,
                offset,
                size: header.size,
                state,
            });
            Ok(())
        })
    }

    /// Calls `visit` with every block, and with the sentinel of every region, of size zero.
    fn walk_blocks(
        &self,
        visit: &mut dyn FnMut(usize, usize, S::Block, Header) -> Result<(), Corruption>,
    ) -> Result<(), Corruption> {
        let Geometry {
            granule, minimum, ..
        } = self.store.geometry();
        let mut number = 0;
        while let Some(region) = self.store.region(number) {
            let Extent { first, room } =
                region.map_err(|DamagedRegion| Corruption::Region { number })?;
            let start = self.store.offset(first);
            let mut block = first;
            let mut left = room;
            loop {
                let header = self.store.header(block);
                let offset = start + (room - left);
                let valid = match left {
                    0 => header.size == 0,
                    _ => {
                        header.size.is_multiple_of(granule)
                            && (minimum..=left).contains(&header.size)
                    }
                };
                if !valid {
                    return Err(Corruption::Size { offset });
                }
                visit(number, offset, block, header)?;
                if left == 0 {
                    break;
                }
                block = self.store.after(block, header.size);
                left -= header.size;
            }
            number += 1;
        }
        Ok(())
    }

    /// Verifies every invariant. Linear in blocks (times regions, where there are several);
    /// in every build, so that a system can call it from a watchdog.
    ///
    /// Whatever was written over the memory of the heap, this returns: each record is
    /// verified to lie inside a region before it is followed, and no more blocks of a list
    /// are looked at than are free.
    ///
    /// # Errors
    /// The first [`Corruption`] found.
    pub fn check(&self) -> Result<(), Corruption> {
        let mut free = 0;
        let mut live = 0;
        let mut blocks = 0;
        let mut before: Option<(S::Block, bool)> = None;
        let mut region = 0;
        let merges = self.merges();
        self.walk_blocks(&mut |number, offset, block, header| {
            if number != region {
                before = None;
                region = number;
            }
            let (previous, previous_free) = match before {
                Some((block, free)) => (Some(block), free),
                None => (None, false),
            };
            if header.previous_free() != previous_free
                || (previous_free && Some(self.store.before(block)) != previous)
            {
                return Err(Corruption::Neighbour { offset });
            }
            if previous_free && header.free() && merges {
                return Err(Corruption::Uncoalesced { offset });
            }
            if header.size == 0 {
                // The sentinel.
            } else if header.free() || header.retained() {
                free += 1;
            } else {
                let requested = self.store.sound_request(block);
                live += requested.ok_or(Corruption::Request { offset })?;
                blocks += 1;
            }
            before = Some((block, header.free()));
            Ok(())
        })?;
        let mut listed = 0;
        let sound = self.base.is_none()
            || self.index.each(&self.store, &mut |block| {
                let header = self.store.header(block);
                listed += 1;
                (header.free() || header.retained()) && listed <= free
            });
        if !sound {
            return Err(Corruption::List);
        }
        if listed != free {
            return Err(Corruption::Unlisted { free, listed });
        }
        if S::STATISTICS && !self.counters.agree(live, blocks) {
            return Err(Corruption::Statistics);
        }
        Ok(())
    }

    /// Blocks in use; 0 where the store does not count them. O(1).
    #[inline(always)]
    pub fn blocks(&self) -> usize {
        self.counters.blocks()
    }

    /// Requested bytes of the blocks in use; 0 where the store does not keep them. O(1).
    pub fn live(&self) -> usize {
        self.counters.live()
    }

    /// What the heap holds and has held. Linear: it walks the blocks, as far as their records
    /// are whole; [`check`](Heap::check) tells whether all are.
    pub fn statistics(&self) -> Statistics {
        let geometry = self.store.geometry();
        let mut free = 0;
        let mut largest_free = 0;
        let mut records = 0;
        let mut regions = 0;
        let mut in_free = 0;
        let _ = self.walk(|info| {
            records += 1;
            regions = info.region + 1;
            match info.state {
                State::Used(_) => {}
                State::Retained => free += 1,
                State::Free => {
                    free += 1;
                    in_free += info.size;
                    largest_free = largest_free.max(info.size - geometry.header);
                }
            }
        });
        let control = match regions {
            0 => 0,
            more => {
                let later = Plan {
                    heads: 0,
                    ..self.plan
                };
                geometry.control(self.plan) + (more - 1) * geometry.control(later)
            }
        };
        let record_bytes = control + records * geometry.header + self.store.outside_bytes();
        self.counters
            .report(self.footprint(), largest_free, free, in_free, record_bytes)
    }
}
