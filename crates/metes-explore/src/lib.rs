//! Placeholder of the workspace layout.

pub mod small_heaps;
