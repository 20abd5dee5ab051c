//! `metes record`.

mod accesses;
pub(crate) mod emulated;
mod files;
mod firmware;

pub(crate) use accesses::touched;

use std::ffi::OsString;
use std::path::Path;

use metes_trace::record::Ending;
use metes_trace::{Board, Trace};
use serde_json::{Value, json};

use crate::arguments::{Record, RecordTarget};
use crate::error::{Failure, signal_name};
use crate::output;
use crate::own::Form;

pub(crate) fn run(arguments: &Record, json: bool) -> Result<u8, Failure> {
    // Before the program runs, not after.
    output::writable(&arguments.output, Form::Trace)?;
    if arguments.sites && arguments.target != RecordTarget::Host {
        return Err(Failure::input(
            "call stacks are recorded of programs of the host: leave --sites out, or --target",
        ));
    }
    if (arguments.on_signal.is_some()
        || arguments.rotate.is_some()
        || arguments.dormant
        || arguments.attach.is_some())
        && arguments.target != RecordTarget::Host
    {
        return Err(Failure::input(
            "--on-signal, --rotate, --dormant and --attach are of programs of the host: leave them out, or --target",
        ));
    }
    if arguments.seconds.is_some() && arguments.target != RecordTarget::Host {
        return Err(Failure::input(
            "--seconds is of programs of the host: leave it out, or --target; of a LEON3 there is --max-instructions",
        ));
    }
    match arguments.target {
        RecordTarget::Leon3 => return firmware::run(arguments, json),
        RecordTarget::CortexM3 => return emulated::run(arguments, Board::CortexM3, json),
        RecordTarget::Host => {}
    }
    if arguments.firmware.is_given() {
        return Err(Failure::input(
            "heap functions, --max-instructions and --cores are of firmware: add --target leon3, \
             or leave them out",
        ));
    }
    if arguments.accesses {
        return accesses::run(arguments, json);
    }
    files::run(arguments, json)
}

/// Says how the program ended, if not as programs should.
fn ended(ending: Ending) {
    match ending {
        Ending::Exit(0) => {}
        Ending::Exit(status) => {
            output::note(&format!("the program ended with status {status}"));
        }
        Ending::Signal(signal) => output::note(&format!(
            "{} ended the program; what it did until then is recorded",
            signal_name(signal)
        )),
    }
}

/// The error for a program that a signal ended; its trace is kept.
pub(crate) fn died(command: &[OsString], signal: i32, trace: &Path) -> Failure {
    let program = command
        .first()
        .map(|word| word.to_string_lossy().into_owned());
    Failure::Died {
        program: program.unwrap_or_default(),
        signal: signal_name(signal),
        kept: format!(
            "what it did until then is in {}: look at it with `metes profile`{}",
            trace.display(),
            match signal {
                libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT | libc::SIGILL =>
                    ". If it ends well without `metes`, the recorder and it do not agree about \
                     memory: is it linked with an allocator that has functions of its own?",
                _ => "",
            }
        ),
    }
}

/// A trace in its file.
fn facts(trace: &Trace, path: &Path) -> Value {
    let profile = metes_trace::profile(trace);
    json!({
        "file": output::name(path),
        "command": trace.provenance.command.join(" "),
        "events": trace.len(),
        "peak_live": profile.peak_live,
        "threads": profile.threads,
        "lost_events": trace.provenance.lost_events,
    })
}
