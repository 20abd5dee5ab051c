//! The integration tests of `metes-worst`, in one binary: linked once.

mod bounds;
mod demand;
mod library;
mod planted;
mod traces;
