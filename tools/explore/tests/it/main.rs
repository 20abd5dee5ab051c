//! The integration tests of `metes-explore`, in one binary: linked once.

mod budget;
mod differential;
mod engine;
mod golden;
mod guarantee;
mod levels;
mod quick;
mod report;
mod runs;
mod search;
mod support;
mod tree;
mod weighed;
