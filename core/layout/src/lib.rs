//! What a library inside a program and the tool outside it must agree on: the layouts of the files in
//! which the one leaves what it saw for the other. Libraries must not link the tools' dependencies, nor
//! tools the libraries' `malloc`, so the layouts are a crate that knows nobody.
//!
//! Invariant: no code here allocates or calls anybody; all-zero bytes are a valid value of every header.
#![no_std]

pub mod accesses;
pub mod recording;
pub mod target;
