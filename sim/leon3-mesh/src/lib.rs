//! LEON3 cores as nodes of a mesh.
//!
//! Core *n* of a [`Machine`](metes_leon3::Machine) is node *n*. What is in its RAM is as quick as ever; beside it lies memory
//! of which each node has a part ([`Homes`]), and an access to another node's part is a packet there and one back over the
//! links of [`metes_noc`]'s mesh ([`MeshMemory`]).
//!
//! | module | what it is |
//! | --- | --- |
//! | [`homes`] | which node an address is at |
//! | [`memory`] | the memory, as a device of the machine |
//! | [`settings`] | what things take |
//!
//! *Invariant:* time is all that the mesh adds: the same loads give the same values as of RAM, in the order in which the
//! machine lets its cores run. A machine and its quantum give the same run, cycle for cycle, on any host.
#![forbid(unsafe_code)]

pub mod homes;
pub mod memory;
pub mod settings;

pub use homes::{Homes, Stripe};
pub use memory::{Counts, MeshMemory, attach};
pub use settings::{Settings, Unfit};
