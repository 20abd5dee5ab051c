//! The seed phase: what every unit knows from the start.
//!
//! Invariant: a function of trace, space and options; batches have a fixed
//! size, so the number of workers does not matter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::evaluate::Evaluator;
use super::local::LocalSearch;
use super::objective::{Front, Point};
use super::row::{Row, Status};
use super::searcher::Searcher;

/// Configurations chosen together. A number of its own, not that of the workers.
pub(super) const BATCH: usize = 32;

/// Rows of the seed phase, and their front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    rows: Vec<Row>,
    front: Front,
    by_number: HashMap<u64, usize>,
}

impl Seed {
    /// The seed of rows in the order of evaluation.
    pub fn of(rows: Vec<Row>, evaluator: &Evaluator<'_>) -> Self {
        let mut seed = Seed::default();
        for row in rows {
            seed.extend(row, evaluator);
        }
        seed
    }

    pub(super) fn extend(&mut self, row: Row, evaluator: &Evaluator<'_>) {
        self.by_number.insert(row.number, self.rows.len());
        self.rows.push(row);
        if let Some(point) = point_of(&row, evaluator) {
            self.front.enter(point, row.number);
        }
    }

    /// Rows in the order of evaluation.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What nothing beats among them.
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// The row of a number, if it was evaluated.
    pub fn row(&self, number: u64) -> Option<&Row> {
        Some(&self.rows[*self.by_number.get(&number)?])
    }
}

/// The point of a row that is complete.
pub(super) fn point_of(row: &Row, evaluator: &Evaluator<'_>) -> Option<Point> {
    (row.status == Status::Complete).then(|| evaluator.objectives().point(&row.metrics))
}

/// Replays numbers on all workers of the pool it is called in; rows in the order
/// of the numbers. `None` when stopped.
pub(super) fn batch(
    evaluator: &Evaluator<'_>,
    numbers: &[u64],
    front: Option<&Front>,
    stop: &AtomicBool,
) -> Option<Vec<Row>> {
    numbers
        .par_iter()
        .map(|&number| match stop.load(Ordering::Relaxed) {
            true => None,
            false => Some(evaluator.row(number, front)),
        })
        .collect()
}

/// The heaps to compare with, each to its end, then a local search of so many
/// evaluations. `None` when stopped.
pub(super) fn seed(
    evaluator: &Evaluator<'_>,
    evaluations: u64,
    end_early: bool,
    stop: &AtomicBool,
) -> Option<Seed> {
    let mut seed = Seed::default();
    let baselines: Vec<u64> = (0..evaluator.space().baselines()).collect();
    for row in batch(evaluator, &baselines, None, stop)? {
        seed.extend(row, evaluator);
    }
    let mut search = LocalSearch::new(evaluator.space(), 1);
    for row in &seed.rows {
        search.tell(row.number, point_of(row, evaluator));
    }
    let mut left = evaluations;
    while left > 0 {
        let count = BATCH.min(usize::try_from(left).unwrap_or(BATCH));
        let numbers = search.ask(count);
        if numbers.is_empty() {
            break;
        }
        left -= numbers.len() as u64;
        let front = end_early.then_some(&seed.front);
        for row in batch(evaluator, &numbers, front, stop)? {
            search.tell(row.number, point_of(&row, evaluator));
            seed.extend(row, evaluator);
        }
    }
    Some(seed)
}
