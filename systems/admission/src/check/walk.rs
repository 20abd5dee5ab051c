//! Releases and deadlines of a core in order of time.
//!
//! *Invariant:* written without the admission's analysis, and simple rather than quick.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Flaw;

/// Releases that are walked over.
const MOST: u32 = 1 << 22;

/// What is released again and again.
#[derive(Clone, Debug)]
pub(super) struct Job<'a> {
    /// Of a function; none of the compile server.
    pub(super) name: Option<&'a String>,
    pub(super) period: u128,
    pub(super) deadline: u128,
    /// Time of an invocation while all keep to their budgets.
    pub(super) usual: u128,
    /// Most time of an invocation.
    pub(super) most: u128,
    /// Releases at once.
    pub(super) at_once: u128,
    /// By how much later ones come early.
    pub(super) early: u128,
    pub(super) low: bool,
    /// Whether it preempts all others, and has no deadline.
    pub(super) above: bool,
}

impl Job<'_> {
    /// When its releases are, if all are as early as they can be: the first is number 0.
    fn release(&self, number: u128) -> u128 {
        let behind_burst = (number + 1).saturating_sub(self.at_once);
        (behind_burst.saturating_mul(self.period)).saturating_sub(self.early)
    }

    /// Work that is due in a window: counted from its releases.
    pub(super) fn due(&self, deadline: u128, budget: u128, window: u128) -> u128 {
        let Some(last) = window.checked_sub(deadline) else {
            return 0;
        };
        // The releases behind the burst that are not later than `last`.
        let behind = last.saturating_add(self.early) / self.period;
        budget.saturating_mul(self.at_once.saturating_add(behind))
    }

    /// At least the work that is due in any window from `window` on, on a line of the task's own slope.
    fn line(&self, deadline: u128, budget: u128, window: u128) -> Option<u128> {
        let lead = self
            .at_once
            .checked_mul(self.period)?
            .checked_add(self.early)?;
        let length = window.checked_add(lead)?.saturating_sub(deadline);
        // Releases, whole and in part, each rounded up to a unit of work.
        let (whole, part) = (length / self.period, length % self.period);
        let work = budget.checked_mul(whole)?;
        work.checked_add(budget.checked_mul(part)?.div_ceil(self.period))
    }
}

/// Whether a core's tasks ask for no more than all of it in the long run; said only if it is certain.
pub(super) fn is_sustained<'a>(shares: impl Iterator<Item = (&'a Job<'a>, u128)>) -> bool {
    const ONE: u128 = 1 << 60;
    let sum = shares.fold(0_u128, |sum, (job, budget)| {
        sum.saturating_add(budget.saturating_mul(ONE).div_ceil(job.period))
    });
    sum <= ONE
}

/// From when on demand less supply repeats itself or falls: the longest deadline and the least common multiple of the
/// periods, if tasks ask for no more than all of a core in that time; none if that is beyond 64 bits.
pub(super) fn repeats_from<'a>(
    shares: impl Iterator<Item = (&'a Job<'a>, u128)> + Clone,
) -> Option<u128> {
    let mut common = 1_u128;
    for (job, _) in shares.clone() {
        let (mut left, mut right) = (common, job.period);
        while right != 0 {
            (left, right) = (right, left % right);
        }
        common = (common / left).checked_mul(job.period)?;
        u64::try_from(common).ok()?;
    }
    let longest = shares.clone().map(|(job, _)| job.deadline).max()?;
    let work = shares.map(|(job, budget)| budget.checked_mul(common / job.period));
    (work.sum::<Option<u128>>()? <= common).then_some(longest + common)
}

/// What is left at the most of an invocation that has begun and is due behind a window: all but a unit.
pub(super) fn begun<'a>(jobs: &[Job<'a>], window: u128, budget: impl Fn(&Job<'a>) -> u128) -> u128 {
    let later = jobs
        .iter()
        .filter(|job| job.deadline > window && !job.above);
    later.map(|job| budget(job) - 1).max().unwrap_or(0)
}

/// Whether every deadline is met if all arrive at once and then as early as they can; with `whole`, behind
/// one that has begun and is not preempted.
pub(super) fn deadlines_are_met<'a>(
    core: u32,
    jobs: &[Job<'a>],
    blocking: u128,
    whole: bool,
    budget: impl Fn(&Job<'a>) -> u128,
) -> Result<(), Flaw> {
    let sustained = is_sustained(jobs.iter().map(|job| (job, budget(job))));
    let held = match whole {
        true => begun(jobs, 0, &budget),
        false => 0,
    };
    let busy = busy_period(jobs, blocking + held, &budget);
    let repeats = repeats_from(jobs.iter().map(|job| (job, budget(job))));
    let mut deadlines = BinaryHeap::new();
    for (index, job) in jobs.iter().enumerate() {
        deadlines.push(Reverse((job.deadline, index, 0_u128)));
    }
    let mut demand = blocking;
    // Whether anything of this time is a deadline.
    let mut looked_at = false;
    for _ in 0..MOST {
        let Some(Reverse((time, index, number))) = deadlines.pop() else {
            return Ok(());
        };
        if busy.is_some_and(|end| time > end) || repeats.is_some_and(|end| time > end) {
            return Ok(());
        }
        let job = &jobs[index];
        demand = demand.saturating_add(budget(job));
        looked_at |= !job.above;
        let next = job.release(number + 1).saturating_add(job.deadline);
        deadlines.push(Reverse((next, index, number + 1)));
        // Others may be due at the same time.
        let Reverse((upcoming, ..)) = deadlines.peek().expect("one was added");
        if *upcoming == time {
            continue;
        }
        let mut due = demand;
        if whole {
            due = due.saturating_add(begun(jobs, time, &budget));
        }
        if std::mem::take(&mut looked_at) && due > time {
            let demand = due;
            return Err(Flaw::Missed { core, time, demand });
        }
        let line = || {
            let lines = jobs
                .iter()
                .map(|job| job.line(job.deadline, budget(job), time));
            lines.sum::<Option<u128>>()?.checked_add(blocking + held)
        };
        if sustained && busy.is_none() && line().is_some_and(|line| line <= time) {
            return Ok(());
        }
    }
    Err(Flaw::TooLong(core))
}

/// When a core that begins with all that arrives at once, behind a section that is not preempted, has nothing left to do.
fn busy_period<'a>(
    jobs: &[Job<'a>],
    blocking: u128,
    budget: &impl Fn(&Job<'a>) -> u128,
) -> Option<u128> {
    let mut releases = BinaryHeap::new();
    for index in 0..jobs.len() {
        releases.push(Reverse((0_u128, index, 0_u128)));
    }
    let mut end = blocking;
    for _ in 0..MOST {
        let Some(Reverse((time, index, number))) = releases.pop() else {
            return Some(end);
        };
        if time >= end && time > 0 {
            return Some(end);
        }
        end = end.saturating_add(budget(&jobs[index]));
        let next = jobs[index].release(number + 1);
        releases.push(Reverse((next, index, number + 1)));
    }
    None
}
