//! What is said of one heap for many runs: the document, and its page.
//!
//! Invariant: every figure of a run is of that run on that heap; *best alone* is the best that was found in the time
//! there was, never less than a measured one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use metes_explore::report::GuaranteeFigures;
use metes_explore::{Outcome, Over, Sampled, Unfinished, write_json, write_whole};
use serde::Serialize;

use super::{Recording, TunedRuns};
use crate::error::Error;
use crate::report::{DOCUMENT, PAGE};

/// What tells this document from that of one run.
pub const RUNS_KIND: &str = "runs";

/// See `docs/runs.md`. Sizes in bytes, times in seconds, cycles modelled.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct Document {
    pub version: u32,
    pub kind: &'static str,
    pub title: String,
    pub created: String,
    pub over: Over,
    pub heap: Option<String>,
    pub toml: Option<String>,
    pub why: Option<String>,
    pub chosen: Option<HeapFigures>,
    pub distinct_runs: u64,
    pub largest: Option<Largest>,
    pub mean: Option<Mean>,
    pub dearest: Option<Dearest>,
    pub equal: Option<bool>,
    pub guarantee: Option<GuaranteeFigures>,
    pub runs: Vec<RunFigures>,
    pub left_out: Vec<super::LeftOut>,
    pub heaps: Vec<HeapFigures>,
    pub pareto: Vec<HeapFigures>,
    pub configurations: u64,
    pub space: u64,
    pub seconds: f64,
    pub sampled: Option<Sampled>,
    pub unfinished: Vec<Unfinished>,
}

/// The run that takes most on the heap.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct Largest {
    pub run: String,
    pub footprint: u64,
    pub best_alone: Option<u64>,
}

/// Over all runs.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct Mean {
    pub footprint: f64,
    pub best_alone: Option<f64>,
    pub ratio: Option<f64>,
}

/// The run that pays most for having no heap of its own.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct Dearest {
    pub run: String,
    pub ratio: f64,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct RunFigures {
    pub name: String,
    pub trace: String,
    pub events: u64,
    pub threads: u32,
    pub peak_live: u64,
    pub footprint: Option<u64>,
    pub best_alone: Option<AloneFigures>,
    pub ratio: Option<f64>,
    pub measured: Option<Measured>,
    pub equal: Option<bool>,
    pub holds: Option<bool>,
    pub deterministic: Option<bool>,
    pub output_unchanged: Option<bool>,
}

/// The best heap for a run alone.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct AloneFigures {
    pub heap: String,
    pub footprint: u64,
}

/// What a run on the emitted heap measured.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct Measured {
    pub peak_live: u64,
    pub footprint: u64,
}

/// A heap on all runs.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "docs/runs.md says each field")]
pub struct HeapFigures {
    pub heap: String,
    pub footprint: u64,
    pub footprint_mean: f64,
    pub cycles_mean: f64,
    pub cycles_max: u64,
    pub constant_time: bool,
    pub guarantee: Option<u64>,
    pub chosen: bool,
    pub toml: Option<String>,
}

impl HeapFigures {
    fn of(outcome: &Outcome, tuned: &TunedRuns, toml: Option<&PathBuf>) -> Self {
        let weight = tuned.recordings.distinct.weight();
        let chosen = tuned.one.chosen.as_ref();
        HeapFigures {
            heap: (outcome.named).map_or_else(|| outcome.heap.clone(), str::to_owned),
            footprint: outcome.footprint,
            footprint_mean: outcome.footprint_sum as f64 / weight.max(1) as f64,
            cycles_mean: outcome.cycles_mean,
            cycles_max: outcome.cycles_max,
            constant_time: outcome.constant_time,
            guarantee: outcome.guarantee,
            chosen: chosen.is_some_and(|one| one.choice.outcome.number == outcome.number),
            toml: toml.map(|path| path.display().to_string()),
        }
    }
}

impl Document {
    /// The document of a tuning of many runs.
    pub fn of(tuned: &TunedRuns) -> Self {
        let found = &tuned.one.searched.found;
        let chosen = tuned.one.chosen.as_ref();
        let runs: Vec<RunFigures> = (tuned.recordings.runs.iter().enumerate())
            .map(|(index, run)| run_figures(tuned, index, run))
            .collect();
        let figures = |outcome: &Outcome| HeapFigures::of(outcome, tuned, None);
        let mut heaps: Vec<HeapFigures> = (found.named.iter())
            .filter(|outcome| outcome.failed == 0)
            .map(figures)
            .collect();
        heaps.sort_by_key(|heap| (heap.footprint, heap.cycles_max));
        let checked = (!tuned.checked.is_empty()).then(|| {
            let mut all = tuned.checked.iter();
            all.all(|run| run.checked.equal())
        });
        Document {
            version: 1,
            kind: RUNS_KIND,
            title: format!("One heap for {} runs", runs.len()),
            created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            over: tuned.one.searched.budget.over,
            heap: chosen.map(|one| one.config.name()),
            toml: chosen.map(|one| one.config.to_toml()),
            why: chosen.map(|one| one.choice.why.clone()),
            chosen: chosen.map(|one| figures(&one.choice.outcome)),
            distinct_runs: tuned.recordings.distinct.len() as u64,
            largest: largest(&runs),
            mean: mean(&runs),
            dearest: dearest(&runs),
            equal: checked,
            guarantee: (tuned.one.searched.budget.terms)
                .map(|terms| GuaranteeFigures::of(&terms, chosen.map(|one| &one.choice))),
            runs,
            left_out: tuned.left_out.clone(),
            heaps,
            pareto: (found.pareto.iter().zip(&tuned.front))
                .map(|(outcome, file)| HeapFigures::of(outcome, tuned, Some(file)))
                .collect(),
            configurations: found.configurations,
            space: found.space,
            seconds: found.seconds,
            sampled: found.sampled,
            unfinished: found.unfinished.clone(),
        }
    }

    /// The page: one file that opens from disk.
    ///
    /// # Errors
    /// When the document cannot be written as JSON (a number that is none).
    pub fn page(&self) -> serde_json::Result<String> {
        Ok(metes_ui::RUNS.fill(&serde_json::to_string(self)?))
    }

    /// Whether nothing that was checked is contradicted.
    pub fn holds(&self) -> bool {
        self.runs.iter().all(|run| run.holds != Some(false))
    }
}

fn run_figures(tuned: &TunedRuns, index: usize, run: &Recording) -> RunFigures {
    let chosen = tuned.one.chosen.as_ref();
    let checked = tuned.checked.get(index).map(|run| &run.checked);
    // What counts may be predicted from a second recording.
    let footprint = match checked {
        Some(checked) => Some(checked.predicted.footprint),
        None => chosen.map(|one| one.predicted[index].footprint),
    };
    let best = chosen.and_then(|one| one.alone[index].as_ref());
    RunFigures {
        name: run.name.clone(),
        trace: run.trace.display().to_string(),
        events: run.figures.events,
        threads: run.figures.threads,
        peak_live: run.figures.peak_live,
        footprint,
        best_alone: best.map(|best| AloneFigures {
            heap: best.heap.clone(),
            footprint: best.footprint,
        }),
        ratio: (chosen.map(|one| one.predicted[index].footprint))
            .zip(best)
            .map(|(own, best)| own as f64 / best.footprint.max(1) as f64),
        measured: checked
            .and_then(|checked| checked.measured.as_ref())
            .map(|measured| Measured {
                peak_live: measured.peak_live,
                footprint: measured.footprint,
            }),
        equal: checked.map(crate::Checked::equal),
        holds: checked.map(crate::Checked::holds),
        deterministic: checked.and_then(|checked| checked.deterministic),
        output_unchanged: checked.map(|checked| checked.output_unchanged),
    }
}

fn largest(runs: &[RunFigures]) -> Option<Largest> {
    // The first of equals.
    let most = (runs.iter().rev()).max_by_key(|run| run.footprint)?;
    Some(Largest {
        run: most.name.clone(),
        footprint: most.footprint?,
        best_alone: most.best_alone.as_ref().map(|best| best.footprint),
    })
}

fn mean(runs: &[RunFigures]) -> Option<Mean> {
    let count = runs.len() as f64;
    let footprints: Option<Vec<u64>> = runs.iter().map(|run| run.footprint).collect();
    let best: Option<Vec<u64>> = (runs.iter())
        .map(|run| run.best_alone.as_ref().map(|best| best.footprint))
        .collect();
    let ratios: Option<Vec<f64>> = runs.iter().map(|run| run.ratio).collect();
    let of = |all: Vec<u64>| all.iter().sum::<u64>() as f64 / count;
    Some(Mean {
        footprint: of(footprints?),
        best_alone: best.map(of),
        ratio: ratios.map(|all| all.iter().sum::<f64>() / count),
    })
}

fn dearest(runs: &[RunFigures]) -> Option<Dearest> {
    let rated = runs.iter().filter_map(|run| Some((run, run.ratio?)));
    let (run, ratio) = rated.reduce(|most, run| if run.1 > most.1 { run } else { most })?;
    Some(Dearest {
        run: run.name.clone(),
        ratio,
    })
}

/// The page of a document that was written before, if it is one of runs.
pub fn page_again(json: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(json).ok()?;
    let kind = document.get("kind")?.as_str()?;
    (kind == RUNS_KIND && document.get("version")?.as_u64()? == 1)
        .then(|| metes_ui::RUNS.fill(json))
}

/// Writes document and page below `directory`; the path of the page.
///
/// # Errors
/// When the files cannot be written.
pub fn write(directory: &Path, document: &Document) -> Result<PathBuf, Error> {
    let page = document
        .page()
        .map_err(|error| Error::Page(error.to_string()))?;
    write_json(&directory.join(DOCUMENT), document)?;
    let path = directory.join(PAGE);
    write_whole(&path, page.as_bytes())?;
    Ok(path)
}
