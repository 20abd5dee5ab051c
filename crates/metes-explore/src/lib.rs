//! Placeholder of the workspace layout.

pub mod emit;
