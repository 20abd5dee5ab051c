//! What a search has found so far, and what it looks at next.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use metes_heap::Description;

use super::AtLeast;
use super::ground::{Ended, Verdict};
use crate::compare::Compared;
use crate::outcome::{Outcome, unbeaten};
use crate::pareto::Front;
use crate::random::{Permutation, Random};
use crate::space::{Point, Suggested};

/// Of a batch, how many come from anywhere in the space.
const ANYWHERE: usize = 8;

/// What nothing beats, and where in the space it is.
pub(super) type SearchFront = Front<3, Option<Point>>;

/// A heap to be replayed.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) point: Option<Point>,
    pub(super) named: Option<&'static str>,
    pub(super) description: Description,
}

impl Candidate {
    pub(super) fn at(space: &Suggested, point: Point) -> Self {
        Candidate {
            point: Some(point),
            named: None,
            description: space.describe(point),
        }
    }
}

/// What was found on one ground.
#[derive(Default)]
pub(super) struct State {
    /// Of complete replays, in the order of evaluation.
    pub(super) outcomes: Vec<Outcome>,
    /// Of each outcome, how long its replay took and which candidate it was.
    pub(super) took: Vec<Duration>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) details: Vec<Compared>,
    pub(super) unfinished: Vec<(Candidate, AtLeast)>,
    pub(super) evaluated: u64,
    pub(super) beaten: u64,
    pub(super) slow: u64,
    pub(super) replayed: u64,
    /// Points that nothing beats: all heaps, and those of constant time.
    pub(super) front: SearchFront,
    pub(super) constant_front: SearchFront,
    /// Cycles beyond which a replay is not worth its time.
    pub(super) most_cycles: u64,
    seen: HashSet<Point>,
    /// Neighbours that wait for their turn, and whose they were.
    waiting: VecDeque<Point>,
    expanded: HashSet<Point>,
    /// How far the permutation of the space has been followed.
    position: u64,
}

impl State {
    pub(super) fn new() -> Self {
        State {
            most_cycles: u64::MAX,
            ..State::default()
        }
    }

    /// Replays that cost more than `patience` times the cycles of the fastest heap
    /// so far are not worth their time from now on.
    pub(super) fn lose_patience(&mut self, patience: u64) {
        let fastest = self.outcomes.iter().map(|outcome| outcome.cycles).min();
        self.most_cycles = fastest.unwrap_or(u64::MAX).saturating_mul(patience);
    }

    /// The next batch: neighbours of what nothing beats, and some from anywhere.
    pub(super) fn choose(
        &mut self,
        count: usize,
        space: &Suggested,
        permutation: &Permutation,
        random: &mut Random,
    ) -> Vec<Candidate> {
        let mut batch = Vec::with_capacity(count);
        while batch.len() < count.saturating_sub(ANYWHERE) {
            if let Some(point) = self.waiting.pop_front() {
                if self.seen.insert(point) {
                    batch.push(Candidate::at(space, point));
                }
                continue;
            }
            let fresh: Vec<Point> = self
                .constant_front
                .points()
                .iter()
                .chain(self.front.points())
                .filter_map(|&(_, point)| point)
                .filter(|point| !self.expanded.contains(point))
                .collect();
            if fresh.is_empty() {
                break;
            }
            let point = fresh[random.below(fresh.len())];
            self.expanded.insert(point);
            let mut neighbours = space.neighbours(point);
            random.shuffle(&mut neighbours);
            self.waiting.extend(neighbours);
        }
        while batch.len() < count && self.position < space.size() {
            let position = permutation.at(self.position);
            self.position += 1;
            if let Some(point) = space.at(position)
                && self.seen.insert(point)
            {
                batch.push(Candidate::at(space, point));
            }
        }
        batch
    }

    /// Takes what became of a candidate; its outcome, if it came to its end.
    pub(super) fn take(
        &mut self,
        candidate: &Candidate,
        ended: Ended,
        write_down: &dyn Fn(&Description) -> String,
    ) -> Option<&Outcome> {
        self.replayed += ended.replayed;
        self.evaluated += 1;
        self.seen.extend(candidate.point);
        match ended.verdict {
            Verdict::Complete(mut outcome) => {
                outcome.number = self.outcomes.len() as u64;
                outcome.named = candidate.named;
                outcome.heap = write_down(&candidate.description);
                self.keep(&outcome, candidate.point);
                self.outcomes.push(*outcome);
                self.took.push(ended.took);
                self.candidates.push(candidate.clone());
                self.details.extend(ended.detail);
                return self.outcomes.last();
            }
            Verdict::Beaten => self.beaten += 1,
            Verdict::Slow => self.slow += 1,
            Verdict::Unfinished(least) => {
                self.evaluated -= 1;
                self.unfinished.push((candidate.clone(), least));
            }
        }
        None
    }

    fn keep(&mut self, outcome: &Outcome, point: Option<Point>) {
        if outcome.failed != 0 {
            return;
        }
        let objectives = outcome.objectives();
        self.front.enter(objectives, point);
        if outcome.constant_time {
            self.constant_front.enter(objectives, point);
        }
    }

    /// Positions of the outcomes that nothing beats, among all heaps or among those
    /// of constant time; of equals the first.
    pub(super) fn unbeaten(&self) -> Vec<usize> {
        let constant = unbeaten(&self.outcomes, |outcome| outcome.constant_time);
        let indices = unbeaten(&self.outcomes, |_| true);
        let indices: HashSet<usize> = indices.into_iter().chain(constant).collect();
        let mut indices: Vec<usize> = indices.into_iter().collect();
        indices.sort_unstable();
        indices
    }
}
