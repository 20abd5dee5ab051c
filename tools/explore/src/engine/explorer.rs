//! The course of an exploration: seed phase, then units or a search.
//!
//! Invariant: what is written for a unit, or for a search of so many
//! evaluations, does not depend on workers, shards or interruptions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::UNIT;
use super::course::Course;
use super::evaluate::Evaluator;
use super::folder::{EngineError, Folder, Manifest};
use super::local::LocalSearch;
use super::nsga2::Nsga2;
use super::objective::ObjectiveSet;
use super::row::Row;
use super::searcher::{RandomSearch, Searcher};
use super::seed::{self, BATCH, Seed, point_of};
use crate::energy::EnergyError;
use crate::events::Events;
use crate::hierarchy::Hierarchy;
use crate::replay::Options;
use crate::space::Space;
use crate::terms::Terms;
use crate::workers;

/// How configurations are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// All of them.
    #[default]
    Exhaustive,
    /// Pareto local search.
    Local,
    /// NSGA-II.
    Nsga2,
    /// Anywhere.
    Random,
}

impl Method {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Exhaustive => "exhaustive",
            Method::Local => "local",
            Method::Nsga2 => "nsga2",
            Method::Random => "random",
        }
    }

    /// A search of this kind; none for all configurations.
    pub fn searcher<'s>(self, space: &'s Space, seed: u64) -> Option<Box<dyn Searcher + 's>> {
        match self {
            Method::Exhaustive => None,
            Method::Local => Some(Box::new(LocalSearch::new(space, seed))),
            Method::Nsga2 => Some(Box::new(Nsga2::new(space, seed))),
            Method::Random => Some(Box::new(RandomSearch::new(space, seed))),
        }
    }
}

/// By which rules a space is explored.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What is minimised.
    pub objectives: ObjectiveSet,
    /// How configurations are replayed.
    pub options: Options,
    /// Evaluations of the seed phase beside the heaps to compare with.
    pub seed_evaluations: u64,
    /// Whether replays end early when their heap is beaten.
    pub end_early: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            objectives: ObjectiveSet::DEFAULT,
            options: Options::default(),
            seed_evaluations: 256,
            end_early: true,
        }
    }
}

/// A share of the units: those whose number leaves `index` when divided by
/// `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which share, from zero.
    pub index: u64,
    /// How many there are.
    pub count: u64,
}

impl Shard {
    /// All units.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };
}

/// Hears of an exploration while it runs.
pub trait Progress: Sync {
    /// So many of so many configurations are done.
    fn done(&self, configurations: u64, of: u64) {
        let _ = (configurations, of);
    }
}

impl Progress for () {}

/// What was done in a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Configurations replayed, to the end or until beaten.
    pub replayed: u64,
    /// Configurations found done.
    pub found: u64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// Explores a space.
#[derive(Debug)]
pub struct Explorer<'e> {
    evaluator: Evaluator<'e>,
    plan: Plan,
    pool: Option<rayon::ThreadPool>,
}

impl<'e> Explorer<'e> {
    /// Explores `space` on so many workers; 0: one a core. O(events).
    pub fn new(space: &'e Space, events: &'e Events, plan: Plan, workers: usize) -> Self {
        Explorer {
            evaluator: Evaluator::new(space, events, &plan.options, plan.objectives),
            plan,
            pool: workers::pool(workers),
        }
    }

    /// Prices replays on a hierarchy of memory levels.
    ///
    /// # Errors
    /// As [`Evaluator::on`].
    pub fn on(mut self, hierarchy: &'e Hierarchy) -> Result<Self, EnergyError> {
        self.evaluator = self.evaluator.on(hierarchy)?;
        Ok(self)
    }

    /// Says of every heap what it guarantees, as [`Evaluator::guaranteeing`].
    #[must_use]
    pub fn guaranteeing(mut self, terms: Terms) -> Self {
        self.evaluator = self.evaluator.guaranteeing(terms);
        self
    }

    /// The evaluator of its configurations.
    pub fn evaluator(&self) -> &Evaluator<'e> {
        &self.evaluator
    }

    /// The rules.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What tells this exploration from others, by the given method.
    pub fn manifest(&self, method: Method, seed: u64, evaluations: u64) -> Manifest {
        let seed_evaluations = self.plan.seed_evaluations;
        let search = match method {
            Method::Exhaustive => format!("exhaustive, seed phase {seed_evaluations}"),
            _ => format!("{}, seed {seed}, evaluations {evaluations}", method.name()),
        };
        self.evaluator.manifest(search, self.plan.end_early)
    }

    /// Units of the space.
    pub fn units(&self) -> u64 {
        self.evaluator.space().size().div_ceil(UNIT)
    }

    pub(super) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// The seed phase. `None` when stopped.
    pub fn seed(&self, stop: &AtomicBool) -> Option<Seed> {
        let Plan {
            seed_evaluations,
            end_early,
            ..
        } = self.plan;
        self.install(|| seed::seed(&self.evaluator, seed_evaluations, end_early, stop))
    }

    /// The seed phase as a folder has it, or done now and kept there.
    ///
    /// # Errors
    /// [`EngineError::Output`].
    pub fn seed_in(&self, folder: &Folder, stop: &AtomicBool) -> Result<Option<Seed>, EngineError> {
        if let Some(rows) = folder.rows(None) {
            return Ok(Some(Seed::of(rows, &self.evaluator)));
        }
        let seed = self.seed(stop);
        if let Some(seed) = &seed {
            folder.write(None, seed.rows())?;
        }
        Ok(seed)
    }

    /// The rows of a unit: a function of its number and of the seed phase.
    /// `None` when stopped.
    pub fn unit(&self, seed: &Seed, unit: u64, stop: &AtomicBool) -> Option<Vec<Row>> {
        let size = self.evaluator.space().size();
        let numbers = unit.saturating_mul(UNIT)..size.min((unit + 1).saturating_mul(UNIT));
        let mut front = seed.front().clone();
        let mut rows = Vec::with_capacity(UNIT as usize);
        for number in numbers {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let row = match seed.row(number) {
                Some(row) => *row,
                None => {
                    let front = self.plan.end_early.then_some(&front);
                    self.evaluator.row(number, front)
                }
            };
            if let Some(point) = point_of(&row, &self.evaluator) {
                front.enter(point, number);
            }
            rows.push(row);
        }
        Some(rows)
    }

    /// How long the whole space takes on the workers here, judged by a few
    /// configurations spread over the space.
    pub fn estimate(&self, seed: &Seed, stop: &AtomicBool) -> Duration {
        const SAMPLE: u64 = 64;
        let size = self.evaluator.space().size();
        let numbers: Vec<u64> = (0..SAMPLE.min(size))
            .map(|place| place * size / SAMPLE.min(size))
            .collect();
        let start = Instant::now();
        let front = self.plan.end_early.then_some(seed.front());
        let done = self.install(|| seed::batch(&self.evaluator, &numbers, front, stop));
        match done {
            Some(rows) if !rows.is_empty() => {
                start.elapsed().mul_f64(size as f64 / rows.len() as f64)
            }
            _ => Duration::ZERO,
        }
    }

    /// Does the units of a shard that are not done yet, on all workers, and
    /// keeps each in the folder as soon as it is done.
    ///
    /// # Errors
    /// [`EngineError::Output`] when a unit cannot be written.
    pub fn run(
        &self,
        folder: &Folder,
        shard: Shard,
        stop: &AtomicBool,
        progress: &dyn Progress,
    ) -> Result<Work, EngineError> {
        let mut work = Work::default();
        let Some(seed) = self.seed_in(folder, stop)? else {
            work.interrupted = true;
            return Ok(work);
        };
        let size = self.evaluator.space().size();
        let own = (0..self.units()).filter(|unit| unit % shard.count == shard.index);
        let length = |unit: u64| UNIT.min(size - unit * UNIT);
        // Only what reads back as sound is done.
        let (done, open): (Vec<u64>, Vec<u64>) =
            own.partition(|&unit| folder.rows(Some(unit)).is_some());
        work.found = done.iter().map(|&unit| length(unit)).sum();
        let total = work.found + open.iter().map(|&unit| length(unit)).sum::<u64>();
        let count = AtomicU64::new(work.found);
        progress.done(work.found, total);
        let failed: Mutex<Option<EngineError>> = Mutex::new(None);
        let fail = |error: EngineError| {
            if let Ok(mut failed) = failed.lock() {
                failed.get_or_insert(error);
            }
        };
        self.install(|| {
            open.par_iter().with_max_len(1).for_each(|&unit| {
                let over = || failed.lock().is_ok_and(|failed| failed.is_some());
                if over() {
                    return;
                }
                let Some(rows) = self.unit(&seed, unit, stop) else {
                    return;
                };
                match folder.write(Some(unit), &rows) {
                    Err(error) => fail(error.into()),
                    Ok(()) => {
                        let rows = rows.len() as u64;
                        let now = count.fetch_add(rows, Ordering::Relaxed) + rows;
                        progress.done(now, total);
                    }
                }
            });
        });
        if let Ok(Some(error)) = failed.into_inner() {
            return Err(error);
        }
        work.replayed = count.into_inner() - work.found;
        work.interrupted = work.found + work.replayed < total;
        Ok(work)
    }

    /// A search of so many evaluations beside the heaps to compare with, on all
    /// workers, kept in the folder as it goes. What the folder has is not
    /// replayed again: the search is led through it to where it was.
    ///
    /// # Errors
    /// [`EngineError::Output`] when rows cannot be written.
    pub fn search(
        &self,
        folder: &Folder,
        searcher: &mut dyn Searcher,
        evaluations: u64,
        deadline: Option<Instant>,
        stop: &AtomicBool,
        progress: &dyn Progress,
    ) -> Result<(Vec<Row>, Work), EngineError> {
        let (space, baselines) = (self.evaluator.space(), self.evaluator.space().baselines());
        let evaluations = evaluations.min(space.size() - baselines);
        let mut course = Course::open(Some(folder));
        let mut work = Work::default();
        let mut batch: Vec<u64> = (0..baselines).collect();
        let mut first = true;
        let over = || {
            stop.load(Ordering::Relaxed)
                || deadline.is_some_and(|deadline| Instant::now() >= deadline)
        };
        loop {
            let open: Vec<u64> = (batch.iter().copied())
                .filter(|&number| course.known(number).is_none())
                .collect();
            let end_early = self.plan.end_early && !first;
            let front = end_early.then_some(course.front());
            let rows = self.install(|| seed::batch(&self.evaluator, &open, front, stop));
            let Some(rows) = rows else {
                work.interrupted = true;
                break;
            };
            work.replayed += rows.len() as u64;
            work.found += (batch.len() - open.len()) as u64;
            let mut rows = rows.into_iter();
            for &number in &batch {
                let Some(row) = course.known(number).or_else(|| rows.next()) else {
                    break;
                };
                searcher.tell(number, course.enter(row, &self.evaluator));
            }
            let done = course.rows().len() as u64;
            progress.done(done, evaluations + baselines);
            course.keep(false)?;
            let left = (evaluations + baselines).saturating_sub(done);
            if left == 0 {
                break;
            }
            if over() {
                work.interrupted = stop.load(Ordering::Relaxed);
                break;
            }
            first = false;
            let mut asked = 1;
            batch.clear();
            while batch.is_empty() && asked > 0 {
                batch = searcher.ask(BATCH.min(usize::try_from(left).unwrap_or(BATCH)));
                asked = batch.len();
                batch.retain(|&number| !course.has(number));
            }
            if batch.is_empty() {
                break;
            }
        }
        course.keep(true)?;
        Ok((course.rows().to_vec(), work))
    }
}
