//! The rows of a search as it goes, kept in a folder so that it can go on from there.
//!
//! Invariant: rows are in the order of evaluation; what the folder has is not replayed again, the
//! search is led through it to where it was.

use std::collections::HashMap;

use super::evaluate::Evaluator;
use super::folder::Folder;
use super::objective::{Front, Point};
use super::row::{Row, Status};
use super::seed::{Seed, point_of};
use crate::output::OutputError;

/// Evaluations between two writings of what was found.
const KEEP: u64 = 512;

/// See the module.
#[derive(Debug)]
pub(crate) struct Course<'f> {
    folder: Option<&'f Folder>,
    /// Of earlier runs.
    memory: HashMap<u64, Row>,
    seed: Seed,
    /// Rows that the folder has.
    kept: u64,
}

impl<'f> Course<'f> {
    /// Goes on from what the folder has; without one, nothing is kept.
    pub(crate) fn open(folder: Option<&'f Folder>) -> Self {
        let known = folder.and_then(|folder| folder.rows(Some(0)));
        let known = known.unwrap_or_default();
        Course {
            folder,
            kept: known.len() as u64,
            memory: known.into_iter().map(|row| (row.number, row)).collect(),
            seed: Seed::default(),
        }
    }

    /// What an earlier run found of a number.
    pub(crate) fn known(&self, number: u64) -> Option<Row> {
        self.memory.get(&number).copied()
    }

    /// Numbers of earlier runs that this one does not have yet, ascending.
    pub(crate) fn untaken(&self) -> Vec<u64> {
        let numbers = self.memory.keys().copied();
        let mut numbers: Vec<u64> = numbers.filter(|&number| !self.has(number)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Whether this run has a number already.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.seed.row(number).is_some()
    }

    /// Rows of this run.
    pub(crate) fn rows(&self) -> &[Row] {
        self.seed.rows()
    }

    /// What nothing beats among them.
    pub(crate) fn front(&self) -> &Front {
        self.seed.front()
    }

    /// Takes the next row; the point that a searcher is told: of a beaten heap what it needs at
    /// least.
    pub(crate) fn enter(&mut self, row: Row, evaluator: &Evaluator<'_>) -> Option<Point> {
        self.seed.extend(row, evaluator);
        let lower = row.status == Status::Beaten;
        point_of(&row, evaluator)
            .or_else(|| lower.then(|| evaluator.objectives().point(&row.metrics)))
    }

    /// Writes what was found since it was written last, if that is much or `all` is wanted.
    pub(crate) fn keep(&mut self, all: bool) -> Result<(), OutputError> {
        let least = if all { 1 } else { KEEP };
        let done = self.rows().len() as u64;
        if let Some(folder) = self.folder
            && done >= self.kept + least
        {
            folder.write(Some(0), self.rows())?;
            self.kept = done;
        }
        Ok(())
    }
}
