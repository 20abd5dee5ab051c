//! `Fragmented`: objects in pieces, so that memory never is.
//!
//! Siebert ("Eliminating external fragmentation in a non-moving garbage collector for Java",
//! CASES 2000) divides memory into blocks of one size and an object into as many of them as it
//! needs, which may lie anywhere. There is no external fragmentation at all: a request is
//! served exactly when enough blocks are free, whatever was allocated and freed before. The
//! price is that an object is not contiguous. It is read and written by way of its handle;
//! a byte is found in O(n) steps in a [chain](Shape::Chain), O(log n) in a
//! [tree](Shape::Tree). malloc and free are O(n).
//!
//! ```
//! use core::mem::MaybeUninit;
//! use metes_heap::Memory;
//! use metes_heap::fragmented::{Fragmented, Options, Shape};
//!
//! let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 16));
//! let options = Options { block: 32, shape: Shape::Tree };
//! let mut heap = Fragmented::new(&options, Memory::from_static(memory)).unwrap();
//! let object = heap.allocate(1000).expect("there is room");
//! heap.write(object, 990, b"bounds").unwrap();
//! let mut bytes = [1; 8];
//! heap.read(object, 988, &mut bytes).unwrap();
//! assert_eq!(&bytes, b"\0\0bounds");
//! heap.free(object).unwrap();
//! assert!(heap.read(object, 0, &mut bytes).is_err(), "the handle is stale");
//! ```

mod blocks;
mod chain;
pub mod heap;
pub mod options;
#[cfg(test)]
mod tests;
mod tree;

pub use heap::{Fragmented, Refused, Resize};
pub use options::{Options, Shape, TAG, Unfit};

pub use crate::compact::{BadHandle, Handle};
