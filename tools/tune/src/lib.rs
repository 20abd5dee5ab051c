//! From a program to its heap, and the proof that it fits.
//!
//! A [`Tuning`] records a program, [searches](search()) for the heap that suits it, predicts the
//! program's run on that heap, emits and builds it, and runs the program on it: [`Checked`] says
//! whether the run was as predicted. Each step is there by itself, too: a program's streams
//! [captured](capture()), a program [launched](launch()) on a preloaded heap, the code of a heap
//! [written](write()), the [report](Content) of an exploration.
//!
//! Invariant: what is predicted is computed before the program runs on the heap, from a recording
//! on the system's own heap; [`Checked::equal`] is said only of figures and placements that agree.

mod accesses;
mod beside;
mod capture;
mod check;
mod emitted;
mod error;
pub mod image;
mod launch;
mod orders;
mod per_thread;
mod process;
pub mod ranges;
pub mod regress;
mod report;
pub mod runs;
mod search;
mod tuning;

pub use accesses::{Accessed, Checked as CheckedAccesses, WithAccesses, record_accesses};
pub use beside::Turns;
pub use capture::{Exchanged, Input, Pass, Stream, Written, capture, stdout_to_stderr};
pub use check::{Checked, Difference};
pub use emitted::{
    Emission, LIBRARY, build, emit, emit_for, names, need_addresses, need_compiler, write,
};
pub use error::{Error, FileError};
pub use launch::{ManagedPages, Report, Scratch, SteadyLayout, launch};
pub use per_thread::PerThread;
pub use process::Process;
pub use report::{Content, DOCUMENT, Measured, PAGE, tell, write as write_report};
pub use search::{Request, Searched, search, search_apart, search_runs};
pub use tuning::{Chosen, FILES, Found, Lacking, Recorded, Step, TRACE, Tuned, Tuning, Watch};
