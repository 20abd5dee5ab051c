//! A runner of the laboratory at the edge: a module in wasmer, by the same words and with the same system as in the runner of
//! ours (`systems/edge-lab`), whose sources these are.
//!
//! *Invariant:* what differs between the two runners is the engine.

mod engine;
mod process;
#[allow(unreachable_pub, reason = "there it is of a library")]
#[path = "../../../edge-lab/src/runner.rs"]
mod runner;
#[path = "../../../edge-lab/src/wasi.rs"]
mod wasi;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(runner::main(&arguments));
}
