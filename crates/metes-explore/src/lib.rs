//! Replay of traces on heaps, search for the heap that suits a program.
//!
//! A recorded trace becomes compact [`Events`]; a [`Replayer`] drives the
//! library's own heaps over a counted ledger, without touching managed memory;
//! [`smallest_arena`] says how little memory would have sufficed; a [`Space`]
//! of configurations built from the trace is searched by [`explore()`].

mod arena;
mod catalogue;
mod choose;
mod compare;
mod cost;
pub mod emit;
mod events;
mod hierarchy;
mod outcome;
mod output;
mod pareto;
mod placement;
mod pools;
mod quick;
mod random;
mod replay;
pub mod report;
mod run;
mod search;
pub mod small_heaps;
mod space;

pub use arena::{SmallestArena, smallest_arena};
pub use catalogue::{Named, catalogue, write_down};
pub use choose::{Choice, Preference, choose};
pub use compare::{Compared, compare};
pub use cost::CostModel;
pub use events::{Accesses, Event, EventError, Events, EventsBuilder, Operation};
pub use hierarchy::{Counts, LEVELS};
pub use outcome::{Outcome, constant_time};
pub use output::{OutputError, Results, write_json, write_whole};
pub use pareto::{Objectives, dominates, front};
pub use placement::Placements;
pub use pools::Arena;
pub use replay::{Curve, Most, Options, Replay, Replayer};
pub use search::{Budget, Exploration, Observer, explore};
pub use space::{Point, Space};
