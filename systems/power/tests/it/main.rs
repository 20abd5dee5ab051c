//! Tests across the crate's modules and beside other implementations.

mod peers;
mod planted;
