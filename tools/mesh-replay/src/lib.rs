//! What a mesh of nodes does with a trace.
//!
//! A mesh trace has one operation a line; `#` begins a comment; empty lines are none.
//!
//! | line | operation |
//! | --- | --- |
//! | `a,NODE,BLOCK,SIZE` | a node asks for a block, which is called by a number |
//! | `f,NODE,BLOCK` | a node, any, frees the block of that number, which may then be used again |
//!
//! Invariant: what is replayed is what the trace says: no block is freed that was not asked for, or twice, and each
//! node does its operations in their order.

mod page;
mod replay;
mod trace;

pub use page::page;
pub use replay::{FabricKind, NotReplayed, Replayed, replay};
pub use trace::{Operation, Trace, Unread};
