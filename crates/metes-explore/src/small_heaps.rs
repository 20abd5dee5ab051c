//! x
pub mod policy;
pub mod real;
pub mod search;
pub mod state;
