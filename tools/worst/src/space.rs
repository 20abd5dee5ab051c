//! The search for the most memory.
//!
//! Every program is played once with its first numbers; then the numbers of
//! those that came furthest are changed, one at a time, as long as requests are
//! left. Each program attacks twice: a heap that grows, whose footprint is what
//! is looked for, and, where a bound is proven, a heap in exactly the bytes of its bound,
//! which must not refuse.
//!
//! Invariant: the same heap, demand, seed and number of requests find the same.

use std::collections::{BTreeMap, HashSet, VecDeque};

use metes_explore::Random;
use metes_heap::bounds::Demand;
use serde::Serialize;

use crate::attack::{Attack, Outcome};
use crate::program::Program;
use crate::target::Shape;
use crate::victim::Victim;

/// Requests of one attack at most.
const ATTACK: u64 = 1 << 21;
/// Programs in a row that were tried before, until chance decides alone.
const PATIENCE: u32 = 64;

/// What one kind of program came to at its best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The kind.
    pub program: &'static str,
    /// Attacks of that kind.
    pub attacks: u64,
    /// Most bytes taken from the system.
    pub footprint: u64,
    /// Most requested bytes live at once in that attack.
    pub peak_live: u64,
}

/// The worst found.
#[derive(Clone, Debug)]
pub struct Space {
    /// The program behind it.
    pub program: Program,
    /// What it came to, with its requests.
    pub outcome: Outcome,
    /// By kind of program.
    pub rows: Vec<Row>,
    /// Requests of all attacks: fewer than asked for where no more heaps can be had.
    pub operations: u64,
    /// Those made to heaps in the bytes of their bound.
    pub operations_in_bound: u64,
    /// Requests refused there: any but none contradicts the bound.
    pub refused_in_bound: u64,
    /// The program behind the first of them.
    pub refused_by: Option<Program>,
}

/// A search with what it was asked.
pub struct SpaceSearch<'v> {
    /// Heaps to attack.
    pub victim: &'v mut dyn Victim,
    /// What programs may ask.
    pub demand: Demand,
    /// Bytes of the bound, where there is one.
    pub bound: Option<u64>,
    /// Requests that may be made; the last attack may end early.
    pub operations: u64,
    /// What chance decides.
    pub seed: u64,
}

/// The best of one kind.
#[derive(Clone, Copy)]
struct Elite {
    program: Program,
    footprint: u64,
    peak_live: u64,
    attacks: u64,
}

impl SpaceSearch<'_> {
    /// Searches; `progress` is told the requests so far. `None` where the heap
    /// serves nothing at all.
    pub fn run(mut self, progress: &mut dyn FnMut(u64)) -> Option<Space> {
        let mut random = Random::new(self.seed);
        let mut queue = VecDeque::from(Program::all(&self.demand, &Shape::TAGGED));
        let mut tried = HashSet::new();
        let mut elites: BTreeMap<&'static str, Elite> = BTreeMap::new();
        let (mut operations, mut in_bound) = (0, 0);
        let (mut refused_in_bound, mut refused_by) = (0, None);
        while operations < self.operations {
            let program = self.next(&mut queue, &mut tried, &elites, &mut random);
            let limit = ATTACK.min(self.operations - operations);
            let Some(outcome) = self.attack(program, None, limit, false) else {
                // No further heap can be had.
                break;
            };
            operations += outcome.requests;
            enter(&mut elites, program, &outcome);
            if let Some(bound) = self.bound
                && operations < self.operations
            {
                let limit = ATTACK.min(self.operations - operations);
                if let Some(outcome) = self.attack(program, Some(bound), limit, false) {
                    operations += outcome.requests;
                    in_bound += outcome.requests;
                    refused_in_bound += outcome.refused;
                    if outcome.refused > 0 && refused_by.is_none() {
                        refused_by = Some(program);
                    }
                }
            }
            progress(operations);
        }
        let best = best(&elites)?;
        let outcome = self.attack(best.program, None, ATTACK, true)?;
        Some(Space {
            program: best.program,
            outcome,
            rows: rows(&elites),
            operations,
            operations_in_bound: in_bound,
            refused_in_bound,
            refused_by,
        })
    }

    /// One attack on a new heap.
    fn attack(
        &mut self,
        program: Program,
        arena: Option<u64>,
        limit: u64,
        write: bool,
    ) -> Option<Outcome> {
        let rules = Rules {
            demand: self.demand,
            arena,
            limit,
            write,
        };
        attack(self.victim, rules, &mut |attack| program.play(attack))
    }

    /// The next program: one of the first, or a changed one of the best.
    fn next(
        &self,
        queue: &mut VecDeque<Program>,
        tried: &mut HashSet<Program>,
        elites: &BTreeMap<&'static str, Elite>,
        random: &mut Random,
    ) -> Program {
        if let Some(program) = queue.pop_front() {
            tried.insert(program);
            return program;
        }
        for _ in 0..PATIENCE {
            let program = match (best(elites), random.below(2)) {
                (Some(best), 0) => best.program,
                _ => match elites.values().nth(random.below(elites.len().max(1))) {
                    Some(elite) => elite.program,
                    None => break,
                },
            };
            let mut changed = program;
            for _ in 0..=random.below(2) {
                changed = changed.mutate(&self.demand, random);
            }
            if tried.insert(changed) {
                return changed;
            }
        }
        Program::Churn(crate::program::Churn {
            seed: random.next(),
            requests: 1 << 16,
            frees_percent: random.below(50) as u32,
        })
    }
}

/// What an attack keeps to.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) demand: Demand,
    /// Bytes of a fixed arena; `None` for one that grows.
    pub(crate) arena: Option<u64>,
    /// Most requests.
    pub(crate) limit: u64,
    /// Whether requests are written down.
    pub(crate) write: bool,
}

/// One attack on a new heap of `victim`; `None` where it does not fit its arena.
pub(crate) fn attack(
    victim: &mut dyn Victim,
    rules: Rules,
    play: &mut dyn FnMut(&mut Attack<'_>),
) -> Option<Outcome> {
    let Demand { live, smallest, .. } = rules.demand;
    let blocks = (live / smallest).min(rules.limit) as usize + 1;
    let mut outcome = None;
    let fits = victim.fresh(rules.arena, blocks, &mut |target| {
        let mut attack = Attack::new(target, rules.demand, rules.limit, rules.write);
        play(&mut attack);
        outcome = Some(attack.finish());
    });
    outcome.filter(|_| fits)
}

/// Takes an attack into account.
fn enter(elites: &mut BTreeMap<&'static str, Elite>, program: Program, outcome: &Outcome) {
    let elite = elites.entry(program.name()).or_insert(Elite {
        program,
        footprint: 0,
        peak_live: 0,
        attacks: 0,
    });
    elite.attacks += 1;
    if outcome.footprint > elite.footprint {
        elite.program = program;
        elite.footprint = outcome.footprint;
        elite.peak_live = outcome.peak_live;
    }
}

/// The one with the largest footprint, the first by name of equals.
fn best(elites: &BTreeMap<&'static str, Elite>) -> Option<Elite> {
    let mut best: Option<Elite> = None;
    for elite in elites.values() {
        if best.is_none_or(|best| elite.footprint > best.footprint) {
            best = Some(*elite);
        }
    }
    best
}

/// By falling footprint.
fn rows(elites: &BTreeMap<&'static str, Elite>) -> Vec<Row> {
    let mut rows: Vec<Row> = elites
        .iter()
        .map(|(&program, elite)| Row {
            program,
            attacks: elite.attacks,
            footprint: elite.footprint,
            peak_live: elite.peak_live,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.footprint));
    rows
}
