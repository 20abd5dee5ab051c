//! The host of functions at the edge: WebAssembly modules in slots, with budgets and deadlines.
//!
//! ```no_run
//! use std::time::Duration;
//! use metes_edge::{Engine, Limits, Options, Worker};
//!
//! let wasm = std::fs::read("function.wasm")?;
//! let engine = Engine::new(Options::default())?;
//! let module = engine.compile(&wasm, &Limits::default())?;
//! let mut worker = Worker::new(&engine);
//! worker.prepare(&module)?;
//! let mut output = Vec::with_capacity(module.limits().output);
//! let invocation = worker.invoke(&module, b"request", &mut output, Duration::from_millis(5));
//! println!("{:?}: {} bytes", invocation.outcome, output.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Invariant:* between release and completion of an invocation the host makes no system call and takes no
//! page fault.

#![cfg(target_os = "linux")]

mod artefact;
pub mod client;
mod clock;
mod cost;
mod engine;
mod error;
mod guest;
mod host;
pub mod http;
mod limits;
mod manifest;
mod module;
mod outcome;
mod overheads;
mod overrun;
mod queue;
mod schedule;
mod seat;
pub mod serve;
mod slots;
mod station;
mod statistics;
mod tier;
mod wasi;
mod worker;

pub use cost::{Cost, CostError, Counts, Span, Table};
pub use engine::Engine;
pub use error::{DeployError, EngineError, SlotError};
pub use host::{Host, HostError, HostOptions, HostTold, Sampled, SampledTier, Told};
pub use limits::{Absent, CompileServer, Limits, Options, PAGE, State, Tiers};
pub use manifest::{Kind, Manifest, ManifestError, Overrun};
pub use module::{Module, Reset};
pub use outcome::{Budget, BudgetClock, Invocation, Outcome, Policy, Refusal, Tier, Trap};
pub use overheads::Overheads;
pub use slots::{Slot, Slots};
pub use station::{Obtained, Response};
pub use statistics::{Endings, Times};
pub use worker::Worker;
