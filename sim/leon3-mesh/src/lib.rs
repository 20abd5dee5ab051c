//! LEON3 cores as nodes of a mesh.
//!
//! Core *n* of a [`Machine`](metes_leon3::Machine) is node *n*. What is in its RAM is as quick as ever; beside it lies memory
//! of which each node has a part ([`Homes`]), and an access to another node's part is a packet there and one back over the
//! links of [`metes_noc`]'s mesh ([`MeshMemory`]).
//!
//! Or a node is a machine of its own ([`Leon3Node`]), whose core asks a [`Controller`] for what it wants of the platform; then
//! whoever simulates that platform lets each machine run to its next [`Command`] and gives the answer.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`homes`] | which node an address is at |
//! | [`memory`] | the memory, as a device of the machine |
//! | [`settings`] | what things take |
//! | [`command`], [`controller`] | what a core asks of its node's controller, and by which registers |
//! | [`node`] | a machine that runs from command to command |
//! | [`program`] | such machines as programs of [`metes_platform`] |
//! | [`steps`] | what the image of the heap space map is told to do |
//!
//! *Invariant:* time is all that the mesh adds: the same loads give the same values as of RAM, in the order in which the
//! machine lets its cores run. A machine and its quantum give the same run, cycle for cycle, on any host.
#![forbid(unsafe_code)]

pub mod command;
pub mod controller;
pub mod homes;
pub mod memory;
pub mod node;
pub mod program;
pub mod settings;
pub mod steps;

pub use command::{Command, NOTHING};
pub use controller::{Controller, Place};
pub use homes::{Homes, Stripe};
pub use memory::{Counts, MeshMemory, attach};
pub use node::{Answer, Astray, Issued, Leon3Node, NoRoom};
pub use program::{Leon3Program, Managed, NoProgram, Seen, leon3_programs};
pub use settings::{Settings, Unfit};
pub use steps::Step;
