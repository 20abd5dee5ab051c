//! Replay of traces on heaps, search for the heap that suits a program, emission, report.

pub mod emit;
pub mod small_heaps;
