//! `metes record --target leon3`.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use metes_leon3::calls::HeapCall;
use metes_leon3::{Configuration, End, Machine, Stop};
use metes_trace::{
    FirmwareError, FirmwareOptions, FirmwareRecording, record_firmware, write_parquet,
};
use serde_json::json;

use super::facts;
use crate::arguments::Record;
use crate::error::Failure;
use crate::quantity::{bytes, grouped};
use crate::verbs::leon3::{place, print, reason};
use crate::{interrupt, output};

/// Calls that never returned and are named.
const MOST_NAMED: usize = 3;

pub(super) fn run(arguments: &Record, json: bool) -> Result<u8, Failure> {
    let image = image(arguments)?;
    let asked = interrupt::flag()?;
    let options = FirmwareOptions {
        configuration: Configuration {
            cores: arguments.firmware.cores.unwrap_or(1),
            ..Configuration::default()
        },
        functions: arguments.firmware.functions(),
        most: arguments.firmware.max_instructions,
    };
    let mut printed = Ok(());
    let mut between = |machine: &mut Machine| {
        printed = show(&machine.printed(0), json);
        if printed.is_err() || asked.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let recording = record_firmware(image, &options, &mut between)?;
    printed?;
    if recording.trace.is_empty() {
        return Err(nothing(image, &recording));
    }
    write_parquet(&recording.trace, &arguments.output)?;
    if let Some(reason) = failed(&recording) {
        return Err(Failure::input(format!(
            "{}: {reason}; what it did until then is in {}: look at it with `metes profile`",
            output::name(image),
            output::name(&arguments.output)
        )));
    }
    if json {
        output::json(&document(&recording, &arguments.output))?;
    } else {
        notes(&recording, &arguments.output);
    }
    Ok(0)
}

/// What the image prints, as that of recorded programs: on stdout, or beside a document.
fn show(printed: &[u8], json: bool) -> Result<(), Failure> {
    if !json {
        return print(printed);
    }
    // A closed stderr leaves nobody to tell.
    let _ = io::stderr().write_all(printed);
    Ok(())
}

/// The image, if nothing is asked that is of programs of the host.
fn image(arguments: &Record) -> Result<&Path, Failure> {
    if arguments.accesses {
        return Err(Failure::input(
            "accesses are counted of programs of the host: leave --accesses out, or --target leon3",
        ));
    }
    match arguments.command.as_slice() {
        [image] => Ok(Path::new(image)),
        _ => Err(Failure::input(
            "an image has no arguments: give its file alone after --",
        )),
    }
}

/// The error for an image without a request.
fn nothing(image: &Path, recording: &FirmwareRecording) -> Failure {
    let names = recording.functions.iter().map(|function| &*function.name);
    let ended = failed(recording).unwrap_or_else(|| "it ended well".to_owned());
    Failure::input(format!(
        "{}: no block was asked of {}: {ended}; if its heap has other functions, name them with \
         --malloc NAME, --free NAME and so on",
        output::name(image),
        names.collect::<Vec<_>>().join(", "),
    ))
}

/// Why an image did not end well.
fn failed(recording: &FirmwareRecording) -> Option<String> {
    let FirmwareRecording { image, machine, .. } = recording;
    match recording.stop.as_ref()? {
        Stop::Limit => Some(format!(
            "it has not ended within {} instructions; allow more with --max-instructions",
            grouped(machine.instructions())
        )),
        // It waits for ever: to some firmware, the end.
        Stop::End(End::Idle) => None,
        stop => reason(image, machine, stop).map(|(reason, _)| reason),
    }
}

fn document(recording: &FirmwareRecording, path: &Path) -> serde_json::Value {
    let (findings, machine) = (&recording.findings, &recording.machine);
    let never = findings.never_returned.iter();
    json!({
        "trace": output::name(path),
        "events": recording.trace.len(),
        "processes": [facts(&recording.trace, path)],
        "status": 0,
        "functions": recording.functions.iter().map(|function| &function.name).collect::<Vec<_>>(),
        "calls": findings.calls,
        "refused": findings.refused,
        "unknown_frees": findings.unknown_frees,
        "unknown_resizes": findings.unknown_resizes,
        "replaced": findings.replaced,
        "in_handlers": findings.in_handlers,
        "never_returned": never.map(|call| who(recording, call)).collect::<Vec<_>>(),
        "instructions": machine.instructions(),
        "cycles": machine.cycles(),
    })
}

/// What is to be said of the trace.
fn notes(recording: &FirmwareRecording, path: &Path) {
    let (findings, machine) = (&recording.findings, &recording.machine);
    let profile = metes_trace::profile(&recording.trace);
    output::note(&format!(
        "{}: {} events, peak live {}, of {}; {} instructions, {} cycles ({})",
        path.display(),
        grouped(recording.trace.len() as u64),
        bytes(profile.peak_live),
        recording.trace.provenance.command.join(" "),
        grouped(machine.instructions()),
        grouped(machine.cycles()),
        machine.timing(),
    ));
    let told = [
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
        (findings.in_handlers, "calls were made in handlers of traps"),
    ];
    for (count, what) in told {
        if count > 0 {
            output::note(&format!("{} {what}", grouped(count)));
        }
    }
    let never = &findings.never_returned;
    if !never.is_empty() {
        let named = never.iter().take(MOST_NAMED);
        let named: Vec<String> = named.map(|call| who(recording, call)).collect();
        output::note(&format!(
            "{} calls never returned: {}",
            grouped(never.len() as u64),
            named.join("; ")
        ));
    }
    match recording.stop {
        None => output::note("ended by a signal; what it did until then is recorded"),
        Some(Stop::End(End::Idle)) => {
            output::note("at its end every core sleeps, and nothing will wake one");
        }
        _ => {}
    }
}

/// A call in words.
fn who(recording: &FirmwareRecording, call: &HeapCall) -> String {
    let function = recording.functions.get(call.function);
    format!(
        "{} called at {}",
        function.map_or("a function", |function| &*function.name),
        place(&recording.image, call.site)
    )
}

impl From<FirmwareError> for Failure {
    fn from(error: FirmwareError) -> Self {
        Failure::input(error.to_string())
    }
}
