//! Compact-fit: time and space guarantees at once.
//!
//! A heap that never moves a block may need ½ log₂ n times its live bytes (Robson 1971),
//! whatever it does. Compact-fit moves blocks, a bounded number at a time, and so bounds both
//! the time of each operation and the memory. See [`CompactFit`] for the heap, [`automaton`]
//! for the decisions, and `docs/guarantees.md` for the bounds.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use metes_heap::Memory;
//! use metes_heap::compact::{CompactFit, Options};
//!
//! let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 20));
//! let mut heap = CompactFit::new(&Options::DEFAULT, Memory::from_static(memory)).unwrap();
//! let block = heap.allocate(100, 8).expect("there is room");
//! heap.write(block, 0, b"metes and bounds").unwrap();
//! let mut bytes = [0; 5];
//! heap.read(block, 0, &mut bytes).unwrap();
//! assert_eq!(&bytes, b"metes");
//! heap.free(block).unwrap();
//! assert!(heap.read(block, 0, &mut bytes).is_err(), "the handle is stale");
//! ```

pub mod apart;
pub mod automaton;
pub mod backing;
mod bits;
pub mod block_table;
mod cells;
pub mod complexity;
mod entries;
pub(crate) mod handles;
pub mod heap;
pub mod instances;
mod layout;
pub mod moving;
pub mod options;
pub mod plain;
pub mod refusal;
pub mod shared;
mod table;
#[cfg(test)]
mod tests;
pub mod typed;

pub use automaton::{ClassState, Slot, Transition};
pub use block_table::BlockTable;
pub use handles::{BadHandle, ENTRY, Handle, MOST_HANDLES, MOST_PINS};
pub use heap::{CompactFit, Compaction, Fragmentation, MOVES};
pub use instances::{Instances, Member, Population};
pub use layout::Needs;
pub use moving::Copying;
pub use options::{Kappa, Options, Partition, Unfit};
pub use plain::NonCompacting;
pub use refusal::{Refused, Resize};
pub use shared::{Granularity, SharedCompactFit, Sharing};
