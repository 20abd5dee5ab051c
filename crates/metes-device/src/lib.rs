//! Heaps for memory that the host manages and never reads.
//!
//! A host gives out the memory of a GPU, of an FPGA or of another machine, and can keep no
//! records in it (Segregated-fit and TLSF on a host for device memory: see `docs/device.md`).
//! The records of these heaps stand in host memory that is taken once, when a heap is made;
//! every operation takes constant time, a refusal too.
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
