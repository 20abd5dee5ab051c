//! Whether a set of functions fits a host: processor demand by core, memory, and a certificate that is checked apart.
//!
//! - [`Set`] is what is asked, from TOML: a host, and functions with period, deadline, budget and memory;
//! - [`manifest::Manifest`] is what one function declares of itself, from its `function.toml`;
//! - [`admit`] decides, and answers with a [`Certificate`] or with a [`Refusal`] that says what to change;
//! - [`Certificate::check`] verifies an answer by a way of its own, deadline for deadline.
//!
//! [`simulation`], [`rules`] and [`campaign`] are what it is held against.
//!
//! Each core is scheduled by preemptive earliest deadline first. All is computed in whole numbers.

pub mod campaign;
mod certificate;
mod check;
mod criticality;
mod decision;
mod demand;
mod fit;
pub mod manifest;
mod network;
mod partition;
mod qpa;
mod refusal;
mod remedy;
pub mod rules;
mod set;
pub mod simulation;
mod task;
mod time;

pub use certificate::{Certificate, Core, Degraded, Memory, Point, Spare};
pub use check::Flaw;
pub use decision::{Decision, admit};
pub use refusal::{Change, Reason, Refusal};
pub use set::{
    Criticality, Function, Host, Interference, MOST_CHARACTERS, MOST_CORES, MOST_FUNCTIONS,
    Network, Overheads, Scheduling, Server, Set, SetError,
};
