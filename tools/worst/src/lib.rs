//! A laboratory of worst cases.
//!
//! Adversaries ([`program`]) ask a heap for what suits it least, as far as a
//! demand allows: most live bytes M, requests from l to n bytes. A search over
//! their numbers ([`space`]) maximises the memory that the heap takes, one over
//! short sequences and long lists ([`time`]) the instructions of one call. What
//! is found is a *maximum*, measured; it is reported beside the *bound*, proven.
//!
//! Adversaries see a heap through [`Target`]; a kind of heap that can be
//! attacked is a [`Victim`], one whose instructions can be counted is
//! [`Runnable`]. Every heap that `metes-config` names is both; one of another
//! make implements the three.
//!
//! Invariant: an attack stays within its demand, so a heap in the bytes of its
//! bound that refuses a request contradicts the bound.

mod attack;
pub mod board;
mod cache;
mod error;
mod genes;
pub mod growth;
mod heap;
mod library;
mod memory;
pub mod program;
mod sequence;
mod shares;
pub mod space;
mod subject;
mod target;
pub mod time;
mod victim;
mod worst;

pub use attack::{Attack, Block, Heaviest, Outcome};
pub use cache::{Ticks, ticks};
pub use error::WorstError;
pub use heap::{Heap, PerCall};
pub use library::{Library, Make};
pub use memory::Range;
pub use program::Program;
pub use sequence::{Sequence, Step};
pub use subject::{Calls, Runnable, Running, Subject};
pub use target::{Shape, Target};
pub use victim::{Replayed, Victim, options_of};
pub use worst::{Declared, Instructions, Progress, Request, SlowestTicks, Traces, Worst, worst};
