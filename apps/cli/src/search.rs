//! A search with progress and Ctrl-C, and what it leaves on disk.
//!
//! Invariant: an interrupted search leaves what a finished one leaves, only
//! less of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use metes_explore::{
    Budget, Clock, Compared, Events, Exploration, Observer, Options, Outcome, SystemClock, Timer,
    compare, explore, write_down,
};
use metes_heap::Description;
use serde_json::Value;

use crate::error::Failure;
use crate::quantity::grouped;
use crate::results::Results;
use crate::{interrupt, output, progress};

struct Watch {
    bar: ProgressBar,
    start: Instant,
    seconds: f64,
    results: metes_explore::Results,
}

impl Observer for Watch {
    fn outcome(&mut self, outcome: &Outcome) {
        self.results.outcome(outcome);
    }

    fn progress(&mut self, configurations: u64, pareto: usize) {
        self.results.progress(configurations, pareto);
        let share = self.start.elapsed().as_secs_f64() / self.seconds;
        self.bar.set_position((share.min(1.0) * 1000.0) as u64);
        self.bar.set_message(format!(
            "exploring: {} heaps, {pareto} unbeaten",
            grouped(configurations)
        ));
    }
}

/// What was searched, by which rules, and what was found.
pub(crate) struct Searched {
    /// Since the search began.
    clock: SystemClock,
    stop: Arc<AtomicBool>,
    pub(crate) found: Exploration,
    pub(crate) budget: Budget,
    pub(crate) options: Options,
}

impl Searched {
    /// Heaps in all detail, in what the search has left of the budget.
    pub(crate) fn compare(
        &self,
        heaps: &[(String, Description)],
        events: &Events,
    ) -> Vec<Compared> {
        // A clock is at zero where it began, and so is what has passed of the budget.
        let left = self
            .budget
            .time
            .map(|time| time.saturating_sub(self.clock.now()));
        let timer = Timer::begin(&self.clock, left, &self.stop);
        compare(heaps, events, &self.options, &self.found.details, &timer)
    }
}

/// Searches for `seconds`; Ctrl-C ends it earlier. Blocks of `mapped` bytes and more are mapped
/// in all heaps. All outcomes go to `results.jsonl` and the unbeaten ones to `pareto.json` in
/// `directory`.
pub(crate) fn run(
    events: &Events,
    seconds: f64,
    configurations: Option<u64>,
    mapped: Option<usize>,
    directory: &Path,
) -> Result<Searched, Failure> {
    let stop = interrupt::flag()?;
    let budget = Budget {
        time: Some(Duration::from_secs_f64(seconds)),
        evaluations: configurations,
        ..Budget::default()
    };
    let mut watch = Watch {
        bar: progress::budget("exploring"),
        start: Instant::now(),
        seconds,
        results: metes_explore::Results::create(directory)?,
    };
    let mut options = Options::default();
    options.arena.mapped = mapped;
    let write_down = |heap: &Description| write_down(heap, &options.arena);
    let clock = SystemClock::start();
    let timer = Timer::begin(&clock, budget.time, &stop);
    let found = explore(events, &options, &budget, &write_down, &timer, &mut watch);
    watch.bar.finish_and_clear();
    watch.results.finish(&found)?;
    Ok(Searched {
        clock,
        stop,
        found,
        budget,
        options,
    })
}

/// The outcomes as JSON, each with the `heap.toml` that names it on disk.
pub(crate) fn outcomes(
    front: &[Outcome],
    options: &Options,
    results: &Results,
) -> Result<Vec<Value>, Failure> {
    let place = results.gathered().join("pareto");
    output::directory(&place)?;
    let mut values = Vec::with_capacity(front.len());
    for (index, outcome) in front.iter().enumerate() {
        let path = file(&place, index);
        let config = options.arena.config(outcome.description);
        output::write_file(&path, config.to_toml().as_bytes())?;
        let mut value = serde_json::to_value(outcome)
            .map_err(|error| Failure::input(format!("an outcome is no JSON: {error}")))?;
        if let Value::Object(fields) = &mut value {
            let shown = output::name(&results.shown(&path));
            fields.insert("toml".to_owned(), shown.into());
        }
        values.push(value);
    }
    Ok(values)
}

/// The file of an unbeaten heap, by its place in the set.
pub(crate) fn file_name(index: usize) -> String {
    format!("{:03}.toml", index + 1)
}

fn file(place: &Path, index: usize) -> PathBuf {
    place.join(file_name(index))
}
