//! A search with progress and Ctrl-C, and what it leaves on disk.
//!
//! Invariant: an interrupted search leaves what a finished one leaves, only
//! less of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use metes_config::Config;
use metes_explore::{
    Budget, Events, Exploration, Observer, Options, Outcome, Results, explore, write_down,
};
use serde_json::Value;

use crate::error::Failure;
use crate::quantity::grouped;
use crate::{interrupt, output, progress};

struct Watch {
    bar: ProgressBar,
    start: Instant,
    seconds: f64,
    results: Results,
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
    pub(crate) found: Exploration,
    pub(crate) budget: Budget,
    pub(crate) options: Options,
}

/// Searches for `seconds`; Ctrl-C ends it earlier. All outcomes go to
/// `results.jsonl` and the unbeaten ones to `pareto.json` in `directory`.
pub(crate) fn run(
    events: &Events,
    seconds: f64,
    configurations: Option<u64>,
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
        results: Results::create(directory)?,
    };
    let options = Options::default();
    let found = explore(events, &options, &budget, &write_down, &stop, &mut watch);
    watch.bar.finish_and_clear();
    watch.results.finish(&found)?;
    Ok(Searched {
        found,
        budget,
        options,
    })
}

/// The outcomes as JSON, each with the `heap.toml` that names it on disk.
pub(crate) fn outcomes(front: &[Outcome], directory: &Path) -> Result<Vec<Value>, Failure> {
    let place = directory.join("pareto");
    output::directory(&place)?;
    remove_old(&place, front.len());
    let mut values = Vec::with_capacity(front.len());
    for (index, outcome) in front.iter().enumerate() {
        let path = file(&place, index);
        output::write_file(&path, Config::of(outcome.description).to_toml().as_bytes())?;
        let mut value = serde_json::to_value(outcome)
            .map_err(|error| Failure::input(format!("an outcome is no JSON: {error}")))?;
        if let Value::Object(fields) = &mut value {
            fields.insert("toml".to_owned(), path.display().to_string().into());
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

/// Files of an earlier, larger set, which would be taken for part of this one.
fn remove_old(place: &Path, from: usize) {
    for index in from.. {
        if std::fs::remove_file(file(place, index)).is_err() {
            return;
        }
    }
}
