//! The host of functions, by what functions do to it.
//!
//! *Invariant:* each test would fail if the host trusted the guest in the matter that it is about.

mod artefacts;
mod cost;
mod deploy;
mod functions;
mod guests;
mod host;
mod http;
mod isolation;
mod overrun;
mod properties;
mod quiet;
mod rust;
mod served;
mod service;
mod system_calls;
mod tiers;
mod traps;
mod wasi;
