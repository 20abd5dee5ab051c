//! The integration tests of `metes-heap`, in one binary: linked once.

mod common;
mod composite;
mod damage;
mod first_fit;
mod growth;
mod hardened;
mod increments;
mod linked_structures;
mod model;
