//! Methods of search against each other, on a space that is known whole.
//!
//! Invariant: the volume that a search is measured by is the exact one of the
//! whole space, and an evaluation counts once however often its configuration
//! is met; what a search learns is what a replay to the end would have told it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use serde::Serialize;

use super::explorer::{Explorer, Method};
use super::hypervolume::Scale;
use super::objective::{Front, Point};
use super::seed::{self, point_of};

/// All outcomes of a space.
#[derive(Clone, Debug)]
pub struct Ground {
    points: HashMap<u64, Option<Point>>,
    scale: Scale,
    /// What nothing beats.
    pub front: Front,
    /// Different outcomes.
    pub distinct: usize,
    /// The volume of the front.
    pub volume: f64,
}

/// How a search went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The method.
    pub method: &'static str,
    /// What chance decided.
    pub seed: u64,
    /// Evaluations until 95 %, 99 % and all of the exact volume were reached.
    pub reached: [Option<u64>; 3],
    /// Evaluations and share of the exact volume, wherever it rose.
    pub course: Vec<(u64, f64)>,
}

/// The shares of [`Run::reached`].
pub const SHARES: [f64; 3] = [0.95, 0.99, 1.0];

impl Ground {
    /// Replays the whole space to its end. `None` when stopped or when no
    /// configuration serves the trace.
    pub fn new(explorer: &Explorer<'_>, stop: &AtomicBool) -> Option<Self> {
        let evaluator = explorer.evaluator();
        let numbers: Vec<u64> = (0..evaluator.space().size()).collect();
        let rows = explorer.install(|| seed::batch(evaluator, &numbers, None, stop))?;
        let mut points = HashMap::with_capacity(rows.len());
        let mut front = Front::new();
        for row in rows {
            let point = point_of(&row, evaluator);
            if let Some(point) = point {
                front.enter(point, row.number);
            }
            points.insert(row.number, point);
        }
        let scale = Scale::around(points.values().flatten(), evaluator.objectives())?;
        let distinct: std::collections::HashSet<_> = points.values().flatten().collect();
        Some(Ground {
            volume: scale.volume(&front),
            distinct: distinct.len(),
            front,
            scale,
            points,
        })
    }

    /// A search of at most so many evaluations.
    pub fn run(
        &self,
        explorer: &Explorer<'_>,
        method: Method,
        seed: u64,
        most: u64,
    ) -> Option<Run> {
        let mut searcher = method.searcher(explorer.evaluator().space(), seed)?;
        let mut run = Run {
            method: method.name(),
            seed,
            reached: [None; 3],
            course: Vec::new(),
        };
        let mut front = Front::new();
        let mut evaluations = 0;
        while evaluations < most {
            let batch = searcher.ask(seed::BATCH);
            if batch.is_empty() {
                break;
            }
            for number in batch {
                evaluations += 1;
                let point = self.points[&number];
                searcher.tell(number, point);
                let rose = point.is_some_and(|point| front.enter(point, number));
                if evaluations > most || !rose {
                    continue;
                }
                let share = self.scale.volume(&front) / self.volume;
                run.course.push((evaluations, share));
                for (reached, wanted) in run.reached.iter_mut().zip(SHARES) {
                    // The last digits depend on the order of summation.
                    if reached.is_none() && share >= wanted - 1e-12 {
                        *reached = Some(evaluations);
                    }
                }
            }
        }
        Some(run)
    }

    /// Searches of several methods and seeds, in that order, on all workers.
    pub fn runs(
        &self,
        explorer: &Explorer<'_>,
        methods: &[Method],
        seeds: u64,
        most: u64,
    ) -> Vec<Run> {
        let pairs = methods
            .iter()
            .flat_map(|&method| (1..=seeds).map(move |seed| (method, seed)));
        let pairs: Vec<(Method, u64)> = pairs.collect();
        explorer.install(|| {
            let run = |&(method, seed): &(Method, u64)| self.run(explorer, method, seed, most);
            pairs.par_iter().filter_map(run).collect()
        })
    }
}
