//! `metes tune`: from a program to its heap, and the proof that it fits.
//!
//! Invariant: what is predicted is computed before the program runs on the
//! heap, from a recording on the system's own heap; `equal` is said only of
//! figures and placements that agree.

mod check;
mod process;
mod summary;

use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_explore::report::{Document, PlacementFigures, Usage};
use metes_explore::{Choice, Events, Exploration, Outcome, Replay, Replayer, choose};
use metes_trace::record::{Ending, find_program};
use metes_trace::{RecordError, RecordOptions, Recording, Trace, record, write_parquet};
use serde_json::json;

use crate::arguments::Tune;
use crate::capture::{self, Input, Pass, Written};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::launch::{Scratch, SteadyLayout};
use crate::page::{self, Content};
use crate::quantity::grouped;
use crate::verbs::record::died;
use crate::verbs::replay::options_of;
use crate::{emitted, libraries, output, progress, search, tracefile};

use check::Checked;

/// A program that is run several times in the same surroundings.
struct Program<'a> {
    arguments: &'a Tune,
    recorder: PathBuf,
    scratch: Scratch,
    input: Input,
    /// What was left out of the first recording's output.
    pass: Pass,
}

/// What a recording of the program gave.
struct Recorded {
    recording: Recording,
    written: Written,
    trace: Trace,
    /// The process that `trace` is of.
    process: process::Chosen,
}

impl Program<'_> {
    /// Records the program. Only the `first` time its output is passed on.
    fn record(&self, first: bool) -> Result<Recorded, Failure> {
        let mut options = RecordOptions::new(&self.recorder);
        // The recorder writes no report, but a variable more or less would
        // change what programs ask for.
        options.environment = self.scratch.environment();
        let pass = if first { self.pass } else { Pass::Away };
        let run = || record(&self.arguments.command, &options);
        let (recording, written) = capture::capture(pass, || self.input.give(first, run))?;
        let recording = recording??;
        let (process, trace) = process::choose(&recording, self.arguments.process.as_deref())?;
        Ok(Recorded {
            recording,
            written,
            trace,
            process,
        })
    }
}

/// The heap that was chosen, and what is predicted of it.
pub(crate) struct Chosen {
    pub(crate) config: Config,
    pub(crate) outcome: Outcome,
    pub(crate) why: String,
    pub(crate) predicted: Replay,
    pub(crate) emitted: Vec<PathBuf>,
    pub(crate) checked: Option<Checked>,
}

pub(crate) fn run(arguments: &Tune, json: bool) -> Result<u8, Failure> {
    let directory = &arguments.output;
    // What cannot be run leaves no trace of the attempt.
    let name = arguments.command.first().ok_or(RecordError::NoCommand)?;
    find_program(name)?.check_preload()?;
    output::directory(directory)?;
    let _steady = SteadyLayout::begin();
    let program = Program {
        arguments,
        recorder: libraries::recorder()?,
        scratch: Scratch::new()?,
        input: Input::look()?,
        pass: if json { Pass::ToStderr } else { Pass::On },
    };
    let recorded = program.record(true)?;
    let trace_file = directory.join("program.trace.parquet");
    write_parquet(&recorded.trace, &trace_file)?;
    if let Ending::Signal(signal) = recorded.recording.ending {
        return Err(died(&arguments.command, signal, &trace_file));
    }
    let events = tracefile::events(&recorded.trace)?;
    let searched = search::run(&events, arguments.budget, None, directory)?;
    let found = &searched.found;
    let pareto = search::outcomes(&found.pareto, directory)?;
    let choice = choose(
        &within(found, arguments.heap_limit),
        arguments.prefer.into(),
    );
    let wheel = progress::spinner("comparing heaps");
    let content = Content::new(&recorded.trace, &events, &searched, choice.as_ref());
    wheel.finish_and_clear();
    let Some(choice) = choice.clone() else {
        page::write(directory, &content.document(None))?;
        output::note(&no_choice(found, arguments.heap_limit));
        return Ok(DOES_NOT_HOLD);
    };
    let mut chosen = predict(choice, &events);
    page::write(directory, &content.document(None))?;
    chosen.emitted = emitted::write(&chosen.config, directory)?;
    let wheel = progress::spinner("building the emitted heap");
    let library = emitted::build(directory);
    wheel.finish_and_clear();
    let library = library?;
    chosen.emitted.push(library.clone());
    let checked = check::check(&program, &recorded, &chosen, &library)?;
    let status = if checked.holds() { 0 } else { DOES_NOT_HOLD };
    let again = directory.join("again.trace.parquet");
    match &checked.again {
        Some(trace) => write_parquet(trace, &again)?,
        // One of an earlier run would be taken for this one's.
        None => drop(std::fs::remove_file(&again)),
    }
    chosen.checked = Some(checked);
    let report = page::write(directory, &told(&content, &chosen))?;
    if json {
        print_json(&recorded, found, &chosen, pareto, &report)?;
    } else {
        let text = summary::text(&recorded, found, &events, &chosen, directory, &report);
        output::text(&text)?;
    }
    Ok(status)
}

/// What was found, without the heaps that take more than the limit.
fn within(found: &Exploration, limit: Option<u64>) -> Exploration {
    let mut found = found.clone();
    if let Some(limit) = limit {
        found.pareto.retain(|outcome| outcome.footprint <= limit);
        found
            .constant_time
            .retain(|outcome| outcome.footprint <= limit);
    }
    found
}

fn no_choice(found: &Exploration, limit: Option<u64>) -> String {
    let least = found.pareto.iter().map(|outcome| outcome.footprint).min();
    match (least, limit) {
        (Some(least), Some(limit)) => format!(
            "no heap stays within {} bytes: the smallest footprint found is {}",
            grouped(limit),
            grouped(least)
        ),
        _ => "no heap serves every request of this program".to_owned(),
    }
}

/// Replays the trace on the chosen heap with all that can be known.
fn predict(choice: Choice, events: &Events) -> Chosen {
    let Choice { outcome, why } = choice;
    let config = Config::of(outcome.description);
    let (predicted, _) =
        Replayer::new().replay(&config.name(), &config.heap, events, &options_of(&config));
    Chosen {
        config,
        outcome,
        why,
        predicted,
        emitted: Vec::new(),
        checked: None,
    }
}

/// The report with what was measured and emitted.
fn told(content: &Content<'_>, chosen: &Chosen) -> Document {
    let checked = chosen.checked.as_ref();
    let mut document = content.document(checked.and_then(|checked| checked.deterministic));
    let (Some(shown), Some(checked)) = (document.chosen.as_mut(), checked) else {
        return document;
    };
    let Checked { predicted, .. } = checked;
    shown.predicted = Usage {
        peak_live: predicted.peak_live,
        footprint: predicted.footprint,
    };
    shown.measured = checked.measured.as_ref().map(|measured| Usage {
        peak_live: measured.peak_live,
        footprint: measured.footprint,
    });
    shown.equal = shown.measured.map(|_| checked.equal());
    shown.placements = checked.measured.as_ref().map(|measured| PlacementFigures {
        events: measured.events,
        equal: checked.placements_equal(),
        first_difference: serde_json::to_value(&checked.difference)
            .ok()
            .filter(|value| !value.is_null()),
    });
    let emitted = chosen.emitted.iter().map(|path| path.display().to_string());
    shown.emitted = emitted.collect();
    document
}

fn print_json(
    recorded: &Recorded,
    found: &Exploration,
    chosen: &Chosen,
    pareto: Vec<serde_json::Value>,
    report: &Path,
) -> Result<(), Failure> {
    let checked = chosen.checked.as_ref();
    let predicted = checked.map_or(&chosen.predicted, |checked| &checked.predicted);
    let measured = checked.and_then(|checked| checked.measured.as_ref());
    output::json(&json!({
        "heap": chosen.config.name(),
        "why": chosen.why,
        "predicted": { "peak_live": predicted.peak_live, "footprint": predicted.footprint },
        "measured": measured.map(|measured| json!({
            "peak_live": measured.peak_live,
            "footprint": measured.footprint,
        })),
        "equal": checked.is_some_and(Checked::equal),
        "requests_equal": checked.is_some_and(Checked::requests_equal),
        "placements_equal": checked.is_some_and(Checked::placements_equal),
        "deterministic": checked.and_then(|checked| checked.deterministic),
        "difference": checked.and_then(|checked| checked.difference.as_ref()),
        "output_unchanged": checked.map(|checked| checked.output_unchanged),
        "status": recorded.recording.ending.shell_status(),
        "process": recorded.process.name,
        "events": chosen.predicted.events,
        "pareto": pareto,
        "configurations": found.configurations,
        "distinct": found.distinct,
        "seconds": found.seconds,
        "report": report,
        "emitted": chosen.emitted,
    }))
}
