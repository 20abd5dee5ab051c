//! Which pair of processor and memory frequencies serves all deadlines with the least energy, and the proof that it does.
//!
//! - [`System`] is what is asked, from TOML: tasks, jobs, and a processor;
//! - [`check`] analyses it exactly at a pair of frequencies;
//! - [`plan`](plan::plan) finds what takes the least energy: a pair of frequencies, or a schedule of speeds;
//! - [`checker`] verifies plans by ways of its own.
//!
//! All of these compute in exact rationals; there is no clock and no file.
//!
//! - [`model`] is time and power by both frequencies, in floating point; [`fit`] fits them to a [`table`] of measurements,
//!   with [`suspects`], [`predict`] foretells them from counts, and [`fragment`] writes them for [`System`];
//! - [`machine`] reads and sets what a Linux machine offers, below any root.

mod analysis;
pub mod checker;
pub mod fit;
pub mod fragment;
pub mod gantt;
pub mod heaps;
pub mod levels;
pub mod machine;
pub mod model;
pub mod pair;
pub mod plan;
pub mod policies;
pub mod predict;
pub mod rational;
pub mod simulation;
pub mod speed;
pub mod suspects;
pub mod system;
pub mod table;

pub use analysis::{AnalysisError, JobVerdict, Miss, TaskVerdict, Verdict, check, is_schedulable};
pub use rational::Rational;
pub use system::{Pair, System, SystemError};
