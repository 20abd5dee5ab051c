//! x
pub mod policy;
pub mod search;
pub mod state;
