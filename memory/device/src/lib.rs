//! Heaps for memory that the host manages and never reads.
//!
//! A host gives out the memory of a GPU, of an FPGA or of another machine, and can keep no
//! records in it (Segregated-fit and TLSF on a host for device memory: see `docs/device.md`).
//! The records of these heaps stand in host memory that is taken once, when a heap is made;
//! every operation takes constant time, a refusal too.
//!
//! A heap over offsets alone, for memory that somebody else manages:
//!
//! ```
//! use metes_device::heap::{DirectHeap, Extent};
//!
//! // The brackets choose the usual index, which could not be inferred.
//! let mut heap = <DirectHeap>::direct(Extent { bytes: 1 << 30, granule: 256, blocks: 4096 })?;
//! let block = heap.allocate(5 << 20, 4096)?;
//! assert_eq!(block.offset % 4096, 0);
//! heap.free(block.place).expect("it is in use");
//! assert!(heap.free(block.place).is_err(), "a block is freed once");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`fixed::FixedHeap`] puts one over a device's memory, [`sparse::SparseHeap`] pages under live
//! blocks alone.
#![cfg(target_pointer_width = "64")]

pub mod backend;
pub mod bitmap;
pub mod fixed;
pub mod heap;
pub mod hybrid;
mod owned;
mod pages;
pub mod shared;
pub mod sparse;
pub mod stream_pages;
pub mod streams;
