//! `metes tune`: from a program to its heap, and the proof that it fits.
//!
//! Invariant: what is predicted is computed before the program runs on the
//! heap, from a recording on the system's own heap; `equal` is said only of
//! figures and placements that agree.

mod check;
mod process;
pub(super) mod summary;

use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_explore::report::{Document, PlacementFigures, Usage};
use metes_explore::{Choice, Events, Exploration, Outcome, Replay, Replayer, choose};
use metes_trace::record::{Ending, find_program};
use metes_trace::{RecordError, RecordOptions, Trace, record, write_parquet};
use serde_json::json;

use crate::arguments::Tune;
use crate::capture::{self, Input, Pass, Written};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::launch::{Scratch, SteadyLayout};
use crate::page::{self, Content};
use crate::quantity::grouped;
use crate::results::{Kind, Results};
use crate::search::Searched;
use crate::verbs::record::died;
use crate::verbs::replay::options_of;
use crate::{emitted, interrupt, libraries, output, progress, search, tracefile};

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
    ending: Ending,
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
        let ending = recording.ending;
        let (process, trace) = process::choose(recording, self.arguments.process.as_deref())?;
        Ok(Recorded {
            ending,
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

/// The recording of the tuned process.
const TRACE: &str = "program.trace.parquet";
/// The one of a run that was cut short, beside an earlier result.
const CUT_SHORT: &str = "interrupted.trace.parquet";
/// What is left, beside the emitted code.
const FILES: [&str; 8] = [
    TRACE,
    CUT_SHORT,
    "again.trace.parquet",
    "results.jsonl",
    "pareto.json",
    "pareto/NNN.toml",
    "report.json",
    "report.html",
];

/// What a tuning that came to its end found.
enum Found {
    /// No heap is as was asked for.
    Nothing(String),
    /// The heap, and all there is to say of it.
    Heap(Box<Tuned>),
}

struct Tuned {
    recorded: Recorded,
    events: Events,
    searched: Searched,
    chosen: Chosen,
    document: Document,
    pareto: Vec<serde_json::Value>,
    report: PathBuf,
}

pub(crate) fn run(arguments: &Tune, json: bool) -> Result<u8, Failure> {
    // What cannot be run leaves no trace of the attempt.
    let name = arguments.command.first().ok_or(RecordError::NoCommand)?;
    find_program(name)?.check_preload()?;
    interrupt::flag()?;
    // The names do not depend on the heap.
    let emitted = emitted::emit(&metes_config::resolve("tlsf").map_err(Failure::Heap)?)?;
    let mut files = FILES.to_vec();
    files.extend(emitted::names(&emitted));
    let kind = Kind {
        verb: "tune",
        files: &files,
    };
    let results = Results::open(&arguments.output, kind)?;
    emitted::need_compiler(results.gathered())?;
    let found = match tune(arguments, &results, json) {
        Ok(found) => found,
        Err(failure) => {
            keep(results)?;
            return Err(failure);
        }
    };
    results.replace()?;
    match found {
        Found::Nothing(why) => {
            output::note(&why);
            Ok(DOES_NOT_HOLD)
        }
        Found::Heap(tuned) => tuned.say(&arguments.output, json),
    }
}

/// Keeps what there is of a tuning that was cut short: the recording beside an
/// earlier result, which stays whole, or all of it where there is none.
fn keep(results: Results) -> Result<(), Failure> {
    let gathered = results.gathered().to_owned();
    if !gathered.join(TRACE).is_file() {
        return Ok(());
    }
    if !results.has_earlier() {
        return results.replace();
    }
    let failed = |error| Failure::io("write to directory", &gathered, error);
    for entry in std::fs::read_dir(&gathered).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path {
            path if path.is_dir() => std::fs::remove_dir_all(path),
            path if path.ends_with(TRACE) => std::fs::rename(path, gathered.join(CUT_SHORT)),
            path => std::fs::remove_file(path),
        }
        .map_err(failed)?;
    }
    results.add()
}

/// Where [`keep`] puts the recording.
fn kept(arguments: &Tune, results: &Results) -> PathBuf {
    let name = match results.has_earlier() {
        true => CUT_SHORT,
        false => TRACE,
    };
    arguments.output.join(name)
}

/// Ends a tuning that was asked to end by a signal.
fn heed(arguments: &Tune, results: &Results) -> Result<(), Failure> {
    match interrupt::asked_to_end() {
        None => Ok(()),
        Some(signal) => {
            let kept = kept(arguments, results);
            let kept = format!(
                "what the program did until then is in {}: go on with `metes explore`",
                kept.display()
            );
            Err(Failure::ended(signal, kept))
        }
    }
}

/// Does the work, with all files gathered in `results`.
fn tune(arguments: &Tune, results: &Results, json: bool) -> Result<Found, Failure> {
    let directory = results.gathered();
    let _steady = SteadyLayout::begin();
    let program = Program {
        arguments,
        recorder: libraries::recorder()?,
        scratch: Scratch::new()?,
        input: Input::look()?,
        pass: if json { Pass::ToStderr } else { Pass::On },
    };
    let recorded = program.record(true)?;
    write_parquet(&recorded.trace, &directory.join(TRACE))?;
    heed(arguments, results)?;
    if let Ending::Signal(signal) = recorded.ending {
        return Err(died(&arguments.command, signal, &kept(arguments, results)));
    }
    let events = tracefile::events(&recorded.trace)?;
    let mapped = arguments.mapped.0;
    let searched = search::run(&events, arguments.budget, None, mapped, directory)?;
    let found = &searched.found;
    let pareto = search::outcomes(&found.pareto, &searched.options, results)?;
    let choice = choose(
        &within(found, arguments.heap_limit),
        arguments.prefer.into(),
    );
    let wheel = progress::spinner("comparing heaps");
    let content = Content::new(&recorded.trace, &events, &searched, choice.as_ref());
    wheel.finish_and_clear();
    page::write(directory, &content.document(None))?;
    let Some(choice) = choice.clone() else {
        return Ok(Found::Nothing(no_choice(found, arguments.heap_limit)));
    };
    let mut chosen = predict(choice, &events, &content);
    let mut emitted = emitted::write(&emitted::emit(&chosen.config)?, directory)?;
    heed(arguments, results)?;
    let wheel = progress::spinner("building the emitted heap");
    let library = emitted::build(directory);
    wheel.finish_and_clear();
    let library = library?;
    emitted.push(library.clone());
    chosen.emitted = emitted.iter().map(|path| results.shown(path)).collect();
    let checked = check::check(&program, &recorded, &chosen, &library)?;
    heed(arguments, results)?;
    if let Some(trace) = &checked.again {
        write_parquet(trace, &directory.join("again.trace.parquet"))?;
    }
    chosen.checked = Some(checked);
    let document = told(&content, &chosen);
    let report = results.shown(&page::write(directory, &document)?);
    drop(content);
    Ok(Found::Heap(Box::new(Tuned {
        recorded,
        events,
        searched,
        chosen,
        document,
        pareto,
        report,
    })))
}

impl Tuned {
    fn say(self, directory: &Path, json: bool) -> Result<u8, Failure> {
        let Tuned {
            recorded,
            events,
            searched,
            chosen,
            document,
            pareto,
            report,
        } = self;
        let holds = chosen.checked.as_ref().is_some_and(Checked::holds);
        let found = &searched.found;
        if json {
            print_json(&recorded, found, &chosen, &document, pareto, &report)?;
        } else {
            let text = summary::text(
                &recorded, found, &events, &chosen, &document, directory, &report,
            );
            output::text(&text)?;
        }
        Ok(if holds { 0 } else { DOES_NOT_HOLD })
    }
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

/// What the trace's replay on the chosen heap found, with all that can be known: it
/// was replayed for the report, which knows no arenas but those of a host.
fn predict(choice: Choice, events: &Events, content: &Content<'_>) -> Chosen {
    let Choice { outcome, why } = choice;
    let config = content.options().arena.config(outcome.description);
    let options = options_of(&config);
    let mut compared = content.compared.iter();
    let known = compared.find(|one| one.description == config.heap);
    let predicted = match known.filter(|_| options == content.options()) {
        Some(known) => Replay {
            heap: config.name(),
            ..known.replay.clone()
        },
        None => {
            let (replay, _) =
                Replayer::new().replay(&config.name(), &config.heap, events, &options);
            replay
        }
    };
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
    document: &Document,
    pareto: Vec<serde_json::Value>,
    report: &Path,
) -> Result<(), Failure> {
    let checked = chosen.checked.as_ref();
    let predicted = checked.map_or(&chosen.predicted, |checked| &checked.predicted);
    let measured = checked.and_then(|checked| checked.measured.as_ref());
    output::json(&json!({
        "heap": chosen.config.name(),
        "mapped": chosen.config.arena.mapped,
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
        "status": recorded.ending.shell_status(),
        "process": recorded.process.name,
        "events": chosen.predicted.events,
        "bounds": document.heaps.iter().find(|heap| heap.chosen).map(|heap| &heap.bounds),
        "bounded": document.configurations.bounded,
        "cycles_max": chosen.outcome.cycles_max,
        "own_cycles_max": chosen.outcome.own_cycles_max,
        "copy_cycles_max": chosen.outcome.copy_cycles_max,
        "threads": document.trace.threads,
        "pareto": pareto,
        "sampled": found.sampled,
        "unfinished": found.unfinished,
        "configurations": found.configurations,
        "distinct": found.distinct,
        "seconds": found.seconds,
        "replaced_by": recorded.process.replaced_by,
        "report": output::name(report),
        "emitted": output::names(&chosen.emitted),
    }))
}
