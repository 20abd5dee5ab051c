//! The integration tests of `metes-trace`, in one binary: linked once.

mod common;
mod csv;
mod firmware;
mod import;
mod parquet;
mod profile;
mod record;
mod target;
mod touches;
