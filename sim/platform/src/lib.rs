//! A many-core platform with distributed shared memory, simulated: controllers, heaps, and who manages them.
//!
//! *Invariant:* the same parameters and the same workload give the same run, event for event, on any host.

pub mod workload;

pub use workload::{Step, Task, Workload};
