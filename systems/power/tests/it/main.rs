//! Tests across the crate's modules and beside other implementations.

mod foreign;
mod machine;
mod meter;
mod peers;
mod planted;
