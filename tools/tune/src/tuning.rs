//! The course of a tuning: record, search, choose, predict, emit, build, run, compare.
//!
//! Invariant: what is predicted is computed before the program runs on the heap.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metes_config::{Config, Pages};
use metes_explore::engine::{EXPLORATION, RESULTS};
use metes_explore::report::{Beside, DemandFigures, Document};
use metes_explore::{
    Arena, Choice, Events, Exploration, Observer, Options, Outcome, Over, Preference, Replay,
    Replayer, Terms, Wanted, choose,
};
use metes_trace::record::Ending;
use metes_trace::{RecordOptions, Trace, record, write_parquet};

use crate::beside::{self, Heaps, Turns};
use crate::capture::{Input, Pass, Written, capture};
use crate::check::{Checked, check};
use crate::emitted;
use crate::error::Error;
use crate::launch::{Scratch, SteadyLayout};
use crate::orders;
use crate::per_thread::{self, PerThread};
use crate::process::{self, Process};
use crate::report::{self, Content, Measured};
use crate::search::{Request, Searched, search};

/// The recording of the tuned process.
pub const TRACE: &str = "program.trace.parquet";
/// The one that it is compared with, where the program asked for other things.
const AGAIN: &str = "again.trace.parquet";
/// What a tuning leaves beside the emitted code; `NNN` stands for any number.
pub const FILES: [&str; 7] = [
    TRACE,
    AGAIN,
    RESULTS,
    EXPLORATION,
    "pareto/NNN.toml",
    report::DOCUMENT,
    report::PAGE,
];

/// What is tuned, and how.
#[derive(Debug)]
pub struct Tuning<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// The process that is tuned, by number or name; else the one that matters.
    pub process: Option<&'a str>,
    /// The library that records.
    pub recorder: PathBuf,
    /// Whether call stacks are recorded, too: the trace has them, by names.
    pub sites: bool,
    /// The library that replaces malloc: programs with threads are run on a heap for each thread, too. None: not.
    pub preload: Option<PathBuf>,
    /// How often the program is run on today's allocators beside.
    pub beside: Turns,
    /// What becomes of the output of the program's first run.
    pub pass: Pass,
    /// Seconds of exploration.
    pub seconds: f64,
    /// From what size on blocks are mappings of their own.
    pub mapped: Option<usize>,
    /// When pages of freed mapped blocks go back, for whoever runs the heap on a manager of regions.
    pub pages: Option<Pages>,
    /// Most bytes that the chosen heap may take.
    pub heap_limit: Option<u64>,
    /// What is asked of its guarantee.
    pub guarantee: Wanted,
    /// What matters most.
    pub preference: Preference,
    /// Ends the search when set; what was found until then counts.
    pub stop: Arc<AtomicBool>,
}

/// A part of a tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The program runs and is recorded.
    Record,
    /// The best heap for each of many runs is looked for.
    Alone,
    /// Heaps are replayed; of this an [`Observer`] hears more.
    Search,
    /// The named heaps and the chosen one are replayed in all detail.
    Compare,
    /// The emitted heap is compiled.
    Build,
    /// The program runs on it.
    Run,
    /// The requests of several threads are replayed in other orders.
    Interleave,
    /// The program runs on today's allocators and on it, by turns.
    Beside,
}

/// Hears of a tuning while it runs, and may end it.
pub trait Watch: Observer {
    /// A step begins; the one before has ended. While the program runs nothing may be printed.
    fn begins(&mut self, step: Step) {
        let _ = step;
    }

    /// Of many runs, or of allocators beside each other, one has its turn: the `number`th from zero of so many, and what it is called.
    fn turn(&mut self, number: usize, of: usize, name: &str) {
        let _ = (number, of, name);
    }

    /// The signal by which the tuning was asked to end.
    fn asked_to_end(&self) -> Option<i32> {
        None
    }

    /// On the emitted heap the program ended otherwise than when it was recorded; with the end of
    /// what it wrote to its standard error.
    fn ended_otherwise(&mut self, now: Ending, before: Ending, last_words: &str) {
        let _ = (now, before, last_words);
    }

    /// A second recording, to compare with, was not made.
    fn no_second_recording(&mut self, why: &Error) {
        let _ = why;
    }
}

/// What a recording of the program gave.
#[derive(Debug)]
pub struct Recorded {
    /// How the program ended.
    pub ending: Ending,
    pub(crate) written: Written,
    /// What the process asked for.
    pub trace: Trace,
    /// The process that `trace` is of.
    pub process: Process,
}

/// The heap that was chosen, and what is predicted of it.
#[derive(Debug)]
pub struct Chosen {
    /// The heap.
    pub config: Config,
    /// What its replay found.
    pub outcome: Outcome,
    /// Why it was chosen, in a sentence.
    pub why: String,
    /// What is predicted from the first recording.
    pub predicted: Replay,
    /// The files of its code, where they will lie.
    pub emitted: Vec<PathBuf>,
}

/// What is known where no heap is as was asked for.
#[derive(Clone, Debug, Default)]
pub struct Lacking {
    /// Least footprint of the heaps that serve the program.
    pub footprint: Option<u64>,
    /// When a guarantee would have been useful, and the heap with the least that was tried.
    pub guarantee: Option<(Terms, Option<(String, u64)>)>,
}

impl Lacking {
    /// What a search found, with the least footprint.
    pub fn of(found: &Exploration, footprint: Option<u64>) -> Self {
        let served = found.outcomes.iter().filter(|one| one.failed == 0);
        let least = served
            .filter_map(|one| Some((one.heap.clone(), one.guarantee?)))
            .min_by_key(|(_, bytes)| *bytes);
        let terms = found.guaranteed.as_ref().map(|own| own.terms);
        Lacking {
            footprint,
            guarantee: terms.map(|terms| (terms, least)),
        }
    }
}

/// What a tuning that came to its end found.
#[derive(Debug)]
pub enum Found {
    /// No heap is as was asked for.
    Nothing(Box<Lacking>),
    /// The heap, and all there is to say of it.
    Heap(Box<Tuned>),
}

/// All there is to say of a tuned program.
#[derive(Debug)]
pub struct Tuned {
    /// The recording that the prediction is from.
    pub recorded: Recorded,
    /// Its events.
    pub events: Events,
    /// The search.
    pub searched: Searched,
    /// The heap.
    pub chosen: Chosen,
    /// The run on it.
    pub checked: Checked,
    /// What a run on a heap for each thread measured, of a program whose threads make requests.
    pub per_thread: Option<PerThread>,
    /// The report.
    pub document: Document,
    /// The files of the unbeaten heaps, in their order, where they will lie.
    pub front: Vec<PathBuf>,
    /// The page, where it will lie.
    pub page: PathBuf,
}

/// A program that is run several times in the same surroundings.
pub(crate) struct Program<'a> {
    command: &'a [OsString],
    process: Option<&'a str>,
    recorder: &'a Path,
    sites: bool,
    pass: Pass,
    pub(crate) scratch: Scratch,
    pub(crate) input: Input,
}

impl<'a> Program<'a> {
    fn new(tuning: &'a Tuning<'a>) -> Result<Self, Error> {
        Ok(Program {
            command: tuning.command,
            process: tuning.process,
            recorder: &tuning.recorder,
            sites: tuning.sites,
            pass: tuning.pass,
            scratch: Scratch::new()?,
            input: Input::look()?,
        })
    }

    /// One of many, whose output nobody sees.
    pub(crate) fn unseen(
        command: &'a [OsString],
        recorder: &'a Path,
        input: Input,
    ) -> Result<Self, Error> {
        Ok(Program {
            command,
            process: None,
            recorder,
            sites: false,
            pass: Pass::Away,
            scratch: Scratch::new()?,
            input,
        })
    }

    pub(crate) fn command(&self) -> &'a [OsString] {
        self.command
    }

    /// Records the program. Only the `first` time its output is passed on.
    pub(crate) fn record(&self, first: bool) -> Result<Recorded, Error> {
        let mut options = RecordOptions::new(self.recorder);
        // The recorder writes no report, but a variable more or less would
        // change what programs ask for.
        options.environment = self.scratch.environment();
        options.sites = self.sites && first;
        let pass = if first { self.pass } else { Pass::Away };
        let run = || record(self.command, &options);
        let (recording, written) = capture(pass, || self.input.give(first, run))?;
        let recording = recording??;
        let ending = recording.ending;
        let (process, trace) = process::choose(recording, self.process)?;
        Ok(Recorded {
            ending,
            written,
            trace,
            process,
        })
    }
}

impl Tuning<'_> {
    /// Tunes the program. All files are written below `directory`; they will lie in `place`.
    ///
    /// # Errors
    /// [`Error`]; [`TRACE`] is there as soon as the program was recorded.
    pub fn run(
        &self,
        directory: &Path,
        place: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Found, Error> {
        let shown = |path: &Path| place.join(path.strip_prefix(directory).unwrap_or(path));
        let _steady = SteadyLayout::begin();
        let program = Program::new(self)?;
        watch.begins(Step::Record);
        let mut recorded = program.record(true)?;
        if self.sites {
            metes_sites::name(&mut recorded.trace.stacks, &[]);
        }
        write_parquet(&recorded.trace, &directory.join(TRACE))?;
        heed(watch)?;
        if let Ending::Signal(signal) = recorded.ending {
            return Err(Error::Died(signal));
        }
        let events = Events::try_from(&recorded.trace)?;
        watch.begins(Step::Search);
        let request = Request {
            seconds: self.seconds,
            configurations: None,
            arena: Arena::HOST,
            mapped: self.mapped,
            pages: self.pages,
            guarantee: (
                self.guarantee,
                DemandFigures::of(&metes_trace::profile(&recorded.trace)),
            ),
            over: Over::default(),
            fresh: false,
            trace: place.join(TRACE),
            stop: Arc::clone(&self.stop),
        };
        let searched = search(&events, &request, place, directory, watch)?;
        let found = &searched.found;
        let front = searched.write_front(&found.pareto, directory)?;
        let choice = choose(&within(found, self.heap_limit), self.preference);
        watch.begins(Step::Compare);
        let content = Content::new(&recorded.trace, &events, &searched, choice.as_ref());
        report::write(directory, &content.document(None))?;
        let Some(choice) = choice.clone() else {
            let least = found.pareto.iter().map(|outcome| outcome.footprint).min();
            return Ok(Found::Nothing(Box::new(Lacking::of(found, least))));
        };
        let mut chosen = predict(choice, &events, &content);
        let mut files = emitted::write(&emitted::emit(&chosen.config)?.files, directory)?;
        heed(watch)?;
        watch.begins(Step::Build);
        let library = emitted::build(directory)?;
        files.push(library.clone());
        chosen.emitted = files.iter().map(|path| shown(path)).collect();
        watch.begins(Step::Run);
        let checked = check(&program, &recorded, &chosen, &library, watch)?;
        heed(watch)?;
        if let Some(trace) = &checked.again {
            write_parquet(trace, &directory.join(AGAIN))?;
        }
        let mut document = told(&content, &chosen, &checked);
        let per_thread = match &self.preload {
            Some(preload) if document.trace.threads > 1 => {
                per_thread::measure(&program, &recorded, &chosen.predicted, preload)?
            }
            _ => None,
        };
        heed(watch)?;
        let several = document.trace.threads > 1;
        if several {
            watch.begins(Step::Interleave);
            let demand = DemandFigures::of(&metes_trace::profile(&recorded.trace));
            let (seconds, stop) = (self.seconds, &self.stop);
            document.interleaved =
                orders::look(&recorded.trace, demand, &chosen.config, seconds, stop)?;
        }
        let heaps = Heaps {
            chosen: &library,
            per_thread: self.preload.as_deref().filter(|_| several),
        };
        document.beside = self.beside(&program, (&recorded, &checked), &heaps, watch)?;
        let page = shown(&report::write(directory, &document)?);
        drop(content);
        Ok(Found::Heap(Box::new(Tuned {
            recorded,
            events,
            searched,
            chosen,
            checked,
            per_thread,
            document,
            front: front.iter().map(|path| shown(path)).collect(),
            page,
        })))
    }
}

impl Tuning<'_> {
    fn beside(
        &self,
        program: &Program<'_>,
        known: (&Recorded, &Checked),
        heaps: &Heaps<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Beside>, Error> {
        // Who ended the search wants what there is.
        if self.beside == Turns::Fitting && self.stop.load(Ordering::Relaxed) {
            return Ok(Some(Beside {
                not_run: Some("the search was ended by hand".to_owned()),
                ..Beside::default()
            }));
        }
        beside::measure(self.beside, self.seconds, program, known, heaps, watch)
    }
}

/// Ends a tuning that was asked to end by a signal.
pub(crate) fn heed(watch: &dyn Watch) -> Result<(), Error> {
    watch
        .asked_to_end()
        .map_or(Ok(()), |signal| Err(Error::Ended(signal)))
}

/// What was found, without the heaps that take more than the limit.
pub(crate) fn within(found: &Exploration, limit: Option<u64>) -> Exploration {
    let mut found = found.clone();
    if let Some(limit) = limit {
        found.pareto.retain(|outcome| outcome.footprint <= limit);
        found
            .constant_time
            .retain(|outcome| outcome.footprint <= limit);
        found.outcomes.retain(|outcome| outcome.footprint <= limit);
        if let Some(guaranteed) = &mut found.guaranteed {
            *guaranteed = guaranteed.among(&found.outcomes);
        }
    }
    found
}

/// What the trace's replay on the chosen heap found, with all that can be known: it
/// was replayed for the report, which knows no arenas but those of a host.
fn predict(choice: Choice, events: &Events, content: &Content<'_>) -> Chosen {
    let Choice { outcome, why, .. } = choice;
    let config = content.options().arena.config(outcome.description);
    let options = Options::of(&config);
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
    }
}

/// The report with what was measured and emitted.
fn told(content: &Content<'_>, chosen: &Chosen, checked: &Checked) -> Document {
    let mut document = content.document(checked.deterministic);
    let measured = checked.measured.as_ref().map(|measured| Measured {
        peak_live: measured.peak_live,
        footprint: measured.footprint,
        equal: checked.equal(),
        placements_equal: checked.placements_equal(),
        events: measured.events,
        difference: checked.difference.as_ref(),
    });
    let predicted = &checked.predicted;
    report::tell(&mut document, predicted, measured.as_ref(), &chosen.emitted);
    document
}
