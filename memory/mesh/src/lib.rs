//! One heap over many nodes.
//!
//! Each node has a heap of its own; an arithmetic map makes one address space of all ([`HeapSpace`]). A node asks its own
//! heap first, and then those of the others, one after the other, passing over what another node holds at the moment; a
//! block is freed by any node, without a lock. Koutras, Anagnostopoulos, Bartzas and Soudris, *Improving Dynamic Memory
//! Allocation on Many-Core Embedded Systems With Distributed Shared Memory*, IEEE Embedded Systems Letters 2016: heap space
//! map and lazy heap selection (section II). Beyond the paper: a refusal is true ([`Refusal::Full`] says that every heap was
//! looked into), a bad free is found before it does harm, and a node may die at any step.
//!
//! The protocol ([`Mesh`]) is written once over a [`Fabric`], which says how nodes reach each other's words and heaps.
//!
//! ```
//! use metes_heap::Tlsf;
//! use metes_mesh::{HeapSpace, Mesh, Node, Shared};
//!
//! let space = HeapSpace::new(0x6000_0000, 1 << 16, 4)?;
//! let shared = Shared::new(space, |_| Tlsf::<8>::new())?;
//! let mut mesh = Mesh::new(&shared, Node(0));
//! let address = mesh.allocate(100, 16)?;
//! assert_eq!(space.place(address).map(|place| place.node), Some(Node(0)));
//! // Any node may free it.
//! Mesh::new(&shared, Node(3)).free(address)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariant: each block of a heap that serves is in use by a living node, parked, or to be adopted from a dead one; all else
//! is free, and nothing is lost, whenever a node dies.

#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(feature = "std")]
mod barrier;
mod fabric;
#[cfg(all(test, loom))]
mod interleavings;
mod leases;
mod local;
#[cfg(feature = "std")]
mod mapping;
mod mesh;
mod part;
mod refusal;
mod shared;
mod space;
mod words;

pub use fabric::{EXCHANGE, Fabric, LOAD, STORE, Word};
pub use leases::Leases;
pub use local::{LocalHeap, TaggedHeap};
#[cfg(feature = "std")]
pub use mapping::Mapping;
pub use mesh::{Counts, Mesh, Options};
pub use part::{Audit, NotMade};
pub use refusal::{BadFree, Expelled, Refusal};
pub use shared::{Shared, Stripe};
pub use space::{HeapSpace, Impossible, Node, Place};
pub use words::{Holder, Tag};
