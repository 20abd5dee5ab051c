//! The pair of frequencies of least energy that meets all deadlines: one for all, by exhaustion, or one for each task.
//!
//! *Invariant:* every pair is decided exactly; what is chosen is schedulable, and whatever takes less is not (for pairs of
//! each task: unless nodes ran out, which is told).

use std::collections::BTreeSet;

use num_traits::Zero;

use crate::analysis::{AnalysisError, are_schedulable, is_schedulable};
use crate::rational::{Rational, common_period};
use crate::system::{Cost, Pair, System};

/// A pair, as it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The frequencies.
    pub pair: Pair,
    /// Energy over a hyperperiod.
    pub energy: Rational,
    /// Whether all deadlines are met.
    pub feasible: bool,
}

/// The least common multiple of the periods of all tasks; 0 without tasks.
#[must_use]
pub fn hyperperiod(system: &System) -> Rational {
    let mut periods = system.tasks.iter().map(|task| task.period.clone());
    let first = periods.next().unwrap_or_else(Rational::zero);
    periods.fold(first, |common, period| common_period(&common, &period))
}

/// Energy over a hyperperiod if each task has a pair of its own: the floor all the time, what runs by its frequencies, and what
/// idles. Jobs that come once are not in it.
fn energy(system: &System, hyperperiod: &Rational, pairs: impl Fn(usize) -> Pair) -> Rational {
    let power = &system.processor.power;
    let mut sum = &power.floor * hyperperiod;
    let mut busy = Rational::zero();
    for (index, task) in system.tasks.iter().enumerate() {
        let pair = pairs(index);
        let time = task.cost.time(&pair) * hyperperiod / &task.period;
        sum += power.running(&pair) * &time;
        busy += time;
    }
    let mut cores: Vec<u32> = system.tasks.iter().map(|task| task.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let whole = hyperperiod * crate::rational::whole(cores.len() as i64);
    sum + &system.processor.idle * (whole - busy)
}

/// What all tasks take together over a hyperperiod: one cost, of which the time at a pair is soon said.
struct Busy {
    cost: Cost,
    /// Time of all cores that have tasks.
    there_is: Rational,
}

impl Busy {
    fn new(system: &System, hyperperiod: &Rational) -> Self {
        let mut sums = [Rational::zero(), Rational::zero(), Rational::zero()];
        for task in &system.tasks {
            let jobs = hyperperiod / &task.period;
            match &task.cost {
                Cost::Time(time) => sums[2] += time * jobs,
                Cost::Model {
                    cpu,
                    memory,
                    constant,
                } => {
                    for (sum, part) in sums.iter_mut().zip([cpu, memory, constant]) {
                        *sum += part * &jobs;
                    }
                }
            }
        }
        let [cpu, memory, constant] = sums;
        let cores: BTreeSet<u32> = system.tasks.iter().map(|task| task.core).collect();
        Busy {
            cost: Cost::Model {
                cpu,
                memory,
                constant,
            },
            there_is: hyperperiod * crate::rational::whole(cores.len() as i64),
        }
    }

    /// As [`energy`], all at one pair.
    fn energy(&self, system: &System, hyperperiod: &Rational, pair: &Pair) -> Rational {
        let busy = self.cost.time(pair);
        let power = &system.processor.power;
        let idle = &system.processor.idle * (&self.there_is - &busy);
        &power.floor * hyperperiod + power.running(pair) * busy + idle
    }
}

/// All pairs, the slowest first, each with its energy and whether it is feasible. As all is preemptive, what is feasible is so
/// at higher frequencies, too: exact analyses go along the border, one a frequency of either kind.
///
/// # Errors
/// [`AnalysisError`] where a pair is not decided in bounded time.
pub fn candidates(system: &System) -> Result<Vec<Candidate>, AnalysisError> {
    let hyperperiod = hyperperiod(system);
    let busy = Busy::new(system, &hyperperiod);
    let pairs = system.processor.pairs();
    let mut candidates: Vec<Candidate> = Vec::with_capacity(pairs.len());
    // From the slowest processor on, how many of the memory's frequencies are too low.
    let mut too_low: Option<usize> = None;
    for row in pairs.chunk_by(|left, right| left.cpu == right.cpu) {
        let mut low = too_low.unwrap_or(row.len());
        while low > 0 && is_schedulable(system, &row[low - 1])? {
            low -= 1;
        }
        too_low = Some(low);
        candidates.extend(row.iter().enumerate().map(|(place, pair)| Candidate {
            energy: busy.energy(system, &hyperperiod, pair),
            feasible: place >= low,
            pair: pair.clone(),
        }));
    }
    Ok(candidates)
}

/// The feasible candidate of least energy; of equal ones the slowest.
#[must_use]
pub fn cheapest(candidates: &[Candidate]) -> Option<&Candidate> {
    let feasible = candidates.iter().filter(|candidate| candidate.feasible);
    feasible.min_by(|left, right| left.energy.cmp(&right.energy))
}

/// A pair for each task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerTask {
    /// Of each task, as they stand in the system.
    pub pairs: Vec<Pair>,
    /// Energy over a hyperperiod.
    pub energy: Rational,
    /// Whether it was proven that nothing takes less.
    pub optimal: bool,
}

/// What a task may take: time and energy, of which no other is less in both.
struct Choice {
    pair: Pair,
    time: Rational,
    energy: Rational,
}

/// The pairs of least energy, one for each task, by branch and bound over `nodes` analyses at most: frequencies change when
/// tasks do, at no cost. Blocking is taken as at the highest pair; it should be the same at all. None if no choice is feasible.
///
/// # Errors
/// [`AnalysisError`] where a choice is not decided in bounded time.
pub fn per_task(system: &System, nodes: u64) -> Result<Option<PerTask>, AnalysisError> {
    let hyperperiod = hyperperiod(system);
    let choices: Vec<Vec<Choice>> = (0..system.tasks.len())
        .map(|index| choices_of(system, index, &hyperperiod))
        .collect();
    let mut search = Search {
        system,
        choices: &choices,
        nodes,
        times: choices
            .iter()
            .map(|of_task| of_task[of_task.len() - 1].time.clone())
            .collect(),
        chosen: Vec::new(),
        best: None,
        complete: true,
        least_after: Vec::new(),
    };
    // What tasks from one on take at least.
    let mut least = vec![Rational::zero(); choices.len() + 1];
    for (index, of_task) in choices.iter().enumerate().rev() {
        least[index] = &least[index + 1] + &of_task[0].energy;
    }
    search.least_after = least;
    if !are_schedulable(system, &search.times, &system.processor.fastest())? {
        return Ok(None);
    }
    search.descend(&Rational::zero())?;
    let complete = search.complete;
    let chosen = search.best.map(|(_, chosen)| chosen).unwrap_or_else(|| {
        // Nodes ran out before a first: all as fast as can be is feasible.
        choices.iter().map(|of_task| of_task.len() - 1).collect()
    });
    let pairs: Vec<Pair> = chosen
        .iter()
        .zip(&choices)
        .map(|(choice, of_task)| of_task[*choice].pair.clone())
        .collect();
    Ok(Some(PerTask {
        energy: energy(system, &hyperperiod, |index| pairs[index].clone()),
        pairs,
        optimal: complete,
    }))
}

/// From the cheapest and slowest to the fastest.
fn choices_of(system: &System, index: usize, hyperperiod: &Rational) -> Vec<Choice> {
    let task = &system.tasks[index];
    let power = &system.processor.power;
    let mut choices: Vec<Choice> = system
        .processor
        .pairs()
        .into_iter()
        .map(|pair| {
            let time = task.cost.time(&pair);
            let busy = &time * hyperperiod / &task.period;
            let above_idle = power.running(&pair) - &system.processor.idle;
            Choice {
                energy: above_idle * busy,
                time,
                pair,
            }
        })
        .collect();
    choices.sort_by(|left, right| {
        let by_energy = left.energy.cmp(&right.energy);
        by_energy.then_with(|| left.time.cmp(&right.time))
    });
    let mut front: Vec<Choice> = Vec::new();
    for choice in choices {
        if front.last().is_none_or(|last| choice.time < last.time) {
            front.push(choice);
        }
    }
    front
}

struct Search<'a> {
    system: &'a System,
    choices: &'a [Vec<Choice>],
    nodes: u64,
    /// Those chosen, and the fastest of all others.
    times: Vec<Rational>,
    chosen: Vec<usize>,
    best: Option<(Rational, Vec<usize>)>,
    complete: bool,
    least_after: Vec<Rational>,
}

impl Search<'_> {
    fn descend(&mut self, so_far: &Rational) -> Result<(), AnalysisError> {
        let index = self.chosen.len();
        let Some(choices) = self.choices.get(index) else {
            // The last choice was analysed, and is better than what was best.
            self.best = Some((so_far.clone(), self.chosen.clone()));
            return Ok(());
        };
        let fastest = self.times[index].clone();
        for (number, choice) in choices.iter().enumerate() {
            let sum = so_far + &choice.energy;
            let least = &sum + &self.least_after[index + 1];
            if self.best.as_ref().is_some_and(|(best, _)| least >= *best) {
                // Later choices take more.
                break;
            }
            if self.nodes == 0 {
                self.complete = false;
                break;
            }
            self.nodes -= 1;
            self.times[index] = choice.time.clone();
            // With all others as fast as can be: what fails here fails however they are chosen.
            if are_schedulable(self.system, &self.times, &self.system.processor.fastest())? {
                self.chosen.push(number);
                self.descend(&sum)?;
                self.chosen.pop();
            }
        }
        self.times[index] = fastest;
        Ok(())
    }
}
