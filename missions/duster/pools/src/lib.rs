//! Memory pools as flight software has them: baselines beside which heaps are measured.
//!
//! Written here from how they behave, none of their code:
//!
//! - [`BucketPool`]: in the manner of cFE's generic pool. Sizes of buckets; blocks are carved from the memory when a
//!   bucket has none free, go back to their bucket, and are never merged or split again.
//! - [`SlotPool`]: in the manner of satrs' pools. So many equal slots for each size, known by addresses and not by
//!   pointers, the sizes of what lies in them kept apart; a request may spill into larger slots or may not.
//! - [`BinPool`]: in the manner of F´'s buffer manager. Bins of fixed buffers; the first free buffer that is large
//!   enough, searched one after the other.
//!
//! What an original keeps beside its memory (a table of slots) lies in front of the slots here, so that a pool's memory is all it needs.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use metes_duster_pools::{BucketPool, Pool, Region};
//!
//! let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(4096));
//! let mut pool = BucketPool::new(Region::from_static(memory), &[64, 256, 1024]).unwrap();
//! let place = pool.allocate(100).expect("there is room");
//! assert_eq!(pool.statistics().used, 100);
//! pool.free(place).unwrap();
//! assert!(pool.free(place).is_err());
//! ```
//!
//! *Invariant:* blocks in use do not overlap, lie in the pool's memory at multiples of [`ALIGNMENT`], and hold what was
//! requested.
#![no_std]

mod bins;
mod buckets;
mod region;
mod slots;
mod table;

use core::fmt;
use core::ptr::NonNull;

pub use bins::BinPool;
pub use buckets::BucketPool;
pub use region::Region;
pub use slots::{Address, SlotPool};

/// Blocks begin at multiples of so many bytes: enough for every scalar of LEON3.
pub const ALIGNMENT: usize = 8;
/// Most sizes of one pool.
pub const MOST_SIZES: usize = 20;

/// What is the same for every pool.
pub trait Pool {
    /// A block of at least `size` bytes; `None` if the pool refuses. Time: O(sizes) for buckets, O(slots) for slots and bins.
    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>>;

    /// Takes a block back.
    ///
    /// # Errors
    /// [`BadFree`], as far as the original finds it; the pool is then as before.
    fn free(&mut self, place: NonNull<u8>) -> Result<(), BadFree>;

    /// What the pool has done.
    fn statistics(&self) -> Statistics;

    /// Most bytes that one request would get now.
    fn largest_free(&self) -> usize;
}

/// Equal slots for blocks of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// How many.
    pub count: u32,
    /// Bytes of each, rounded up to [`ALIGNMENT`].
    pub size: u32,
}

/// Figures of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of memory, records included.
    pub size: usize,
    /// Requested bytes now in use.
    pub used: usize,
    /// Most requested bytes that were in use at once.
    pub peak: usize,
    /// Bytes of the memory that blocks have ever taken, records included: never less than before.
    pub footprint: usize,
    /// Requests served.
    pub allocations: u64,
    /// Blocks taken back.
    pub frees: u64,
    /// Requests refused.
    pub refusals: u64,
}

impl Statistics {
    fn allocated(&mut self, bytes: usize) {
        self.allocations += 1;
        self.used += bytes;
        self.peak = self.peak.max(self.used);
    }

    fn freed(&mut self, bytes: usize) {
        self.frees += 1;
        self.used -= bytes;
    }
}

/// A free that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFree {
    /// No block begins there.
    Foreign,
    /// The block is not in use.
    Double,
    /// What stands before the block is not what was written there.
    Overwritten,
}

impl fmt::Display for BadFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadFree::Foreign => "no block of this pool begins there",
            BadFree::Double => "the block is free already",
            BadFree::Overwritten => "the record before the block was overwritten",
        })
    }
}

/// Why there is no such pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadConfiguration {
    /// No size, or more than [`MOST_SIZES`].
    Sizes,
    /// A size of zero, or of 2³¹ bytes or more.
    Size,
    /// Sizes that do not ascend.
    Order,
    /// The memory is smaller than the slots and their table; so many bytes suffice.
    Memory(u64),
    /// Memory of 2³¹ bytes or more.
    Large,
}

impl fmt::Display for BadConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadConfiguration::Sizes => write!(f, "give one to {MOST_SIZES} sizes"),
            BadConfiguration::Size => f.write_str("give sizes from 1 to 2^31 - 1 bytes"),
            BadConfiguration::Order => f.write_str("give sizes in ascending order, each once"),
            BadConfiguration::Memory(bytes) => {
                write!(f, "the slots take {bytes} bytes: give so much memory")
            }
            BadConfiguration::Large => f.write_str("give less than 2^31 bytes of memory"),
        }
    }
}

impl core::error::Error for BadConfiguration {}
impl core::error::Error for BadFree {}

/// `size` rounded up to [`ALIGNMENT`], at least that; `None` if it is too large for any block.
fn rounded(size: usize) -> Option<u32> {
    let size = u32::try_from(size).ok().filter(|&size| size < 1 << 31)?;
    Some(size.max(1).next_multiple_of(ALIGNMENT as u32))
}
