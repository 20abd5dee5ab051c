//! The integration tests of `metes-cases`, in one binary: linked once.

mod easyport;
mod generators;
mod prediction;
mod program;
mod vtc;
