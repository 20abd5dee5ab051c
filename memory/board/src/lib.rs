//! The board of a device heap: its figures and its pages, in memory that another process may
//! look at while the heap works (`metes device watch`).
//!
//! The heap's process has a [`Writer`], whoever watches a [`Board`]. The writer waits for nobody
//! and knows of no reader: a publication takes constant time, and a constant for each page that
//! changed. A reader gets every figure and every page *of one moment*, between two operations of
//! the heap, or an error; see `protocol` for how.
//!
//! A board is a file in memory without a name (`memfd_create`), which is gone with its process,
//! however that ends. Readers find it under `/proc/PID/fd`, so its owner alone (and root) may
//! look. It cannot shrink or be written by others, so that neither side can be hit by a signal.
//!
//! Invariant: what a reader returns was checked, whatever the bytes were.

mod board;
mod cells;
mod error;
mod figures;
#[cfg(target_os = "linux")]
mod find;
mod header;
mod layout;
#[cfg(target_os = "linux")]
mod memory;
mod protocol;
mod writer;

pub use board::{Board, Page, Snapshot, Stream};
pub use error::Error;
pub use figures::{Count, Figures};
#[cfg(target_os = "linux")]
pub use find::{NAME, find};
pub use header::{About, Header};
pub use writer::Writer;
