//! Replay of traces on heaps, search for the heap that suits a program.
//!
//! A recorded trace becomes compact [`Events`]; a [`replay()`] drives the
//! library's own heaps over a counted ledger, without touching managed memory;
//! [`smallest_arena`] says how little memory would have sufficed; a [`Space`]
//! of configurations built from the trace is searched by [`explore()`].

mod arena;
mod cost;
mod events;
mod placement;
mod pools;
mod replay;
mod run;

pub use arena::{SmallestArena, smallest_arena};
pub use cost::CostModel;
pub use events::{Event, EventError, Events, EventsBuilder, Operation};
pub use placement::Placements;
pub use pools::Arena;
pub use replay::{Curve, Most, Options, Replay, Replayer};
