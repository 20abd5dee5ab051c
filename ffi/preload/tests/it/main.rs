//! The integration tests of `metes-preload`, in one binary: linked once.

mod addresses;
mod behaviour;
mod common;
mod generated;
mod programs;
mod threads;
