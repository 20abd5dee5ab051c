//! The optimal speeds of jobs under fixed priorities (the problem of Quan and Hu, “Minimum energy fixed-priority scheduling
//! for variable voltage processors”, DATE 2002; NP-hard: Yun and Kim 2003).
//!
//! A job meets its deadline exactly if there is a time in its window, its deadline or the release of a more urgent
//! job, by which it and all more urgent jobs that were released before are done: from every time up to its release on, the
//! speeds suffice for what is released from there to then. For one such time of each job that is a problem with earlier
//! deadlines and without priorities, whose optimum is that of [`yds`](super::yds()); the least of all choices is the optimum.
//! The choice for the least urgent job parts a problem in time ([`chain`]); others are made only for jobs that are late in a
//! run of what is optimal so far, which is a lower bound of all that follow ([`search`]).
//!
//! *Invariant:* `bound ≤ optimum ≤ energy`; both are equal unless nodes ran out; no job is late in the run.

mod chain;
mod cost;
mod relaxed;
mod search;

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

use super::yds::Number;
use crate::rational::{Rational, grain, in_grains};
use crate::simulation::{Order, Released, Run, Speeds, ranking, simulate};
use relaxed::Job;

/// The least energy that was found, and what is proven of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optimum {
    /// From a time to a time so fast.
    pub profile: Vec<(Rational, Rational, Rational)>,
    /// Who runs then, by priority.
    pub run: Run,
    /// Speeds and works whose Σ speed² · work is the energy.
    pub groups: Vec<(Rational, Rational)>,
    /// Of which the same sum is no more than the energy of any schedule.
    pub bound: Vec<(Rational, Rational)>,
    /// Whether both are the same: nothing takes less.
    pub optimal: bool,
    /// Problems without priorities that were solved.
    pub nodes: u64,
}

/// The optimal speeds under fixed priorities. For each stretch of time that some window covers, `nodes` problems without
/// priorities are solved, then what is found at once is taken for what is not known.
#[must_use]
pub fn fixed_priority(jobs: &[Released], nodes: u64) -> Optimum {
    let mut optimum = Optimum {
        profile: Vec::new(),
        run: Run::default(),
        groups: Vec::new(),
        bound: Vec::new(),
        optimal: true,
        nodes: 0,
    };
    for stretch in stretches(jobs) {
        let part: Vec<Released> = stretch.iter().map(|job| jobs[*job].clone()).collect();
        let scaled = Scaled::new(&part);
        let bits = scaled.bits();
        // Products of all work and any time, and sums of two of them.
        if bits < 60 {
            scaled.solve(|value| value.to_i64().unwrap_or(0), nodes, &mut optimum);
        } else if bits < 124 {
            scaled.solve(|value| value.to_i128().unwrap_or(0), nodes, &mut optimum);
        } else {
            scaled.solve(BigInt::clone, nodes, &mut optimum);
        }
    }
    optimum.run = simulate(
        jobs,
        Order::Priority,
        &Speeds::Profile(optimum.profile.clone()),
    );
    optimum
}

/// Jobs of a stretch in whole numbers, from its first release on.
struct Scaled {
    start: Rational,
    time_grain: BigInt,
    work_grain: BigInt,
    /// By release.
    jobs: Vec<Job<BigInt>>,
}

impl Scaled {
    fn new(jobs: &[Released]) -> Self {
        let start = jobs.iter().map(|job| &job.release).min();
        let start = start.cloned().unwrap_or_else(Rational::zero);
        let mut rank = vec![0; jobs.len()];
        for (place, job) in ranking(jobs, Order::Priority).into_iter().enumerate() {
            rank[job] = place;
        }
        let since = |time: &Rational| time - &start;
        let times = jobs
            .iter()
            .flat_map(|job| [since(&job.release), since(&job.deadline)]);
        let time_grain = grain(&times.collect::<Vec<_>>());
        let work_grain = grain(jobs.iter().map(|job| &job.work));
        let scaled = jobs.iter().zip(rank).map(|(job, rank)| Job {
            release: in_grains(&since(&job.release), &time_grain),
            deadline: in_grains(&since(&job.deadline), &time_grain),
            work: in_grains(&job.work, &work_grain),
            rank,
        });
        let mut scaled: Vec<Job<BigInt>> = scaled.collect();
        scaled.sort_by(|left, right| left.release.cmp(&right.release));
        Scaled {
            start,
            time_grain,
            work_grain,
            jobs: scaled,
        }
    }

    fn bits(&self) -> u64 {
        let work: BigInt = self.jobs.iter().map(|job| &job.work).sum();
        let end = self.jobs.iter().map(|job| job.deadline.bits()).max();
        work.bits() + end.unwrap_or(0)
    }

    fn solve<N: Number>(&self, number: impl Fn(&BigInt) -> N, nodes: u64, optimum: &mut Optimum) {
        let jobs = self.jobs.iter().map(|job| Job {
            release: number(&job.release),
            deadline: number(&job.deadline),
            work: number(&job.work),
            rank: job.rank,
        });
        let best = chain::solve(&jobs.collect::<Vec<Job<N>>>(), nodes);
        let time = |time: &N| Rational::new(time.clone().into(), self.time_grain.clone());
        let group = |(work, length): &(N, N)| {
            let work = Rational::new(work.clone().into(), self.work_grain.clone());
            (&work / time(length), work)
        };
        optimum.nodes += best.nodes;
        optimum.optimal &= best.bound.is_none();
        let mut found = Vec::new();
        for part in &best.parts {
            let groups: Vec<(Rational, Rational)> = part.groups.iter().map(group).collect();
            for slot in &part.slots {
                let Some((speed, _)) = slot.group.map(|group| &groups[group]) else {
                    continue;
                };
                let (from, to) = (&self.start + time(&slot.from), &self.start + time(&slot.to));
                match optimum.profile.last_mut() {
                    Some((_, end, last)) if *end == from && last == speed => *end = to,
                    _ => optimum.profile.push((from, to, speed.clone())),
                }
            }
            found.extend(groups);
        }
        let bound = best.bound.map(|parts| parts.iter().map(group).collect());
        optimum.bound.extend(bound.unwrap_or_else(|| found.clone()));
        optimum.groups.extend(found);
    }
}

/// Jobs in order of time, parted where no window goes on.
fn stretches(jobs: &[Released]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|left, right| jobs[*left].release.cmp(&jobs[*right].release));
    let mut stretches: Vec<Vec<usize>> = Vec::new();
    let mut end: Option<Rational> = None;
    for job in order {
        let due = &jobs[job].deadline;
        match (&mut end, stretches.last_mut()) {
            (Some(end), Some(stretch)) if jobs[job].release < *end => {
                stretch.push(job);
                if due > end {
                    *end = due.clone();
                }
            }
            _ => {
                stretches.push(vec![job]);
                end = Some(due.clone());
            }
        }
    }
    // In each, as they stood: of equal jobs the first goes first.
    for stretch in &mut stretches {
        stretch.sort_unstable();
    }
    stretches
}

/// Σ speed² · work of speeds and works.
#[must_use]
pub fn energy_of(groups: &[(Rational, Rational)]) -> Rational {
    let parts = groups.iter().map(|(speed, work)| speed * speed * work);
    parts.fold(Rational::zero(), |sum, part| sum + part)
}
