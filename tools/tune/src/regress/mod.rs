//! Two runs, or two results, beside each other: what became worse, for a project's gate.
//!
//! Invariant: equal sides differ in nothing; what is worse is named with both figures and the threshold that it
//! exceeds, a leak and a size with how many blocks of what size.

mod classes;
mod facts;
mod findings;
mod pairs;
#[cfg(test)]
mod tests;
mod thresholds;

pub use facts::{Burst, Facts, FactsError, RunFacts, SizeFacts};
pub use findings::{Comparison, Curve, Finding, Side, Unit, Verdict, compare};
pub use thresholds::{Setting, ThresholdError, Thresholds, What};
