//! Commands as runs: recorded one by one, and run once more on the heap that serves them all.
//!
//! Invariant: a command that cannot be recorded is left out and named; all others are compared, each with what was
//! predicted of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use metes_trace::record::Ending;
use metes_trace::{read_parquet, write_parquet};

use super::{Command, One, OneHeap, Recording, Recordings, Wish, one_heap};
use crate::capture::{Input, Written};
use crate::check::{Checked, check};
use crate::emitted;
use crate::error::Error;
use crate::launch::SteadyLayout;
use crate::process::Process;
use crate::tuning::{Chosen, Program, Recorded, Step, Watch, heed};

/// Commands, one heap for which is wanted.
#[derive(Debug)]
pub struct Suite<'a> {
    /// The commands.
    pub commands: &'a [Command],
    /// The library that records.
    pub recorder: PathBuf,
    /// What is looked for.
    pub wish: Wish,
}

/// A command that is left out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// As it is written.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A run on the heap that serves all.
#[derive(Debug)]
pub struct CheckedRun {
    /// What it showed.
    pub checked: Checked,
    /// The process that was compared.
    pub process: String,
}

/// What a tuning of many runs found.
#[derive(Debug)]
pub struct TunedRuns {
    /// The runs.
    pub recordings: Recordings,
    /// The heap.
    pub one: OneHeap,
    /// The commands that could not be recorded.
    pub left_out: Vec<LeftOut>,
    /// Each run on the heap, in their order; none where no heap is as was asked for, or traces are all there is.
    pub checked: Vec<CheckedRun>,
    /// The files of the unbeaten heaps, in their order, where they will lie.
    pub front: Vec<PathBuf>,
    /// The files of the code, where they will lie.
    pub emitted: Vec<PathBuf>,
}

/// What is kept of a recording beside its requests.
struct Kept {
    command: usize,
    ending: Ending,
    written: Written,
    process: Process,
}

/// The input of a command.
fn input(command: &Command) -> Input {
    let nothing = || PathBuf::from("/dev/null");
    Input::Of(command.input.clone().unwrap_or_else(nothing))
}

/// Where the trace of a run lies below the directory of results.
fn trace_file(number: usize) -> PathBuf {
    PathBuf::from(format!("runs/{:03}.trace.parquet", number + 1))
}

impl Suite<'_> {
    /// Records all commands, looks for one heap, emits it, and runs them on it. All files are written below
    /// `directory`; they will lie in `place`.
    ///
    /// # Errors
    /// [`Error`]; also where no command could be recorded.
    pub fn run(
        &self,
        directory: &Path,
        place: &Path,
        watch: &mut dyn Watch,
    ) -> Result<TunedRuns, Error> {
        let _steady = SteadyLayout::begin();
        let runs = directory.join("runs");
        std::fs::create_dir_all(&runs)
            .map_err(|error| crate::error::FileError::new("make directory", &runs, error))?;
        let (mut kept, mut recordings, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        watch.begins(Step::Record);
        for (number, command) in self.commands.iter().enumerate() {
            heed(watch)?;
            watch.turn(number, self.commands.len(), &command.text);
            let file = trace_file(recordings.len());
            match self.record(command, number, directory, place, &file) {
                Ok((own, recording)) => {
                    kept.push(own);
                    recordings.push(recording);
                }
                // A signal that was passed on ended the command.
                Err(_) if watch.asked_to_end().is_some() => heed(watch)?,
                Err(error) => left_out.push(LeftOut {
                    name: command.text.clone(),
                    why: error.to_string(),
                }),
            }
        }
        if let (true, Some(first)) = (recordings.is_empty(), left_out.first()) {
            return Err(Error::input(format!(
                "no command could be recorded; the first, {}: {}",
                first.name, first.why
            )));
        }
        let recordings = Recordings::new(recordings)?;
        let mut tuned = settle(recordings, &self.wish, directory, place, watch)?;
        tuned.left_out = left_out;
        let Some(one) = &tuned.one.chosen else {
            return Ok(tuned);
        };
        let library = directory.join(emitted::LIBRARY);
        watch.begins(Step::Run);
        for (number, own) in kept.into_iter().enumerate() {
            heed(watch)?;
            let command = &self.commands[own.command];
            watch.turn(number, tuned.recordings.runs.len(), &command.text);
            let trace = directory.join(trace_file(number));
            let checked = self.check(command, own, one, number, &trace, &library, watch)?;
            tuned.checked.push(checked);
        }
        heed(watch)?;
        Ok(tuned)
    }

    fn program<'a>(&'a self, command: &'a Command) -> Result<Program<'a>, Error> {
        let words: &[OsString] = &command.words;
        Program::unseen(words, &self.recorder, input(command))
    }

    fn record(
        &self,
        command: &Command,
        number: usize,
        directory: &Path,
        place: &Path,
        file: &Path,
    ) -> Result<(Kept, Recording), Error> {
        let recorded = self.program(command)?.record(true)?;
        if let Ending::Signal(signal) = recorded.ending {
            return Err(Error::Died(signal));
        }
        write_parquet(&recorded.trace, &directory.join(file))?;
        let recording = Recording::of(command.text.clone(), &recorded.trace, &place.join(file))?;
        let kept = Kept {
            command: number,
            ending: recorded.ending,
            written: recorded.written,
            process: recorded.process,
        };
        Ok((kept, recording))
    }

    #[expect(clippy::too_many_arguments, reason = "all that a run is compared by")]
    fn check(
        &self,
        command: &Command,
        own: Kept,
        one: &One,
        number: usize,
        trace: &Path,
        library: &Path,
        watch: &mut dyn Watch,
    ) -> Result<CheckedRun, Error> {
        let recorded = Recorded {
            ending: own.ending,
            written: own.written,
            trace: read_parquet(trace)?,
            process: own.process,
        };
        let chosen = Chosen {
            config: one.config.clone(),
            outcome: one.choice.outcome.clone(),
            why: String::new(),
            predicted: one.predicted[number].clone(),
            emitted: Vec::new(),
        };
        let program = self.program(command)?;
        let mut checked = check(&program, &recorded, &chosen, library, watch)?;
        // A suite has many of them.
        checked.again = None;
        Ok(CheckedRun {
            checked,
            process: recorded.process.name,
        })
    }
}

/// Looks for one heap for recorded runs, and emits and builds it.
///
/// # Errors
/// [`Error`].
pub fn settle(
    recordings: Recordings,
    wish: &Wish,
    directory: &Path,
    place: &Path,
    watch: &mut dyn Watch,
) -> Result<TunedRuns, Error> {
    let shown = |path: &PathBuf| place.join(path.strip_prefix(directory).unwrap_or(path));
    let mut tuned = explored(recordings, wish, directory, place, watch)?;
    if let Some(own) = &tuned.one.chosen {
        let mut emitted = emitted::write(&emitted::emit(&own.config)?.files, directory)?;
        heed(watch)?;
        watch.begins(Step::Build);
        emitted.push(emitted::build(directory)?);
        tuned.emitted = emitted.iter().map(shown).collect();
    }
    Ok(tuned)
}

/// Looks for one heap for recorded runs.
///
/// # Errors
/// [`Error`].
pub fn explored(
    recordings: Recordings,
    wish: &Wish,
    directory: &Path,
    place: &Path,
    watch: &mut dyn Watch,
) -> Result<TunedRuns, Error> {
    let shown = |path: &PathBuf| place.join(path.strip_prefix(directory).unwrap_or(path));
    let one = one_heap(&recordings, wish, place, directory, watch)?;
    let front = (one.searched).write_front(&one.searched.found.pareto, directory)?;
    Ok(TunedRuns {
        recordings,
        one,
        left_out: Vec::new(),
        checked: Vec::new(),
        front: front.iter().map(shown).collect(),
        emitted: Vec::new(),
    })
}
