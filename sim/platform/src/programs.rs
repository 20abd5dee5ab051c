//! Programs of nodes.
//!
//! *Invariant:* a program is a pure function of what it is made of and of what it is told.

mod master;
mod storm;
mod trace;

pub use master::{NoSlaves, master_and_slaves};
pub use storm::{Storm, storms};
pub use trace::{Operation, Traced, traced};
