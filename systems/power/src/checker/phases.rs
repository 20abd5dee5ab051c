//! Tasks of known phases: run where nothing is late to be ready and nothing blocks, else from each instant on from which all
//! that may be late comes at once.
//!
//! A job that arrives at a and may be ready up to J later can be ready at any instant s of [a, a + J]. Of all runs that begin
//! at s without earlier work, that in which each such job is ready at s, and each later one when it arrives, is the worst;
//! and a response is longest in a run that begins where some job is ready at the latest. So there are as many runs as jobs in a
//! hyperperiod, each until the core rests.
//!
//! *Invariant:* what is called late is late in a run that there can be, up to blocking, which is assumed to be at each
//! beginning.

use num_traits::{One, Zero};

use super::{Flaw, MOST, as_urgent, common, count_demand, releases, run_worst, utilisation};
use crate::rational::Rational;
use crate::simulation::{Order, Released, Speeds, simulate};
use crate::system::{Pair, Scheduler, System, Task};

/// Most jobs that all runs of a core have together: some seconds.
const MOST_RUN: usize = 300_000;

/// Whether tasks of a core, some of known phases, and jobs that come once meet their deadlines.
pub(super) fn check(
    system: &System,
    pair: &Pair,
    core: u32,
    tasks: &[&Task],
    once: Vec<(String, Released)>,
) -> Result<(), Flaw> {
    let certain = |task: &&Task| task.jitter.is_zero() && task.blocking.is_zero();
    if tasks.iter().all(certain) {
        return run(system, pair, tasks, once);
    }
    if !once.is_empty() {
        return Err(Flaw::TooLong(core));
    }
    let mut left = MOST_RUN;
    let decided = match system.scheduler {
        Scheduler::Edf => count_from_each(pair, tasks, &mut left),
        Scheduler::FixedPriority => tasks
            .iter()
            .try_for_each(|task| run_from_each(pair, tasks, task, &mut left)),
    };
    match decided {
        Ok(()) => Ok(()),
        Err(Stop::Flaw(flaw)) => Err(flaw),
        // Phases forgotten, all may come at once: what holds then, holds.
        Err(Stop::Long) => {
            let sound = match system.scheduler {
                Scheduler::Edf => count_demand(pair, tasks),
                Scheduler::FixedPriority => tasks
                    .iter()
                    .try_for_each(|task| run_worst(pair, tasks, task)),
            };
            sound.map_err(|_| Flaw::TooLong(core))
        }
    }
}

/// Two hyperperiods behind the last first arrival and the last deadline of what comes once.
fn run(
    system: &System,
    pair: &Pair,
    tasks: &[&Task],
    once: Vec<(String, Released)>,
) -> Result<(), Flaw> {
    if utilisation(pair, tasks.iter()) > Rational::one() {
        return Err(Flaw::Late(tasks[0].name.clone()));
    }
    let hyperperiod = common(tasks);
    let firsts = tasks.iter().map(|task| task.offset.clone());
    let firsts = firsts.chain(once.iter().map(|(_, job)| job.deadline.clone()));
    let end = firsts.max().unwrap_or_else(Rational::zero) + &hyperperiod + &hyperperiod;
    let (mut names, mut jobs): (Vec<String>, Vec<Released>) = once.into_iter().unzip();
    for task in tasks {
        let released = releases(pair, task, false, &end);
        names.extend(released.iter().map(|_| task.name.clone()));
        jobs.extend(released);
    }
    let order = match system.scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let run = simulate(&jobs, order, &Speeds::Constant(Rational::one()));
    match run.late(&jobs) {
        Some(late) => Err(Flaw::Late(names[late].clone())),
        None => Ok(()),
    }
}

enum Stop {
    Flaw(Flaw),
    /// More jobs than are run.
    Long,
}

fn late(task: &Task) -> Stop {
    Stop::Flaw(Flaw::Late(task.name.clone()))
}

/// Each instant at which a job is ready at the latest, over a hyperperiod in which all have begun.
fn beginnings(tasks: &[&Task], left: usize) -> Result<Vec<Rational>, Stop> {
    let latest = |task: &&Task| &task.offset + &task.jitter;
    let from = tasks.iter().map(latest).max();
    let from = from.unwrap_or_else(Rational::zero);
    let to = &from + common(tasks);
    let mut found = Vec::new();
    for task in tasks {
        let number = ((&from - latest(task)) / &task.period).ceil();
        let mut at = latest(task) + number * &task.period;
        while at < to {
            if found.len() >= left {
                return Err(Stop::Long);
            }
            found.push(at.clone());
            at += &task.period;
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// A task's jobs in the run that begins at `from`, seen from there, that arrive before `end`.
fn from_there(
    pair: &Pair,
    task: &Task,
    from: &Rational,
    end: &Rational,
    left: &mut usize,
) -> Result<Vec<Released>, Stop> {
    let number = ((from - &task.jitter - &task.offset) / &task.period).ceil();
    let mut arrival = &task.offset + number * &task.period - from;
    let work = task.cost.time(pair);
    let mut jobs = Vec::new();
    while arrival < *end {
        *left = left.checked_sub(1).ok_or(Stop::Long)?;
        jobs.push(Released {
            release: arrival.clone().max(Rational::zero()),
            deadline: &arrival + &task.deadline,
            work: work.clone(),
            priority: 0,
        });
        arrival += &task.period;
    }
    Ok(jobs)
}

/// Behind this all has been seen, also where the core has no time to spare.
fn repeats(pair: &Pair, tasks: &[&Task]) -> Rational {
    tasks.iter().fold(common(tasks), |sum, task| {
        sum + &task.period + &task.deadline + &task.jitter + task.blocking.time(pair)
    })
}

fn run_from_each(pair: &Pair, tasks: &[&Task], own: &Task, left: &mut usize) -> Result<(), Stop> {
    let urgent = as_urgent(tasks, own);
    if utilisation(pair, urgent.iter()) > Rational::one() {
        return Err(late(own));
    }
    let repeats = repeats(pair, &urgent);
    let blocking = own.blocking.time(pair);
    for from in beginnings(&urgent, *left)? {
        let mut end = own.period.clone();
        loop {
            let mut jobs = vec![Released {
                release: Rational::zero(),
                deadline: blocking.clone(),
                work: blocking.clone(),
                priority: 0,
            }];
            if blocking.is_zero() {
                jobs.clear();
            }
            let blocked = jobs.len();
            for task in urgent.iter().filter(|task| task.name != own.name) {
                jobs.extend(from_there(pair, task, &from, &end, left)?);
            }
            let first = jobs.len();
            jobs.extend(from_there(pair, own, &from, &end, left)?);
            for (index, job) in jobs.iter_mut().enumerate() {
                job.priority = u64::from(index >= blocked) + u64::from(index >= first);
            }
            let run = simulate(&jobs, Order::Priority, &Speeds::Constant(Rational::one()));
            let ends = run.finish[first..].iter().zip(&jobs[first..]);
            for (finish, job) in ends {
                if finish.as_ref().is_none_or(|finish| *finish > job.deadline) {
                    return Err(late(own));
                }
            }
            if run.rests_before(&end) || end > repeats || jobs.len() >= MOST {
                break;
            }
            end = &end + &end;
        }
    }
    Ok(())
}

/// The same under EDF, by demand: what is due by an instant and begins at `from` or later must have been done from there on.
fn count_from_each(pair: &Pair, tasks: &[&Task], left: &mut usize) -> Result<(), Stop> {
    if utilisation(pair, tasks.iter()) > Rational::one() {
        return Err(late(tasks[0]));
    }
    let repeats = repeats(pair, tasks);
    let longest = tasks.iter().map(|task| task.blocking.time(pair)).max();
    let longest = longest.unwrap_or_else(Rational::zero);
    for from in beginnings(tasks, *left)? {
        let mut end = tasks[0].period.clone();
        loop {
            let mut jobs = Vec::new();
            for (index, task) in tasks.iter().enumerate() {
                let own = from_there(pair, task, &from, &end, left)?;
                jobs.extend(own.into_iter().map(|job| (job, index)));
            }
            // When the core rests, whatever blocked it: what comes from there on is looked at from another beginning.
            jobs.sort_by(|(left, _), (right, _)| left.release.cmp(&right.release));
            let mut busy = longest.clone();
            let mut rests = jobs.len();
            for (index, (job, _)) in jobs.iter().enumerate() {
                if job.release >= busy && !job.release.is_zero() {
                    rests = index;
                    break;
                }
                busy += &job.work;
            }
            let seen = rests < jobs.len() || busy <= end || end > repeats;
            jobs.truncate(rests);
            demand_fits(pair, tasks, jobs)?;
            if seen {
                break;
            }
            end = &end + &end;
        }
    }
    Ok(())
}

/// Deadline by deadline.
fn demand_fits(pair: &Pair, tasks: &[&Task], mut jobs: Vec<(Released, usize)>) -> Result<(), Stop> {
    jobs.sort_by(|(left, _), (right, _)| left.deadline.cmp(&right.deadline));
    let mut demand = Rational::zero();
    let mut blocking = Rational::zero();
    let mut jobs = jobs.iter().peekable();
    while let Some((job, index)) = jobs.next() {
        demand += &job.work;
        blocking = blocking.max(tasks[*index].blocking.time(pair));
        let further = jobs.peek();
        if further.is_some_and(|(next, _)| next.deadline == job.deadline) {
            continue;
        }
        if &demand + &blocking > job.deadline {
            return Err(late(tasks[*index]));
        }
    }
    Ok(())
}
