//! Random sets: the exact test, simpler ones, and what a simulation says.
//!
//! *Invariant:* a seed gives the same sets and the same tally for ever.

use metes_random::Random;

use crate::certificate::Certificate;
use crate::decision::{Decision, admit, is_admitted};
use crate::fit::Effort;
use crate::rules;
use crate::set::{Function, Host, Set};
use crate::simulation::{Behaviour, Outcome, simulate};

/// Which deadlines are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlines {
    /// From the budget to the period.
    Constrained,
    /// From the budget to twice the period.
    Arbitrary,
}

/// What was found of sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sets.
    pub sets: u64,
    /// Sets in which the simulation meets all deadlines.
    pub met: u64,
    /// Sets that are admitted.
    pub admitted: u64,
    /// Of these, those that miss a deadline in the simulation: there may be none.
    pub admitted_missed: u64,
    /// Of these, those that miss one with arrivals and execution times drawn: there may be none.
    pub admitted_missed_drawn: u64,
    /// Sets that are refused and meet all deadlines: there may be none.
    pub refused_met: u64,
    /// Certificates that were checked, and held.
    pub certified: u64,
    /// Certificates that did not hold: there may be none.
    pub flawed: u64,
    /// Sets that the sum of utilisations admits.
    pub utilisation: u64,
    /// Of these, those that miss.
    pub utilisation_missed: u64,
    /// Sets that the sum of densities admits.
    pub density: u64,
    /// Sets that `SCHED_DEADLINE` admits.
    pub sched_deadline: u64,
    /// Of these, those that miss.
    pub sched_deadline_missed: u64,
    /// Sets whose simulation was cut off.
    pub too_long: u64,
}

/// Units of time of a simulation.
const UNITS: u64 = 100_000;
/// Of one with drawn arrivals.
const DRAWN: u64 = 1000;

/// A set of two to eight functions on each of one to three cores, whose budgets come to about so many hundredths of each
/// core.
#[must_use]
pub fn draw(random: &mut Random, hundredths: u64, deadlines: Deadlines) -> Set {
    let cores = random.between(1, 3) as u32;
    let mut functions = Vec::new();
    for core in 0..cores {
        let count = random.between(2, 8) as usize;
        for share in shares(random, count, hundredths * 10_000) {
            let period = random.between(4, 40);
            let budget = (share * period).div_ceil(1_000_000).clamp(1, period);
            let longest = match deadlines {
                Deadlines::Constrained => period,
                Deadlines::Arbitrary => 2 * period,
            };
            let name = format!("f{}", functions.len());
            let deadline = random.between(budget, longest);
            functions.push(Function::new(name, period, deadline, budget, 1).on(core));
        }
    }
    Set {
        host: Host::new(cores, functions.len() as u64),
        functions,
    }
}

/// Parts of a whole, all ways of parting equally likely.
fn shares(random: &mut Random, count: usize, whole: u64) -> Vec<u64> {
    let mut cuts: Vec<u64> = (1..count).map(|_| random.below(whole + 1)).collect();
    cuts.extend([0, whole]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Tries sets of about so many hundredths of a core.
#[must_use]
pub fn campaign(sets: u64, seed: u64, hundredths: u64, deadlines: Deadlines) -> Tally {
    let mut tally = Tally::default();
    let mut random = Random::new(metes_random::mix(seed ^ hundredths << 32));
    for number in 0..sets {
        let set = draw(&mut random, hundredths, deadlines);
        let drawn = Random::new(random.next());
        tally.take(&set, number % 8 == 0, drawn);
    }
    tally
}

impl Tally {
    fn take(&mut self, set: &Set, certify: bool, drawn: Random) {
        self.sets += 1;
        let Some(missed) = misses(set) else {
            self.too_long += 1;
            return;
        };
        let count = |holds: bool| u64::from(holds);
        let admitted = is_admitted(set, Effort::FULL);
        let utilisation = rules::utilisation(set);
        let sched_deadline = rules::sched_deadline(set);
        self.met += count(!missed);
        self.admitted += count(admitted);
        self.admitted_missed += count(admitted && missed);
        self.refused_met += count(!admitted && !missed);
        self.utilisation += count(utilisation);
        self.utilisation_missed += count(utilisation && missed);
        self.density += count(rules::density(set));
        self.sched_deadline += count(sched_deadline);
        self.sched_deadline_missed += count(sched_deadline && missed);
        if admitted && certify {
            self.admitted_missed_drawn += count(misses_drawn(set, drawn));
            match certificate(set) {
                Some(certificate) if certificate.check(set).is_ok() => self.certified += 1,
                _ => self.flawed += 1,
            }
        }
    }

    /// Adds another.
    pub fn add(&mut self, other: &Tally) {
        let Tally {
            sets,
            met,
            admitted,
            admitted_missed,
            admitted_missed_drawn,
            refused_met,
            certified,
            flawed,
            utilisation,
            utilisation_missed,
            density,
            sched_deadline,
            sched_deadline_missed,
            too_long,
        } = other;
        self.sets += sets;
        self.met += met;
        self.admitted += admitted;
        self.admitted_missed += admitted_missed;
        self.admitted_missed_drawn += admitted_missed_drawn;
        self.refused_met += refused_met;
        self.certified += certified;
        self.flawed += flawed;
        self.utilisation += utilisation;
        self.utilisation_missed += utilisation_missed;
        self.density += density;
        self.sched_deadline += sched_deadline;
        self.sched_deadline_missed += sched_deadline_missed;
        self.too_long += too_long;
    }

    /// Whether the admission was sound and exact in all sets.
    #[must_use]
    pub fn holds(&self) -> bool {
        [
            self.admitted_missed,
            self.admitted_missed_drawn,
            self.refused_met,
            self.flawed,
        ] == [0; 4]
    }
}

fn certificate(set: &Set) -> Option<Certificate> {
    match admit(set) {
        Decision::Admitted(certificate) => Some(certificate),
        Decision::Refused(_) => None,
    }
}

fn on_core(set: &Set, core: u32) -> Vec<&Function> {
    let on = |function: &&Function| function.core == Some(core);
    set.functions.iter().filter(on).collect()
}

/// Whether a core misses a deadline when all arrive at once; none if that was not found out.
fn misses(set: &Set) -> Option<bool> {
    let mut too_long = false;
    for core in 0..set.host.cores {
        let behaviour = Behaviour::Synchronous;
        match simulate(&on_core(set, core), 0, 16, UNITS, behaviour) {
            Outcome::Met => {}
            Outcome::Missed { .. } => return Some(true),
            Outcome::TooLong => too_long = true,
        }
    }
    (!too_long).then_some(false)
}

fn misses_drawn(set: &Set, mut drawn: Random) -> bool {
    (0..set.host.cores).any(|core| {
        let behaviour = Behaviour::Drawn(Random::new(drawn.next()));
        simulate(&on_core(set, core), 0, 16, DRAWN, behaviour) != Outcome::Met
    })
}
