//! A search, and what it leaves on disk.
//!
//! Invariant: an interrupted search leaves what a finished one leaves, only
//! less of it, and the rows from which it goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use metes_config::Pages;
use metes_explore::engine::{self, Evaluator, Folder, ObjectiveSet, Origin, Source};
use metes_explore::{
    Arena, Budget, Clock, Compared, Events, Exploration, Observer, Options, Outcome, Over, Runs,
    Space, SystemClock, TermsError, Timer, Wanted, compare, explore, report::DemandFigures,
    write_front,
};
use metes_heap::Description;

use crate::error::Error;

/// What is searched for, and how long.
#[derive(Clone, Debug)]
pub struct Request {
    /// Seconds of replays.
    pub seconds: f64,
    /// After so many configurations beside the named heaps, each replayed whole.
    pub configurations: Option<u64>,
    /// What memory the heaps have, but for the two that follow.
    pub arena: Arena,
    /// Blocks of so many bytes and more are mapped in all heaps.
    pub mapped: Option<usize>,
    /// When pages of freed mapped blocks go back: written down with each heap.
    pub pages: Option<Pages>,
    /// What is asked of a guarantee, and what programs may ask for as recorded.
    pub guarantee: (Wanted, DemandFigures),
    /// Which memory of several runs a heap is chosen by.
    pub over: Over,
    /// Whether whatever an exploration left is replaced.
    pub fresh: bool,
    /// Where the trace will lie, for whoever reads the results.
    pub trace: PathBuf,
    /// What ends it earlier.
    pub stop: Arc<AtomicBool>,
}

/// What was searched, by which rules, and what was found.
#[derive(Debug)]
pub struct Searched {
    /// Since the search began.
    clock: SystemClock,
    stop: Arc<AtomicBool>,
    /// What was found.
    pub found: Exploration,
    /// By which rules.
    pub budget: Budget,
    /// How heaps were replayed.
    pub options: Options,
}

impl Searched {
    /// Writes the heaps of a front below `directory`, in their order; their paths.
    ///
    /// # Errors
    /// [`Error::Output`] when they cannot be written.
    pub fn write_front(&self, front: &[Outcome], directory: &Path) -> Result<Vec<PathBuf>, Error> {
        let heaps = front.iter().map(|outcome| outcome.description);
        let heaps: Vec<_> = heaps.map(|heap| self.options.arena.config(heap)).collect();
        Ok(write_front(directory, &heaps)?)
    }

    /// Heaps in all detail, in what the search has left of the budget.
    pub fn compare(&self, heaps: &[(String, Description)], events: &Events) -> Vec<Compared> {
        // A clock is at zero where it began, and so is what has passed of the budget.
        let left = self
            .budget
            .time
            .map(|time| time.saturating_sub(self.clock.now()));
        let timer = Timer::begin(&self.clock, left, &self.stop);
        compare(heaps, events, &self.options, &self.found.details, &timer)
    }
}

/// Searches among the heaps that a trace suggests, as long as was asked for or until it is stopped.
/// Rows are kept in `place`, from where the next search of the same trace goes on; those of
/// another trace are replaced. Results go to `directory`.
///
/// # Errors
/// [`Error::Engine`] when `place` holds units of a described space, and when rows or results
/// cannot be written.
pub fn search(
    events: &Events,
    request: &Request,
    place: &Path,
    directory: &Path,
    observer: &mut dyn Observer,
) -> Result<Searched, Error> {
    let (budget, options) = request.rules()?;
    let space = Space::suggested(events, &options.arena);
    let evaluator = Evaluator::new(&space, events, &options, ObjectiveSet::HOST);
    let evaluator = weighed(evaluator, &budget);
    conduct(&evaluator, budget, request, place, directory, observer)
}

/// The same among the heaps that several runs suggest, for one that serves them all.
///
/// # Errors
/// As [`search`].
pub fn search_runs(
    runs: &Runs,
    request: &Request,
    place: &Path,
    directory: &Path,
    observer: &mut dyn Observer,
) -> Result<Searched, Error> {
    let (budget, options) = request.rules()?;
    let space = Space::suggested_by_runs(runs, &options.arena);
    let evaluator = Evaluator::over(&space, runs, &options, ObjectiveSet::RUNS)
        .ok_or_else(|| Error::input("there is no run to find a heap for"))?;
    let evaluator = weighed(evaluator, &budget);
    conduct(&evaluator, budget, request, place, directory, observer)
}

/// Searches among the heaps that a trace suggests, and leaves nothing on disk.
///
/// # Errors
/// As [`search`], but for what concerns files.
pub fn search_apart(events: &Events, request: &Request) -> Result<Exploration, Error> {
    let (budget, options) = request.rules()?;
    let clock = SystemClock::start();
    let timer = Timer::begin(&clock, budget.time, &request.stop);
    let space = Space::suggested(events, &options.arena);
    let evaluator = Evaluator::new(&space, events, &options, ObjectiveSet::HOST);
    let evaluator = weighed(evaluator, &budget);
    Ok(explore(&evaluator, &budget, None, &timer, &mut ())?)
}

/// With what heaps guarantee as an objective, where that is asked for.
fn weighed<'e>(evaluator: Evaluator<'e>, budget: &Budget) -> Evaluator<'e> {
    match budget.terms.filter(|_| budget.by_guarantee) {
        Some(terms) => evaluator.weighing(terms),
        None => evaluator,
    }
}

impl Request {
    /// When a search ends, and how heaps are replayed.
    fn rules(&self) -> Result<(Budget, Options), Error> {
        let mut budget = Budget {
            time: Some(Duration::from_secs_f64(self.seconds)),
            evaluations: self.configurations,
            by_guarantee: self.guarantee.0.weighed,
            over: self.over,
            ..Budget::default()
        };
        let mut options = Options {
            arena: self.arena,
            ..Options::default()
        };
        options.arena.mapped = self.mapped;
        options.arena.pages = self.pages;
        let (wanted, recorded) = &self.guarantee;
        budget.terms = match wanted.of(recorded, &options.arena) {
            Ok(terms) => Some(terms),
            // A demand of which no bound can be is that of nobody's program.
            Err(TermsError::Unknown) if !wanted.asked() => None,
            Err(error) => return Err(error.into()),
        };
        Ok((budget, options))
    }
}

fn conduct(
    evaluator: &Evaluator<'_>,
    budget: Budget,
    request: &Request,
    place: &Path,
    directory: &Path,
    observer: &mut dyn Observer,
) -> Result<Searched, Error> {
    let clock = SystemClock::start();
    let timer = Timer::begin(&clock, budget.time, &request.stop);
    let manifest = evaluator.manifest(budget.method(), budget.end_early);
    let folder = Folder::open_suggested(place, &manifest, request.fresh)?;
    folder.note_origin(&Origin {
        trace: std::path::absolute(&request.trace).unwrap_or(request.trace.clone()),
        space_name: "all".to_owned(),
        space: evaluator.space().text().to_owned(),
        levels: None,
        guarantee: (budget.by_guarantee).then_some(request.guarantee.0),
    })?;
    let found = explore(evaluator, &budget, Some(&folder), &timer, observer)?;
    engine::finish(directory, &manifest, evaluator, Source::Rows(&found.rows))?;
    Ok(Searched {
        clock,
        stop: Arc::clone(&request.stop),
        found,
        budget,
        options: evaluator.common_options(),
    })
}
