//! Constant-time virtual memory, replayed and measured: files of page operations, and the
//! instructions that each operation takes, beside the conventional system.
//!
//! Invariant: the system under measurement is `metes-pages` itself, never a copy.

pub mod bench;
pub mod conventional;
pub mod operations;
pub mod placement;
pub mod replay;
pub mod trace;
