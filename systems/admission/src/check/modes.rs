//! Both modes of two levels of criticality, window for window.
//!
//! *Invariant:* as the walk: nothing of the admission's own analysis.

use std::collections::BTreeSet;

use super::Flaw;
use super::walk::{Job, deadlines_are_met, is_sustained, repeats_from};

/// Windows that are looked at.
const MOST: u32 = 1 << 20;

/// The deadline before the switch: so many sixteenths, rounded up.
pub(super) fn virtual_deadline(job: &Job, sixteenths: u64) -> u128 {
    match job.low {
        true => job.deadline,
        false => (job.deadline * u128::from(sixteenths)).div_ceil(16),
    }
}

/// Whether all deadlines are met while budgets are kept, and those of high criticality after one was not.
pub(super) fn both_are_met(
    core: u32,
    jobs: &[Job],
    blocking: u128,
    sixteenths: u64,
) -> Result<(), Flaw> {
    let before: Vec<Job> = jobs
        .iter()
        .map(|job| Job {
            deadline: virtual_deadline(job, sixteenths),
            ..job.clone()
        })
        .collect();
    deadlines_are_met(core, &before, blocking, false, |job| job.usual)?;
    let high: Vec<&Job> = jobs.iter().filter(|job| !job.low).collect();
    let simple = high
        .iter()
        .all(|job| job.at_once == 1 && job.early == 0 && job.deadline <= job.period);
    if !simple {
        return Err(Flaw::Degraded(core));
    }
    after_the_switch(core, &high, blocking, sixteenths)
}

fn after_the_switch(core: u32, high: &[&Job], blocking: u128, sixteenths: u64) -> Result<(), Flaw> {
    let sustained = is_sustained(high.iter().map(|job| (*job, job.most)));
    let repeats = repeats_from(high.iter().map(|job| (*job, job.most)));
    let left = |job: &Job| job.deadline - virtual_deadline(job, sixteenths);
    // Where demand jumps, and where it ends to climb.
    let mut windows: BTreeSet<(u128, usize)> = BTreeSet::new();
    for (index, job) in high.iter().enumerate() {
        windows.insert((left(job), index));
        windows.insert((left(job) + job.usual, index));
    }
    for _ in 0..MOST {
        let Some((time, index)) = windows.pop_first() else {
            return Ok(());
        };
        if repeats.is_some_and(|end| time > end) {
            return Ok(());
        }
        windows.insert((time + high[index].period, index));
        let demands = high.iter().map(|job| carried_over(job, left(job), time));
        let demand = demands.fold(blocking, u128::saturating_add);
        if demand > time {
            return Err(Flaw::Missed { core, time, demand });
        }
        // Each window begins with one invocation more than fits, at the most.
        let ahead = high.iter().try_fold(blocking, |sum, job| {
            let length = (time + job.period).saturating_sub(left(job));
            sum.checked_add(job.most.checked_mul(length)?.div_ceil(job.period))
        });
        if sustained && ahead.is_some_and(|ahead| ahead <= time) {
            return Ok(());
        }
    }
    Err(Flaw::TooLong(core))
}

/// What is due in a window that begins at the switch: one invocation is carried over with `left` of its deadline at the
/// least, and has done what it must have done by its virtual deadline.
fn carried_over(job: &Job, left: u128, window: u128) -> u128 {
    let Some(behind) = window.checked_sub(left) else {
        return 0;
    };
    let invocations = 1 + behind / job.period;
    let phase = window % job.period;
    let done = match left <= phase && phase < job.deadline {
        true => job.usual.saturating_sub(phase - left),
        false => 0,
    };
    (invocations.saturating_mul(job.most)).saturating_sub(done)
}
