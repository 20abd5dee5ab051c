//! Jobs that come once, alone or beside tasks of known phases: run until what they have brought is gone.
//!
//! Behind an instant without work, after the last job and the last first arrival, all is as if there had been no jobs: there
//! the analysis of the tasks alone holds.
//!
//! *Invariant:* what is reported happens in the run.

use num_traits::{One, Zero};

use super::{AnalysisError, Core};
use crate::rational::{Rational, common_period};
use crate::simulation::{Order, Released, Run, Speeds, simulate};
use crate::system::{Pair, Scheduler, System};

/// Most jobs of a run.
const MOST: usize = 500_000;

pub(super) fn responses(
    system: &System,
    core: &Core,
    pair: &Pair,
    tasks: &mut [Option<Rational>],
    jobs: &mut [Option<Rational>],
) -> Result<(), AnalysisError> {
    let system = &system.ranked();
    let order = match system.scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let speeds = Speeds::Constant(Rational::one());
    let once: Vec<usize> = (0..system.jobs.len())
        .filter(|index| system.jobs[*index].core == core.core)
        .collect();
    let mut released: Vec<Released> = once
        .iter()
        .map(|index| {
            let job = &system.jobs[*index];
            Released {
                release: job.release.clone(),
                deadline: job.deadline.clone(),
                work: &job.work / &pair.cpu,
                priority: job.priority,
            }
        })
        .collect();
    let take = |run: &Run, jobs: &mut [Option<Rational>]| {
        for (index, end) in once.iter().zip(&run.finish) {
            jobs[*index] = end.clone();
        }
    };
    if core.items.is_empty() {
        take(&simulate(&released, order, &speeds), jobs);
        return Ok(());
    }
    let unsure = core
        .items
        .iter()
        .any(|item| !item.jitter.is_zero() || !item.blocking.is_zero());
    if unsure {
        return Err(AnalysisError::Together(format!(
            "core {} has jobs that come once beside tasks with jitter or blocking, and these are not analysed together: leave one of them out",
            core.core
        )));
    }
    if core.utilisation() > Rational::one() {
        return Ok(());
    }
    let last = released.iter().map(|job| &job.release);
    let last = last.chain(core.items.iter().filter_map(|item| item.offset.as_ref()));
    let last = last.max().cloned().unwrap_or_else(Rational::zero);
    let period = core
        .items
        .iter()
        .fold(core.items[0].period.clone(), |common, item| {
            common_period(&common, &item.period)
        });
    let of_tasks = released.len();
    let mut rounds = Rational::one();
    loop {
        let end = &last + &period * &rounds;
        released.truncate(of_tasks);
        let owners = expand(system, core, &end, &mut released)?;
        let run = simulate(&released, order, &speeds);
        if rests(&run, &released, &last, &end) {
            take(&run, jobs);
            for (index, owner) in owners.iter().enumerate() {
                let job = of_tasks + index;
                let response = run.finish[job]
                    .as_ref()
                    .map(|end| end - &released[job].release);
                if response > tasks[*owner] {
                    tasks[*owner] = response;
                }
            }
            return Ok(());
        }
        rounds = &rounds + &rounds;
    }
}

/// Appends the jobs of tasks that come before `end`, and says whose they are.
fn expand(
    system: &System,
    core: &Core,
    end: &Rational,
    released: &mut Vec<Released>,
) -> Result<Vec<usize>, AnalysisError> {
    let mut owners = Vec::new();
    for (index, item) in core.tasks.iter().zip(&core.items) {
        let mut release = item.offset.clone().unwrap_or_else(Rational::zero);
        while release < *end {
            if released.len() >= MOST {
                return Err(AnalysisError::TooLong { core: core.core });
            }
            released.push(Released {
                deadline: &release + &item.deadline,
                release: release.clone(),
                work: item.time.clone(),
                priority: system.tasks[*index].priority,
            });
            owners.push(*index);
            release += &item.period;
        }
    }
    Ok(owners)
}

/// Whether there is an instant from `last` to `end` at which all that came before is done.
fn rests(run: &Run, released: &[Released], last: &Rational, end: &Rational) -> bool {
    // An instant is one if what runs from there on came no earlier.
    let mut pending_until = Rational::zero();
    let mut order: Vec<usize> = (0..released.len()).collect();
    order.sort_by(|left, right| released[*left].release.cmp(&released[*right].release));
    for job in order {
        let release = &released[job].release;
        if *release > *last && pending_until <= *release {
            return true;
        }
        let Some(finish) = &run.finish[job] else {
            return false;
        };
        pending_until = pending_until.max(finish.clone());
    }
    pending_until <= *end && pending_until > *last
}
