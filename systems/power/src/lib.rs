//! Which pair of processor and memory frequencies serves all deadlines with the least energy, and the proof that it does.

pub mod fit;
pub mod fragment;
pub mod machine;
pub mod model;
pub mod predict;
pub mod suspects;
pub mod table;
