//! The atomics that threads share: those of `core`, or those of the model checker, which runs every interleaving
//! (`--cfg loom`).

#[cfg(not(all(test, loom)))]
pub(crate) use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
