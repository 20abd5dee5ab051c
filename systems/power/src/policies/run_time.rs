//! Policies of EDF that choose speeds while jobs run, by what finished ones have used.
//!
//! *Invariant:* between two events no less work is done, from the former on, than at the reserved speed.

use num_traits::Zero;

use super::Implicit;
use crate::levels::Level;
use crate::rational::Rational;
use crate::simulation::{Released, Run, Segment};

/// How a reserved speed becomes levels.
pub(super) enum Rounding<'a> {
    /// The lowest level that is not below it.
    Up(&'a [Level]),
    /// Two neighbours on a hull, the faster first, by what the job may still take; below the critical speed, that one.
    Split(&'a [Level]),
}

/// Runs jobs, of tasks of which all arrive at once first, by earliest deadline. Each task reserves the share of its worst
/// case until a job of it has ended, then what that has used, until the next arrives (Pillai and Shin, SOSP 2001).
/// `worst` is the work that each job may take.
pub(super) fn cycle_conserving(
    tasks: &[Implicit],
    owners: &[usize],
    jobs: &[Released],
    worst: &[Rational],
    rounding: &Rounding<'_>,
) -> Run {
    let share = |work: &Rational, task: usize| work / &tasks[task].period;
    let mut reserved = vec![Rational::zero(); tasks.len()];
    let mut arrivals: Vec<usize> = (0..jobs.len()).collect();
    arrivals.sort_by(|left, right| jobs[*left].release.cmp(&jobs[*right].release));
    let mut arrivals = arrivals.into_iter().peekable();
    let mut ready: Vec<usize> = Vec::new();
    let mut left: Vec<Rational> = jobs.iter().map(|job| job.work.clone()).collect();
    let mut used = vec![Rational::zero(); jobs.len()];
    let mut run = Run {
        segments: Vec::new(),
        finish: vec![None; jobs.len()],
    };
    let mut now = Rational::zero();
    // For whom, at which reserved speed, and how long the faster neighbour runs yet.
    let mut plan: Option<(usize, Rational, Rational)> = None;
    loop {
        while let Some(job) = arrivals.next_if(|job| jobs[*job].release <= now) {
            reserved[owners[job]] = share(&worst[job], owners[job]);
            ready.push(job);
        }
        let first = ready
            .iter()
            .copied()
            .min_by_key(|job| (&jobs[*job].deadline, &jobs[*job].release, *job));
        let next = arrivals.peek().map(|job| jobs[*job].release.clone());
        let Some(job) = first else {
            match next {
                Some(next) => now = next,
                None => return run,
            }
            continue;
        };
        let speed: Rational = reserved.iter().sum();
        let (low, high) = levels(&speed, rounding);
        let goes_on = |plan: &(usize, Rational, Rational)| plan.0 == job && plan.1 == speed;
        let at_high = match plan.take().filter(goes_on) {
            Some((_, _, at_high)) => at_high,
            None if low == high => Rational::zero(),
            None => (&worst[job] - &used[job]) * (&speed - low) / (&speed * (high - low)),
        };
        let (level, change) = if at_high.is_zero() {
            (low.clone(), None)
        } else {
            (high.clone(), Some(&now + &at_high))
        };
        let end = &now + &left[job] / &level;
        let until = [next, change]
            .into_iter()
            .flatten()
            .fold(end, Rational::min);
        if low != high {
            let left = (at_high - (&until - &now)).max(Rational::zero());
            plan = Some((job, speed, left));
        }
        let speed = level;
        let work = (&until - &now) * &speed;
        left[job] -= &work;
        used[job] += &work;
        run.segments.push(Segment {
            job,
            from: now,
            to: until.clone(),
            speed,
        });
        if left[job].is_zero() {
            run.finish[job] = Some(until.clone());
            ready.retain(|other| *other != job);
            reserved[owners[job]] = share(&jobs[job].work, owners[job]);
        }
        now = until;
    }
}

/// The neighbours of a reserved speed; twice the same where it is rounded.
fn levels<'a>(speed: &Rational, rounding: &Rounding<'a>) -> (&'a Rational, &'a Rational) {
    let levels = match rounding {
        Rounding::Up(levels) => *levels,
        // The first stands still.
        Rounding::Split(hull) => &hull[1..],
    };
    let above = levels.partition_point(|level| level.speed < *speed);
    let high = &levels[above.min(levels.len() - 1)].speed;
    match (rounding, above.checked_sub(1)) {
        (Rounding::Split(_), Some(below)) => (&levels[below].speed, high),
        _ => (high, high),
    }
}
