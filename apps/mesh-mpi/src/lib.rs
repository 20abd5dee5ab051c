//! One heap over ranks of MPI.
//!
//! Each rank has a window that the others reach one-sidedly ([`Window`]); in it lie the words, tags and heap of its node, and
//! the protocol of `metes-mesh` works on them unchanged ([`Ranks`]). Nobody maps another's memory: each record of another's
//! heap is read and written over the window by whoever holds its lock, so ranks may be on different machines.
//!
//! Invariant: all that ranks share lies in windows, and is reached through [`Window`] alone.

mod board;
mod detect;
mod heap;
mod layout;
mod ranks;
mod times;
mod window;

pub use heap::{Index, WindowHeap};
pub use ranks::{NotJoined, Ranks};
pub use times::{Stopwatch, die};
pub use window::{Window, WindowError};
