//! Virtual memory in constant time: mapping, unmapping, page faults and accesses take as long for
//! one page as for a million.
//!
//! Böhnert and Scholl, *A Dynamic Virtual Memory Management under Real-Time Constraints*, IEEE RTCSA
//! 2014. Unmapping a region empties one stack: its pages become invalid because nothing certifies
//! them any more, and its frames join the free list by one link. An [`Index`] over the starts of
//! regions is asked at a fault only; [`Space::translate`], which is what hardware does at every
//! access, reads three entries, and none of them was ever initialised but the counts of the stacks.
//!
//! ```
//! use metes_pages::{Access, Domain, Error, Frames, Pages12, Rights, Space};
//!
//! let mut frames = Frames::new([0; 64], 64).unwrap();
//! let mut space = Pages12::default();
//! space.open(4000, Domain::default())?;
//! space.map_region(100, 3000, Rights::READ_WRITE)?;
//! assert_eq!(space.access(2000, Access::Write), Err(Error::Absent));
//! let mapped = space.map_page(2000, &mut frames)?;
//! assert_eq!(space.access(2000, Access::Write), Ok(mapped.frame));
//! space.unmap_region(100, &mut frames)?;
//! assert_eq!(space.access(2000, Access::Write), Err(Error::Unmapped));
//! assert_eq!(frames.used(), 0);
//! # Ok::<(), Error>(())
//! ```
//!
//! Invariant: nothing here has a loop over pages, frames or regions, allocates, or panics on what a
//! caller passes; each error leaves everything as it was.

#![no_std]
#![deny(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(feature = "alloc")]
mod boxed;
mod cover;
mod error;
mod frames;
mod heap;
pub mod index;
mod space;
mod sparse;
mod tables;
mod tlb;

#[cfg(feature = "alloc")]
pub use boxed::{Zeroed, zeroed};
pub use error::Error;
pub use frames::{DOMAINS, Domain, Frame, Frames, Links, Origin, PackedLinks};
pub use heap::{PagedHeap, Placement, Refusal};
pub use index::Index;
pub use space::{Mapped, Region, Space};
pub use sparse::{Sparse, Table};
pub use tables::{Access, Header, Packed, Rights, Tables, Wide};
pub use tlb::Tlb;

use index::{Bitmap32, Bitmap64, Layered};

/// A space of up to 2^12 pages.
pub type Pages12 = Space<Wide<{ 1 << 12 }>, Bitmap64<64, 1, 1>>;
/// A space of up to 2^16 pages.
pub type Pages16 = Space<Wide<{ 1 << 16 }>, Bitmap64<1024, 16, 1>>;
/// A space of up to 2^20 pages: 4 GiB of pages of 4 KiB.
pub type Pages20 = Space<Wide<{ 1 << 20 }>, Bitmap64<16384, 256, 4>>;
/// A space of up to 2^24 pages: 64 GiB of pages of 4 KiB.
pub type Pages24 = Space<Wide<{ 1 << 24 }>, Bitmap64<262_144, 4096, 64>>;
/// As [`Pages20`], in the fewest bytes.
pub type Packed20 = Space<Packed<{ 1 << 20 }>, Bitmap64<16384, 256, 4>>;
/// As [`Pages20`], with an index for machines of 32 bits.
pub type Narrow20 = Space<Wide<{ 1 << 20 }>, Bitmap32<32_768, 1024, 32>>;
/// As [`Pages20`], with the layered tree of the paper.
pub type Layered20 = Space<Wide<{ 1 << 20 }>, Layered<32_768, 1024, 32>>;
