//! What others do: policies of EDF on one core with some frequencies, to be compared with.
//!
//! *Invariant:* each policy meets all deadlines of a set whose utilisation at the highest frequency is not above 1.

use num_traits::{One, Zero};

use crate::levels::{self, Level};
use crate::rational::{Rational, whole};
use crate::simulation::{Order, Released, Run, Speeds, simulate};
use crate::speed::{run_by_deadline, windows, yds};
use crate::system::{Processor, Scheduler};

/// A task of a comparison: implicit deadline, all released at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implicit {
    /// Its period and deadline.
    pub period: Rational,
    /// Its share of the highest frequency.
    pub utilisation: Rational,
}

/// Energies over a hyperperiod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energies {
    /// The highest frequency, idling between.
    pub full_speed: Rational,
    /// The highest frequency, asleep between where that pays.
    pub race_to_idle: Rational,
    /// The lowest frequency that is not below the utilisation (Pillai and Shin, SOSP 2001).
    pub static_edf: Rational,
    /// That, chosen anew by what finished jobs have used (same). Where all take their worst case, as here, no less than
    /// the static one.
    pub cycle_conserving: Rational,
    /// The cheapest split of the optimal speeds, and of single levels.
    pub ours: Rational,
}

/// Parts of a utilisation, all ways of parting equally likely (UUniFast: Bini and Buttazzo 2005, by sorted cuts), in
/// thousandths.
#[must_use]
pub fn uunifast(random: &mut metes_random::Random, count: usize, thousandths: u64) -> Vec<u64> {
    loop {
        let mut cuts: Vec<u64> = (1..count).map(|_| random.below(thousandths + 1)).collect();
        cuts.extend([0, thousandths]);
        cuts.sort_unstable();
        let parts: Vec<u64> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if parts.iter().all(|part| *part > 0) || thousandths < count as u64 {
            return parts;
        }
    }
}

/// Compares policies on a set over a hyperperiod, all jobs taking their worst case. None if the set does not fit.
#[must_use]
pub fn compare(tasks: &[Implicit], processor: &Processor) -> Option<Energies> {
    let all = levels::levels(processor);
    let top = all.last()?.speed.clone();
    let utilisation = tasks
        .iter()
        .fold(Rational::zero(), |sum, task| sum + &task.utilisation);
    if utilisation > Rational::one() {
        return None;
    }
    let periods = tasks.iter().map(|task| task.period.clone());
    let end = periods.reduce(|left, right| crate::rational::common_period(&left, &right))?;
    let jobs = jobs(tasks, &top, &end);
    let zero = Rational::zero();
    let awake = Processor {
        sleep: None,
        ..processor.clone()
    };
    let at = |level: &Level, processor: &Processor| {
        let speeds = Speeds::Constant(level.speed.clone());
        let run = simulate(&jobs, Order::Deadline, &speeds);
        levels::energy(&run, &all, processor, &zero, &end)
    };
    let fast = all.last()?;
    let fitting = all
        .iter()
        .find(|level| level.speed >= &utilisation * &top)?;
    let groups = yds(&windows(&jobs));
    let optimal: Run = run_by_deadline(&jobs, &groups);
    let (_, ours) = levels::cheapest(&jobs, &optimal, Scheduler::Edf, processor, &zero, &end)?;
    Some(Energies {
        full_speed: at(fast, &awake),
        race_to_idle: at(fast, processor),
        static_edf: at(fitting, processor),
        cycle_conserving: at(fitting, processor),
        ours,
    })
}

fn jobs(tasks: &[Implicit], top: &Rational, end: &Rational) -> Vec<Released> {
    let mut jobs = Vec::new();
    for task in tasks.iter().filter(|task| !task.utilisation.is_zero()) {
        let mut release = whole(0);
        while release < *end {
            jobs.push(Released {
                deadline: &release + &task.period,
                release: release.clone(),
                work: &task.utilisation * &task.period * top,
                priority: 0,
            });
            release += &task.period;
        }
    }
    jobs
}
