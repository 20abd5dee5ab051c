//! The laboratory of WebAssembly beside containers: engines, layers, axes.
//!
//! [`measure`] runs every [kernel](metes_edge_kernels) by every [`Subject`]: native code, WebAssembly in several engines,
//! and native code in containers of several layers, each with its time, page faults, context switches and system calls.
//! [`Findings`] says what follows, and why. [`reproduce`](mod@reproduce) sets three figures of a paper beside ours.
//!
//! *Invariant:* what cannot be had on a machine is told with its reason, and no figure stands for another.

pub mod engine;
mod findings;
mod measure;
mod page;
mod polybench;
pub mod process;
mod programs;
pub mod reproduce;
pub mod runner;
pub mod statistics;
mod subject;
mod suite;
mod table;
mod wasi;

pub use findings::{Findings, Puzzle, Start, Steady, SteadyBy};
pub use measure::{Cell, Cold, LabError, Measured, Options, Prolonged, Warm, measure};
pub use metes_edge_kernels::{KERNELS, NOTHING, Size};
pub use page::{PAPER_STARTS, VERSION, document, page};
pub use polybench::PolyBench;
pub use programs::{Build, BuildError, Own};
pub use subject::{Layer, Runner, Subject, Workshop, all};
pub use suite::{Printed, Suite};
pub use table::{CSV_BEGINNING, csv, parquet};
