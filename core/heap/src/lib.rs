//! Allocators with proven bounds in time and space.
//!
//! A heap is an [`index`] (which free block?) over the blocks of a [`store`]
//! (where is a block's record, who are its neighbours?). Every index is written
//! once and works over every store: boundary tags inside the memory
//! ([`Tagged`]), records outside it ([`Ledger`]), and either with every access
//! counted ([`Counted`]).
//!
//! ```
//! use core::mem::MaybeUninit;
//! use metes_heap::{Heap, Memory, Tagged, Tlsf};
//!
//! let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(4096));
//! let mut heap = Heap::new(Tlsf::<8>::new(), <Tagged>::new());
//! heap.add_region(Memory::from_static(memory)).unwrap();
//! let place = heap.allocate(100, 16).expect("there is room");
//! // SAFETY: the block is in use and nothing points into it.
//! unsafe { heap.free(place) }.unwrap();
//! assert_eq!(heap.check(), Ok(()));
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

pub mod bounds;
pub mod compact;
pub mod complexity;
pub mod composite;
pub mod description;
pub mod fragmented;
pub mod global;
pub mod heap;
pub mod index;
pub mod levels;
pub mod lock;
pub mod mapped;
pub mod objects;
#[cfg(feature = "source")]
pub mod source;
pub mod statistics;
pub mod store;

pub use composite::{AnyPool, Composite, Sizes, Sources, Spot};
pub use description::{Description, IndexKind};
pub use heap::{BlockInfo, Corruption, Heap, NoSource, Source, State};
pub use index::Limits;
pub use index::any::AnyIndex;
pub use index::buddy::Buddy;
pub use index::classes::{HalfFit, SegregatedFit, Tlsf};
pub use index::dedicated::Dedicated;
pub use index::fixed::{FixedSizes, SizeTable};
pub use index::kingsley::Kingsley;
pub use index::lea::Lea;
pub use index::links::Links;
pub use index::list::{Fit, ListFit, Order};
pub use levels::Levels;
pub use mapped::{Mapped, MappedBlock};
pub use objects::{ObjectPools, Slabs};
pub use statistics::Statistics;
pub use store::counted::Counted;
pub use store::distant::{Carried, Distant, DistantBlock, Words};
pub use store::hardened::{Hardened, MOST_DOUBTS};
pub use store::ledger::{ByHandle, Direct, Hashed, Ledger, Record, UnitRecord};
pub use store::tagged::{Memory, Tagged};
pub use store::{BadFree, Geometry, Overwritten, RegionError, Store};
