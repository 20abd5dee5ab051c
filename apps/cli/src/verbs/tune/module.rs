//! `metes tune` of a WebAssembly module: from the module to its heap, and the proof that it fits.
//!
//! Invariant: an earlier result stays whole until the new one is; what the module wrote is written once.

use std::ffi::OsStr;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use metes_edge_heap::joined;
use metes_edge_heap::outline::Outline;
use metes_edge_heap::run::{Input, Ran, RunError};
use metes_edge_heap::splice::PAGE;
use metes_edge_heap::tune::{Error, FILES, Found, MODULE, Tuned, Tuning};
use metes_emit::{Home, Ranges};
use metes_explore::engine::Folder;
use serde_json::json;

use super::choice::Choice;
use super::{Shown, no_choice, summary};
use crate::arguments::Tune;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{BOLD, DIM, GOOD, POOR};
use crate::quantity::{bytes, grouped};
use crate::results::{Kind, Results};
use crate::{interrupt, output};

/// What every module begins with.
const MAGIC: [u8; 4] = *b"\0asm";

/// Whether a command is a module: a file that begins like one, or is called so.
pub(super) fn is_module(name: &OsStr) -> bool {
    let path = Path::new(name);
    let mut first = [0; MAGIC.len()];
    let file = std::fs::File::open(path);
    let begins = file.is_ok_and(|mut file| file.read_exact(&mut first).is_ok());
    begins && first == MAGIC || path.extension() == Some(OsStr::new("wasm"))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Tune(error) => error.into(),
            Error::Run(RunError::Stopped) => Failure::ended(
                interrupt::asked_to_end().unwrap_or(libc::SIGINT),
                "the module had not come to its end, so nothing was recorded",
            ),
            error => Failure::input(error.to_string()),
        }
    }
}

pub(super) fn run(arguments: &Tune, json: bool) -> Result<u8, Failure> {
    let path = Path::new(&arguments.command[0]);
    for (given, option) in [
        (arguments.process.is_some(), "--process"),
        (arguments.pages.is_some(), "--pages"),
        (arguments.beside.is_some(), "--beside"),
    ] {
        if given {
            return Err(Failure::input(format!(
                "{option} is for programs of the system, and {} is a WebAssembly module: leave it out",
                path.display()
            )));
        }
    }
    let wasm = std::fs::read(path).map_err(|error| Failure::io("read", path, error))?;
    let wrong =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", path.display()));
    let outline = Outline::new(&wasm).map_err(|error| wrong(&error))?;
    joined::need_compiler().map_err(|error| Failure::input(error.to_string()))?;
    let guarantee = arguments.guarantee.weighed(arguments.objectives)?;
    guarantee.check(&metes_edge_heap::tune::arena(0))?;
    let stop = interrupt::flag()?;
    let input = input(arguments, &outline)?;
    let mut files = FILES.to_vec();
    // The names do not depend on the heap.
    let home = Home::Wasi(Ranges::single(0, 1, 0));
    let any = metes_config::resolve("tlsf").map_err(Failure::Heap)?;
    let emitted = metes_tune::emit_for(&any, home)?.files;
    files.extend(emitted.iter().filter_map(|file| file.path.to_str()));
    let kind = Kind {
        verb: "tune",
        files: &files,
    };
    let results = Results::open(&arguments.output, kind)?;
    Folder::may_be_suggested(&arguments.output)?;
    let tuning = Tuning {
        wasm: &wasm,
        input,
        seconds: arguments.budget,
        configurations: None,
        preference: arguments.prefer.into(),
        heap_limit: arguments.heap_limit,
        guarantee,
        stop,
    };
    let mut shown = Shown::new(arguments.budget);
    let mut pass = |ran: &Ran| pass_on(ran, json);
    let found = tuning.run(results.gathered(), &arguments.output, &mut shown, &mut pass);
    drop(shown);
    let found =
        found.map_err(|error| match error {
            error @ (Error::Splice(_)
            | Error::Run(RunError::Refused(_) | RunError::Trapped { .. })) => wrong(&error),
            error => error.into(),
        })?;
    results.replace()?;
    match found {
        Found::Nothing(lacking) => {
            output::note(&no_choice(&lacking, arguments.heap_limit));
            Ok(DOES_NOT_HOLD)
        }
        Found::Heap(tuned) => {
            match json {
                true => print_json(&tuned, path, &arguments.output)?,
                false => output::text(&text(&tuned, path, &arguments.output))?,
            }
            Ok(if tuned.run.holds() { 0 } else { DOES_NOT_HOLD })
        }
    }
}

/// How the module is run: standard input is read where the module could read it.
fn input(arguments: &Tune, outline: &Outline) -> Result<Input, Failure> {
    let words = arguments
        .command
        .iter()
        .map(|word| word.to_str().map(str::to_owned));
    let words: Option<Vec<String>> = words.collect();
    let words = words.ok_or_else(|| {
        Failure::input("an argument is not UTF-8, as WebAssembly modules have it: change it")
    })?;
    let mut stdin = Vec::new();
    if outline.reads && !std::io::stdin().is_terminal() {
        let read = std::io::stdin().lock().read_to_end(&mut stdin);
        read.map_err(|error| Failure::io("read", Path::new("standard input"), error))?;
    }
    Ok(Input {
        arguments: words,
        stdin,
        stop: None,
    })
}

/// What the module wrote, where it would have gone.
fn pass_on(ran: &Ran, json: bool) {
    // Who does not read it any more does not want it.
    let _ = std::io::stderr().lock().write_all(&ran.stderr);
    let _ = match json {
        true => std::io::stderr().lock().write_all(&ran.stdout),
        false => std::io::stdout().lock().write_all(&ran.stdout),
    };
}

fn text(tuned: &Tuned, path: &Path, directory: &Path) -> String {
    let found = &tuned.searched.found;
    let mut text = String::new();
    text += &format!("\n{BOLD}{}{BOLD:#}\n", tuned.config.name());
    text += &format!("{DIM}{}{DIM:#}\n\n", tuned.why);
    text += &format!(
        "  {:<9} {}: {} requests, peak live {}\n",
        "module",
        path.display(),
        grouped(tuned.recorded.events.len() as u64),
        bytes(tuned.recorded.events.peak_live())
    );
    text += &format!("  {:<9} {}\n", "explored", summary::explored(found));
    text += &summary::bounds(&tuned.document);
    let guarantee = tuned.document.guarantee.as_ref();
    text += &guarantee.map_or(String::new(), summary::guarantee_text);
    text += "\n";
    let table = summary::comparison(found, &tuned.outcome, tuned.recorded.events.peak_live());
    text += &table.to_string();
    text += &format!(
        "{DIM}cycles are modelled; words of 32 bits, blocks at multiples of 16{DIM:#}\n\n"
    );
    let figures = |name: &str, live: u64, footprint: u64| {
        format!(
            "  {name:<9} peak live {} B, footprint {} B\n",
            grouped(live),
            grouped(footprint)
        )
    };
    let (predicted, measured) = (&tuned.run.predicted, &tuned.run.measured);
    text += &figures("predicted", predicted.peak_live, predicted.footprint);
    text += &figures("measured", measured.peak_live, measured.footprint);
    text += &format!("  {}\n", equality(tuned));
    text += &match tuned.run.output_unchanged {
        true => format!("  {GOOD}output unchanged{GOOD:#}\n"),
        false => format!("  {POOR}output changed{POOR:#}\n"),
    };
    let memory = |ran: &Ran| bytes(ran.pages * PAGE);
    text += &format!(
        "  {:<9} {} before, {} on the heap, and it does not grow\n",
        "memory",
        memory(&tuned.recorded.before),
        memory(&tuned.run.after)
    );
    text += &format!(
        "  {:<9} {} before, {} on the heap, whole runs\n",
        "operators",
        grouped(tuned.recorded.before.operators),
        grouped(tuned.run.after.operators)
    );
    text += &format!("\n  {:<9} {}\n", "report", tuned.page.display());
    text += &format!("  {:<9} {}\n", "module", directory.join(MODULE).display());
    text += &super::summary::code(directory);
    text
}

fn equality(tuned: &Tuned) -> String {
    let events = grouped(tuned.run.measured.events);
    if tuned.run.equal() {
        return format!(
            "{GOOD}predicted = measured{GOOD:#}, and each of {events} requests lay where it was predicted"
        );
    }
    if tuned.run.requests_equal() {
        return format!(
            "{POOR}predicted ≠ measured{POOR:#}: the module made {events} requests of the same sizes, but frees in \
             another order (it sorts or hashes by address), or the heap is at fault"
        );
    }
    format!(
        "{POOR}not comparable{POOR:#}: the module made {events} requests, {} were predicted; what it asks for depends on \
         addresses",
        grouped(tuned.run.predicted.events)
    )
}

fn print_json(tuned: &Tuned, path: &Path, directory: &Path) -> Result<(), Failure> {
    let choice = Choice {
        config: &tuned.config,
        why: &tuned.why,
        found: &tuned.searched.found,
        document: &tuned.document,
        outcome: &tuned.outcome,
        front: &tuned.front,
        page: &tuned.page,
        emitted: &tuned.emitted,
    };
    choice.print(json!({
        "predicted": {
            "peak_live": tuned.run.predicted.peak_live,
            "footprint": tuned.run.predicted.footprint,
        },
        "measured": {
            "peak_live": tuned.run.measured.peak_live,
            "footprint": tuned.run.measured.footprint,
        },
        "equal": tuned.run.equal(),
        "requests_equal": tuned.run.requests_equal(),
        "placements_equal": tuned.run.placements_equal(),
        "deterministic": tuned.run.requests_equal().then_some(true),
        "difference": null,
        "output_unchanged": tuned.run.output_unchanged,
        "status": tuned.recorded.before.status,
        "process": path.file_name().map(|name| name.to_string_lossy()),
        "events": tuned.run.predicted.events,
        "per_thread": null,
        "replaced_by": null,
        "target": "wasm32-wasip1",
        "module": output::name(&directory.join(MODULE)),
        "memory": {
            "before": tuned.recorded.before.pages * PAGE,
            "after": tuned.run.after.pages * PAGE,
        },
        "operators": { "before": tuned.recorded.before.operators, "after": tuned.run.after.operators },
    }))
}
