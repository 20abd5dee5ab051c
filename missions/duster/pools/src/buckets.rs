//! Buckets, in the manner of cFE's generic pool.
//!
//! A request is served by the smallest size that holds it: by a block of that bucket's free list, else by carving one
//! from where the last one was carved. No other bucket is asked, nothing is merged and nothing split, so memory that was
//! carved for one size serves that size for ever. In front of a block stands a descriptor of three words: a check pattern
//! with what is in use, the requested bytes, the next block of the free list.
//!
//! *Invariant:* descriptors lie one behind the other from the beginning to the tail; each is in use, or in the free
//! list of the bucket of its requested size.

use core::ptr::NonNull;

use crate::{ALIGNMENT, BadConfiguration, BadFree, MOST_SIZES, Pool, Region, Statistics, rounded};

/// Bytes of a descriptor; they end where the block begins.
const DESCRIPTOR: u32 = 12;
const CHECK: u32 = 0x5a5a_0000;
const IN_USE: u32 = 0xaaaa;
const FREE: u32 = 0xdddd;
/// No block: none begins at 0.
const NONE: u32 = 0;

/// A pool of buckets.
#[derive(Debug)]
pub struct BucketPool {
    region: Region,
    sizes: [u32; MOST_SIZES],
    /// The first free block of each bucket.
    free: [u32; MOST_SIZES],
    buckets: usize,
    /// Where the next block is carved.
    tail: u32,
    statistics: Statistics,
}

impl BucketPool {
    /// A pool over `region` with buckets of `sizes` bytes.
    ///
    /// # Errors
    /// [`BadConfiguration`]: sizes that are none, too many, too large, or do not ascend.
    pub fn new(region: Region, sizes: &[u32]) -> Result<BucketPool, BadConfiguration> {
        if sizes.is_empty() || sizes.len() > MOST_SIZES {
            return Err(BadConfiguration::Sizes);
        }
        if region.bytes() >= 1 << 31 {
            return Err(BadConfiguration::Large);
        }
        let mut own = [0; MOST_SIZES];
        for (at, (own, &size)) in own.iter_mut().zip(sizes).enumerate() {
            if size == 0 {
                return Err(BadConfiguration::Size);
            }
            *own = rounded(size as usize).ok_or(BadConfiguration::Size)?;
            if at > 0 && sizes[at - 1] >= size {
                return Err(BadConfiguration::Order);
            }
        }
        let statistics = Statistics {
            size: region.bytes(),
            ..Statistics::default()
        };
        Ok(BucketPool {
            region,
            sizes: own,
            free: [NONE; MOST_SIZES],
            buckets: sizes.len(),
            tail: 0,
            statistics,
        })
    }

    /// The sizes of the buckets.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes[..self.buckets]
    }

    fn bucket(&self, size: u32) -> Option<usize> {
        self.sizes().iter().position(|&held| size <= held)
    }

    /// Where a block would be carved next, if `size` bytes are left there.
    fn carved(&self, size: u32) -> Option<u32> {
        let block = u64::from(self.tail + DESCRIPTOR).next_multiple_of(ALIGNMENT as u64);
        (block + u64::from(size) <= self.region.bytes() as u64).then_some(block as u32)
    }

    fn take(&mut self, size: u32) -> Option<u32> {
        let bucket = self.bucket(size)?;
        let first = self.free[bucket];
        if first != NONE && self.region.word(first - 12) == CHECK | FREE {
            self.free[bucket] = self.region.word(first - 4);
            return Some(first);
        }
        let block = self.carved(self.sizes[bucket])?;
        self.tail = block + self.sizes[bucket];
        self.statistics.footprint = self.tail as usize;
        Some(block)
    }

    fn block_of(&self, place: NonNull<u8>) -> Result<u32, BadFree> {
        let block = self.region.offset(place).ok_or(BadFree::Foreign)?;
        if !block.is_multiple_of(ALIGNMENT as u32) || block < DESCRIPTOR || block >= self.tail {
            return Err(BadFree::Foreign);
        }
        match self.region.word(block - 12) {
            word if word == CHECK | IN_USE => Ok(block),
            word if word == CHECK | FREE => Err(BadFree::Double),
            _ => Err(BadFree::Overwritten),
        }
    }
}

impl Pool for BucketPool {
    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        let taken = u32::try_from(size).ok().and_then(|size| self.take(size));
        let Some(block) = taken else {
            self.statistics.refusals += 1;
            return None;
        };
        self.region.set_word(block - 12, CHECK | IN_USE);
        self.region.set_word(block - 8, size as u32);
        self.region.set_word(block - 4, NONE);
        self.statistics.allocated(size);
        Some(self.region.at(block, size as u32))
    }

    /// As in the original a pointer is known by the check pattern before it: one into the middle of a block passes if the
    /// block's own bytes look like a descriptor.
    fn free(&mut self, place: NonNull<u8>) -> Result<(), BadFree> {
        let block = self.block_of(place)?;
        let size = self.region.word(block - 8);
        let bucket = self.bucket(size).ok_or(BadFree::Overwritten)?;
        if size as usize > self.statistics.used {
            return Err(BadFree::Overwritten);
        }
        self.region.set_word(block - 12, CHECK | FREE);
        self.region.set_word(block - 4, self.free[bucket]);
        self.free[bucket] = block;
        self.statistics.freed(size as usize);
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn largest_free(&self) -> usize {
        let serves = |bucket: &usize| {
            self.free[*bucket] != NONE || self.carved(self.sizes[*bucket]).is_some()
        };
        (0..self.buckets)
            .rev()
            .find(serves)
            .map_or(0, |bucket| self.sizes[bucket] as usize)
    }
}
