//! Device heaps for C, and as the allocator of frameworks: the functions of `metes_device.h`,
//! which documents them.
//!
//! Invariants:
//! - no panic leaves a function, and no exception but those of [`torch`];
//! - after a heap was made, neither it nor its table of addresses allocates anything on the
//!   host. (The books that a backend keeps of its pages do, when pages are created; so do lists of
//!   events, and of what graphs keep.);
//! - a heap that nobody may watch runs the code that it would run if there were no watching.

pub mod devices;
mod exception;
pub mod failure;
pub mod figures;
mod follow;
mod graphs;
pub mod heap;
pub mod history;
pub mod others;
mod plug;
mod process;
mod table;
pub mod torch;
#[cfg(target_os = "linux")]
mod watch;
