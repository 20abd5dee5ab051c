//! `metes record --accesses`.

use std::path::Path;

use metes_trace::record::Ending;
use metes_trace::record::access::{Agreement, Plan, plan};
use metes_trace::{AccessOptions, TouchProfile, write_parquet};
use metes_tune::{Accessed, CheckedAccesses, Pass, WithAccesses, record_accesses};
use serde_json::json;

use super::died;
use crate::arguments::Record;
use crate::error::Failure;
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{interrupt, libraries, output};

pub(super) fn run(arguments: &Record, json: bool) -> Result<u8, Failure> {
    let mut named = vec![("--output", &arguments.output)];
    let more = [
        ("--every-access", &arguments.every_access, Form::Trace),
        ("--touches", &arguments.touches, Form::Touches),
    ];
    for (option, path, form) in more {
        let Some(path) = path else { continue };
        output::writable(path, form)?;
        if let Some((other, _)) = named.iter().find(|(_, other)| *other == path) {
            return Err(Failure::input(format!(
                "{option} and {other} name the same file: give each its own"
            )));
        }
        named.push((option, path));
    }
    interrupt::flag()?;
    // What cannot be counted is not run at all.
    let plan = plan(&arguments.command, arguments.qemu.as_deref())?;
    let options = AccessOptions {
        plugin: libraries::access_counter()?,
        recorder: libraries::recorder()?,
        word: if arguments.word == "8" { 8 } else { 4 },
        every: arguments.every_access.is_some(),
        slice: arguments.touches.as_ref().map(|_| arguments.slice),
        directory: None,
        environment: Vec::new(),
    };
    let pass = if json { Pass::ToStderr } else { Pass::On };
    let asked_to_end = interrupt::asked_to_end;
    let accessed = record_accesses(
        &plan,
        &arguments.command,
        &options,
        arguments.once,
        pass,
        &asked_to_end,
    )?;
    let result = match accessed {
        Accessed::Ended(signal, light) => {
            write_parquet(&light, &arguments.output)?;
            let kept = format!(
                "{} holds the requests until then, without accesses",
                arguments.output.display()
            );
            return Err(Failure::ended(signal, kept));
        }
        Accessed::Counted(result) => result,
    };
    write_parquet(&result.trace, &arguments.output)?;
    let every = match &arguments.every_access {
        Some(path) => Some((path.as_path(), result.counted.write_every_access(path)?)),
        None => None,
    };
    let touches = match &arguments.touches {
        Some(path) => {
            let profile = result.counted.write_touches(path, arguments.slice)?;
            Some((path.as_path(), profile))
        }
        None => None,
    };
    let files = Files { every, touches };
    if let Ending::Signal(signal) = result.counted.ending
        && !interrupt::was_met(signal)
    {
        return Err(died(&arguments.command, signal, &arguments.output));
    }
    if json {
        output::json(&document(&result, arguments, &plan, &files))?;
    } else {
        notes(&result, &arguments.output, &files);
    }
    Ok(0)
}

/// The files beside the trace: all accesses, and how many; first touches, and their figures.
struct Files<'a> {
    every: Option<(&'a Path, u64)>,
    touches: Option<(&'a Path, TouchProfile)>,
}

fn document(
    result: &WithAccesses,
    arguments: &Record,
    plan: &Plan,
    files: &Files<'_>,
) -> serde_json::Value {
    let profile = metes_trace::profile(&result.trace);
    json!({
        "trace": output::name(&arguments.output),
        "events": result.trace.len(),
        "status": result.counted.ending.shell_status(),
        "seconds": result.counted.wall_seconds,
        "cpu_seconds": result.counted.cpu_seconds,
        "emulator": output::name(&plan.qemu),
        "word": result.trace.provenance.access_word,
        "reads": profile.reads,
        "writes": profile.writes,
        "read_bytes": profile.read_bytes,
        "write_bytes": profile.write_bytes,
        "most_accessed": profile.most_accessed,
        "instructions": result.trace.provenance.instructions,
        "allocator_instructions": result.counted.allocator_instructions,
        "slowdown": result.checked.and_then(|own| own.slowdown),
        "equal": result.checked.map(|own| own.agreement.is_equal()),
        "agreement": result.checked.map(|own| own.agreement),
        "forks": result.counted.forks,
        "child_programs": result.counted.child_programs,
        "every_access": files.every.map(|(path, accesses)| json!({
            "file": output::name(path), "accesses": accesses,
        })),
        "touches": files.touches.as_ref().map(|(path, profile)| json!({
            "file": output::name(path), "slice": arguments.slice, "profile": profile,
        })),
    })
}

/// What is to be said of the trace.
fn notes(result: &WithAccesses, path: &Path, files: &Files<'_>) {
    let profile = metes_trace::profile(&result.trace);
    output::note(&format!(
        "{}: {} events, peak live {}, of {}",
        path.display(),
        grouped(result.trace.len() as u64),
        bytes(profile.peak_live),
        result.trace.provenance.command.join(" "),
    ));
    output::note(&format!(
        "{} words of {} B read and {} written in blocks ({} and {}), {} instructions outside \
         malloc and {} in it",
        grouped(profile.reads),
        result.trace.provenance.access_word,
        grouped(profile.writes),
        bytes(profile.read_bytes),
        bytes(profile.write_bytes),
        grouped(result.trace.provenance.instructions),
        grouped(result.counted.allocator_instructions),
    ));
    if let Some((path, profile)) = &files.touches {
        output::note(&touched(path, profile));
    }
    if let Some((path, accesses)) = files.every {
        output::note(&format!(
            "{}: {} accesses",
            path.display(),
            grouped(accesses)
        ));
    }
    match result.checked {
        None => output::note("this run alone: no light recording checks it, and it has no times"),
        Some(CheckedAccesses {
            agreement,
            slowdown,
        }) => {
            output::note(&says(agreement));
            if let Some(slowdown) = slowdown {
                output::note(&format!(
                    "counting took {slowdown:.0} times the processor time of the light recording"
                ));
            }
        }
    }
    if result.trace.provenance.lost_events > 0 {
        output::note(&format!(
            "{} events found no room and are missing: free some disk space, or set TMPDIR",
            grouped(result.trace.provenance.lost_events)
        ));
    }
    if result.counted.forks > 0 {
        output::note(&format!(
            "the program forked {} children, of which {} ran other programs; their accesses \
             are not counted: give the command of such a program itself",
            result.counted.forks, result.counted.child_programs
        ));
    }
    super::ended(result.counted.ending);
}

/// What a touch trace holds, in a sentence.
pub(crate) fn touched(path: &Path, profile: &TouchProfile) -> String {
    format!(
        "{}: {} operations, {} blocks, {} of their slices of 4096 B touched, at most {} of {} at a time",
        path.display(),
        grouped(profile.operations),
        grouped(profile.allocations),
        grouped(profile.touched_slices),
        grouped(profile.peak_touched_slices),
        grouped(profile.peak_slices),
    )
}

/// How the two runs compare, in a sentence.
fn says(agreement: Agreement) -> String {
    if agreement.is_equal() {
        return format!(
            "the light recording made the same {} requests; the trace has its times",
            grouped(agreement.light_events)
        );
    }
    format!(
        "the light recording differs: {} requests against {} here, the first {} equal, {} without \
         a counterpart of their size; the trace is this run's, without times",
        grouped(agreement.light_events),
        grouped(agreement.counted_events),
        grouped(agreement.equal_from_start),
        grouped(agreement.differing)
    )
}
