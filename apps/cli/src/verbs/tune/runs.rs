//! `metes tune` over several commands, or over traces.
//!
//! Invariant: what is printed as measured was measured in this run, of each command by itself.

use std::path::Path;

use metes_explore::Arena;
use metes_trace::record::find_program;
use metes_tune::runs::{Command, Document, Suite, TunedRuns, Wish, commands, settle, write_runs};
use metes_tune::{Lacking, Request};
use serde_json::json;

use super::{Shown, module, no_choice};
use crate::arguments::Tune;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::verbs::runs;
use crate::{interrupt, libraries, output, tracefile};

/// The recordings of commands.
const RECORDED: &str = "runs/NNN.trace.parquet";

pub(super) fn run(arguments: &Tune, json: bool) -> Result<u8, Failure> {
    let stop = interrupt::flag()?;
    let wanted = arguments.guarantee.weighed(arguments.objectives)?;
    wanted.check(&Arena::HOST)?;
    let mut shown = Shown::new(arguments.budget / 2.0);
    let mut wish = Wish {
        request: Request {
            seconds: arguments.budget,
            configurations: None,
            arena: Arena::HOST,
            mapped: arguments.mapped.0,
            pages: arguments.pages,
            guarantee: (wanted, metes_explore::report::DemandFigures::NONE),
            over: arguments.over.into(),
            fresh: false,
            trace: arguments.output.join("runs"),
            stop,
        },
        preference: arguments.prefer.into(),
        heap_limit: arguments.heap_limit,
    };
    let tuned = match &arguments.commands {
        Some(path) => {
            let commands = read(path)?;
            let results = super::take_results(&arguments.output, RECORDED)?;
            let suite = Suite {
                commands: &commands,
                recorder: libraries::recorder()?,
                wish,
            };
            let tuned = suite.run(results.gathered(), &arguments.output, &mut shown);
            let tuned = tuned.map_err(runs::cut_short)?;
            (tuned, results)
        }
        None => {
            is_no_program(&arguments.traces)?;
            let files = tracefile::expand(&arguments.traces)?;
            let recordings = runs::read(&files, &mut shown)?;
            wish.request.trace = files.first().cloned().unwrap_or_default();
            let results = super::take_results(&arguments.output, RECORDED)?;
            let place = &arguments.output;
            let tuned = settle(recordings, &wish, results.gathered(), place, &mut shown);
            let tuned = tuned.map_err(runs::cut_short)?;
            (tuned, results)
        }
    };
    drop(shown);
    let (tuned, results) = tuned;
    for left in &tuned.left_out {
        output::note(&format!("left out: {}: {}", left.name, left.why));
    }
    let document = Document::of(&tuned);
    let report = results.shown(&write_runs(results.gathered(), &document)?);
    results.replace()?;
    say(arguments, &tuned, &document, &report, json)?;
    if document.heap.is_none() {
        let lacking = Lacking::of(&tuned.one.searched.found, None);
        output::note(&no_choice(&lacking, arguments.heap_limit));
        return Ok(DOES_NOT_HOLD);
    }
    Ok(if document.holds() { 0 } else { DOES_NOT_HOLD })
}

fn say(
    arguments: &Tune,
    tuned: &TunedRuns,
    document: &Document,
    report: &Path,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let further = [
            ("report", json!(output::name(report))),
            ("emitted", json!(output::names(&tuned.emitted))),
        ];
        return runs::json(document, &further);
    }
    let mut text = runs::text(document);
    text += &format!("\n  {:<9} {}\n", "report", report.display());
    if document.heap.is_some() {
        text += &super::summary::code(&arguments.output);
    }
    output::text(&text)
}

/// A program in the place of traces is one that stands before `--` by mistake.
fn is_no_program(paths: &[std::path::PathBuf]) -> Result<(), Failure> {
    match paths.first() {
        Some(path) if !path.exists() && find_program(path.as_os_str()).is_ok() => {
            Err(Failure::input(format!(
                "{} is no trace; a program to tune stands behind `--`: metes tune -- {0}",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Reads a file of commands, each of which can be run.
fn read(path: &Path) -> Result<Vec<Command>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
    let wrong = |line: usize, why: String| {
        Failure::input(format!("{}, line {line}: {why}", path.display()))
    };
    let found = commands(&text).map_err(|error| wrong(error.line, error.why))?;
    if found.is_empty() {
        return Err(Failure::input(format!(
            "{} holds no command: write one a line",
            path.display()
        )));
    }
    for command in &found {
        let name = &command.words[0];
        if module::is_module(name) {
            let why = "a WebAssembly module is tuned by itself: metes tune -- MODULE";
            return Err(wrong(command.line, why.to_owned()));
        }
        let program = find_program(name).and_then(|program| program.check_preload().map(drop));
        program.map_err(|error| wrong(command.line, error.to_string()))?;
        if let Some(input) = &command.input {
            std::fs::File::open(input).map_err(|error| {
                wrong(
                    command.line,
                    format!("cannot read {}: {error}", input.display()),
                )
            })?;
        }
    }
    Ok(found)
}
