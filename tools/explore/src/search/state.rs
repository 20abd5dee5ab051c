//! What a search has found so far, and what it looks at next.
//!
//! Two local searches take turns, one among all heaps and one among those of constant time, where a useful
//! guarantee is asked for two more among the heaps that have one; and some configurations come from anywhere in the space, so that no corner is left out for good.
//!
//! Invariant: what is looked at next depends on the seed and on what was found, in that order, alone.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use metes_heap::Description;

use super::{AtLeast, Budget};
use crate::compare::Compared;
use crate::engine::{
    Course, Ended, Evaluator, Folder, Front, LocalSearch, RandomSearch, Row, Searcher, Status,
};
use crate::outcome::{By, Outcome, unbeaten};
use crate::output::OutputError;
use crate::space::Space;

/// Candidates chosen together. A number of its own, not that of the workers.
pub(super) const BATCH: usize = 32;
/// Of a batch, how many come from anywhere in the space.
const ANYWHERE: usize = 8;

/// What was found on one ground.
pub(super) struct State<'s> {
    course: Course<'s>,
    /// Among the heaps of each class, in the order of [`Class::ALL`]; the last two only with `limit`.
    near: Vec<LocalSearch<'s>>,
    /// A guarantee of at most so many bytes is useful.
    limit: Option<u64>,
    by: By,
    anywhere: RandomSearch,
    /// Asked for already.
    asked: HashSet<u64>,
    /// Of complete replays, in the order of evaluation.
    pub(super) outcomes: Vec<Outcome>,
    /// Of each outcome, how long its replay took.
    pub(super) took: Vec<Duration>,
    pub(super) details: Vec<Compared>,
    pub(super) unfinished: Vec<(u64, AtLeast)>,
    /// What an earlier run found and was replayed once more, for what rows do not have.
    pub(super) recalled: HashMap<u64, (Ended, Duration)>,
    /// Outcomes of an earlier run, of which only rows are known.
    pub(super) remembered: HashSet<u64>,
    pub(super) replayed: u64,
    /// Cycles beyond which a replay is not worth its time.
    pub(super) most_cycles: u64,
}

/// What heaps are compared with each other: all, or those that have something that the others lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// Constant time.
    pub(super) constant: bool,
    /// A useful guarantee.
    pub(super) useful: bool,
}

impl Class {
    /// All heaps.
    pub(super) const ANY: Class = Class {
        constant: false,
        useful: false,
    };
    /// Every class, the wider before the narrower.
    const ALL: [Class; 4] = [
        Class::ANY,
        Class {
            constant: true,
            useful: false,
        },
        Class {
            constant: false,
            useful: true,
        },
        Class {
            constant: true,
            useful: true,
        },
    ];

    /// Whether a heap that is `self` has all that `other` asks for.
    fn is(self, other: Class) -> bool {
        self.constant >= other.constant && self.useful >= other.useful
    }
}

impl<'s> State<'s> {
    /// Goes on from what a folder has.
    pub(super) fn new(space: &'s Space, budget: &Budget, folder: Option<&'s Folder>) -> Self {
        let seed = budget.seed;
        let seeds = [seed, !seed, seed.rotate_left(32), !seed.rotate_left(32)];
        let limit = budget.terms.map(|terms| terms.limit);
        let classes = if limit.is_some() { 4 } else { 2 };
        State {
            course: Course::open(folder),
            near: seeds[..classes]
                .iter()
                .map(|&seed| LocalSearch::new(space, seed))
                .collect(),
            limit,
            by: budget.by(),
            anywhere: RandomSearch::new(space, seed),
            asked: HashSet::new(),
            outcomes: Vec::new(),
            took: Vec::new(),
            details: Vec::new(),
            unfinished: Vec::new(),
            recalled: HashMap::new(),
            remembered: HashSet::new(),
            replayed: 0,
            most_cycles: u64::MAX,
        }
    }

    /// What an earlier run found of a number.
    pub(super) fn known(&self, number: u64) -> Option<Row> {
        self.course.known(number)
    }

    /// Of what an earlier run found, the heaps of which more than a row is wanted: the named ones and
    /// those that nothing beats. First of all, so that their time is part of this run's.
    pub(super) fn worth_recalling(
        &self,
        evaluator: &Evaluator<'_>,
        class: &dyn Fn(&Description) -> Class,
    ) -> Vec<u64> {
        let space = evaluator.space();
        let mut fronts = [const { Front::new() }; 4];
        let mut wanted = Vec::new();
        for number in self.course.untaken() {
            let complete = |row: &Row| row.status == Status::Complete;
            let Some(row) = self.known(number).filter(complete) else {
                continue;
            };
            let point = evaluator.objectives().point(&row.metrics);
            let config = space.describe(number);
            let class = config.map_or(Class::ANY, |config| class(&config.heap));
            for (front, wanted) in fronts.iter_mut().zip(Class::ALL) {
                if class.is(wanted) {
                    front.enter(point, number);
                }
            }
            if number < space.baselines() {
                wanted.push(number);
            }
        }
        wanted.extend(fronts.iter().flat_map(Front::numbers));
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Numbers of which an earlier run found something and this one has nothing yet, ascending.
    pub(super) fn untaken(&self) -> Vec<u64> {
        self.course.untaken()
    }

    /// Rows in the order of evaluation.
    pub(super) fn rows(&self) -> &[Row] {
        self.course.rows()
    }

    /// Configurations replayed to the end or until judged.
    pub(super) fn evaluated(&self) -> u64 {
        self.rows().len() as u64
    }

    /// How many configurations had an end of some kind.
    pub(super) fn count(&self, status: Status) -> u64 {
        let rows = self.rows().iter();
        rows.filter(|row| row.status == status).count() as u64
    }

    /// What nothing beats among the heaps of a class.
    pub(super) fn front(&self, class: Class) -> &Front {
        let near = Class::ALL.into_iter().position(|own| own == class);
        match near
            .filter(|&near| near > 0)
            .and_then(|near| self.near.get(near))
        {
            Some(near) => near.front(),
            None => self.course.front(),
        }
    }

    /// Writes what was found since it was written last, if that is much or `all` is wanted.
    pub(super) fn keep(&mut self, all: bool) -> Result<(), OutputError> {
        self.course.keep(all)
    }

    /// Replays that cost more than `patience` times the cycles of the fastest heap
    /// so far are not worth their time from now on.
    pub(super) fn lose_patience(&mut self, patience: u64) {
        let fastest = self.outcomes.iter().map(|outcome| outcome.cycles).min();
        self.most_cycles = fastest.unwrap_or(u64::MAX).saturating_mul(patience);
    }

    /// The next batch: neighbours of what nothing beats, and some from anywhere.
    pub(super) fn choose(&mut self, count: usize) -> Vec<u64> {
        let mut batch = Vec::with_capacity(count);
        let most = count.saturating_sub(ANYWHERE);
        let (mut turn, mut dry) = (0, 0);
        while batch.len() < most && dry < self.near.len() {
            let found = self.near[turn].ask(most - batch.len());
            dry = if found.is_empty() { dry + 1 } else { 0 };
            batch.extend(
                found
                    .into_iter()
                    .filter(|&number| self.asked.insert(number)),
            );
            turn = (turn + 1) % self.near.len();
        }
        while batch.len() < count {
            let found = self.anywhere.ask(count - batch.len());
            if found.is_empty() {
                break;
            }
            batch.extend(
                found
                    .into_iter()
                    .filter(|&number| self.asked.insert(number)),
            );
        }
        batch
    }

    /// Takes what became of a candidate; its outcome, if it came to its end.
    pub(super) fn take(
        &mut self,
        number: u64,
        ended: Ended,
        took: Duration,
        evaluator: &Evaluator<'_>,
    ) -> Option<&Outcome> {
        self.replayed += ended.replayed;
        self.asked.insert(number);
        let row = match ended.row {
            Ok(row) => row,
            Err(least) => {
                self.unfinished.push((number, least));
                return None;
            }
        };
        let point = self.course.enter(row, evaluator);
        let class = self.class(&ended.outcome);
        for (near, wanted) in self.near.iter_mut().zip(Class::ALL) {
            near.tell(number, point.filter(|_| class.is(wanted)));
        }
        self.details.extend(ended.detail);
        // Named heaps are compared even where they fail; others may have been broken off.
        let failed = row.status == Status::Failed && ended.outcome.named.is_some();
        if row.status != Status::Complete && !failed {
            return None;
        }
        self.outcomes.push(*ended.outcome);
        self.took.push(took);
        self.outcomes.last()
    }

    fn class(&self, outcome: &Outcome) -> Class {
        Class {
            constant: outcome.constant_time,
            useful: (self.limit.zip(outcome.guarantee))
                .is_some_and(|(limit, bytes)| bytes <= limit),
        }
    }

    /// Whether an outcome has a useful guarantee.
    pub(super) fn useful(&self, outcome: &Outcome) -> bool {
        self.class(outcome).useful
    }

    /// Positions of the outcomes that nothing beats among the heaps of some class; of equals the first.
    pub(super) fn unbeaten(&self) -> Vec<usize> {
        let classes = Class::ALL.into_iter().take(self.near.len());
        let each = classes.flat_map(|class| {
            unbeaten(&self.outcomes, self.by, |outcome| {
                self.class(outcome).is(class)
            })
        });
        let indices: HashSet<usize> = each.collect();
        let mut indices: Vec<usize> = indices.into_iter().collect();
        indices.sort_unstable();
        indices
    }
}
