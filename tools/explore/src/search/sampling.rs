//! The search on windows of a long trace, and whole replays of what is best there.
//!
//! For a third of the time left, heaps are replayed on windows alone. From then on
//! as much time goes into whole replays of *finalists*: in rounds, the best by each
//! preference among those that nothing beats on the windows and that were not
//! replayed whole yet. After the first round come the named heaps of constant time,
//! after the second those that search, as far as they are fast enough: how long a
//! whole replay takes is known from the windows.
//!
//! Invariant: what is found on windows decides the order of whole replays alone;
//! it is no outcome.

use std::collections::HashSet;
use std::time::Duration;

use super::state::{BATCH, Class, State};
use super::{Observer, Rules, Sampled, Search};
use crate::choose::by_merit;
use crate::clock::Moment;
use crate::engine::Evaluator;
use crate::outcome::Outcome;
use crate::output::OutputError;

/// Of the time left, what is spent on windows before the first finalist.
const BEFORE_FINALISTS: u32 = 3;
/// A heap that takes more than this part of the time on windows is too slow to be
/// of use here.
const MOST_OF_TIME: u32 = 20;
/// Of the time left, what whole replays of named heaps that search may take.
const SEARCHING_NAMED: u32 = 3;

/// Whole replays so far.
#[derive(Default)]
struct Finals {
    rounds: u32,
    tried: HashSet<u64>,
}

impl<'s> Search<'s> {
    /// Searches on windows and confirms by whole replays, which `state` takes.
    pub(super) fn by_windows(
        &self,
        windows: &Evaluator<'_>,
        named: &[u64],
        state: &mut State<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Sampled, State<'s>), OutputError> {
        let timer = self.timer;
        let end = self.end_of_search(state);
        let start = timer.now();
        let left = timer.until(end).unwrap_or_default();
        let alone = start + left / BEFORE_FINALISTS;
        // What is found on windows is no result, and not kept.
        let mut sampled = State::new(self.whole.space(), self.budget, None);
        let mut rules = Rules {
            deadline: end,
            most_time: timer.time().map(|time| time / MOST_OF_TIME),
            ..Rules::default()
        };
        self.evaluate(named, windows, &rules, &mut sampled, None)?;
        sampled.lose_patience(self.budget.patience);
        rules.may_be_beaten = self.budget.end_early;
        let mut finals = Finals {
            rounds: 0,
            tried: state
                .outcomes
                .iter()
                .map(|outcome| outcome.number)
                .collect(),
        };
        let mut confirming = Duration::ZERO;
        let mut used_up = false;
        while !timer.past(end) {
            let now = timer.now();
            let sampling = now.saturating_sub(start).saturating_sub(confirming);
            let turn = used_up || now >= alone && confirming <= sampling;
            let batch = match turn {
                true => self.finalists(&mut finals, windows, &sampled, timer.until(end)),
                false => Vec::new(),
            };
            if !batch.is_empty() {
                self.confirm(&batch, end, state, observer)?;
                confirming += timer.now().saturating_sub(now);
                continue;
            }
            if used_up {
                break;
            }
            let batch = sampled.choose(BATCH);
            used_up = batch.is_empty();
            // What is under way when the first finalists' time has come would only delay them.
            rules.deadline = if now < alone { Some(alone) } else { end };
            self.evaluate(&batch, windows, &rules, &mut sampled, None)?;
            observer.progress(sampled.evaluated(), state.front(Class::ANY).len());
        }
        let unbeaten = sampled.unbeaten();
        let judged: HashSet<u64> = finals
            .tried
            .iter()
            .copied()
            .filter(|number| {
                let mut broken_off = state.unfinished.iter();
                broken_off.all(|(other, _)| other != number)
            })
            .collect();
        let confirmed = unbeaten
            .iter()
            .filter(|&&index| judged.contains(&sampled.outcomes[index].number));
        let summary = Sampled {
            windows: windows.traces() as u64,
            events: windows.replayed(),
            configurations: sampled.evaluated(),
            unbeaten: unbeaten.len() as u64,
            confirmed: confirmed.count() as u64,
        };
        Ok((summary, sampled))
    }

    /// Replays heaps whole.
    fn confirm(
        &self,
        batch: &[u64],
        deadline: Moment,
        state: &mut State<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), OutputError> {
        // Named heaps are compared, even where they are beaten.
        let (named, others): (Vec<u64>, Vec<u64>) = batch
            .iter()
            .partition(|&&number| self.name(number).is_some());
        for (batch, may_be_beaten) in [(named, false), (others, self.budget.end_early)] {
            let rules = Rules {
                deadline,
                keep: true,
                may_be_beaten,
                ..Rules::default()
            };
            self.evaluate(&batch, self.whole, &rules, state, Some(&mut *observer))?;
        }
        Ok(())
    }

    /// The next heaps to replay whole, as far as the time left allows by what their
    /// replays on windows took.
    fn finalists(
        &self,
        finals: &mut Finals,
        windows: &Evaluator<'_>,
        sampled: &State<'_>,
        left: Option<Duration>,
    ) -> Vec<u64> {
        let left = left.unwrap_or(Duration::MAX);
        // As long as a replay on all events takes at the speed of that on windows.
        let scale = self.whole.replayed() as f64 / windows.replayed().max(1) as f64;
        let takes = |index: usize| sampled.took[index].mul_f64(scale);
        let mut batch = Vec::new();
        // Where no named heap is fast enough, its round is the next one's.
        for _ in 0..2 {
            finals.rounds += 1;
            let (indices, most) = match finals.rounds {
                2 => (named(sampled, true), left),
                4 => (named(sampled, false), left / SEARCHING_NAMED),
                _ => (finals.best(sampled, |index| takes(index) <= left), left),
            };
            let mut sum = Duration::ZERO;
            for index in indices {
                let number = sampled.outcomes[index].number;
                let one = takes(index);
                if one <= most && sum + one / self.workers() <= most && finals.tried.insert(number)
                {
                    sum += one / self.workers();
                    batch.push(number);
                }
            }
            if !batch.is_empty() {
                break;
            }
        }
        batch
    }
}

/// The named heaps of constant time, or those that search, the fastest first.
fn named(sampled: &State<'_>, constant: bool) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..sampled.outcomes.len())
        .filter(|&index| {
            let outcome = &sampled.outcomes[index];
            outcome.named.is_some() && outcome.constant_time == constant
        })
        .collect();
    indices.sort_by_key(|&index| sampled.took[index]);
    indices
}

impl Finals {
    /// The best by each preference among what nothing beats on the windows, was not
    /// tried yet and is fast enough.
    fn best(&self, sampled: &State<'_>, fits: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut untried = sampled.unbeaten();
        untried
            .retain(|&index| !self.tried.contains(&sampled.outcomes[index].number) && fits(index));
        let outcomes: Vec<&Outcome> = untried
            .iter()
            .map(|&index| &sampled.outcomes[index])
            .collect();
        let useful: Vec<usize> = (0..outcomes.len())
            .filter(|&at| sampled.useful(outcomes[at]))
            .collect();
        let guaranteed: Vec<&Outcome> = useful.iter().map(|&at| outcomes[at]).collect();
        let among =
            by_merit(&guaranteed).map(|order| order.into_iter().map(|at| useful[at]).collect());
        let mut found = Vec::new();
        for order in by_merit(&outcomes).into_iter().chain(among) {
            let mut order: std::iter::Map<_, _> = Vec::into_iter(order).map(|at| untried[at]);
            found.extend(order.find(|index| !found.contains(index)));
        }
        found
    }
}
