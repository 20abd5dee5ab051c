//! A many-core platform with distributed shared memory, simulated: controllers, heaps, and who manages them.
//!
//! Nodes on a mesh, each with a core, a controller of two miniprocessors that run microcode, and a heap, as in Koutras,
//! Anagnostopoulos, Bartzas and Soudris, *Improving Dynamic Memory Allocation on Many-Core Embedded Systems With Distributed
//! Shared Memory*, IEEE Embedded Systems Letters 2016. Programs run on it under one of several managers: three of that paper,
//! and `metes-mesh`, whose code runs unmodified. Heaps are real heaps; what walks and spills is what they do.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`parameters`] | what everything takes, from TOML, with sources |
//! | [`program`] | what a node's program does next: a cost model, a trace, or a simulated core |
//! | [`programs`] | master and slaves, traces, storms |
//! | [`workload`] | what a master and its slaves do, as data |
//! | [`managers`] | who manages the heaps |
//! | [`faults`] | what goes wrong |
//! | [`run`](mod@run) | a run and what came of it |
//! | [`bound`](mod@bound) | how long a request may take, proven |
//! | [`recording`] | how it looked on the way |
//!
//! *Invariant:* the same parameters and the same programs give the same run, event for event, on any host.

pub mod bound;
pub mod counts;
pub mod faults;
mod hardware;
pub mod heaps;
pub mod managers;
pub mod memory;
pub mod parameters;
pub mod program;
pub mod programs;
pub mod recording;
pub mod run;
mod view;
pub mod workload;

pub use bound::{Bound, NoBound, bound};
pub use counts::Counts;
pub use faults::{Death, Faults, NoFaults, Stall};
pub use heaps::{HeapKind, NodeHeap};
pub use managers::ManagerKind;
pub use memory::Audit;
pub use parameters::{Parameters, ParametersError};
pub use program::{Action, HeapStep, Message, Outcome, Program};
pub use recording::Recording;
pub use run::{NotRun, Run, Setup, run};
pub use workload::{Step, Task, Workload};
