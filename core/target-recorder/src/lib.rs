//! Records who asks what of the heap of firmware, on the target itself.
//!
//! Events go into a ring in memory ([`Recorder`]), from which they are sent over whatever line there is
//! ([`Recorder::send`]), or which a debugger reads out. [`Recorded`] is a global allocator around another one.
//! `metes trace import` makes a trace of either; `metes record --target cortex-m3` runs an image and does so.
//!
//! ```
//! use std::alloc::System;
//! use metes_target_recorder::{Recorded, Recorder, Target};
//!
//! struct Board;
//! // SAFETY: this program has one thread and no interrupts.
//! unsafe impl Target for Board {
//!     const FREQUENCY: u32 = 0;
//!     fn now() -> u32 { 0 }
//!     fn exclusively<R>(work: impl FnOnce() -> R) -> R { work() }
//! }
//!
//! static RECORDER: Recorder<Board, 1024> = Recorder::new();
//! #[global_allocator]
//! static HEAP: Recorded<System, Board, 1024> = Recorded::new(System, &RECORDER);
//!
//! let values = vec![1, 2, 3];
//! drop(values);
//! let mut line: Vec<u8> = Vec::new();
//! while RECORDER.send(|bytes| line.extend_from_slice(bytes)) > 0 {}
//! assert!(!line.is_empty());
//! ```
//!
//! *Invariants:* nothing here allocates, waits or panics. What is kept out of an event by [`Target::exclusively`] are a
//! look at the clock and six reads and writes, whatever the ring holds. An event that finds no room is counted, and the
//! first one's time is kept; those before it stay.
#![no_std]

mod allocator;
mod recorder;

pub use allocator::Recorded;
pub use metes_layout::target as layout;
pub use recorder::{Recorder, Target};
