//! Constant-time virtual memory, replayed and measured: files of page operations, and the
//! instructions that each operation takes, beside the conventional system.
//!
//! Invariant: the system under measurement is `metes-pages` itself, never a copy.

pub mod bench;
pub mod conventional;
pub mod lower;
pub mod operations;
pub mod placement;
pub mod replay;
pub mod trace;

use std::path::Path;

use metes_trace::{TouchOperation, TraceError, open_touches};

/// A touch trace in memory.
#[derive(Clone, Debug)]
pub struct Touches(pub Vec<TouchOperation>);

impl Touches {
    /// Reads a file. Linear.
    ///
    /// # Errors
    /// What is wrong with it, with its line.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        open_touches(path)?.collect::<Result<_, _>>().map(Self)
    }
}
