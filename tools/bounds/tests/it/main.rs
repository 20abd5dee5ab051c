//! The integration tests of `metes-bounds`, in one binary: linked once.

mod common;
mod contract;
mod observed;
mod tandem;
