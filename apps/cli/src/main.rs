//! The `metes` command: parses the command line, calls the verb, renders what
//! went wrong.
//!
//! Invariant: this crate orchestrates and presents; whatever is computed is
//! computed by the libraries. With `--json` stdout holds exactly one document.

mod arguments;
mod emitted;
mod energy;
mod error;
mod heap;
mod interrupt;
mod libraries;
mod output;
mod own;
mod progress;
mod quantity;
mod results;
mod search;
mod space;
mod tracefile;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};
use error::Failure;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; clap knows the stream of each.
            let status = if error.use_stderr() {
                error::BAD_INPUT
            } else {
                0
            };
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    let json = arguments.json;
    if arguments.replace {
        own::replace_all();
    }
    match run(arguments.verb, json) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            error::render(&failure);
            ExitCode::from(failure.status())
        }
    }
}

/// The exit status, or why there was bad input.
fn run(verb: Verb, json: bool) -> Result<u8, Failure> {
    match verb {
        Verb::Tune(arguments) => verbs::tune::run(&arguments, json),
        Verb::Record(arguments) => verbs::record::run(&arguments, json),
        Verb::Profile(arguments) => verbs::profile::run(&arguments, json),
        Verb::Replay(arguments) => verbs::replay::run(&arguments, json),
        Verb::Explore(arguments) => verbs::explore::run(&arguments, json),
        Verb::Compare(arguments) => verbs::compare::run(&arguments, json),
        Verb::Interleave(arguments) => verbs::interleave::run(&arguments, json),
        Verb::Evaluate(arguments) => verbs::evaluate::run(&arguments, json),
        Verb::Merge(arguments) => verbs::merge::run(&arguments, json),
        Verb::Bounds(arguments) => verbs::bounds::run(&arguments, json),
        Verb::Worst(arguments) => verbs::worst::run(&arguments, json),
        Verb::Emit(arguments) => verbs::emit::run(&arguments, json),
        Verb::Run(arguments) => verbs::run::run(&arguments, json),
        Verb::Report(arguments) => verbs::report::run(&arguments, json),
        Verb::Serve(arguments) => verbs::serve::run(&arguments, json),
        Verb::Trace(arguments) => verbs::trace::run(&arguments, json),
        Verb::Device(arguments) => verbs::device::run(&arguments, json),
        Verb::Pages(arguments) => verbs::pages::run(&arguments, json),
        Verb::Leon3(arguments) => verbs::leon3::run(&arguments, json),
        Verb::Mesh(arguments) => verbs::mesh::run(&arguments, json),
        Verb::Mission(arguments) => verbs::mission::run(&arguments, json),
        Verb::Edge(arguments) => verbs::edge::run(&arguments, json),
        Verb::Power(arguments) => verbs::power::run(&arguments, json),
        Verb::Curve(arguments) => verbs::curve::run(&arguments, json),
        Verb::Reproduce(arguments) => verbs::reproduce::run(&arguments, json),
        Verb::Completions(arguments) => verbs::completions::run(&arguments, json),
        Verb::Man(arguments) => verbs::man::run(&arguments, json),
    }
}
