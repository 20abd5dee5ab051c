//! A problem without priorities in whole numbers: its speeds by time, and who is late at them by priorities.
//!
//! *Invariant:* whether a job is late is decided in floating point only where its end is far from its deadline, else exactly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use num_bigint::BigInt;
use num_traits::Zero;

use super::super::yds::{Item, Number, of_one_speed};
use super::cost::Cost;
use crate::rational::Rational;

/// A job in whole numbers.
#[derive(Clone, Debug)]
pub(super) struct Job<N> {
    pub(super) release: N,
    pub(super) deadline: N,
    pub(super) work: N,
    /// Its place by priority: the smallest goes first; no other has the same.
    pub(super) rank: usize,
}

/// A stretch of time of one speed: work per time, of all that runs at it.
#[derive(Clone, Debug)]
pub(super) struct Slot<N> {
    pub(super) from: N,
    pub(super) to: N,
    /// None where the core stands still.
    pub(super) group: Option<usize>,
}

/// Speeds of jobs with deadlines of their own.
#[derive(Clone, Debug)]
pub(super) struct Relaxed<N> {
    pub(super) cost: Cost<N>,
    /// Work and time of each group, the fastest first.
    pub(super) groups: Vec<(N, N)>,
    /// In order, without gaps.
    pub(super) slots: Vec<Slot<N>>,
}

/// The nearest number.
pub(super) fn near<N: Number>(value: &N) -> f64 {
    value.to_f64().unwrap_or(f64::INFINITY)
}

impl<N: Number> Relaxed<N> {
    /// Jobs by release, and their deadlines here.
    pub(super) fn new(jobs: &[&Job<N>], due: &[N]) -> Self {
        let items = jobs.iter().zip(due).enumerate();
        let items = items.map(|(place, (job, due))| Item {
            job: place,
            release: job.release.clone(),
            deadline: due.clone(),
            work: job.work.clone(),
        });
        let mut parts = of_one_speed(items.collect());
        parts.sort_unstable_by(|(_, work, time), (_, other, other_time)| {
            (other.clone() * time.clone()).cmp(&(work.clone() * other_time.clone()))
        });
        let slots = slots(jobs, due, &parts);
        let groups: Vec<(N, N)> = parts
            .into_iter()
            .map(|(_, work, time)| (work, time))
            .collect();
        Relaxed {
            cost: Cost::new(groups.clone()),
            groups,
            slots,
        }
    }

    /// What the energy is above if jobs are due at `due` instead of `before`, earlier for some: energy is convex in speeds,
    /// so a job whose window keeps only faster times takes at least its work by what more speed costs at the margin.
    pub(super) fn at_least(&self, jobs: &[&Job<N>], before: &[N], due: &[N]) -> f64 {
        let changed = jobs.iter().zip(before.iter().zip(due));
        let more =
            changed
                .filter(|(_, (before, due))| before != due)
                .map(|(job, (before, due))| {
                    let (old, new) = (
                        self.least(&job.release, before),
                        self.least(&job.release, due),
                    );
                    3.0 * near(&job.work) * (new * new - old * old)
                });
        self.cost.nearly + more.sum::<f64>()
    }

    /// The least speed from a time to a time, nearly.
    fn least(&self, from: &N, to: &N) -> f64 {
        let first = self.slots.partition_point(|slot| slot.to <= *from);
        let slots = self.slots[first..]
            .iter()
            .take_while(|slot| slot.from < *to);
        slots
            .map(|slot| self.speed(slot))
            .fold(f64::INFINITY, f64::min)
    }

    /// Work per time in a slot, nearly.
    pub(super) fn speed(&self, slot: &Slot<N>) -> f64 {
        slot.group.map_or(0.0, |group| {
            let (work, time) = &self.groups[group];
            near(work) / near(time)
        })
    }

    /// Jobs that are late by priorities, but for those `sure` not to be. Jobs by release.
    pub(super) fn late(&self, jobs: &[&Job<N>], sure: &[bool]) -> Vec<usize> {
        let ends = self.ends(jobs);
        let span = near(&self.slots[self.slots.len() - 1].to) - near(&self.slots[0].from);
        let is_late = |place: &usize| {
            let after = ends[*place] - near(&jobs[*place].deadline);
            if sure[*place] || after < -1e-7 * span {
                return false;
            }
            after > 1e-7 * span || !self.is_on_time(jobs, *place)
        };
        (0..jobs.len()).filter(is_late).collect()
    }

    /// When jobs end by priorities, nearly.
    fn ends(&self, jobs: &[&Job<N>]) -> Vec<f64> {
        let mut left: Vec<f64> = jobs.iter().map(|job| near(&job.work)).collect();
        let tiny = 1e-9 * left.iter().sum::<f64>();
        let mut ends = vec![f64::INFINITY; jobs.len()];
        let mut ready = BinaryHeap::new();
        let mut next = 0;
        for slot in &self.slots {
            while next < jobs.len() && jobs[next].release <= slot.from {
                ready.push(Reverse((jobs[next].rank, next)));
                next += 1;
            }
            let Some(group) = slot.group else { continue };
            let (work, time) = &self.groups[group];
            let speed = near(work) / near(time);
            let end = near(&slot.to);
            let mut room = (end - near(&slot.from)) * speed;
            while let Some(Reverse((_, job))) = ready.peek().copied() {
                if left[job] > room + tiny {
                    left[job] -= room;
                    break;
                }
                room = (room - left[job]).max(0.0);
                ends[job] = end - room / speed;
                ready.pop();
            }
        }
        ends
    }

    /// Whether there is a time by which a job and all more urgent ones that came before are done: from each time up to its
    /// release on, the speeds suffice for what comes from there to then.
    fn is_on_time(&self, jobs: &[&Job<N>], place: usize) -> bool {
        let own = jobs[place];
        let urgent: Vec<&Job<N>> = jobs
            .iter()
            .copied()
            .filter(|job| job.rank <= own.rank)
            .collect();
        let mut times: Vec<&N> = urgent
            .iter()
            .map(|job| &job.release)
            .filter(|time| **time > own.release && **time < own.deadline)
            .collect();
        times.push(&own.deadline);
        times.dedup();
        let suffices = |time: &N| {
            let mut work = N::zero();
            let mut came = urgent.iter().rev().peekable();
            // From the last on: what came since `from` is counted when `from` is looked at.
            while let Some(job) = came.next() {
                if job.release < *time {
                    work = work + job.work.clone();
                }
                let from = &job.release;
                let same = came.peek().is_some_and(|next| next.release == *from);
                if !same && *from <= own.release && !self.does(from, time, &work) {
                    return false;
                }
            }
            true
        };
        times.iter().rev().any(|time| suffices(time))
    }

    /// Whether the speeds do so much work from a time to a time.
    fn does(&self, from: &N, to: &N, work: &N) -> bool {
        let mut inside: Vec<(usize, N)> = Vec::new();
        let first = self.slots.partition_point(|slot| slot.to <= *from);
        for slot in self.slots[first..]
            .iter()
            .take_while(|slot| slot.from < *to)
        {
            let Some(group) = slot.group else { continue };
            let time = slot.to.clone().min(to.clone()) - slot.from.clone().max(from.clone());
            match inside.iter_mut().find(|(other, _)| *other == group) {
                Some((_, sum)) => *sum = sum.clone() + time,
                None => inside.push((group, time)),
            }
        }
        let speed = |group: usize| near(&self.groups[group].0) / near(&self.groups[group].1);
        let nearly: f64 = inside
            .iter()
            .map(|(group, time)| near(time) * speed(*group))
            .sum();
        let spare = nearly - near(work);
        if spare.abs() > 1e-9 * nearly.max(near(work)) {
            return spare > 0.0;
        }
        let parts: Vec<(&N, &(N, N))> = inside
            .iter()
            .map(|(group, time)| (time, &self.groups[*group]))
            .collect();
        reach_narrow(&parts, work).unwrap_or_else(|| reach(&parts, work))
    }
}

/// Whether groups, work and time of each, do so much work in so much time of theirs.
fn reach<N: Number>(parts: &[(&N, &(N, N))], work: &N) -> bool {
    let done = parts.iter().map(|(time, (of_group, length))| {
        let top: BigInt = (*time).clone().into();
        let of_group: BigInt = of_group.clone().into();
        Rational::new(top * of_group, length.clone().into())
    });
    let done = done.fold(Rational::zero(), |sum, part| sum + part);
    done >= Rational::from_integer(work.clone().into())
}

/// The same where 128 bits suffice for all products of times.
fn reach_narrow<N: Number>(parts: &[(&N, &(N, N))], work: &N) -> Option<bool> {
    let (mut top, mut bottom) = (0_i128, 1_i128);
    for (time, (of_group, length)) in parts {
        let done = time.to_i128()?.checked_mul(of_group.to_i128()?)?;
        let length = length.to_i128()?;
        top = top
            .checked_mul(length)?
            .checked_add(done.checked_mul(bottom)?)?;
        bottom = bottom.checked_mul(length)?;
    }
    Some(top >= work.to_i128()?.checked_mul(bottom)?)
}

/// Whose time is when: a group has all of its windows that no faster group has. Groups come the fastest first.
fn slots<N: Number>(jobs: &[&Job<N>], due: &[N], parts: &[(Vec<usize>, N, N)]) -> Vec<Slot<N>> {
    let mut times: Vec<&N> = jobs.iter().map(|job| &job.release).chain(due).collect();
    times.sort_unstable();
    times.dedup();
    let mut slots: Vec<Slot<N>> = times
        .windows(2)
        .map(|pair| Slot {
            from: pair[0].clone(),
            to: pair[1].clone(),
            group: None,
        })
        .collect();
    // The next slot from a slot on that nobody has.
    let mut free: Vec<usize> = (0..=slots.len()).collect();
    for (group, (members, _, _)) in parts.iter().enumerate() {
        for job in members {
            let first = slots.partition_point(|slot| slot.from < jobs[*job].release);
            let end = slots.partition_point(|slot| slot.from < due[*job]);
            let mut slot = next_free(&mut free, first);
            while slot < end {
                slots[slot].group = Some(group);
                free[slot] = slot + 1;
                slot = next_free(&mut free, slot);
            }
        }
    }
    slots
}

fn next_free(free: &mut [usize], from: usize) -> usize {
    let mut end = from;
    while free[end] != end {
        end = free[end];
    }
    let mut at = from;
    while free[at] != end {
        at = std::mem::replace(&mut free[at], end);
    }
    end
}
