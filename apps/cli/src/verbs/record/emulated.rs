//! `metes record --target cortex-m3`, and `metes trace import` of what a recorder on a target left.

use std::path::Path;

use metes_trace::record::Ending;
use metes_trace::target::{TargetFindings, import_file};
use metes_trace::{Board, EmulatedError, Trace, record_emulated, write_parquet};
use serde_json::json;

use super::facts;
use crate::arguments::Record;
use crate::error::{Failure, signal_name};
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{interrupt, output};

pub(super) fn run(arguments: &Record, board: Board, json: bool) -> Result<u8, Failure> {
    if arguments.accesses || arguments.firmware.is_given() {
        return Err(Failure::input(
            "an image that has the recorder in it is run as it is: leave --accesses, --max-instructions, --cores and the \
             names of heap functions out",
        ));
    }
    let [image] = arguments.command.as_slice() else {
        return Err(Failure::input(
            "an image has no arguments: give its file alone after --",
        ));
    };
    // What was recorded is written whatever signal ends the image.
    interrupt::flag()?;
    let aside = json.then(metes_tune::stdout_to_stderr).transpose()?;
    let recording = record_emulated(Path::new(image), board, None);
    drop(aside);
    let found = recording?;
    write_parquet(&found.recording.trace, &arguments.output)?;
    if let Ending::Signal(signal) = found.ending
        && !interrupt::was_met(signal)
    {
        return Err(Failure::input(format!(
            "{}: {} ended QEMU; what was sent until then is in {}",
            output::name(Path::new(image)),
            signal_name(signal),
            output::name(&arguments.output)
        )));
    }
    let status = match found.ending {
        Ending::Exit(status) => Some(status),
        Ending::Signal(_) => None,
    };
    if status.is_some_and(|status| status != 0) {
        output::note(&format!(
            "the image ended with status {}",
            status.unwrap_or_default()
        ));
    }
    tell(
        &found.recording.trace,
        &found.recording.findings,
        &arguments.output,
        status,
        json,
    )
}

/// Makes a trace of what is in the file `from`.
pub(crate) fn imported(from: &Path, to: &Path, json: bool) -> Result<u8, Failure> {
    let recording = import_file(from)?;
    output::writable(to, Form::Trace)?;
    write_parquet(&recording.trace, to)?;
    tell(&recording.trace, &recording.findings, to, None, json)
}

/// What is to be said of a trace that was written.
fn tell(
    trace: &Trace,
    findings: &TargetFindings,
    path: &Path,
    status: Option<i32>,
    json: bool,
) -> Result<u8, Failure> {
    if json {
        output::json(&json!({
            "trace": output::name(path),
            "events": trace.len(),
            "processes": [facts(trace, path)],
            "status": status,
            "recorded": findings.events,
            "lost": findings.lost,
            "lost_from_ns": findings.lost_from,
            "missing": findings.missing,
            "damaged": findings.damaged,
            "unfinished": findings.unfinished,
            "before": findings.before,
            "refused": findings.refused,
            "unknown_frees": findings.unknown_frees,
            "unknown_resizes": findings.unknown_resizes,
            "replaced": findings.replaced,
        }))?;
        return Ok(0);
    }
    let profile = metes_trace::profile(trace);
    output::note(&format!(
        "{}: {} events, peak live {}",
        path.display(),
        grouped(trace.len() as u64),
        bytes(profile.peak_live),
    ));
    if findings.lost > 0 {
        let from = match findings.lost_from {
            Some(from) => format!(", from {:.6} s on", from as f64 / 1e9),
            None => String::new(),
        };
        output::note(&format!(
            "{} events found no room in the ring{from}: give it more (METES_RECORD_EVENTS), or send more often",
            grouped(findings.lost)
        ));
    }
    let told = [
        (
            findings.missing,
            "events are not in the file: sent elsewhere, or damaged",
        ),
        (
            findings.damaged,
            "batches are cut, or their checksum is another one",
        ),
        (findings.unfinished, "events were not written to the end"),
        (
            findings.before,
            "earlier recordings are in the file, and left out: the target began anew",
        ),
        (findings.refused, "requests were refused"),
        (
            findings.unknown_frees,
            "frees were of addresses where no block was",
        ),
        (
            findings.unknown_resizes,
            "resizes were of addresses where no block was; in the trace they are allocations",
        ),
        (
            findings.replaced,
            "blocks were given out where another one was still live; that one is freed in the trace",
        ),
    ];
    for (count, what) in told {
        if count > 0 {
            output::note(&format!("{} {what}", grouped(count)));
        }
    }
    Ok(0)
}

impl From<EmulatedError> for Failure {
    fn from(error: EmulatedError) -> Self {
        Failure::input(error.to_string())
    }
}
