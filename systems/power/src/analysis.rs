//! Whether all deadlines are met at a pair of frequencies, and the longest response of each task, exactly.
//!
//! *Invariant:* core by core: no core's answer depends on another's. What is too long to be decided is said, never guessed.

mod edf;
mod fixed_priority;
mod item;
mod mixed;

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::{One, Zero};

use crate::rational::{Rational, common_period, grain};
use crate::system::{Pair, Scheduler, System, Task};
use item::{Budget, Item, Stop, Whole};

/// Steps of an analysis of one core: some seconds.
const STEPS: u64 = 200_000_000;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnalysisError {
    /// Decided in more steps than are taken.
    #[error(
        "core {core} is not decided in {STEPS} steps: give periods that have a smaller common multiple, or leave offsets out"
    )]
    TooLong {
        /// The core.
        core: u32,
    },
    /// What is not analysed together.
    #[error("{0}")]
    Together(String),
}

/// What is known of a system at a pair of frequencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether every deadline is met.
    pub schedulable: bool,
    /// The pair at which that is so.
    pub pair: Pair,
    /// Tasks, as they stand in the system.
    pub tasks: Vec<TaskVerdict>,
    /// Jobs that come once, as they stand in the system.
    pub jobs: Vec<JobVerdict>,
    /// Cores and their utilisation by tasks.
    pub cores: Vec<(u32, Rational)>,
}

/// What is known of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskVerdict {
    /// Its name.
    pub name: String,
    /// Its longest response, from arrival to end; none if there is no longest, as more work comes than is done, or if
    /// that was not decided beside jobs.
    pub response: Option<Rational>,
    /// Its deadline from the arrival on.
    pub deadline: Rational,
}

/// What is known of a job that comes once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobVerdict {
    /// Its name.
    pub name: String,
    /// When it ends; none if that was not decided.
    pub finish: Option<Rational>,
    /// When it must have ended.
    pub deadline: Rational,
}

/// The first that is late, and by how much; no time where there is no longest response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Its name.
    pub name: String,
    /// How much later than its deadline.
    pub late: Option<Rational>,
}

impl Verdict {
    /// The first task or job, as they stand in the system, that misses its deadline.
    #[must_use]
    pub fn miss(&self) -> Option<Miss> {
        let tasks = self
            .tasks
            .iter()
            .map(|task| (&task.name, &task.response, &task.deadline));
        let jobs = self
            .jobs
            .iter()
            .map(|job| (&job.name, &job.finish, &job.deadline));
        tasks.chain(jobs).find_map(|(name, end, deadline)| {
            let late = end.as_ref().map(|end| end - deadline);
            let missed = late.as_ref().is_none_or(|late| *late > Rational::zero());
            missed.then(|| Miss {
                name: name.clone(),
                late,
            })
        })
    }
}

/// Analyses a system at a pair of frequencies, by default the highest.
///
/// Under fixed priorities and EDF alike O(steps), where a step is one task's share of one window; 64-bit numbers serve
/// where they can.
///
/// # Errors
/// [`AnalysisError`] where there is no exact answer in bounded time.
pub fn check(system: &System, pair: Option<&Pair>) -> Result<Verdict, AnalysisError> {
    let pair = pair.cloned().unwrap_or_else(|| system.processor.fastest());
    let mut tasks: Vec<Option<Rational>> = vec![None; system.tasks.len()];
    let mut jobs: Vec<Option<Rational>> = vec![None; system.jobs.len()];
    let mut cores = Vec::new();
    for core in system.cores() {
        let on_core = Core::of(system, core, &pair);
        let ends = on_core.responses(system.scheduler)?;
        for (index, end) in on_core.tasks.iter().zip(ends) {
            tasks[*index] = end;
        }
        if system.jobs.iter().any(|job| job.core == core) {
            mixed::responses(system, &on_core, &pair, &mut tasks, &mut jobs)?;
        }
        cores.push((core, on_core.utilisation()));
    }
    let tasks: Vec<TaskVerdict> = system
        .tasks
        .iter()
        .zip(tasks)
        .map(|(task, response)| TaskVerdict {
            name: task.name.clone(),
            response,
            deadline: task.deadline.clone(),
        })
        .collect();
    let jobs: Vec<JobVerdict> = system
        .jobs
        .iter()
        .zip(jobs)
        .map(|(job, finish)| JobVerdict {
            name: job.name.clone(),
            finish,
            deadline: job.deadline.clone(),
        })
        .collect();
    let mut verdict = Verdict {
        schedulable: true,
        pair,
        tasks,
        jobs,
        cores,
    };
    verdict.schedulable = verdict.miss().is_none();
    Ok(verdict)
}

/// Whether all deadlines are met at a pair of frequencies: the answer of [`check`], sooner.
///
/// # Errors
/// As [`check`].
pub fn is_schedulable(system: &System, pair: &Pair) -> Result<bool, AnalysisError> {
    let times: Vec<Rational> = system
        .tasks
        .iter()
        .map(|task| task.cost.time(pair))
        .collect();
    if !system.jobs.is_empty() {
        return Ok(check(system, Some(pair))?.schedulable);
    }
    are_schedulable(system, &times, pair)
}

/// Whether tasks of a system meet their deadlines if they take these times, and are blocked as at a pair.
pub(crate) fn are_schedulable(
    system: &System,
    times: &[Rational],
    pair: &Pair,
) -> Result<bool, AnalysisError> {
    for core in system.cores() {
        if !Core::with_times(system, core, times, pair).fits(system.scheduler)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tasks of a core, the most urgent first.
struct Core {
    core: u32,
    /// Their places in the system.
    tasks: Vec<usize>,
    items: Vec<Item<Rational>>,
}

impl Core {
    fn of(system: &System, core: u32, pair: &Pair) -> Core {
        let times: Vec<Rational> = system
            .tasks
            .iter()
            .map(|task| task.cost.time(pair))
            .collect();
        Core::with_times(system, core, &times, pair)
    }

    fn with_times(system: &System, core: u32, times: &[Rational], pair: &Pair) -> Core {
        let on_core = |task: &Task| task.core == core;
        let mut tasks: Vec<usize> = (0..system.tasks.len())
            .filter(|index| on_core(&system.tasks[*index]))
            .collect();
        tasks.sort_by_key(|index| system.tasks[*index].priority);
        let has_jobs = system.jobs.iter().any(|job| job.core == core);
        let phases = has_jobs
            || tasks
                .iter()
                .any(|index| !system.tasks[*index].offset.is_zero());
        let item = |index: &usize| {
            let task = &system.tasks[*index];
            Item {
                time: times[*index].clone(),
                period: task.period.clone(),
                deadline: task.deadline.clone(),
                jitter: task.jitter.clone(),
                blocking: task.blocking.time(pair),
                offset: phases.then(|| task.offset.clone()),
            }
        };
        let items: Vec<Item<Rational>> = tasks.iter().map(item).collect();
        Core { core, tasks, items }
    }

    fn utilisation(&self) -> Rational {
        let shares = self.items.iter().map(|item| &item.time / &item.period);
        shares.fold(Rational::zero(), |sum, share| sum + share)
    }

    /// The utilisation, compared with 1: by a sum of nearest numbers where it is far from it, else exactly.
    fn load<N: Whole>(&self, items: &[Item<N>]) -> Ordering {
        let near = |value: &N| value.to_f64().unwrap_or(f64::NAN);
        let shares = items
            .iter()
            .map(|item| near(&item.time) / near(&item.period));
        let sum: f64 = shares.sum();
        if (sum - 1.0).abs() > 1e-9 {
            sum.total_cmp(&1.0)
        } else {
            self.utilisation().cmp(&Rational::one())
        }
    }

    fn responses(&self, scheduler: Scheduler) -> Result<Vec<Option<Rational>>, AnalysisError> {
        let grain = grain(self.items.iter().flat_map(Item::values));
        let attempt = self.responses_in::<i64>(scheduler, &grain);
        let attempt = wider(attempt, || self.responses_in::<i128>(scheduler, &grain));
        let attempt = wider(attempt, || self.responses_in::<BigInt>(scheduler, &grain));
        attempt.map_err(|_| AnalysisError::TooLong { core: self.core })
    }

    fn responses_in<N: Whole>(
        &self,
        scheduler: Scheduler,
        grain: &BigInt,
    ) -> Result<Vec<Option<Rational>>, Stop> {
        let items = self.scaled::<N>(grain)?;
        let load = self.load(&items);
        let repeats = recurrence::<N>(&self.items, grain, load)?;
        let mut budget = Budget(STEPS);
        let mut utilisation = Rational::zero();
        let mut ends = Vec::new();
        for index in 0..items.len() {
            utilisation += &self.items[index].time / &self.items[index].period;
            let over = match scheduler {
                Scheduler::FixedPriority => utilisation > Rational::one(),
                Scheduler::Edf => load == Ordering::Greater,
            };
            if over {
                ends.push(None);
                continue;
            }
            let end = match scheduler {
                Scheduler::FixedPriority => {
                    // Such a level may stand above ones for which there is no time at all.
                    let load = utilisation.cmp(&Rational::one());
                    let level = recurrence::<N>(&self.items[..=index], grain, load)?;
                    fixed_priority::response(&items[..=index], false, level.as_ref(), &mut budget)?
                }
                Scheduler::Edf => {
                    edf::response(&items, index, false, repeats.as_ref(), &mut budget)?
                }
            };
            ends.push(Some(Rational::new(end.big(), grain.clone())));
        }
        Ok(ends)
    }

    fn fits(&self, scheduler: Scheduler) -> Result<bool, AnalysisError> {
        let grain = grain(self.items.iter().flat_map(Item::values));
        let attempt = self.fits_in::<i64>(scheduler, &grain);
        let attempt = wider(attempt, || self.fits_in::<i128>(scheduler, &grain));
        let attempt = wider(attempt, || self.fits_in::<BigInt>(scheduler, &grain));
        attempt.map_err(|_| AnalysisError::TooLong { core: self.core })
    }

    fn fits_in<N: Whole>(&self, scheduler: Scheduler, grain: &BigInt) -> Result<bool, Stop> {
        let items = self.scaled::<N>(grain)?;
        let load = self.load(&items);
        if load == Ordering::Greater || items.iter().any(|item| item.time > item.deadline) {
            return Ok(false);
        }
        let repeats = recurrence::<N>(&self.items, grain, load)?;
        // Of the levels of priorities, only the whole can have no time to spare.
        let of_level = |index: usize| repeats.as_ref().filter(|_| index + 1 == items.len());
        let mut budget = Budget(STEPS);
        let phases = items.iter().any(|item| item.offset.is_some());
        if scheduler == Scheduler::Edf && !phases {
            return edf::demand_fits(&items, repeats.as_ref(), &mut budget);
        }
        for index in 0..items.len() {
            let end = match scheduler {
                Scheduler::FixedPriority => {
                    fixed_priority::response(&items[..=index], true, of_level(index), &mut budget)?
                }
                Scheduler::Edf => {
                    edf::response(&items, index, true, repeats.as_ref(), &mut budget)?
                }
            };
            if end > items[index].deadline {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn scaled<N: Whole>(&self, grain: &BigInt) -> Result<Vec<Item<N>>, Stop> {
        let items = self.items.iter().map(|item| item.scaled(grain));
        items.collect::<Option<Vec<_>>>().ok_or(Stop::Wide)
    }
}

/// Where items leave no time to spare, a busy period may have no end; behind the greatest of all numbers and a common period all
/// repeats itself.
fn recurrence<N: Whole>(
    items: &[Item<Rational>],
    grain: &BigInt,
    load: Ordering,
) -> Result<Option<N>, Stop> {
    let mut idles = items.iter();
    let idles = idles.all(|item| item.jitter.is_zero() && item.blocking.is_zero());
    if idles || load != Ordering::Equal {
        return Ok(None);
    }
    let periods = items.iter().map(|item| item.period.clone());
    let common = periods.reduce(|left, right| common_period(&left, &right));
    let values = items.iter().flat_map(Item::values);
    let sum = values.fold(common.unwrap_or_else(Rational::zero), |sum, value| {
        sum + value
    });
    let sum = N::small(&crate::rational::in_grains(&sum, grain));
    sum.map(Some).ok_or(Stop::Wide)
}

/// Tries again in wider numbers.
fn wider<T>(attempt: Result<T, Stop>, again: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    match attempt {
        Err(Stop::Wide) => again(),
        other => other,
    }
}
