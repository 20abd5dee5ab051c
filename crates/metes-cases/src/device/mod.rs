//! Device heaps: workloads, and how much memory and how many instructions they take.

pub mod measure;
pub mod subject;
pub mod workload;
