//! The laboratory: what measures, and what shows what was measured.
//!
//! - [`device`] measures device heaps: arenas, instructions, time, pages;
//! - [`Report`] is what an experiment found, beside a paper's figures, and [`page`] shows one;
//! - [`Random`] draws workloads: the same seed, the same workload everywhere.
//!
//! Invariant: a workload is a pure function of its options, so that every figure made from it can be made
//! again.

pub mod device;
mod page;
mod report;

pub use metes_random::Random;
pub use page::{About, figure, page};
pub use report::{Figure, Plot, Report, Series};
