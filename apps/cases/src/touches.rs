//! Touch traces for heaps of pages: those of the experiments of Böhnert and Scholl, "A Dynamic Virtual Memory
//! Management under Real-Time Constraints" (RTCSA 2014, section V), or what stands in for them.
//!
//! - [`actions`] are random: the synthetic workload;
//! - [`RECORDED`] are of six real programs, which stand in for the paper's.
//!
//! Invariant: every operation can be done after those before it.

mod actions;
mod recorded;

pub use actions::{Actions, Options, SizeError, actions};
pub use recorded::{RECORDED, Recorded, recorded};
