//! Heaps and frequencies in one: what energy and memory a system takes with each heap at each pair of frequencies, as long as no
//! deadline is missed.
//!
//! A heap changes what its task takes: cycles of the processor and of the memory, energy of accesses, and what its memory
//! leaks. At each pair the whole system is analysed anew, with what the task then holds up.
//!
//! *Invariant:* what is on the Pareto set was checked and run by [`checker`](crate::checker), which knows no analysis; what is not on
//! it is late, or beaten by what is.

use num_traits::Zero;

use crate::analysis::{AnalysisError, Miss, check};
use crate::checker::{Flaw, check_pair, run_pair};
use crate::pair::{candidates, hyperperiod};
use crate::rational::Rational;
use crate::system::{Cost, Pair, System, SystemError};

/// What a heap makes of the task that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The heap.
    pub heap: String,
    /// Bytes that it takes.
    pub footprint: u64,
    /// Cycles of the processor that each activation takes beside those that the system declares.
    pub cpu: Rational,
    /// Cycles of the memory.
    pub memory: Rational,
    /// Energy of an activation's accesses.
    pub energy: Rational,
    /// Power that the heap's memory leaks, always.
    pub leakage: Rational,
}

/// Whose heap is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The system; of the task it declares what no heap changes.
    pub system: &'a System,
    /// The task, by its place.
    pub task: usize,
    /// Tasks whose blocking is by it, and grows as it does.
    pub held_up: &'a [usize],
    /// Whether the longest response is a third thing to make less of.
    pub responses: bool,
}

/// A heap at a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combination {
    /// The heap, by its place.
    pub heap: usize,
    /// The frequencies.
    pub pair: Pair,
    /// Energy over a hyperperiod.
    pub energy: Rational,
    /// Whether all deadlines of the system are met.
    pub feasible: bool,
    /// The task's longest response: on the Pareto set, and where it was asked for.
    pub response: Option<Rational>,
    /// The longest response in a run over a hyperperiod: on the Pareto set.
    pub run: Option<Rational>,
}

/// What there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Heaps that no other is no worse than in all that counts, by place: the others are on no Pareto set.
    pub heaps: Vec<usize>,
    /// Those at all pairs.
    pub combinations: Vec<Combination>,
    /// Places of the Pareto set, by rising memory.
    pub front: Vec<usize>,
    /// Who is late first with the fastest heap at the highest frequencies, where all are late.
    pub miss: Option<Miss>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeapsError {
    /// No such system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// No exact answer in bounded time.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A pair that does not hold: a fault of the analysis.
    #[error("`{heap}` at cpu {} and memory {} is not confirmed where it is checked apart: {flaw}", pair.cpu, pair.memory)]
    Flawed {
        /// The heap.
        heap: String,
        /// The pair.
        pair: Box<Pair>,
        /// What is wrong.
        flaw: Flaw,
    },
}

impl Asked<'_> {
    /// The system, with what a heap makes of the task.
    ///
    /// # Errors
    /// When there cannot be such a system: cycles of a memory that has no frequency.
    pub fn with(&self, heap: &Served) -> Result<System, SystemError> {
        let mut system = self.system.clone();
        let task = &mut system.tasks[self.task];
        task.cost = longer(&task.cost, heap);
        for held_up in self.held_up {
            let task = &mut system.tasks[*held_up];
            task.blocking = longer(&task.blocking, heap);
        }
        system.verify()?;
        Ok(system)
    }

    /// What a heap takes over a hyperperiod beside what frequencies change.
    fn beside(&self, heap: &Served, hyperperiod: &Rational) -> Rational {
        let jobs = hyperperiod / &self.system.tasks[self.task].period;
        &heap.energy * jobs + &heap.leakage * hyperperiod
    }
}

fn longer(cost: &Cost, heap: &Served) -> Cost {
    let zero = Rational::zero();
    let (cpu, memory, constant) = match cost {
        Cost::Time(time) => (&zero, &zero, time),
        Cost::Model {
            cpu,
            memory,
            constant,
        } => (cpu, memory, constant),
    };
    Cost::Model {
        cpu: cpu + &heap.cpu,
        memory: memory + &heap.memory,
        constant: constant.clone(),
    }
}

/// All heaps at all pairs, and the Pareto set of energy and memory among those that miss no deadline.
///
/// For each heap that is not beaten in all, exact analyses go along the border of what is feasible, one a frequency of either
/// kind.
///
/// # Errors
/// [`HeapsError`] where a heap at a pair is not decided.
pub fn choices(asked: &Asked<'_>, heaps: &[Served]) -> Result<Choices, HeapsError> {
    let hyperperiod = hyperperiod(asked.system);
    let kept = unbeaten(asked.system, heaps);
    let mut combinations = Vec::new();
    for &heap in &kept {
        let system = asked.with(&heaps[heap])?;
        let beside = asked.beside(&heaps[heap], &hyperperiod);
        for candidate in candidates(&system)? {
            let response = match asked.responses && candidate.feasible {
                true => check(&system, Some(&candidate.pair))?.tasks[asked.task]
                    .response
                    .clone(),
                false => None,
            };
            combinations.push(Combination {
                heap,
                energy: candidate.energy + &beside,
                pair: candidate.pair,
                feasible: candidate.feasible,
                response,
                run: None,
            });
        }
    }
    let front = front(heaps, &combinations);
    for &place in &front {
        let combination = &mut combinations[place];
        let heap = &heaps[combination.heap];
        confirm(asked, heap, &hyperperiod, combination)?;
    }
    let miss = match front.is_empty() {
        true => miss(asked, heaps)?,
        false => None,
    };
    Ok(Choices {
        heaps: kept,
        combinations,
        front,
        miss,
    })
}

/// The task's longest response by analysis; and all again by ways that no analysis takes.
fn confirm(
    asked: &Asked<'_>,
    heap: &Served,
    hyperperiod: &Rational,
    combination: &mut Combination,
) -> Result<(), HeapsError> {
    let system = asked.with(heap)?;
    let pair = &combination.pair;
    let verdict = check(&system, Some(pair))?;
    let response = verdict.tasks[asked.task].response.clone();
    let flawed = |flaw| HeapsError::Flawed {
        heap: heap.heap.clone(),
        pair: Box::new(pair.clone()),
        flaw,
    };
    let energy = check_pair(&system, pair).map_err(flawed)?;
    if energy + asked.beside(heap, hyperperiod) != combination.energy {
        return Err(flawed(Flaw::Energy));
    }
    let run = run_pair(&system, pair).map_err(flawed)?;
    let longest = run[asked.task].clone();
    if !verdict.schedulable || longest > response {
        return Err(flawed(Flaw::Late(system.tasks[asked.task].name.clone())));
    }
    combination.response = response;
    combination.run = longest;
    Ok(())
}

/// Who is late first with the heap that takes the least time at the highest frequencies.
fn miss(asked: &Asked<'_>, heaps: &[Served]) -> Result<Option<Miss>, HeapsError> {
    let fastest = asked.system.processor.fastest();
    let time = |heap: &&Served| &heap.cpu / &fastest.cpu + &heap.memory / &fastest.memory;
    let heap = heaps.iter().min_by_key(time);
    let system = heap.map(|heap| asked.with(heap)).transpose()?;
    let verdict = system.map(|system| check(&system, None)).transpose()?;
    Ok(verdict.and_then(|verdict| verdict.miss()))
}

/// Heaps of which no other takes no more of anything, and of equal ones the first. Where it takes less to run than to idle, all: then
/// more time may be less energy.
fn unbeaten(system: &System, heaps: &[Served]) -> Vec<usize> {
    let processor = &system.processor;
    let mut pairs = processor.pairs().into_iter();
    let all: Vec<usize> = (0..heaps.len()).collect();
    if pairs.any(|pair| processor.power.running(&pair) < processor.idle) {
        return all;
    }
    let figures = |heap: &Served| {
        let Served {
            footprint,
            cpu,
            memory,
            energy,
            leakage,
            ..
        } = heap;
        (
            *footprint,
            [cpu.clone(), memory.clone(), energy.clone(), leakage.clone()],
        )
    };
    let mut order = all;
    order.sort_by_cached_key(|heap| figures(&heaps[*heap]));
    let mut kept: Vec<usize> = Vec::new();
    for heap in order {
        let own = figures(&heaps[heap]).1;
        // Those before it take no more memory.
        let beaten = kept.iter().any(|kept| {
            let other = figures(&heaps[*kept]).1;
            other.iter().zip(&own).all(|(other, own)| other <= own)
        });
        if !beaten {
            kept.push(heap);
        }
    }
    kept.sort_unstable();
    kept
}

/// Feasible ones that no other is no worse than in all and better in one; of equal ones the first. By rising memory.
fn front(heaps: &[Served], combinations: &[Combination]) -> Vec<usize> {
    let memory = |place: usize| heaps[combinations[place].heap].footprint;
    let mut order: Vec<usize> = (0..combinations.len())
        .filter(|place| combinations[*place].feasible)
        .collect();
    order.sort_by(|&left, &right| {
        let (a, b) = (&combinations[left], &combinations[right]);
        let by = memory(left).cmp(&memory(right));
        by.then_with(|| a.energy.cmp(&b.energy))
            .then_with(|| a.response.cmp(&b.response))
            .then(left.cmp(&right))
    });
    let mut front: Vec<usize> = Vec::new();
    for place in order {
        let own = &combinations[place];
        let beaten = front.iter().any(|kept| {
            let kept = &combinations[*kept];
            kept.energy <= own.energy && kept.response <= own.response
        });
        if !beaten {
            front.push(place);
        }
    }
    front
}
