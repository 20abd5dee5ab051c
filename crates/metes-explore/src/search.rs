//! Which heaps suit a program: a search over the space by replay.
//!
//! First every named heap. Then Pareto local search: the neighbours, one
//! parameter away, of each heap that nothing beats, mixed with configurations
//! from anywhere in the space, so that no corner is left out for good. No
//! configuration is replayed twice.
//!
//! A replay ends early when even what it would need at least is already beaten
//! (footprint and cycles so far only grow, and the remaining events have a least
//! cost), or when it is hopelessly slow. Neither changes the set that is found.
//!
//! Invariant: candidates are chosen in batches of a fixed size from what earlier
//! batches found, and outcomes are taken in the order of the candidates. So for
//! a given number of evaluations the result is the same on any number of workers.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metes_heap::Description;
use rayon::prelude::*;
use serde::Serialize;

use crate::catalogue::{Named, catalogue};
use crate::events::Events;
use crate::least::least_rest;
use crate::outcome::{Outcome, best, constant_time, most};
use crate::pareto::{Objectives, dominates};
use crate::random::{Permutation, Random};
use crate::replay::{Options, Replayer};
use crate::run::{CHECK_EVERY, Totals};
use crate::space::{Point, Suggested};

/// Candidates chosen together. A number of its own, not that of the workers.
const BATCH: usize = 32;
/// The named heaps may take one part in so many of the time: some search long
/// lists, and what suits the program better is yet to be found.
const NAMED_SHARE: u32 = 3;
/// Of a batch, how many come from anywhere in the space.
const ANYWHERE: usize = 8;

/// When and how a search ends.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// After this time; checked also inside replays.
    pub time: Option<Duration>,
    /// After so many configurations beside the named heaps.
    pub evaluations: Option<u64>,
    /// Worker threads; 0: one a core.
    pub workers: usize,
    /// What chooses among equals.
    pub seed: u64,
    /// A replay ends when it costs this many times the cycles of the fastest
    /// named heap.
    pub patience: u64,
    /// Whether replays end early when their heap is beaten. Changes how many
    /// outcomes are complete and how long it takes, never what nothing beats.
    pub end_early: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            time: Some(Duration::from_secs(30)),
            evaluations: None,
            workers: 0,
            seed: 1,
            patience: 50,
            end_early: true,
        }
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exploration {
    /// Configurations replayed, to the end or until beaten.
    pub configurations: u64,
    /// Different outcomes among those replayed to the end.
    pub distinct: u64,
    /// Configurations in the space.
    pub space: u64,
    /// Replays that ended early because their heap was beaten already.
    pub beaten: u64,
    /// Replays that ended early because their heap was hopelessly slow.
    pub slow: u64,
    /// Wall time.
    pub seconds: f64,
    /// Events replayed in a second by all workers together.
    pub events_per_second: f64,
    /// Whether it was stopped before its budget or the space was used up.
    pub interrupted: bool,
    /// The named heaps, those that could be replayed in time.
    pub named: Vec<Outcome>,
    /// Outcomes that no other one beats in footprint, mean and most cycles, by
    /// rising footprint; one for each distinct outcome.
    pub pareto: Vec<Outcome>,
    /// The same among the heaps of constant time alone.
    pub constant_time: Vec<Outcome>,
    /// All outcomes of complete replays in the order of evaluation.
    #[serde(skip)]
    pub outcomes: Vec<Outcome>,
}

/// Hears of a search while it runs.
pub trait Observer {
    /// A configuration was replayed to the end. In a fixed order.
    fn outcome(&mut self, outcome: &Outcome) {
        let _ = outcome;
    }

    /// A batch is done: configurations replayed so far, size of the Pareto set.
    fn progress(&mut self, configurations: u64, pareto: usize) {
        let _ = (configurations, pareto);
    }
}

impl Observer for () {}

/// Searches the space of a trace. `write_down` says how a heap is spelled in
/// outcomes; `stop` ends the search from another thread and keeps what was found.
pub fn explore(
    events: &Events,
    options: &Options,
    budget: &Budget,
    write_down: &(dyn Fn(&Description) -> String + Sync),
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Exploration {
    let space = Suggested::of(events);
    let start = Instant::now();
    let search = Search {
        deadline: budget.time.map(|time| start + time),
        named_deadline: budget.time.map(|time| start + time / NAMED_SHARE),
        least: least_rest(events, options, |operation, (reads, writes)| {
            options.cost.cycles(operation, reads, writes, 0)
        }),
        space: &space,
        events,
        options,
        budget,
        write_down,
        stop,
    };
    // A pool of its own, so that the number of workers is the caller's choice.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(budget.workers)
        .build();
    let (mut state, interrupted) = match pool {
        Ok(pool) => search.go(&|work| pool.install(work), observer),
        // Without threads to be had, the caller's own does the work.
        Err(_) => search.go(&|work| work(), observer),
    };
    let seconds = start.elapsed().as_secs_f64();
    let distinct: HashSet<_> = state.outcomes.iter().map(Outcome::objectives).collect();
    let named = state
        .outcomes
        .iter()
        .filter(|outcome| outcome.named.is_some());
    Exploration {
        configurations: state.evaluated,
        distinct: distinct.len() as u64,
        space: space.size(),
        beaten: state.beaten,
        slow: state.slow,
        seconds,
        events_per_second: state.replayed as f64 / seconds.max(1e-9),
        interrupted,
        named: named.cloned().collect(),
        pareto: best(state.outcomes.iter()),
        constant_time: best(
            state
                .outcomes
                .iter()
                .filter(|outcome| outcome.constant_time),
        ),
        outcomes: std::mem::take(&mut state.outcomes),
    }
}

/// What became of a candidate.
enum Verdict {
    Complete(Box<Outcome>),
    Beaten,
    Slow,
    Interrupted,
}

/// A heap to be replayed.
#[derive(Clone)]
struct Candidate {
    point: Option<Point>,
    named: Option<&'static str>,
    description: Description,
}

/// What was found so far.
#[derive(Default)]
struct State {
    outcomes: Vec<Outcome>,
    evaluated: u64,
    beaten: u64,
    slow: u64,
    replayed: u64,
    /// Points that nothing beats: all heaps, and those of constant time.
    front: Vec<(Objectives, Option<Point>)>,
    constant_front: Vec<(Objectives, Option<Point>)>,
    /// Cycles beyond which a replay is not worth its time.
    most_cycles: u64,
    seen: HashSet<Point>,
    /// Neighbours that wait for their turn, and whose they were.
    waiting: VecDeque<Point>,
    expanded: HashSet<Point>,
    /// How far the permutation of the space has been followed.
    position: u64,
}

type Install<'i> = dyn Fn(&mut (dyn FnMut() + Send)) + 'i;

struct Search<'s> {
    space: &'s Suggested,
    events: &'s Events,
    options: &'s Options,
    budget: &'s Budget,
    write_down: &'s (dyn Fn(&Description) -> String + Sync),
    stop: &'s AtomicBool,
    deadline: Option<Instant>,
    named_deadline: Option<Instant>,
    least: Vec<u64>,
}

impl Search<'_> {
    fn go(&self, install: &Install<'_>, observer: &mut dyn Observer) -> (State, bool) {
        let mut state = State {
            most_cycles: u64::MAX,
            ..State::default()
        };
        let named: Vec<Candidate> = catalogue()
            .into_iter()
            .map(|Named { name, description }| Candidate {
                point: description
                    .general
                    .iter()
                    .next()
                    .and_then(|pool| self.space.plain(pool.index)),
                named: Some(name),
                description,
            })
            .collect();
        // The first must come to its end, or there would be nothing to keep.
        let (first, others) = named.split_at(1);
        let mut interrupted = self.evaluate(first, false, &mut state, install, observer);
        interrupted |= self.evaluate(others, true, &mut state, install, observer);
        let fastest = state.outcomes.iter().map(|outcome| outcome.cycles).min();
        state.most_cycles = fastest
            .unwrap_or(u64::MAX)
            .saturating_mul(self.budget.patience);
        let permutation = Permutation::new(self.space.size(), self.budget.seed);
        let mut random = Random::new(self.budget.seed);
        let mut left = self.budget.evaluations.unwrap_or(u64::MAX);
        while left > 0 && !self.ended() {
            let count = BATCH.min(usize::try_from(left).unwrap_or(BATCH));
            let batch = self.choose(count, &permutation, &mut random, &mut state);
            if batch.is_empty() {
                return (state, false);
            }
            left -= batch.len() as u64;
            interrupted |= self.evaluate(&batch, true, &mut state, install, observer);
        }
        let by_time = self.deadline.is_some() && !self.stop.load(Ordering::Relaxed);
        (
            state,
            interrupted && !by_time || self.stop.load(Ordering::Relaxed),
        )
    }

    fn ended(&self) -> bool {
        self.past(self.deadline)
    }

    fn past(&self, deadline: Option<Instant>) -> bool {
        self.stop.load(Ordering::Relaxed)
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The next batch: neighbours of what nothing beats, and some from anywhere.
    fn choose(
        &self,
        count: usize,
        permutation: &Permutation,
        random: &mut Random,
        state: &mut State,
    ) -> Vec<Candidate> {
        let mut batch = Vec::with_capacity(count);
        while batch.len() < count.saturating_sub(ANYWHERE) {
            if let Some(point) = state.waiting.pop_front() {
                if state.seen.insert(point) {
                    batch.push(self.candidate(point));
                }
                continue;
            }
            let fresh: Vec<Point> = state
                .constant_front
                .iter()
                .chain(&state.front)
                .filter_map(|&(_, point)| point)
                .filter(|point| !state.expanded.contains(point))
                .collect();
            if fresh.is_empty() {
                break;
            }
            let point = fresh[random.below(fresh.len())];
            state.expanded.insert(point);
            let mut neighbours = self.space.neighbours(point);
            random.shuffle(&mut neighbours);
            state.waiting.extend(neighbours);
        }
        while batch.len() < count && state.position < self.space.size() {
            let position = permutation.at(state.position);
            state.position += 1;
            if let Some(point) = self.space.at(position)
                && state.seen.insert(point)
            {
                batch.push(self.candidate(point));
            }
        }
        batch
    }

    fn candidate(&self, point: Point) -> Candidate {
        Candidate {
            point: Some(point),
            named: None,
            description: self.space.describe(point),
        }
    }

    /// Replays candidates on all workers and takes their outcomes in order.
    /// Returns whether one was interrupted.
    fn evaluate(
        &self,
        candidates: &[Candidate],
        interruptible: bool,
        state: &mut State,
        install: &Install<'_>,
        observer: &mut dyn Observer,
    ) -> bool {
        let mut verdicts: Vec<(Verdict, u64)> = Vec::new();
        let known = &*state;
        install(&mut || {
            verdicts = candidates
                .par_iter()
                .map(|candidate| self.replay(candidate, interruptible, known))
                .collect();
        });
        let mut interrupted = false;
        for (candidate, (verdict, replayed)) in candidates.iter().zip(verdicts) {
            state.replayed += replayed;
            state.evaluated += 1;
            state.seen.extend(candidate.point);
            match verdict {
                Verdict::Complete(mut outcome) => {
                    outcome.number = state.outcomes.len() as u64;
                    outcome.named = candidate.named;
                    outcome.heap = match candidate.named {
                        Some(name) => name.to_owned(),
                        None => (self.write_down)(&candidate.description),
                    };
                    observer.outcome(&outcome);
                    state.keep(&outcome, candidate.point);
                    state.outcomes.push(*outcome);
                }
                Verdict::Beaten => state.beaten += 1,
                Verdict::Slow => state.slow += 1,
                Verdict::Interrupted => {
                    state.evaluated -= 1;
                    interrupted = true;
                }
            }
        }
        observer.progress(state.evaluated, state.front.len());
        interrupted
    }

    fn replay(&self, candidate: &Candidate, interruptible: bool, known: &State) -> (Verdict, u64) {
        thread_local! {
            static REPLAYER: RefCell<Replayer> = RefCell::default();
        }
        let constant = constant_time(&candidate.description);
        let front = if constant {
            &known.constant_front
        } else {
            &known.front
        };
        let deadline = match candidate.named {
            Some(_) => self.named_deadline,
            None => self.deadline,
        };
        let mut early = None;
        let mut watch = |totals: &Totals| {
            if totals.events <= CHECK_EVERY {
                // A replay that is repeated with larger arrays starts afresh.
                early = None;
            }
            if interruptible && self.past(deadline) {
                early = Some(Verdict::Interrupted);
                return false;
            }
            if candidate.named.is_some() || !self.budget.end_early {
                return true;
            }
            let check = totals.events.div_ceil(CHECK_EVERY).max(1) - 1;
            let cycles = totals.cycles + self.least[check];
            if cycles > known.most_cycles {
                early = Some(Verdict::Slow);
                return false;
            }
            let least = [totals.footprint, cycles, most(totals)];
            if front.iter().any(|(point, _)| dominates(point, &least)) {
                early = Some(Verdict::Beaten);
                return false;
            }
            true
        };
        let measured = REPLAYER.with_borrow_mut(|replayer| {
            replayer.totals(
                &candidate.description,
                self.events,
                self.options,
                &mut watch,
            )
        });
        let replayed = measured.totals.events as u64;
        match early {
            Some(verdict) => (verdict, replayed),
            None => {
                let outcome = Outcome::of(candidate.description, &measured.totals);
                (Verdict::Complete(Box::new(outcome)), replayed)
            }
        }
    }
}

impl State {
    fn keep(&mut self, outcome: &Outcome, point: Option<Point>) {
        if outcome.failed != 0 {
            return;
        }
        let objectives = outcome.objectives();
        enter(&mut self.front, objectives, point);
        if outcome.constant_time {
            enter(&mut self.constant_front, objectives, point);
        }
    }
}

/// Adds a point that nothing beats or equals, and drops those that it beats.
fn enter(
    front: &mut Vec<(Objectives, Option<Point>)>,
    objectives: Objectives,
    point: Option<Point>,
) {
    if front
        .iter()
        .any(|(own, _)| *own == objectives || dominates(own, &objectives))
    {
        return;
    }
    front.retain(|(own, _)| !dominates(&objectives, own));
    front.push((objectives, point));
}
