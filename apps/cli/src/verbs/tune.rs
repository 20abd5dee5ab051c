//! `metes tune`: from a program to its heap, and the proof that it fits.
//!
//! Invariant: an earlier result stays whole until the new one is; the recording of a tuning that was
//! cut short is kept.

mod beside;
mod choice;
mod image;
mod module;
mod runs;
pub(super) mod summary;

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use metes_explore::engine::Folder;
use metes_explore::{Observer, Rule};
use metes_trace::RecordError;
use metes_trace::record::{Ending, find_program};
use metes_tune::{Error, FILES, Found, Lacking, Pass, Step, TRACE, Tuned, Tuning};
use serde_json::json;

use choice::Choice;

use crate::arguments::Tune;
use crate::error::{DOES_NOT_HOLD, Failure, signal_name};
use crate::quantity::grouped;
use crate::results::{Kind, Results};
use crate::search::Bar;
use crate::verbs::record::died;
use crate::{interrupt, libraries, output, progress};

/// The recording of a run that was cut short, beside an earlier result.
const CUT_SHORT: &str = "interrupted.trace.parquet";

pub(crate) fn run(arguments: &Tune, json: bool) -> Result<u8, Failure> {
    if let Some(machine) = image::machine(arguments.target) {
        return image::run(arguments, machine, json);
    }
    if arguments.build.is_some() {
        return Err(Failure::input(
            "--build links the image of a target: add --target cortex-m3, or leave it out",
        ));
    }
    if !arguments.traces.is_empty() || arguments.commands.is_some() {
        return runs::run(arguments, json);
    }
    // What cannot be run leaves no trace of the attempt.
    let name = arguments.command.first().ok_or(RecordError::NoCommand)?;
    if module::is_module(name) {
        if arguments.sites {
            return Err(Failure::input(
                "call stacks are recorded of programs of the host: leave --sites out for a module",
            ));
        }
        return module::run(arguments, json);
    }
    find_program(name)?.check_preload()?;
    if arguments.pages.is_some() && arguments.mapped.0.is_none() {
        return Err(Failure::input(
            "--pages says what becomes of the pages of mapped blocks, and with --mapped no none is \
             mapped: leave out one of them",
        ));
    }
    let guarantee = arguments.guarantee.weighed(arguments.objectives)?;
    guarantee.check(&metes_explore::Arena::HOST)?;
    let stop = interrupt::flag()?;
    let results = take_results(&arguments.output, CUT_SHORT)?;
    let tuning = Tuning {
        command: &arguments.command,
        process: arguments.process.as_deref(),
        recorder: libraries::recorder()?,
        sites: arguments.sites,
        preload: libraries::preload().ok(),
        beside: arguments.beside.unwrap_or_default(),
        pass: if json { Pass::ToStderr } else { Pass::On },
        seconds: arguments.budget,
        mapped: arguments.mapped.0,
        pages: arguments.pages,
        heap_limit: arguments.heap_limit,
        guarantee,
        preference: arguments.prefer.into(),
        stop,
    };
    let mut shown = Shown::new(arguments.budget);
    let found = tuning.run(results.gathered(), &arguments.output, &mut shown);
    drop(shown);
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let failure = cut_short(error, arguments, &results);
            keep(results)?;
            return Err(failure);
        }
    };
    results.replace()?;
    match found {
        Found::Nothing(lacking) => {
            output::note(&no_choice(&lacking, arguments.heap_limit));
            Ok(DOES_NOT_HOLD)
        }
        Found::Heap(tuned) => {
            match json {
                true => print_json(&tuned)?,
                false => output::text(&summary::text(&tuned, &arguments.output))?,
            }
            Ok(if tuned.checked.holds() {
                0
            } else {
                DOES_NOT_HOLD
            })
        }
    }
}

/// Takes a directory for all that there will be, `further` files beside what every tuning leaves.
fn take_results(output: &Path, further: &'static str) -> Result<Results, Failure> {
    // The names do not depend on the heap.
    let emitted = metes_tune::emit(&metes_config::resolve("tlsf").map_err(Failure::Heap)?)?;
    let mut files = FILES.to_vec();
    files.push(further);
    files.extend(metes_tune::names(&emitted.files));
    let kind = Kind {
        verb: "tune",
        files: &files,
    };
    let results = Results::open(output, kind)?;
    Folder::may_be_suggested(output)?;
    metes_tune::need_compiler(results.gathered())?;
    Ok(results)
}

/// A tuning as it is seen: bars and wheels, of which there is one at a time.
pub(super) struct Shown {
    seconds: f64,
    step: Option<Step>,
    bar: Option<Bar>,
    wheel: Option<ProgressBar>,
}

impl Shown {
    pub(super) fn new(seconds: f64) -> Self {
        Shown {
            seconds,
            step: None,
            bar: None,
            wheel: None,
        }
    }

    fn clear(&mut self) {
        self.bar = None;
        if let Some(wheel) = self.wheel.take() {
            wheel.finish_and_clear();
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Observer for Shown {
    fn progress(&mut self, configurations: u64, pareto: usize) {
        if let Some(bar) = &mut self.bar {
            bar.progress(configurations, pareto);
        }
    }
}

impl metes_tune::Watch for Shown {
    fn begins(&mut self, step: Step) {
        self.clear();
        self.step = Some(step);
        match step {
            Step::Record | Step::Run | Step::Beside => {}
            Step::Alone => self.wheel = Some(progress::spinner("the best heap for each run alone")),
            Step::Search => self.bar = Some(Bar::begin(self.seconds)),
            Step::Compare => self.wheel = Some(progress::spinner("comparing heaps")),
            Step::Interleave => self.wheel = Some(progress::spinner("other orders of threads")),
            Step::Build => self.wheel = Some(progress::spinner("building the emitted heap")),
        }
    }

    fn turn(&mut self, number: usize, of: usize, name: &str) {
        let what = match self.step {
            Some(Step::Record) => "recording",
            Some(Step::Run) => "running on the heap",
            Some(Step::Beside) => "running beside",
            Some(Step::Alone) => "the best heap for run",
            _ => "reading",
        };
        let name: String = name.chars().take(60).collect();
        let text = format!("{what} {} of {of}: {name}", number + 1);
        let text = metes_quantity::printable(&text).into_owned();
        match (&self.wheel, self.step) {
            (Some(wheel), Some(Step::Alone)) => wheel.set_message(text),
            (Some(wheel), _) => {
                wheel.set_message(text);
                wheel.tick();
            }
            (None, _) => {
                let still = progress::still(&text);
                still.tick();
                self.wheel = Some(still);
            }
        }
    }

    fn asked_to_end(&self) -> Option<i32> {
        interrupt::asked_to_end()
    }

    fn ended_otherwise(&mut self, now: Ending, before: Ending, last_words: &str) {
        let how = match now {
            Ending::Signal(signal) => format!("was ended by {}", signal_name(signal)),
            Ending::Exit(status) => format!("ended with status {status}"),
        };
        output::note(&format!(
            "on the emitted heap the program {how}, when recorded with status {}; its last \
             words:\n{last_words}",
            before.shell_status()
        ));
    }

    fn no_second_recording(&mut self, why: &Error) {
        output::note(&format!("a second recording to compare with failed: {why}"));
    }
}

/// What is said of a tuning that did not come to its end.
fn cut_short(error: Error, arguments: &Tune, results: &Results) -> Failure {
    let kept = kept(arguments, results);
    match error {
        Error::Died(signal) => died(&arguments.command, signal, &kept),
        Error::Ended(signal) => Failure::ended(
            signal,
            format!(
                "what the program did until then is in {}: go on with `metes explore`",
                kept.display()
            ),
        ),
        error => error.into(),
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

/// What is said where no heap is as was asked for.
pub(super) fn no_choice(lacking: &Lacking, limit: Option<u64>) -> String {
    if let Some((terms, least)) = &lacking.guarantee
        && terms.rule != Rule::Default
        && limit.is_none()
    {
        return format!(
            "no heap that was tried guarantees {}: {}",
            terms.sentence(),
            match least {
                Some((heap, bytes)) => format!("the least is {} bytes, of {heap}", grouped(*bytes)),
                None => "none has a finite guarantee for this demand".to_owned(),
            }
        );
    }
    match (lacking.footprint, limit) {
        (Some(least), Some(limit)) => format!(
            "no heap stays within {} bytes: the smallest footprint found is {}",
            grouped(limit),
            grouped(least)
        ),
        _ => "no heap serves every request of this program".to_owned(),
    }
}

fn print_json(tuned: &Tuned) -> Result<(), Failure> {
    let Tuned {
        recorded,
        searched,
        chosen,
        checked,
        document,
        ..
    } = tuned;
    let choice = Choice {
        config: &chosen.config,
        why: &chosen.why,
        found: &searched.found,
        document,
        outcome: &chosen.outcome,
        front: &tuned.front,
        page: &tuned.page,
        emitted: &chosen.emitted,
    };
    choice.print(json!({
        "predicted": {
            "peak_live": checked.predicted.peak_live,
            "footprint": checked.predicted.footprint,
        },
        "measured": checked.measured.as_ref().map(|measured| json!({
            "peak_live": measured.peak_live,
            "footprint": measured.footprint,
        })),
        "equal": checked.equal(),
        "requests_equal": checked.requests_equal(),
        "placements_equal": checked.placements_equal(),
        "deterministic": checked.deterministic,
        "difference": checked.difference,
        "output_unchanged": checked.output_unchanged,
        "status": recorded.ending.shell_status(),
        "process": recorded.process.name,
        "events": chosen.predicted.events,
        "per_thread": tuned.per_thread.as_ref().map(|run| json!({
            "heap": run.heap.to_string(),
            "measured": { "peak_live": run.peak_live, "footprint": run.footprint },
        })),
        "beside": document.beside,
        "interleaved": document.interleaved,
        "replaced_by": recorded.process.replaced_by,
    }))
}
