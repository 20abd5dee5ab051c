//! A heap for each thread of a process.
//!
//! A thread takes blocks of pages of its own, each of equal slots under a bitmap, and frees them there: no lock, no exchange, no
//! loop. Another thread frees a block by setting its bit by one exchange ([`parked`](self) slots), and the owner takes up to
//! 64 of them back by one. Pages without a slot in use are anybody's. It is what `metes-mesh` does between nodes, local first,
//! frees without a lock, a chain that whoever has the heap drains, made as short as threads of one process allow.
//!
//! The heaps ([`ThreadHeaps`]) are written over a [`Ground`], which has memory and a lock; `ffi/preload` has one, and
//! [`ThreadAlloc`] is one for `#[global_allocator]`:
//!
//! ```
//! use metes_threads::ThreadAlloc;
//!
//! #[global_allocator]
//! static HEAP: ThreadAlloc = ThreadAlloc::new();
//!
//! let numbers: Vec<u64> = std::thread::spawn(|| (0..1000).collect()).join().unwrap();
//! assert_eq!(numbers.iter().sum::<u64>(), 499_500);
//! drop(numbers); // Freed by another thread than allocated it.
//! ```
//!
//! Invariant: a slot is in use, marked as freed by another thread, or free; a page that has a slot in use or marked has one
//! owner.

#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

mod cells;
#[cfg(not(all(test, loom)))]
mod classes;
#[cfg(all(feature = "std", not(all(test, loom))))]
mod current;
#[cfg(all(unix, feature = "std", not(all(test, loom))))]
mod driven;
#[cfg(all(feature = "std", not(all(test, loom))))]
mod global;
#[cfg(not(all(test, loom)))]
mod heaps;
#[cfg(all(test, loom))]
mod interleavings;
#[cfg(not(all(test, loom)))]
mod node;
#[cfg(not(all(test, loom)))]
mod page;
mod parked;
#[cfg(all(feature = "std", not(all(test, loom))))]
mod process;
#[cfg(not(all(test, loom)))]
mod supply;

#[cfg(not(all(test, loom)))]
pub use classes::{ALIGN, LARGEST, stays};
#[cfg(all(unix, feature = "std", not(all(test, loom))))]
pub use driven::Driven;
#[cfg(all(feature = "std", not(all(test, loom))))]
pub use global::ThreadAlloc;
#[cfg(not(all(test, loom)))]
pub use heaps::{Footprint, Ground, MOST_THREADS, NotFreed, PART_ALIGN, PARTS, Part, ThreadHeaps};
#[cfg(not(all(test, loom)))]
pub use node::Node;
