//! The integration tests of `metes-bench`, in one binary: linked once.

mod callgrind;
mod security;
