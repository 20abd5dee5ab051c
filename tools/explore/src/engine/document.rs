//! `exploration.json`: what was explored, how, and what nothing beats.
//!
//! Invariant: it holds no time of day and no duration, so it is the same for
//! the same exploration whoever did it.

use metes_config::Config;
use rayon::prelude::*;
use serde::Serialize;

use super::evaluate::Evaluator;
use super::folder::Manifest;
use super::hypervolume::Scale;
use super::results::Summary;
use super::row::{Metrics, Row, Status};
use super::shortage::{LevelShortage, level_shortages};
use crate::energy::PriceReport;
use crate::hierarchy::Counts;
use crate::replay::Replayer;
use crate::space::{Parameters, Space};

/// Most heaps that are replayed once more for their course.
const DETAILS: usize = 50;
/// Most volumes of a search among suggested heaps.
const VOLUMES: usize = 64;
/// Most points of a curve.
const POINTS: usize = 400;

/// What an exploration found.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Version of this document: 2 has options and levels as JSON.
    pub version: u32,
    /// What it is of.
    pub exploration: Manifest,
    /// Grid points, dead parameters counted.
    pub raw: String,
    /// Different configurations.
    pub space: u64,
    /// Configurations evaluated.
    pub configurations: u64,
    /// Of them, replayed to the end.
    pub complete: u64,
    /// Ended early because they were beaten.
    pub beaten: u64,
    /// Those in which requests failed.
    pub failed: u64,
    /// Those that guarantee less than was asked for, and were not replayed.
    #[serde(skip_serializing_if = "is_none")]
    pub beyond: u64,
    /// Different outcomes among the complete ones.
    pub distinct: u64,
    /// Most requested bytes live at once.
    pub peak_live: u64,
    /// What nothing beats, one for each outcome, by rising objectives.
    pub front: Vec<Heap>,
    /// The heaps to compare with.
    pub named: Vec<Heap>,
    /// Levels that are too small for heaps of the space.
    pub too_small: Vec<LevelShortage>,
    /// How the dominated share of the objectives' space grew.
    pub hypervolume: Vec<Volume>,
    /// The course of the heaps of the front and of the named ones; none where the space is one that
    /// the trace suggests: that search ends by the clock, and its report has courses.
    pub detail: Vec<Detail>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A heap and its metrics.
#[derive(Clone, Debug, Serialize)]
pub struct Heap {
    /// Number in the space.
    pub number: u64,
    /// The usual name, of a heap to compare with.
    pub named: Option<String>,
    /// `complete`, `failed`, `beyond`.
    pub status: &'static str,
    /// In words.
    pub heap: String,
    /// As a `heap.toml`.
    pub toml: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// Its metrics.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// The dominated share after so many evaluations, on logarithmic axes between
/// the best and the worst complete outcome of the front and the named heaps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Configurations evaluated.
    pub evaluations: u64,
    /// From 0 to 1.
    pub hypervolume: f64,
}

/// The course of a replay.
#[derive(Clone, Debug, Serialize)]
pub struct Detail {
    /// Number in the space.
    pub number: u64,
    /// Event, footprint and live bytes, ascending.
    pub memory: Vec<(u64, u64, u64)>,
    /// What was counted in each memory level.
    pub levels: Vec<Counts>,
    /// Accesses by pool and cause, and what each pool's memory is taken for.
    pub parts: Vec<crate::Part>,
    /// Energy by level as counts times figures, with leakage a line of its own;
    /// none without memory levels that have prices.
    pub price: Option<PriceReport>,
}

impl Heap {
    /// The heap of a row; `None` where its number is not of the space.
    pub fn of(space: &Space, row: &Row) -> Option<Heap> {
        let config = space.describe(row.number)?;
        Some(Heap {
            number: row.number,
            named: space.named(row.number).map(str::to_owned),
            status: row.status.name(),
            heap: config.name(),
            parameters: Parameters::of(&config),
            toml: config.to_toml(),
            metrics: row.metrics,
        })
    }
}

/// The heaps of a front as `heap.toml` texts, in its order.
pub fn describe_front(evaluator: &Evaluator<'_>, summary: &Summary) -> Vec<Config> {
    let numbers = summary.front.iter().map(|row| row.number);
    numbers
        .filter_map(|number| evaluator.space().describe(number))
        .collect()
}

fn detail(evaluator: &Evaluator<'_>, row: &Row) -> Option<Detail> {
    let config = evaluator.space().describe(row.number)?;
    let (events, options) = (evaluator.events(), evaluator.options(&config));
    let mut replayer = Replayer::new();
    let (replay, curve) = replayer.replay("", &config.heap, events, &options);
    let inside = replayer.inspect(&config.heap, events, &options);
    let price = evaluator.price(&config, &replay.levels);
    let stride = curve.len().div_ceil(POINTS).max(1);
    let last = curve.len().saturating_sub(1);
    let kept = curve.iter().enumerate();
    let kept = kept.filter(|(index, _)| index % stride == 0 || *index == last);
    Some(Detail {
        number: row.number,
        memory: kept.map(|(_, point)| *point).collect(),
        parts: inside.parts,
        levels: replay.levels[..config.levels.len().max(1)].to_vec(),
        price,
    })
}

impl Found {
    /// The document; replays up to 50 heaps of a described space once more for their course.
    pub fn new(evaluator: &Evaluator<'_>, manifest: Manifest, summary: &Summary) -> Self {
        let space = evaluator.space();
        let heaps = |rows: &[Row]| rows.iter().filter_map(|row| Heap::of(space, row)).collect();
        let mut chosen: Vec<&Row> = Vec::new();
        let complete = (summary.named.iter()).filter(|row| row.status == Status::Complete);
        let most = if space.is_suggested() { 0 } else { DETAILS };
        for row in summary.front.iter().take(DETAILS - 10).chain(complete) {
            if chosen.len() < most && chosen.iter().all(|own| own.number != row.number) {
                chosen.push(row);
            }
        }
        let objectives = evaluator.objectives();
        let ends: Vec<_> = (summary.front.iter().chain(&summary.named))
            .filter(|row| row.status == Status::Complete)
            .map(|row| objectives.point(&row.metrics))
            .collect();
        let scale = Scale::around(ends.iter(), objectives);
        // Searches by the clock find something new thousands of times.
        let stride = match space.is_suggested() {
            true => summary.course.len().div_ceil(VOLUMES).max(1),
            false => 1,
        };
        let last = summary.course.len().saturating_sub(1);
        let course = summary.course.iter().enumerate();
        let course = course.filter(|(index, _)| index % stride == 0 || *index == last);
        let volumes = course.filter_map(|(_, (evaluations, front))| {
            Some(Volume {
                evaluations: *evaluations,
                hypervolume: scale.as_ref()?.volume(front),
            })
        });
        Found {
            version: 2,
            raw: evaluator.space().raw().to_string(),
            space: evaluator.space().size(),
            configurations: summary.configurations,
            complete: summary.complete,
            beaten: summary.beaten,
            failed: summary.failed,
            beyond: summary.beyond,
            distinct: summary.distinct,
            peak_live: evaluator.peak_live(),
            front: heaps(&summary.front),
            named: heaps(&summary.named),
            too_small: level_shortages(evaluator, &summary.failures),
            hypervolume: volumes.collect(),
            detail: chosen
                .into_par_iter()
                .filter_map(|row| detail(evaluator, row))
                .collect(),
            exploration: manifest,
        }
    }
}
