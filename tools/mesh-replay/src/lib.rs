//! What a mesh of nodes does with a trace.
//!
//! A mesh trace has one operation a line; `#` begins a comment; empty lines are none.
//!
//! | line | operation |
//! | --- | --- |
//! | `a,NODE,BLOCK,SIZE` | a node asks for a block, which is called by a number |
//! | `f,NODE,BLOCK` | a node, any, frees the block of that number, which may then be used again |
//!
//! [`replay`] has nodes that share memory. Nodes that do not are others' (`metes-mesh-mpi`): each does its operations by
//! [`Life`], over a [`Board`] of its own kind, and [`account`] adds up.
//!
//! Invariant: what is replayed is what the trace says: no block is freed that was not asked for, or twice, and each
//! node does its operations in their order.

mod account;
mod board;
mod common;
mod life;
mod lists;
mod mortal;
mod page;
mod platform;
#[cfg(unix)]
mod processes;
mod replay;
mod sequential;
mod threads;
mod timed;
mod trace;

pub use account::account;
pub use board::{Board, bury, is_dead, words};
pub use life::{Call, Life, Watch};
pub use lists::Lists;
pub use mortal::Mortal;
pub use page::page;
pub use platform::on_platform;
pub use replay::{
    FabricKind, Kill, NotReplayed, NotWhere, Replayed, Setting, check, replay, replay_with,
};
pub use timed::{Latencies, Latency, Timed};
pub use trace::{Operation, Trace, Unread};
