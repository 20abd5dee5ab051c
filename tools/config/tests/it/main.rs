//! The integration tests of `metes-config`, in one binary: linked once.

mod errors;
mod parts;
mod round_trip;
