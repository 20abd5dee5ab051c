//! The search for the most instructions of one call.
//!
//! Counting instructions means one trap each, so a guide says what is worth
//! counting: the record words that the heap reads and writes in a call, which a
//! simulated heap counts for nothing, or what else its steps are. First every
//! program of the search for space is played, and its heaviest calls are counted;
//! that finds walks over long lists. Then short sequences are bred: the calls in which the heap
//! touches most records are counted on the real heap, and what is counted
//! decides which sequences go on.
//!
//! Invariant: the simulated heap and the one that runs lie in arenas of one
//! size and decide alike, so the call that is counted is the one that was meant.
//! The same heap, demand, seed and budget find the same.

use std::collections::HashSet;
use std::rc::Rc;

use metes_explore::Random;
use metes_heap::bounds::Demand;
use metes_step::Stepper;

use crate::genes::Genes;
use crate::memory::Range;
use crate::program::Program;
use crate::sequence::{Sequence, Step};
use crate::space::{Rules, attack};
use crate::subject::{Runnable, Running};
use crate::target::Shape;
use crate::victim::Victim;

/// Requests of one program at most.
const ATTACK: u64 = 1 << 20;
/// Record words of one call above which it is not counted: seconds of traps.
/// M is halved until no call is heavier.
const HEAVIEST: u64 = 40_000;
/// Record words of all calls before one, above which it is not counted: they are
/// made for real, too, and walk where the simulated heap does not.
const BEFORE: u64 = 100_000_000;
/// Heaviest calls of programs that are counted, of each kind.
const COUNTED: usize = 4;
/// Sequences of each kind that are bred from.
const ELITE: usize = 12;
/// Sequences made at random before breeding begins.
const FOUNDERS: usize = 24;

/// Allocations and frees, in the order of [`Time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Allocate,
    Free,
}

/// The slowest call of a kind that was found.
#[derive(Clone, Debug, Default)]
pub struct Slowest {
    /// Its instructions, call and return included; a repeated string instruction counts one
    /// more for each 16 bytes.
    pub instructions: u64,
    /// Requests up to it; it is the last one.
    pub sequence: Sequence,
    /// What found it: a program's name, or `bred`.
    pub found_by: &'static str,
    /// M of the search that found it.
    pub live: u64,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Time {
    /// The slowest allocation.
    pub allocate: Slowest,
    /// The slowest free.
    pub free: Slowest,
    /// Whether the code was compiled for the heap's parameters.
    pub specialised: bool,
    /// Requests made on the way, simulated ones included.
    pub operations: u64,
    /// Instructions counted.
    pub counted: u64,
    /// M of the search: what was asked for, or less where calls take too long
    /// to be counted.
    pub live: u64,
}

/// A search with what it was asked.
pub struct TimeSearch<'v> {
    /// Heaps to be guided by.
    pub victim: &'v mut dyn Victim,
    /// Heaps to count on.
    pub runnable: &'v dyn Runnable,
    /// What may be asked.
    pub demand: Demand,
    /// Bytes of the arena, a power of two.
    pub arena: usize,
    /// Instructions that breeding may count, and making what it bred short as many again.
    pub budget: u64,
    /// What chance decides.
    pub seed: u64,
}

/// A call worth counting.
struct Candidate {
    kind: Kind,
    work: u64,
    position: usize,
    sequence: Rc<Sequence>,
    program: &'static str,
}

/// A search under way.
struct Hunt<'v> {
    search: TimeSearch<'v>,
    memory: Range,
    stepper: Stepper,
    time: Time,
    /// Whether no further heap can be had: handles tell only so many apart.
    spent: bool,
}

impl<'v> TimeSearch<'v> {
    /// Searches; `progress` is told the instructions counted so far. `None` where
    /// there is no code to count in.
    ///
    /// # Errors
    /// What the system says where it gives no memory or no stepping.
    pub fn run(self, progress: &mut dyn FnMut(u64)) -> std::io::Result<Option<Time>> {
        let mut memory = Range::new(self.arena)?;
        let Some(running) = self.runnable.open(&mut memory) else {
            return Ok(None);
        };
        let specialised = running.specialised;
        drop(running);
        let mut hunt = Hunt {
            time: Time {
                specialised,
                live: self.demand.live,
                ..Time::default()
            },
            search: self,
            memory,
            stepper: Stepper::new()?,
            spent: false,
        };
        hunt.programs();
        progress(hunt.time.counted);
        hunt.breed(progress);
        Ok(Some(hunt.time))
    }
}

impl Hunt<'_> {
    /// Plays every program and counts its heaviest calls.
    fn programs(&mut self) {
        let mut candidates = self.heaviest();
        while candidates.iter().any(|call| call.work > HEAVIEST) {
            let demand = &mut self.search.demand;
            let half = (demand.live / 2).max(demand.largest);
            if half == demand.live {
                candidates.retain(|call| call.work <= HEAVIEST);
                break;
            }
            demand.live = half;
            self.time.live = half;
            candidates = self.heaviest();
        }
        for kind in [Kind::Allocate, Kind::Free] {
            let calls = candidates.iter().filter(|call| call.kind == kind);
            for call in calls.take(COUNTED) {
                self.count(&call.sequence, &[call.position], call.program);
            }
        }
    }

    /// The heaviest calls of all programs, by falling work.
    fn heaviest(&mut self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for program in Program::all(&self.search.demand, &Shape::TAGGED) {
            let rules = self.rules(ATTACK);
            let Some(outcome) = attack(self.search.victim, rules, &mut |attack| {
                program.play(attack);
            }) else {
                continue;
            };
            self.time.operations += outcome.requests;
            let sequence = Rc::new(outcome.sequence.unwrap_or_default());
            for (kind, heaviest) in [
                (Kind::Allocate, outcome.allocate),
                (Kind::Free, outcome.free),
            ] {
                if heaviest.work > 0 && heaviest.before <= BEFORE {
                    candidates.push(Candidate {
                        kind,
                        work: heaviest.work,
                        position: heaviest.request as usize,
                        sequence: Rc::clone(&sequence),
                        program: program.name(),
                    });
                }
            }
        }
        candidates.sort_by_key(|call| std::cmp::Reverse(call.work));
        candidates
    }

    fn rules(&self, limit: u64) -> Rules {
        Rules {
            demand: self.search.demand,
            arena: Some(self.search.arena as u64),
            limit,
            write: true,
        }
    }

    /// Breeds short sequences until the budget is spent, then drops from the
    /// best whatever it does not need.
    fn breed(&mut self, progress: &mut dyn FnMut(u64)) {
        let mut random = Random::new(self.search.seed);
        let mut elites: [Vec<(u64, Genes)>; 2] = [Vec::new(), Vec::new()];
        let mut tried = HashSet::new();
        let end = self.time.counted + self.search.budget;
        let mut idle = 0;
        while self.time.counted < end && idle < 10_000 && !self.spent {
            let genes = offspring(&self.search.demand, &elites, tried.len(), &mut random);
            if !tried.insert(genes.clone()) {
                idle += 1;
                continue;
            }
            idle = 0;
            let found = self.measure(&genes);
            for (elite, instructions) in elites.iter_mut().zip(found) {
                enter(elite, instructions, &genes, ELITE);
            }
            if tried.len().is_multiple_of(64) {
                progress(self.time.counted);
            }
        }
        for (kind, elite) in elites.iter().enumerate() {
            if let Some((instructions, genes)) = elite.first() {
                let limit = self.time.counted + self.search.budget / 2;
                self.shorten(kind, *instructions, genes.clone(), limit);
            }
        }
    }

    /// Plays genes and counts the calls that look slowest: most instructions of
    /// an allocation and of a free.
    fn measure(&mut self, genes: &Genes) -> [u64; 2] {
        let rules = self.rules(1 << 10);
        let Some(outcome) = attack(self.search.victim, rules, &mut |attack| genes.play(attack))
        else {
            self.spent = true;
            return [0; 2];
        };
        self.time.operations += outcome.requests;
        let sequence = outcome.sequence.unwrap_or_default();
        let mut positions = Vec::new();
        let last = |wanted: fn(&Step) -> bool| sequence.steps().iter().rposition(wanted);
        let (allocate, free) = (
            last(|step| matches!(step, Step::Allocate(_))),
            last(|step| matches!(step, Step::Free(_))),
        );
        positions.extend(allocate.map(|_| outcome.allocate.request as usize));
        positions.extend(free.map(|_| outcome.free.request as usize));
        positions.extend(allocate);
        positions.extend(free);
        self.count(&sequence, &positions, "bred")
    }

    /// Takes out genes one by one as long as the slowest call stays as slow, and no more than
    /// `limit` instructions are counted.
    fn shorten(&mut self, kind: usize, instructions: u64, mut genes: Genes, limit: u64) {
        let mut at = 0;
        while let Some(shorter) = genes.without(at)
            && self.time.counted < limit
        {
            if self.measure(&shorter)[kind] >= instructions {
                genes = shorter;
            } else {
                at += 1;
            }
        }
    }

    /// Runs a sequence and counts the instructions of the calls at `positions`;
    /// the most of an allocation and of a free.
    fn count(
        &mut self,
        sequence: &Sequence,
        positions: &[usize],
        found_by: &'static str,
    ) -> [u64; 2] {
        let mut most = [0; 2];
        let Some(last) = positions.iter().copied().max() else {
            return most;
        };
        let Some(running) = self.search.runnable.open(&mut self.memory) else {
            self.spent = true;
            return most;
        };
        let mut player = Player::new(&running, sequence);
        let mut counts = Vec::new();
        for position in 0..=last {
            if !positions.contains(&position) {
                player.invoke(position);
            } else if let Some((kind, count)) = player.step(position, &mut self.stepper) {
                counts.push((kind, position, count));
            }
        }
        drop(player);
        drop(running);
        for (kind, position, count) in counts {
            self.time.counted += count;
            most[kind as usize] = most[kind as usize].max(count);
            self.enter(kind, count, position, sequence, found_by);
        }
        most
    }

    /// Keeps a call that is slower than all before, or as slow after fewer requests.
    fn enter(
        &mut self,
        kind: Kind,
        instructions: u64,
        position: usize,
        sequence: &Sequence,
        found_by: &'static str,
    ) {
        let slowest = match kind {
            Kind::Allocate => &mut self.time.allocate,
            Kind::Free => &mut self.time.free,
        };
        let shorter =
            instructions == slowest.instructions && position + 1 < slowest.sequence.steps().len();
        if instructions > slowest.instructions || shorter {
            *slowest = Slowest {
                instructions,
                sequence: sequence.prefix(position + 1),
                found_by,
                live: self.search.demand.live,
            };
        }
    }
}

/// New genes: at random at first, later from two of the best.
pub(crate) fn offspring(
    demand: &Demand,
    elites: &[Vec<(u64, Genes)>; 2],
    tried: usize,
    random: &mut Random,
) -> Genes {
    let elite = &elites[random.below(2)];
    if tried < FOUNDERS || elite.is_empty() || random.below(16) == 0 {
        return Genes::random(demand, random);
    }
    // The better, the likelier.
    let best = random.below(elite.len()).min(random.below(elite.len()));
    let mut genes = elite[best].1.clone();
    if random.below(4) == 0 {
        let all = &elites[random.below(2)];
        if !all.is_empty() {
            genes = genes.cross(&all[random.below(all.len())].1, random);
        }
    }
    genes.mutate(demand, random)
}

/// Keeps a sequence among the `most` best of a kind.
pub(crate) fn enter(elite: &mut Vec<(u64, Genes)>, instructions: u64, genes: &Genes, most: usize) {
    if instructions == 0 {
        return;
    }
    // The newest of equals first, so that a plateau is wandered over.
    let at = elite.partition_point(|(other, _)| *other > instructions);
    elite.insert(at, (instructions, genes.clone()));
    elite.truncate(most);
}

/// Plays a sequence on a running heap, call by call.
pub(crate) struct Player<'r, 'm> {
    running: &'r Running<'m>,
    sequence: &'r Sequence,
    /// By serial number; zero before, after, and where it was refused.
    blocks: Vec<usize>,
    serial: usize,
}

impl<'r, 'm> Player<'r, 'm> {
    pub(crate) fn new(running: &'r Running<'m>, sequence: &'r Sequence) -> Self {
        Player {
            running,
            sequence,
            blocks: vec![0; sequence.allocations()],
            serial: 0,
        }
    }

    /// The call at a position; `None` where the block was refused.
    pub(crate) fn call(&self, position: usize) -> Option<metes_step::Call> {
        match self.sequence.steps()[position] {
            Step::Allocate(size) => Some(self.running.allocation(size as usize)),
            Step::Free(block) => match self.blocks[block as usize] {
                0 => None,
                block => Some(self.running.release(block)),
            },
        }
    }

    /// Takes the result of the call at a position into account.
    pub(crate) fn accept(&mut self, position: usize, result: usize) {
        match self.sequence.steps()[position] {
            Step::Allocate(_) => {
                self.blocks[self.serial] = result;
                self.serial += 1;
            }
            Step::Free(block) => self.blocks[block as usize] = 0,
        }
    }

    /// Makes the call at a position.
    pub(crate) fn invoke(&mut self, position: usize) {
        let Some(call) = self.call(position) else {
            return;
        };
        // SAFETY: a call of this heap, which frees live blocks only.
        let result = unsafe { call.invoke() };
        self.accept(position, result);
    }

    /// Makes it with its instructions counted.
    fn step(&mut self, position: usize, stepper: &mut Stepper) -> Option<(Kind, u64)> {
        let call = self.call(position)?;
        // SAFETY: as in `invoke`.
        let (result, count) = unsafe { stepper.call_with_repetitions(call) };
        let kind = match self.sequence.steps()[position] {
            Step::Allocate(_) => Kind::Allocate,
            Step::Free(_) => Kind::Free,
        };
        self.accept(position, result);
        Some((kind, count))
    }
}
