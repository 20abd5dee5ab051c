//! Device heaps: workloads, and how much memory, how many instructions and how much time they
//! take.
//!
//! [`bench`](bench::bench) measures everything; what is measured is any [`Measured`](measure::Measured):
//! a heap of ours by its [name](named::named), or whatever implements [`Subject`](subject::Subject).
//! None of that needs a device; [`cuda`] measures one.

pub mod bench;
pub mod best_fit;
pub mod cuda;
pub mod measure;
pub mod named;
pub mod pages;
pub mod show;
pub mod subject;
pub mod workload;
