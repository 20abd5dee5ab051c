//! One heap for many runs: a test suite, inputs small and large.
//!
//! First the best heap for each run alone is looked for, in half of the time, then the one that serves all. What that
//! one costs is each run's footprint on it beside its footprint on the best heap for it alone.
//!
//! Invariant: of each run as much memory is kept as its requests take (16 bytes each), whatever its trace takes; equal
//! runs are one.

mod commands;
mod course;
mod document;

use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_explore::report::DemandFigures;
use metes_explore::{
    Choice, Events, Options, Outcome, Over, Preference, Replay, Replayer, Runs, choose,
};
use metes_trace::Trace;

pub use commands::{Command, CommandError, commands};
pub use course::{CheckedRun, LeftOut, Suite, TunedRuns, explored, settle};
pub use document::{Document, RUNS_KIND, page_again, write as write_runs};

use crate::error::Error;
use crate::search::{Request, Searched, search_apart, search_runs};
use crate::tuning::{Step, Watch, within};

/// A run that was recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What it is called.
    pub name: String,
    /// Where its trace lies.
    pub trace: PathBuf,
    /// What it did.
    pub figures: RunFigures,
    events: Events,
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct RunFigures {
    /// Requests.
    pub events: u64,
    /// Most bytes live at once.
    pub peak_live: u64,
    /// Threads that made requests.
    pub threads: u32,
    /// What it asks of a heap.
    pub demand: DemandFigures,
}

impl Recording {
    /// What is kept of a trace. O(events).
    ///
    /// # Errors
    /// [`Error::Events`] for a trace of which no heap could serve the requests.
    pub fn of(name: String, trace: &Trace, path: &Path) -> Result<Self, Error> {
        let events = Events::try_from(trace)?;
        let profile = metes_trace::profile(trace);
        Ok(Recording {
            name,
            trace: path.to_owned(),
            figures: RunFigures {
                events: events.len() as u64,
                peak_live: events.peak_live(),
                threads: profile.threads,
                demand: DemandFigures::of(&profile),
            },
            events,
        })
    }
}

/// Many runs, what is known of each.
#[derive(Debug)]
pub struct Recordings {
    /// In the order in which they are given.
    pub runs: Vec<Recording>,
    /// Their requests, equal ones once.
    pub distinct: Runs,
}

impl Recordings {
    /// Some runs.
    ///
    /// # Errors
    /// [`Error::Input`] where there is none.
    pub fn new(mut runs: Vec<Recording>) -> Result<Self, Error> {
        let events = runs.iter_mut().map(|run| std::mem::take(&mut run.events));
        let distinct = Runs::new(events.collect()).ok_or_else(|| {
            Error::input("there is no run to find a heap for: give traces or commands")
        })?;
        Ok(Recordings { runs, distinct })
    }

    /// What all of them ask of a heap.
    pub fn demand(&self) -> DemandFigures {
        let demands = self.runs.iter().map(|run| run.figures.demand);
        let all = demands.reduce(|all, own| DemandFigures {
            live: all.live.max(own.live),
            largest: all.largest.max(own.largest),
            smallest: all.smallest.min(own.smallest),
            alignment: all.alignment.max(own.alignment),
            resizes: all.resizes || own.resizes,
        });
        all.unwrap_or(DemandFigures::NONE)
    }

    /// The first run of which a different one is.
    fn first_of(&self, distinct: usize) -> Option<&Recording> {
        let at = self.distinct.of().iter().position(|&of| of == distinct);
        self.runs.get(at?)
    }
}

/// The best heap for a run alone, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    /// The heap.
    pub heap: String,
    /// Its footprint on the run.
    pub footprint: u64,
}

/// One heap for all runs, and what it costs each of them.
#[derive(Debug)]
pub struct OneHeap {
    /// The search.
    pub searched: Searched,
    /// The heap; `None` where none is as was asked for.
    pub chosen: Option<One>,
}

/// The heap that was chosen.
#[derive(Debug)]
pub struct One {
    /// The choice.
    pub choice: Choice,
    /// The heap.
    pub config: Config,
    /// What is predicted of each given run on it.
    pub predicted: Vec<Replay>,
    /// The best heap for each given run alone; `None` where none is as was asked for.
    pub alone: Vec<Option<Alone>>,
}

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The search.
    pub request: Request,
    /// What matters most.
    pub preference: Preference,
    /// Most bytes that the heap may take in any run.
    pub heap_limit: Option<u64>,
}

/// Looks for one heap for all runs. Results go to `directory`, rows to `place`.
///
/// # Errors
/// As [`search`](crate::search()).
pub fn one_heap(
    recordings: &Recordings,
    wish: &Wish,
    place: &Path,
    directory: &Path,
    watch: &mut dyn Watch,
) -> Result<OneHeap, Error> {
    let distinct = &recordings.distinct;
    let several = distinct.len() > 1;
    let mut request = wish.request.clone();
    request.guarantee.1 = recordings.demand();
    let best = match several {
        true => {
            request.seconds /= 2.0;
            each_alone(recordings, wish, watch)?
        }
        false => Vec::new(),
    };
    watch.begins(Step::Search);
    let searched = search_runs(distinct, &request, place, directory, watch)?;
    let found = within(&searched.found, wish.heap_limit);
    let Some(choice) = choose(&found, wish.preference) else {
        return Ok(OneHeap {
            searched,
            chosen: None,
        });
    };
    let config = (searched.options.arena).config(choice.outcome.description);
    let options = Options::of(&config);
    let name = config.name();
    let replays: Vec<Replay> = distinct
        .distinct()
        .map(|(events, _)| {
            let (replay, _) = Replayer::new().replay(&name, &config.heap, events, &options);
            replay
        })
        .collect();
    let own = |replay: &Replay| Alone {
        heap: name.clone(),
        footprint: replay.footprint,
    };
    let alone: Vec<Option<Alone>> = replays
        .iter()
        .enumerate()
        .map(|(index, replay)| match best.get(index) {
            // What serves all may be the best that is known for one.
            Some(Some(best)) if best.footprint <= replay.footprint => Some(best.clone()),
            Some(None) => None,
            _ => Some(own(replay)),
        })
        .collect();
    let of = distinct.of().iter();
    Ok(OneHeap {
        chosen: Some(One {
            predicted: of.clone().map(|&of| replays[of].clone()).collect(),
            alone: of.map(|&of| alone[of].clone()).collect(),
            choice,
            config,
        }),
        searched,
    })
}

/// The best heap for each different run, found in half of the time; each has as much of it as it has requests.
fn each_alone(
    recordings: &Recordings,
    wish: &Wish,
    watch: &mut dyn Watch,
) -> Result<Vec<Option<Alone>>, Error> {
    let distinct = &recordings.distinct;
    let all: usize = distinct.distinct().map(|(events, _)| events.len()).sum();
    watch.begins(Step::Alone);
    let mut best = Vec::new();
    for (index, (events, _)) in distinct.distinct().enumerate() {
        if let Some(signal) = watch.asked_to_end() {
            return Err(Error::Ended(signal));
        }
        let run = recordings.first_of(index);
        watch.turn(index, distinct.len(), run.map_or("", |run| &run.name));
        let mut request = wish.request.clone();
        request.seconds *= 0.5 * events.len() as f64 / all.max(1) as f64;
        request.over = Over::Worst;
        if let Some(run) = run {
            request.guarantee.1 = run.figures.demand;
        }
        let found = within(&search_apart(events, &request)?, wish.heap_limit);
        best.push(
            choose(&found, wish.preference).map(|Choice { outcome, .. }| {
                let Outcome {
                    heap, footprint, ..
                } = outcome;
                Alone { heap, footprint }
            }),
        );
    }
    Ok(best)
}
