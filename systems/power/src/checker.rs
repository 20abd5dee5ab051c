//! Plans, checked apart: what is planned is run through and summed up again, by ways that no optimiser takes.
//!
//! *Invariant:* nothing here calls the analysis, the speeds, the levels or the pairs.

mod phases;

use std::collections::BTreeSet;

use num_traits::{One, Zero};

use crate::rational::{Rational, common_period};
use crate::simulation::{Order, Released, Run, Speeds, ranking, simulate};
use crate::system::{Pair, Processor, Scheduler, System, Task};

/// A stretch of time in which a job runs at one speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The job's name; those of tasks are numbered from 1.
    pub job: String,
    /// The core.
    pub core: u32,
    /// Its begin.
    pub from: Rational,
    /// Its end.
    pub to: Rational,
    /// Its speed.
    pub speed: Rational,
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Two run at a time, or time goes back.
    #[error("two stretches overlap at {0}")]
    Overlap(Rational),
    /// A job runs outside its window.
    #[error("job {0} runs outside its window")]
    Window(usize),
    /// A job has another amount of work done than it has.
    #[error("job {0} is not done, or more than done")]
    Work(usize),
    /// A job runs while a more urgent one waits.
    #[error("job {0} runs while a more urgent one waits")]
    Priority(usize),
    /// A speed that the processor has not.
    #[error("job {0} runs at a frequency that is not there")]
    Frequency(usize),
    /// A deadline that is missed.
    #[error("`{0}` is late")]
    Late(String),
    /// More to run through than is.
    #[error(
        "core {0} has too many jobs to be run through: give periods that have a smaller common multiple, or leave offsets out"
    )]
    TooLong(u32),
    /// Another energy than was said.
    #[error("the energy is another one")]
    Energy,
}

/// Whether a schedule does all work in its windows, one job at a time, by priorities if these are to be kept, at speeds
/// that are there. O(n log n).
///
/// # Errors
/// The first [`Flaw`].
pub fn check_schedule(
    jobs: &[Released],
    run: &Run,
    scheduler: Scheduler,
    processor: &Processor,
) -> Result<(), Flaw> {
    let mut left: Vec<Rational> = jobs.iter().map(|job| job.work.clone()).collect();
    let mut now: Option<&Rational> = None;
    let places = ranking(jobs, Order::Priority);
    let mut rank = vec![0; jobs.len()];
    for (place, job) in places.iter().enumerate() {
        rank[*job] = place;
    }
    let mut arrivals: Vec<usize> = (0..jobs.len()).collect();
    arrivals.sort_by(|left, right| jobs[*left].release.cmp(&jobs[*right].release));
    let mut arrivals = arrivals.into_iter().peekable();
    let mut waiting = BTreeSet::new();
    for segment in &run.segments {
        let (from, to) = (&segment.from, &segment.to);
        let job = segment.job;
        if now.is_some_and(|now| from < now) || to <= from {
            return Err(Flaw::Overlap(from.clone()));
        }
        if *from < jobs[job].release || *to > jobs[job].deadline {
            return Err(Flaw::Window(job));
        }
        let there = &processor.cpu;
        if !there.is_empty() && there.binary_search(&segment.speed).is_err() {
            return Err(Flaw::Frequency(job));
        }
        // All that came before the end of this stretch.
        while let Some(came) = arrivals.next_if(|came| jobs[*came].release < *to) {
            waiting.insert(rank[came]);
        }
        if scheduler == Scheduler::FixedPriority && waiting.first() != Some(&rank[job]) {
            return Err(Flaw::Priority(job));
        }
        left[job] -= (to - from) * &segment.speed;
        if left[job] <= Rational::zero() {
            waiting.remove(&rank[job]);
        }
        now = Some(to);
    }
    match left.iter().position(|left| !left.is_zero()) {
        Some(job) => Err(Flaw::Work(job)),
        None => Ok(()),
    }
}

/// Whether a pair meets all deadlines, by runs, and what it takes over a hyperperiod.
///
/// Without phases: the worst releases are run until they are done, for each task by itself under fixed priorities; under EDF,
/// demand is counted deadline by deadline. With phases: two hyperperiods behind the last first arrival are run; with jitter
/// or blocking beside them, the worst run from each instant at which a job is ready at the latest. Where these are more jobs
/// than are run, phases are forgotten, which is never better: what is accepted then holds, too.
///
/// # Errors
/// The first [`Flaw`].
pub fn check_pair(system: &System, pair: &Pair) -> Result<Rational, Flaw> {
    let system = &system.ranked();
    for core in system.cores() {
        let tasks: Vec<&Task> = system
            .tasks
            .iter()
            .filter(|task| task.core == core)
            .collect();
        let once = system.jobs.iter().filter(|job| job.core == core);
        let once: Vec<(String, Released)> = once
            .map(|job| {
                let released = Released {
                    release: job.release.clone(),
                    deadline: job.deadline.clone(),
                    work: &job.work / &pair.cpu,
                    priority: job.priority,
                };
                (job.name.clone(), released)
            })
            .collect();
        let phases = !once.is_empty() || tasks.iter().any(|task| !task.offset.is_zero());
        if phases {
            phases::check(system, pair, core, &tasks, once)?;
        } else if system.scheduler == Scheduler::FixedPriority {
            for task in &tasks {
                run_worst(pair, &tasks, task)?;
            }
        } else {
            count_demand(pair, &tasks)?;
        }
    }
    Ok(energy(system, pair))
}

/// A run of all as it may come, each job with its whole work, over the last first arrival and a hyperperiod: the longest response
/// of each task, as they stand in the system; none where no job of it is in the run, which has a bounded number.
///
/// # Errors
/// [`Flaw::Late`] if one is late.
pub fn run_pair(system: &System, pair: &Pair) -> Result<Vec<Option<Rational>>, Flaw> {
    let system = &system.ranked();
    let all: Vec<&Task> = system.tasks.iter().collect();
    let offsets = all.iter().map(|task| task.offset.clone());
    let end = offsets.max().unwrap_or_else(Rational::zero) + common(&all);
    let order = match system.scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let mut longest = vec![None; all.len()];
    for core in system.cores() {
        let (mut owners, mut jobs) = (Vec::new(), Vec::new());
        for job in system.jobs.iter().filter(|job| job.core == core) {
            owners.push((job.name.as_str(), None));
            jobs.push(Released {
                release: job.release.clone(),
                deadline: job.deadline.clone(),
                work: &job.work / &pair.cpu,
                priority: job.priority,
            });
        }
        for (index, task) in all.iter().enumerate().filter(|(_, task)| task.core == core) {
            let released = releases(pair, task, false, &end);
            owners.extend(released.iter().map(|_| (task.name.as_str(), Some(index))));
            jobs.extend(released);
        }
        let run = simulate(&jobs, order, &Speeds::Constant(Rational::one()));
        if let Some(late) = run.late(&jobs) {
            return Err(Flaw::Late(owners[late].0.to_owned()));
        }
        for ((finish, job), (_, owner)) in run.finish.iter().zip(&jobs).zip(owners) {
            if let (Some(owner), Some(finish)) = (owner, finish) {
                longest[owner] = longest[owner].take().max(Some(finish - &job.release));
            }
        }
    }
    Ok(longest)
}

/// Utilisation of the whole, by which a check ends.
fn utilisation<'a>(pair: &Pair, tasks: impl Iterator<Item = &'a &'a Task>) -> Rational {
    let shares = tasks.map(|task| task.cost.time(pair) / &task.period);
    shares.fold(Rational::zero(), |sum, share| sum + share)
}

fn common(tasks: &[&Task]) -> Rational {
    let periods = tasks.iter().map(|task| task.period.clone());
    let common = periods.reduce(|left, right| common_period(&left, &right));
    common.unwrap_or_else(Rational::zero)
}

/// Most jobs of a run that checks.
const MOST: usize = 100_000;

fn releases(pair: &Pair, task: &Task, delayed: bool, end: &Rational) -> Vec<Released> {
    let mut jobs = Vec::new();
    let mut arrival = if delayed {
        -&task.jitter
    } else {
        task.offset.clone()
    };
    while arrival < *end && jobs.len() < MOST {
        jobs.push(Released {
            release: arrival.clone().max(Rational::zero()),
            deadline: &arrival + &task.deadline,
            work: task.cost.time(pair),
            priority: task.priority,
        });
        arrival += &task.period;
    }
    jobs
}

/// A task, and all that goes before it.
fn as_urgent<'a>(tasks: &[&'a Task], own: &Task) -> Vec<&'a Task> {
    let urgent = tasks.iter().copied();
    urgent
        .filter(|task| task.priority <= own.priority)
        .collect()
}

/// All that is as urgent as a task at once, behind what blocks it.
fn run_worst(pair: &Pair, tasks: &[&Task], own: &Task) -> Result<(), Flaw> {
    let more_urgent = as_urgent(tasks, own);
    if utilisation(pair, more_urgent.iter()) > Rational::one() {
        return Err(Flaw::Late(own.name.clone()));
    }
    let repeats = tasks.iter().fold(common(&more_urgent), |sum, task| {
        sum + &task.period + &task.deadline + &task.jitter + task.blocking.time(pair)
    });
    let mut end = own.period.clone();
    loop {
        let mut jobs: Vec<Released> = Vec::new();
        let blocking = own.blocking.time(pair);
        if !blocking.is_zero() {
            jobs.push(Released {
                release: Rational::zero(),
                deadline: blocking.clone(),
                work: blocking,
                priority: 0,
            });
        }
        let blocked = jobs.len();
        for task in more_urgent.iter().filter(|task| task.name != own.name) {
            jobs.extend(releases(pair, task, true, &end));
        }
        let first = jobs.len();
        // It goes last of equal ones, as it stands last; it came before those of its own priority that come later.
        jobs.extend(releases(pair, own, true, &end));
        for (index, job) in jobs.iter_mut().enumerate() {
            job.priority = u64::from(index >= blocked) + u64::from(index >= first);
        }
        let run = simulate(&jobs, Order::Priority, &Speeds::Constant(Rational::one()));
        let late = (first..jobs.len()).any(|job| {
            run.finish[job]
                .as_ref()
                .is_none_or(|end| *end > jobs[job].deadline)
        });
        if late {
            return Err(Flaw::Late(own.name.clone()));
        }
        // What comes behind an instant at which the core rests is no worse.
        if run.rests_before(&end) || end > repeats || jobs.len() >= MOST {
            return Ok(());
        }
        end = &end + &end;
    }
}

fn count_demand(pair: &Pair, tasks: &[&Task]) -> Result<(), Flaw> {
    if utilisation(pair, tasks.iter()) > Rational::one() {
        return Err(Flaw::Late(tasks[0].name.clone()));
    }
    let longest = tasks.iter().map(|task| &task.deadline + &task.jitter).max();
    let end = longest.unwrap_or_else(Rational::zero) + common(tasks);
    let mut due: Vec<(Rational, usize)> = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let jobs = releases(pair, task, true, &end);
        due.extend(jobs.into_iter().map(|job| (job.deadline, index)));
    }
    due.sort();
    let mut demand = Rational::zero();
    let mut due = due.iter().peekable();
    while let Some((time, index)) = due.next() {
        demand += tasks[*index].cost.time(pair);
        if due.peek().is_some_and(|(next, _)| next == time) {
            continue;
        }
        let concerned = tasks
            .iter()
            .filter(|task| &task.deadline - &task.jitter <= *time);
        let blocking = concerned.map(|task| task.blocking.time(pair)).max();
        if &demand + blocking.unwrap_or_else(Rational::zero) > *time {
            return Err(Flaw::Late(tasks[*index].name.clone()));
        }
    }
    Ok(())
}

/// Energy over a hyperperiod: what runs in it, job by job.
fn energy(system: &System, pair: &Pair) -> Rational {
    let tasks: Vec<&Task> = system.tasks.iter().collect();
    let hyperperiod = common(&tasks);
    let power = &system.processor.power;
    let cube = &pair.cpu * &pair.cpu * &pair.cpu;
    let running = &power.cpu_cubed * cube + &power.memory * &pair.memory;
    let mut sum = &power.floor * &hyperperiod;
    let on = system
        .cores()
        .into_iter()
        .filter(|core| tasks.iter().any(|task| task.core == *core));
    for core in on {
        let own = tasks.iter().filter(|task| task.core == core);
        let busy = utilisation(pair, own) * &hyperperiod;
        sum += &running * &busy + &system.processor.idle * (&hyperperiod - busy);
    }
    sum
}
