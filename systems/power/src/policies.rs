//! What others do: policies of EDF on one core with some frequencies, to be compared with.
//!
//! *Invariant:* each policy meets all deadlines of a set whose utilisation at the highest frequency is not above 1.

mod run_time;

use num_traits::{One, Zero};

use crate::levels::{self, Level};
use crate::rational::{Rational, whole};
use crate::simulation::{Order, Released, Run, Speeds, simulate};
use crate::speed::{run_by_deadline, windows, yds};
use crate::system::{Processor, Scheduler};
use run_time::Rounding;

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
    /// That, chosen anew by what finished jobs have used (same).
    pub cycle_conserving: Rational,
    /// The speeds of that, split in two neighbours instead of rounded up; never below the critical speed.
    pub split: Rational,
    /// The cheapest of the optimal speeds, split, of single levels, and of all of the above: what each job takes is known.
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

/// Compares policies on a set over a hyperperiod. Each job takes `taken` of its worst case, asked for in order, above 0 and
/// not above 1. None if the set does not fit.
#[must_use]
pub fn compare(
    tasks: &[Implicit],
    processor: &Processor,
    taken: impl FnMut() -> Rational,
) -> Option<Energies> {
    let all = levels::levels(processor);
    let fast = all.last()?;
    let utilisation = tasks
        .iter()
        .fold(Rational::zero(), |sum, task| sum + &task.utilisation);
    if utilisation > Rational::one() {
        return None;
    }
    let periods = tasks.iter().map(|task| task.period.clone());
    let end = periods.reduce(|left, right| crate::rational::common_period(&left, &right))?;
    let (owners, jobs, worst) = jobs(tasks, &fast.speed, &end, taken);
    let zero = Rational::zero();
    let awake = Processor {
        sleep: None,
        ..processor.clone()
    };
    let of = |run: &Run, processor: &Processor| {
        assert_eq!(run.late(&jobs), None, "no policy is late");
        levels::energy(run, &all, processor, &zero, &end)
    };
    let at = |level: &Level| {
        let speeds = Speeds::Constant(level.speed.clone());
        simulate(&jobs, Order::Deadline, &speeds)
    };
    let fitting = all
        .iter()
        .find(|level| level.speed >= &utilisation * &fast.speed)?;
    let still = match &processor.sleep {
        Some(sleep) => &sleep.power - &processor.power.floor,
        None => processor.idle.clone(),
    };
    let hull = levels::hull(&all, &still);
    let chosen = |rounding| run_time::cycle_conserving(tasks, &owners, &jobs, &worst, &rounding);
    let (full, fixed) = (at(fast), at(fitting));
    let optimal = run_by_deadline(&jobs, &yds(&windows(&jobs)));
    let (_, ours) = levels::cheapest(&jobs, &optimal, Scheduler::Edf, processor, &zero, &end)?;
    let mut energies = Energies {
        full_speed: of(&full, &awake),
        race_to_idle: of(&full, processor),
        static_edf: of(&fixed, processor),
        cycle_conserving: of(&chosen(Rounding::Up(&all)), processor),
        split: of(&chosen(Rounding::Split(&hull)), processor),
        ours,
    };
    // Whoever knows what jobs take can run as any policy does.
    for other in [&energies.cycle_conserving, &energies.split] {
        if *other < energies.ours {
            energies.ours = other.clone();
        }
    }
    Some(energies)
}

/// Whose each job is, what it takes, and what it may take.
fn jobs(
    tasks: &[Implicit],
    top: &Rational,
    end: &Rational,
    mut taken: impl FnMut() -> Rational,
) -> (Vec<usize>, Vec<Released>, Vec<Rational>) {
    let (mut owners, mut jobs, mut worst) = (Vec::new(), Vec::new(), Vec::new());
    for (owner, task) in tasks.iter().enumerate() {
        let mut release = whole(0);
        while release < *end && !task.utilisation.is_zero() {
            let most = &task.utilisation * &task.period * top;
            owners.push(owner);
            jobs.push(Released {
                deadline: &release + &task.period,
                release: release.clone(),
                work: &most * taken(),
                priority: 0,
            });
            worst.push(most);
            release += &task.period;
        }
    }
    (owners, jobs, worst)
}
