//! Every parser under foreign bytes.
//!
//! A [`Parser`] has a name, inputs to begin with, and a call that takes any bytes: it says whether they
//! were accepted, and panics where what was accepted is not what it should be (as when what is written is
//! not read again). [`Mutator`] makes inputs of seeds. The fuzz targets run the same parsers by coverage,
//! the example `mutations` a million mutations with memory and time watched.
//!
//! *Invariant:* a parser that reads bytes from outside is in [`PARSERS`].

mod mutate;
mod parsers;

pub use mutate::Mutator;
pub use parsers::{PARSERS, Parser, parser};
