//! The integration tests of `metes-curve`, in one binary: linked once.

mod cases;
mod chain;
mod common;
mod convolution;
mod laws;
mod pointwise;
mod published;
mod script;
mod together;
