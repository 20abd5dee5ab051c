//! A search, and what it leaves on disk.
//!
//! Invariant: an interrupted search leaves what a finished one leaves, only
//! less of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use metes_explore::{
    Budget, Clock, Compared, Events, Exploration, Observer, Options, Outcome, Results, SystemClock,
    Timer, compare, explore, write_down, write_front,
};
use metes_heap::Description;

use crate::error::Error;

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

/// All that is written down of a search, and whoever else hears of it.
struct Heard<'o> {
    results: Results,
    observer: &'o mut dyn Observer,
}

impl Observer for Heard<'_> {
    fn outcome(&mut self, outcome: &Outcome) {
        self.results.outcome(outcome);
        self.observer.outcome(outcome);
    }

    fn progress(&mut self, configurations: u64, pareto: usize) {
        self.results.progress(configurations, pareto);
        self.observer.progress(configurations, pareto);
    }
}

/// Searches for `seconds`, or until so many `configurations` were replayed whole beside the named
/// heaps; `stop` ends it earlier. Blocks of `mapped` bytes and more are mapped in all heaps. All
/// outcomes go to `results.jsonl` and the unbeaten ones to `pareto.json` in `directory`.
///
/// # Errors
/// [`Error::Output`] when results cannot be written.
pub fn search(
    events: &Events,
    seconds: f64,
    configurations: Option<u64>,
    mapped: Option<usize>,
    directory: &Path,
    stop: Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<Searched, Error> {
    let budget = Budget {
        time: Some(Duration::from_secs_f64(seconds)),
        evaluations: configurations,
        ..Budget::default()
    };
    let mut heard = Heard {
        results: Results::create(directory)?,
        observer,
    };
    let mut options = Options::default();
    options.arena.mapped = mapped;
    let write_down = |heap: &Description| write_down(heap, &options.arena);
    let clock = SystemClock::start();
    let timer = Timer::begin(&clock, budget.time, &stop);
    let found = explore(events, &options, &budget, &write_down, &timer, &mut heard);
    heard.results.finish(&found)?;
    Ok(Searched {
        clock,
        stop,
        found,
        budget,
        options,
    })
}
