//! How much of a program's memory depends on the order in which its threads run.
//!
//! A recording has one order of all requests: the one that happened. Another run has another. [`Threads`] is what a
//! recording says of all of them: what each thread asks for, in its order, and which request needs another to have come
//! before it, as it concerns the same block. Every order that keeps both is an *interleaving*. [`shuffled`] draws some,
//! [`Peak`] bounds the live bytes of all, and [`interleaved`] says what heaps take on them; [`sharing`] counts what the
//! threads have with each other's blocks and with the heap's lock.
//!
//! Invariant: an interleaving has every event once, the events of a thread in their order, and those of a block in theirs.

mod contention;
mod document;
mod flow;
mod peak;
mod per_thread;
mod replays;
mod shuffle;
mod threads;

pub use contention::{WINDOWS_NS, sharing, thread_figures};
pub use document::Document;
pub use peak::{Effort, Peak};
pub use per_thread::per_thread_footprint;
pub use replays::{Plan, interleaved};
pub use shuffle::{Within, shuffled};
pub use threads::{Order, Step, Threads};
