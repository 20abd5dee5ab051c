//! Replay of traces on heaps, search for the heap that suits a program.
//!
//! A recorded trace becomes compact [`Events`]; a [`Replayer`] drives the
//! library's own heaps over a counted ledger, without touching managed memory;
//! [`smallest_arena`] says how little memory would have sufficed; the
//! [suggested](Space::suggested) space of a trace is searched by [`explore()`]; a described
//! [`Space`] is explored whole, or searched, by an [`engine`]. Who wants to see
//! where a block went before asking for the next drives a [`Simulated`] heap.

mod arena;
mod catalogue;
mod choose;
mod clock;
mod compare;
mod cost;
mod detail;
mod energy;
pub mod engine;
mod events;
mod fitted_span;
mod fixed_sizes;
mod handles;
mod hierarchy;
mod least;
mod mappings;
pub mod moving;
mod outcome;
mod output;
mod pareto;
mod placement;
mod pools;
mod proven;
mod quick;
mod random;
mod replay;
pub mod report;
mod run;
mod runs;
mod search;
mod simulate;
pub mod small_heaps;
mod space;
mod target;
mod terms;
mod windows;
mod workers;

pub use arena::{Shortage, SmallestArena, shortages, smallest_arena};
pub use catalogue::{Named, catalogue};
pub use choose::{Choice, OfRuns, Over, Preference, choose};
pub use clock::{Clock, SystemClock, Timer};
pub use compare::{Compared, compare};
pub use cost::CostModel;
pub use detail::{Detail, Part, Words};
pub use energy::{
    EnergyError, Figures, Leakage, Least, LevelPrice, LevelReport, Price, PriceReport, Pricer,
    RECORD_WORD, Work,
};
pub use events::{Accesses, Event, EventError, Events, EventsBuilder, Operation};
pub use fixed_sizes::fitted_sizes;
pub use handles::{
    BlockCount, HandleHeap, HandleReplay, TableError, replay_block_table, replay_handles,
};
pub use hierarchy::{Counts, Hierarchy, Level, Memory};
pub use metes_heap::description::LEVELS;
pub use outcome::{Outcome, constant_time};
pub use output::{OutputError, heap_file, write_front, write_json, write_whole};
pub use pareto::{Front, Objectives, dominates, front};
pub use placement::{MAPPED_BIT, POOL_SHIFT, Placements, SLAB_BIT};
pub use pools::Arena;
pub use proven::{bounded, proven};
pub use random::Random;
pub use replay::{Curve, Most, Options, Replay, Replayer};
pub use runs::Runs;
pub use search::{
    AtLeast, Budget, Exploration, Guarantees, Observer, OnWindows, Sampled, Unfinished, explore,
};
pub use simulate::Simulated;
pub use space::{
    Axis, AxisError, AxisValue, AxisValues, PAPER, PROTOTYPE, Parameters, Space, SpaceDescription,
    SpaceError,
};
pub use target::Target;
pub use terms::{Declared, Rule, Terms, TermsError, USEFUL, Wanted};
