//! Device heaps: workloads, and how much memory and how many instructions they take.

pub mod workload;
