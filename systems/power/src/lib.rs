//! Which pair of processor and memory frequencies serves all deadlines with the least energy, and the proof that it does.
//!
//! - [`System`] is what is asked, from TOML: tasks, jobs, and a processor;
//! - [`check`] analyses it exactly at a pair of frequencies;
//! - [`plan`](plan::plan) finds what takes the least energy: a pair of frequencies, or a schedule of speeds;
//! - [`checker`] verifies plans by ways of its own.
//!
//! All is computed in exact rationals; there is no clock and no file.

mod analysis;
pub mod checker;
pub mod gantt;
pub mod levels;
pub mod pair;
pub mod plan;
pub mod policies;
pub mod rational;
pub mod simulation;
pub mod speed;
pub mod system;

pub use analysis::{AnalysisError, JobVerdict, Miss, TaskVerdict, Verdict, check, is_schedulable};
pub use rational::Rational;
pub use system::{Pair, System, SystemError};
