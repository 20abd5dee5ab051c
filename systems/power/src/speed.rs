//! Schedules of speed: who runs when and how fast, with the least energy.
//!
//! *Invariant:* what is returned was run: its segments come from the simulation at its speeds, and no job is late in it.

mod fixed_priority;
mod yds;

pub use fixed_priority::{Optimum, energy_of, fixed_priority};
pub use yds::{Groups, Window, yds};

use crate::rational::Rational;
use crate::simulation::{Order, Released, Run, Speeds, simulate};

/// The windows of jobs.
#[must_use]
pub fn windows(jobs: &[Released]) -> Vec<Window> {
    let window = |job: &Released| Window {
        release: job.release.clone(),
        deadline: job.deadline.clone(),
        work: job.work.clone(),
    };
    jobs.iter().map(window).collect()
}

/// The run of jobs by earliest deadline, each at its speed of [`yds`]. O(n log n).
#[must_use]
pub fn run_by_deadline(jobs: &[Released], groups: &Groups) -> Run {
    let speeds = (0..jobs.len()).map(|job| groups.speed(job).clone());
    simulate(jobs, Order::Deadline, &Speeds::PerJob(speeds.collect()))
}

/// The speed at each time of such a run.
#[must_use]
pub fn profile(run: &Run) -> Vec<(Rational, Rational, Rational)> {
    let mut profile: Vec<(Rational, Rational, Rational)> = Vec::new();
    for segment in &run.segments {
        match profile.last_mut() {
            Some((_, to, speed)) if *speed == segment.speed && *to == segment.from => {
                *to = segment.to.clone();
            }
            _ => profile.push((
                segment.from.clone(),
                segment.to.clone(),
                segment.speed.clone(),
            )),
        }
    }
    profile
}
