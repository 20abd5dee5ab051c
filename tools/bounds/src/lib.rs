//! Bounds on memory, delay and backlog, from exact curves.
//!
//! - [`observe`] finds the arrival and release curves of a trace, by class of sizes, and from
//!   them bounds on its live bytes: never below what was live;
//! - [`Contract`] declares bursts, rates and lifetimes of classes, bounds the live bytes of every
//!   program that keeps to them, and says where a trace does not;
//! - [`Findings`] are both of one trace, with what a heap must serve for it;
//! - [`Tandem`] bounds delay and backlog of flows that cross chains of servers.
//!
//! What is observed holds for a trace; what is declared, for all that keep to it.

mod axis;
mod busy;
mod classes;
mod contract;
mod findings;
mod observed;
mod residency;
mod staircase;
mod tandem;
mod windows;

pub use axis::Axis;
pub use classes::{Classes, Counted};
pub use contract::{Breach, Contract, ContractError, Declared};
pub use findings::{Findings, FindingsError, Kept};
pub use observed::{Cause, Method, ObserveError, Observed, Options, Share, observe, observe_also};
pub use staircase::Staircase;
pub use tandem::{
    DocumentError, Flow, FlowBounds, Hop, Limit, Server, ServerBounds, Tandem, TandemBounds,
    TandemError,
};
pub use windows::Burst;
