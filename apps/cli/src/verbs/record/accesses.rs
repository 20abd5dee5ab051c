//! `metes record --accesses`.
//!
//! The program runs twice, in the same surroundings: recorded lightly, which
//! gives its times and requests, and under QEMU, which gives its accesses. The
//! trace is that of the second run, whose counts belong to its own blocks;
//! where both asked for the same, it has the first one's times.
//!
//! Invariant: how the two runs differ is said; a count is never put on a block
//! of another run.

use std::path::Path;

use metes_trace::record::access::{Agreement, Counted, Plan, agree, join, plan};
use metes_trace::record::{Choice, Ending};
use metes_trace::{
    AccessOptions, RecordOptions, Recording, Trace, count_accesses, record, write_parquet,
};
use metes_tune::{Input, Pass, capture};
use serde_json::json;

use super::died;
use crate::arguments::Record;
use crate::error::Failure;
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{interrupt, libraries, output};

pub(super) fn run(arguments: &Record, json: bool) -> Result<u8, Failure> {
    if let Some(path) = &arguments.every_access {
        output::writable(path, Form::Trace)?;
        if path == &arguments.output {
            return Err(Failure::input(
                "--every-access and --output name the same file: give each its own",
            ));
        }
    }
    interrupt::flag()?;
    // What cannot be counted is not run at all.
    let plan = plan(&arguments.command, arguments.qemu.as_deref())?;
    let options = AccessOptions {
        plugin: libraries::access_counter()?,
        recorder: libraries::recorder()?,
        word: if arguments.word == "8" { 8 } else { 4 },
        every: arguments.every_access.is_some(),
        directory: None,
        environment: Vec::new(),
    };
    let light = plan.native && !arguments.once;
    let input = Input::look()?;
    let light = if light {
        let run = || record(&arguments.command, &RecordOptions::new(&options.recorder));
        let (recording, _) = capture(Pass::Away, || input.give(true, run))?;
        Some(recording??)
    } else {
        None
    };
    if let (Some(signal), Some(light)) = (interrupt::asked_to_end(), &light) {
        write_parquet(&light.main, &arguments.output)?;
        let kept = format!(
            "{} holds the requests until then, without accesses",
            arguments.output.display()
        );
        return Err(Failure::ended(signal, kept));
    }
    let pass = if json { Pass::ToStderr } else { Pass::On };
    let run = || count_accesses(&plan, &options);
    let (counted, _) = capture(pass, || input.give(light.is_none(), run))?;
    let counted = counted??;
    let light = light.as_ref().map(lightly).transpose()?;
    let result = Outcome::new(counted, light);
    write_parquet(&result.trace, &arguments.output)?;
    let every = match &arguments.every_access {
        Some(path) => Some((path.as_path(), result.counted.write_every_access(path)?)),
        None => None,
    };
    if let Ending::Signal(signal) = result.counted.ending
        && !interrupt::was_met(signal)
    {
        return Err(died(&arguments.command, signal, &arguments.output));
    }
    if json {
        output::json(&result.document(arguments, &plan, every))?;
    } else {
        result.notes(&arguments.output, every);
    }
    Ok(0)
}

/// Trace and processor time of the light recording.
struct Light {
    trace: Trace,
    cpu_seconds: f64,
}

fn lightly(recording: &Recording) -> Result<Light, Failure> {
    Ok(Light {
        trace: recording.choose(&Choice::Main)?,
        cpu_seconds: recording.cpu_seconds,
    })
}

/// The trace, and what is to be said of it.
struct Outcome {
    trace: Trace,
    counted: Counted,
    /// Comparison with the light recording, and how many times its processor
    /// time the counted run took.
    checked: Option<(Agreement, Option<f64>)>,
}

impl Outcome {
    fn new(counted: Counted, light: Option<Light>) -> Outcome {
        let checked = light.as_ref().map(|light| {
            let slowdown =
                (light.cpu_seconds > 0.0).then(|| counted.cpu_seconds / light.cpu_seconds);
            (agree(&light.trace, &counted.trace), slowdown)
        });
        let joined = light.and_then(|light| join(&light.trace, &counted.trace));
        Outcome {
            trace: joined.unwrap_or_else(|| counted.trace.clone()),
            counted,
            checked,
        }
    }

    fn document(
        &self,
        arguments: &Record,
        plan: &Plan,
        every: Option<(&Path, u64)>,
    ) -> serde_json::Value {
        let profile = metes_trace::profile(&self.trace);
        json!({
            "trace": output::name(&arguments.output),
            "events": self.trace.len(),
            "status": self.counted.ending.shell_status(),
            "seconds": self.counted.wall_seconds,
            "cpu_seconds": self.counted.cpu_seconds,
            "emulator": output::name(&plan.qemu),
            "word": self.trace.provenance.access_word,
            "reads": profile.reads,
            "writes": profile.writes,
            "read_bytes": profile.read_bytes,
            "write_bytes": profile.write_bytes,
            "most_accessed": profile.most_accessed,
            "instructions": self.trace.provenance.instructions,
            "allocator_instructions": self.counted.allocator_instructions,
            "slowdown": self.checked.and_then(|(_, slowdown)| slowdown),
            "equal": self.checked.map(|(agreement, _)| agreement.is_equal()),
            "agreement": self.checked.map(|(agreement, _)| agreement),
            "forks": self.counted.forks,
            "child_programs": self.counted.child_programs,
            "every_access": every.map(|(path, accesses)| json!({
                "file": output::name(path), "accesses": accesses,
            })),
        })
    }

    fn notes(&self, path: &Path, every: Option<(&Path, u64)>) {
        let profile = metes_trace::profile(&self.trace);
        output::note(&format!(
            "{}: {} events, peak live {}, of {}",
            path.display(),
            grouped(self.trace.len() as u64),
            bytes(profile.peak_live),
            self.trace.provenance.command.join(" "),
        ));
        output::note(&format!(
            "{} words of {} B read and {} written in blocks ({} and {}), {} instructions outside \
             malloc and {} in it",
            grouped(profile.reads),
            self.trace.provenance.access_word,
            grouped(profile.writes),
            bytes(profile.read_bytes),
            bytes(profile.write_bytes),
            grouped(self.trace.provenance.instructions),
            grouped(self.counted.allocator_instructions),
        ));
        if let Some((path, accesses)) = every {
            output::note(&format!(
                "{}: {} accesses",
                path.display(),
                grouped(accesses)
            ));
        }
        match self.checked {
            None => {
                output::note("this run alone: no light recording checks it, and it has no times")
            }
            Some((agreement, slowdown)) => {
                output::note(&says(agreement));
                if let Some(slowdown) = slowdown {
                    output::note(&format!(
                        "counting took {slowdown:.0} times the processor time of the light recording"
                    ));
                }
            }
        }
        if self.trace.provenance.lost_events > 0 {
            output::note(&format!(
                "{} events found no room and are missing: free some disk space, or set TMPDIR",
                grouped(self.trace.provenance.lost_events)
            ));
        }
        if self.counted.forks > 0 {
            output::note(&format!(
                "the program forked {} children, of which {} ran other programs; their accesses \
                 are not counted: give the command of such a program itself",
                self.counted.forks, self.counted.child_programs
            ));
        }
        super::ended(self.counted.ending);
    }
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
