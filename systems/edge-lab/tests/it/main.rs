//! The laboratory from outside: engines compute the same, costs are counted, what is written can be read.
//!
//! *Invariant:* nothing here rests on how long something took.

mod campaign;
mod engines;

use metes_edge_lab::Runner;

/// The runner that was built beside this test.
fn runner() -> Runner {
    Runner {
        program: env!("CARGO_BIN_EXE_metes-edge-runner").into(),
        words: Vec::new(),
    }
}
