//! Which heaps suit a program: a search over the space that its trace suggests, as long as the clock
//! allows.
//!
//! First every named heap. Then the engine's Pareto local search: the neighbours, one
//! parameter away, of each heap that nothing beats, mixed with configurations
//! from anywhere in the space. No configuration is replayed twice, and what the folder of an earlier
//! run has is not replayed again.
//!
//! A trace of which the time allows only some whole replays is searched on windows
//! of it, and what is best there is replayed whole ([`sampling`]): every outcome
//! is of a whole replay, however long the trace.
//!
//! Heaps that are fast by what they declare come first, so that where the time
//! ends, it ends for slow ones. A heap that was not finished is named.
//!
//! Invariant: candidates are chosen in batches of a fixed size from what earlier
//! batches found, and rows are taken in the order of the candidates. The clock decides how many
//! there are, never what one says. So for a given number of evaluations the result is the same on
//! any number of workers, and after any number of interruptions.

mod sampling;
mod state;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use metes_config::Config;
use metes_heap::Description;
use rayon::prelude::*;
use serde::Serialize;

use crate::catalogue::catalogue;
use crate::choose::{OfRuns, Over};
use crate::clock::{Moment, Timer};
use crate::compare::{self, Compared};
use crate::engine::{Ended, Evaluator, Folder, Row, Status, Time, Watch};
use crate::outcome::{By, Outcome, best, constant_time, slowness};
use crate::output::OutputError;
use crate::terms::{Judge, Terms};
use crate::workers;

use state::{BATCH, Class, State};

/// The named heaps may take this part of the time: some search long lists, and
/// what suits the program better is yet to be found.
const NAMED_SHARE: f64 = 1.0 / 3.0;
/// Of the time, what may be kept for the smallest arenas of the report.
const ARENA_SHARE: f64 = 0.15;
/// A trace of more events than this for each second of the budget is searched on
/// windows: fewer than some 200 heaps could be replayed whole on two cores.
const WHOLE_EVENTS_PER_SECOND: f64 = 50_000.0;
/// Events that a heap is then replayed on for each second of the budget.
const SAMPLE_EVENTS_PER_SECOND: f64 = 15_000.0;

/// When and how a search ends.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// What all replays may take together, those of the report included; looked at
    /// inside replays. Without a number of evaluations it also decides whether a
    /// long trace is searched on windows: that is so for more than 50 000 events a
    /// second. The first heap is replayed whole whatever it takes.
    pub time: Option<Duration>,
    /// After so many configurations beside the named heaps, each replayed whole.
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
    /// When a guarantee is useful: then heaps that have one are searched for by themselves, too, and are
    /// beaten by such heaps alone.
    pub terms: Option<Terms>,
    /// Whether the guarantee is an objective beside what is measured: no heap beats one that guarantees more. The
    /// evaluator minimises it, too.
    pub by_guarantee: bool,
    /// Which memory of several runs a heap is chosen by.
    pub over: Over,
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
            terms: None,
            by_guarantee: false,
            over: Over::default(),
        }
    }
}

impl Budget {
    /// By what outcomes beat each other.
    pub(crate) fn by(&self) -> By {
        match self.by_guarantee {
            true => By::Guarantee,
            false => By::Measured,
        }
    }

    /// How configurations are chosen and how many, as far as that decides what is found of them.
    pub fn method(&self) -> String {
        let end = match self.evaluations {
            Some(evaluations) => format!("evaluations {evaluations}"),
            None => "by the clock".to_owned(),
        };
        let guarantee = self.terms.map_or(String::new(), |terms| {
            format!(", guarantee of {}", terms.method())
        });
        format!("local, seed {}, {end}{guarantee}", self.seed)
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exploration {
    /// Configurations replayed on the whole trace, to the end or until beaten.
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
    /// Where heaps were searched for that serve several runs.
    #[serde(skip)]
    pub runs: Option<OfRuns>,
    /// How heaps were chosen for a whole replay, where the trace was too long to
    /// replay all of them whole.
    pub sampled: Option<Sampled>,
    /// The named heaps, those that could be replayed in time.
    pub named: Vec<Outcome>,
    /// Named heaps that could not, and others whose whole replay was broken off.
    pub unfinished: Vec<Unfinished>,
    /// Outcomes that no other one beats in footprint, mean and most cycles, and in its guarantee where that is an
    /// objective, by rising footprint; one for each distinct outcome.
    pub pareto: Vec<Outcome>,
    /// Among the heaps of constant time alone, the outcomes that no other one beats in footprint,
    /// mean and most cycles, by rising footprint.
    pub constant_time: Vec<Outcome>,
    /// The same of the heaps that have a useful guarantee.
    #[serde(skip)]
    pub guaranteed: Option<Guarantees>,
    /// All outcomes of complete replays in the order of evaluation.
    #[serde(skip)]
    pub outcomes: Vec<Outcome>,
    /// All there is to know of the named heaps, and of others that were replayed
    /// whole after windows.
    #[serde(skip)]
    pub details: Vec<Compared>,
    /// What became of each configuration replayed on the whole trace, in the order of evaluation.
    #[serde(skip)]
    pub rows: Vec<Row>,
}

/// What nothing beats among the heaps that have a useful guarantee.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarantees {
    /// Of what, and when it is useful.
    pub terms: Terms,
    by: By,
    /// Among all of them, by rising footprint.
    pub pareto: Vec<Outcome>,
    /// Among those of constant time.
    pub constant_time: Vec<Outcome>,
}

impl Guarantees {
    /// Among some outcomes.
    fn of(terms: Terms, by: By, outcomes: &[Outcome]) -> Self {
        let useful = |outcome: &Outcome| terms.useful(outcome.guarantee);
        Guarantees {
            terms,
            by,
            pareto: best(outcomes, by, useful),
            constant_time: best(outcomes, by, |outcome| {
                outcome.constant_time && useful(outcome)
            }),
        }
    }

    /// The same among other outcomes.
    #[must_use]
    pub fn among(&self, outcomes: &[Outcome]) -> Self {
        Guarantees::of(self.terms, self.by, outcomes)
    }
}

/// How a long trace was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sampled {
    /// Windows of the trace.
    pub windows: u64,
    /// Events that a heap is replayed on, those that set it up included.
    pub events: u64,
    /// Configurations replayed on the windows, to the end or until beaten.
    pub configurations: u64,
    /// Of these, those that nothing beats there.
    pub unbeaten: u64,
    /// Of the unbeaten ones, those that were replayed whole as well.
    pub confirmed: u64,
}

/// A heap that was not replayed to the end of the trace in the time there was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unfinished {
    /// How the heap is written down.
    pub heap: String,
    /// Its usual name, if it has one.
    pub named: Option<&'static str>,
    /// What it needs at least, from the replay that was broken off; `None` where
    /// none was begun.
    pub at_least: Option<AtLeast>,
    /// What it did on windows of the trace; no bound on what it does on all of it.
    pub on_windows: Option<OnWindows>,
}

impl Unfinished {
    /// What is known of it, in a sentence.
    pub fn sentence(&self) -> String {
        let mut text = format!("{} was not finished in the budget", self.heap);
        if let Some(least) = self.at_least {
            text += &format!(
                ": after {} events it needs at least {} bytes and {} cycles",
                least.events, least.footprint, least.cycles
            );
        }
        if let Some(on_windows) = self.on_windows {
            text += &format!(
                "; on windows of the trace it took {} bytes and {:.1} cycles a request",
                on_windows.footprint, on_windows.cycles_mean
            );
        }
        text + "."
    }
}

/// What a heap needs at least: a proven lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtLeast {
    /// Events replayed.
    pub events: u64,
    /// Bytes taken from the system.
    pub footprint: u64,
    /// Modelled cycles of the whole trace.
    pub cycles: u64,
    /// Most modelled cycles of one operation.
    pub cycles_max: u64,
}

/// What a heap did on windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OnWindows {
    /// Most bytes taken from the system in one window.
    pub footprint: u64,
    /// Modelled cycles, a mean over the events.
    pub cycles_mean: f64,
    /// Most modelled cycles of one operation.
    pub cycles_max: u64,
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

/// Searches a space that the trace suggests until the time of `timer` is over, which the
/// caller begins with [`Budget::time`], or it is stopped; what was found by then is
/// kept. With a folder, it goes on from what an earlier run left there.
///
/// # Errors
/// [`OutputError`] when the folder cannot be written to.
pub fn explore(
    evaluator: &Evaluator<'_>,
    budget: &Budget,
    folder: Option<&Folder>,
    timer: &Timer<'_>,
    observer: &mut dyn Observer,
) -> Result<Exploration, OutputError> {
    // A pool of its own, so that the number of workers is the caller's choice.
    let search = Search {
        whole: evaluator,
        folder,
        budget,
        timer,
        judge: budget.terms.map(Judge::new),
        named: catalogue().iter().map(|named| named.name).collect(),
        pool: workers::pool(budget.workers),
    };
    let sample = match (timer.time(), budget.evaluations) {
        (Some(time), None)
            if evaluator.replayed() as f64 > time.as_secs_f64() * WHOLE_EVENTS_PER_SECOND =>
        {
            (time.as_secs_f64() * SAMPLE_EVENTS_PER_SECOND) as usize
        }
        _ => 0,
    };
    let ground = evaluator.on_windows(sample);
    let begun = timer.elapsed();
    let (mut state, sampled) = search.go(ground.as_ref(), observer)?;
    if budget.evaluations.is_none() {
        search.absorb(&mut state);
    }
    state.keep(true)?;
    let searching = (timer.elapsed() - begun).as_secs_f64();
    search.complete(&mut state);
    let replayed = state.replayed + sampled.as_ref().map_or(0, |(_, state)| state.replayed);
    let distinct: HashSet<_> = state.outcomes.iter().map(Outcome::objectives).collect();
    let named = state
        .outcomes
        .iter()
        .filter(|outcome| outcome.named.is_some());
    Ok(Exploration {
        configurations: state.evaluated(),
        distinct: distinct.len() as u64,
        space: evaluator.space().size(),
        beaten: state.count(Status::Beaten),
        slow: state.count(Status::Slow),
        seconds: timer.elapsed().as_secs_f64(),
        events_per_second: replayed as f64 / searching.max(1e-9),
        interrupted: timer.stopped(),
        runs: evaluator.runs().map(|runs| OfRuns {
            over: budget.over,
            weight: runs.weight(),
        }),
        named: named.cloned().collect(),
        unfinished: search.unfinished(&state, sampled.as_ref().map(|(_, state)| state)),
        sampled: sampled.map(|(sampled, _)| sampled),
        pareto: best(&state.outcomes, budget.by(), |_| true),
        constant_time: best(&state.outcomes, budget.by(), |outcome| {
            outcome.constant_time
        }),
        guaranteed: (budget.terms).map(|terms| Guarantees::of(terms, budget.by(), &state.outcomes)),
        rows: state.rows().to_vec(),
        details: state.details,
        outcomes: state.outcomes,
    })
}

/// How candidates are replayed.
#[derive(Clone, Copy, Default)]
struct Rules {
    deadline: Moment,
    /// To the end, whatever the time.
    must_end: bool,
    /// Until beaten by what was found, or hopelessly slow beside it.
    may_be_beaten: bool,
    /// As long as this on the clock.
    most_time: Option<Duration>,
    /// All there is to know is kept.
    keep: bool,
}

struct Search<'s> {
    whole: &'s Evaluator<'s>,
    folder: Option<&'s Folder>,
    budget: &'s Budget,
    timer: &'s Timer<'s>,
    /// What heaps guarantee.
    judge: Option<Judge>,
    /// Names of the heaps to compare with, by number.
    named: Vec<&'static str>,
    pool: Option<rayon::ThreadPool>,
}

impl<'s> Search<'s> {
    /// What whole replays found, and what replays on windows, if there are some.
    fn go(
        &self,
        windows: Option<&Evaluator<'_>>,
        observer: &mut dyn Observer,
    ) -> Result<(State<'s>, Option<(Sampled, State<'s>)>), OutputError> {
        let mut state = State::new(self.whole.space(), self.budget, self.folder);
        let wanted = state.worth_recalling(self.whole, &|heap| self.class(heap));
        for (number, ended, took) in self.recall(&wanted) {
            state.recalled.insert(number, (ended, took));
        }
        // TLSF, the fastest to replay, then the others.
        let named: Vec<u64> = (0..self.whole.space().baselines()).collect();
        let (first, others) = named.split_at(named.len().min(1));
        // The first must come to its end, or there would be nothing to keep.
        let rules = Rules {
            must_end: true,
            keep: true,
            ..Rules::default()
        };
        self.evaluate(first, self.whole, &rules, &mut state, Some(&mut *observer))?;
        let Some(windows) = windows else {
            self.by_whole_replays(others, &mut state, observer)?;
            return Ok((state, None));
        };
        let sampled = self.by_windows(windows, &named, &mut state, observer)?;
        Ok((state, Some(sampled)))
    }

    fn by_whole_replays(
        &self,
        named: &[u64],
        state: &mut State<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), OutputError> {
        let rules = Rules {
            deadline: self.timer.after(NAMED_SHARE),
            keep: true,
            ..Rules::default()
        };
        self.evaluate(named, self.whole, &rules, state, Some(&mut *observer))?;
        state.lose_patience(self.budget.patience);
        let rules = Rules {
            deadline: self.end_of_search(state),
            may_be_beaten: self.budget.end_early,
            ..Rules::default()
        };
        let mut left = self.budget.evaluations.unwrap_or(u64::MAX);
        while left > 0 && !self.timer.past(rules.deadline) {
            let count = BATCH.min(usize::try_from(left).unwrap_or(BATCH));
            let batch = state.choose(count);
            if batch.is_empty() {
                break;
            }
            left -= batch.len() as u64;
            self.evaluate(&batch, self.whole, &rules, state, Some(&mut *observer))?;
        }
        Ok(())
    }

    /// When replays must end so that smallest arenas can be found, as many of the
    /// fastest heaps' as a part of the time allows.
    fn end_of_search(&self, state: &State<'_>) -> Moment {
        let end = self.timer.end()?;
        let most = self.timer.time()?.mul_f64(ARENA_SHARE);
        let fastest = state.outcomes.iter().map(|outcome| outcome.cycles).min();
        let mut each: Vec<Duration> = (state.outcomes.iter().zip(&state.took))
            .filter(|(outcome, _)| {
                outcome.named.is_some()
                    && compare::worth_an_arena(outcome.cycles, fastest.unwrap_or(0))
            })
            .map(|(_, took)| *took * compare::REPLAYS / self.workers())
            .collect();
        each.sort_unstable();
        let mut kept = Duration::ZERO;
        for one in each {
            if kept + one > most {
                break;
            }
            kept += one;
        }
        Some(end.saturating_sub(kept))
    }

    fn workers(&self) -> u32 {
        let threads = self
            .pool
            .as_ref()
            .map(rayon::ThreadPool::current_num_threads);
        threads.unwrap_or(1).max(1) as u32
    }

    /// The usual name of a number.
    fn name(&self, number: u64) -> Option<&'static str> {
        self.named.get(usize::try_from(number).ok()?).copied()
    }

    /// Replays candidates on all workers, the fastest by what they declare first,
    /// and takes what became of them in their order.
    fn evaluate(
        &self,
        candidates: &[u64],
        ground: &Evaluator<'_>,
        rules: &Rules,
        state: &mut State<'_>,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<(), OutputError> {
        let configs = candidates
            .iter()
            .map(|&number| ground.space().describe(number));
        let configs: Vec<Config> = configs.collect::<Option<_>>().unwrap_or_default();
        let mut order: Vec<usize> = (0..configs.len()).collect();
        order.sort_by_key(|&index| slowness(&configs[index].heap));
        let next = AtomicUsize::new(0);
        let ended: Mutex<Vec<(usize, Ended, Duration)>> = Mutex::new(Vec::new());
        let known = &*state;
        let work = || {
            while rules.must_end || !self.timer.past(rules.deadline) {
                let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                let (number, start) = (candidates[index], self.timer.now());
                let one = self.replay(number, &configs[index], ground, rules, known, start);
                let took = self.timer.now().saturating_sub(start);
                if let Ok(mut ended) = ended.lock() {
                    ended.push((index, one, took));
                }
            }
        };
        match &self.pool {
            Some(pool) => drop(pool.broadcast(|_| work())),
            None => work(),
        }
        let mut ended = ended.into_inner().unwrap_or_default();
        ended.sort_unstable_by_key(|&(index, ..)| index);
        for (index, mut one, mut took) in ended {
            let number = candidates[index];
            if let Some((recalled, then)) = state.recalled.remove(&number) {
                (one, took) = (recalled, then);
            } else if state.known(number).is_some() {
                state.remembered.insert(number);
            }
            self.write_down(number, &configs[index], &mut one.outcome);
            let outcome = state.take(number, one, took, ground);
            if let (Some(observer), Some(outcome)) = (observer.as_deref_mut(), outcome) {
                observer.outcome(outcome);
            }
        }
        if let Some(observer) = observer {
            observer.progress(state.evaluated(), state.front(Class::ANY).len());
        }
        state.keep(false)
    }

    /// How an outcome is told from others.
    fn write_down(&self, number: u64, config: &Config, outcome: &mut Outcome) {
        outcome.number = number;
        outcome.named = self.name(number);
        outcome.heap = config.name();
        outcome.guarantee = self
            .judge
            .as_ref()
            .and_then(|judge| judge.guarantee(&config.heap));
    }

    /// Beside which heaps a heap stands.
    fn class(&self, heap: &Description) -> Class {
        Class {
            constant: constant_time(heap),
            useful: self.judge.as_ref().is_some_and(|judge| judge.useful(heap)),
        }
    }

    fn replay(
        &self,
        number: u64,
        config: &Config,
        ground: &Evaluator<'_>,
        rules: &Rules,
        known: &State<'_>,
        start: Duration,
    ) -> Ended {
        if let Some(row) = known.known(number) {
            return Ended::remembered(row, config, self.whole.requests());
        }
        let time = || match rules {
            rules if !rules.must_end && self.timer.past(rules.deadline) => Time::Over,
            Rules {
                most_time: Some(most),
                ..
            } if self.timer.now().saturating_sub(start) > *most => Time::TooLong,
            _ => Time::Left,
        };
        let front = rules
            .may_be_beaten
            .then(|| known.front(self.class(&config.heap)));
        let watch = Watch {
            front,
            most_cycles: match rules.may_be_beaten {
                true => known.most_cycles,
                false => u64::MAX,
            },
            time: &time,
        };
        let name = match self.name(number) {
            Some(name) => name.to_owned(),
            None if rules.keep => config.name(),
            None => String::new(),
        };
        ground.replay(number, config, rules.keep.then_some(&name), &watch)
    }

    /// Takes what an earlier run found and this one, by the clock, did not come to.
    fn absorb(&self, state: &mut State<'_>) {
        for number in state.untaken() {
            let (Some(row), Some(config)) =
                (state.known(number), self.whole.space().describe(number))
            else {
                continue;
            };
            let (ended, took) = state.recalled.remove(&number).unwrap_or_else(|| {
                let mut ended = Ended::remembered(row, &config, self.whole.requests());
                self.write_down(number, &config, &mut ended.outcome);
                state.remembered.insert(number);
                (ended, Duration::ZERO)
            });
            state.take(number, ended, took, self.whole);
        }
    }

    /// Replays what an earlier run found once more, with all there is to say of it.
    fn recall(&self, numbers: &[u64]) -> Vec<(u64, Ended, Duration)> {
        let again = |&number: &u64| {
            let start = self.timer.now();
            let config = self.whole.space().describe(number)?;
            let name = self
                .name(number)
                .map_or_else(|| config.name(), str::to_owned);
            let watch = Watch {
                front: None,
                most_cycles: u64::MAX,
                time: &|| Time::Left,
            };
            let mut ended = self.whole.replay(number, &config, Some(&name), &watch);
            self.write_down(number, &config, &mut ended.outcome);
            Some((number, ended, self.timer.now().saturating_sub(start)))
        };
        let work = || numbers.par_iter().filter_map(again).collect();
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Makes sure that all is known of what nothing beats. Of what equals another heap another one
    /// may have been recalled at the beginning.
    fn complete(&self, state: &mut State<'_>) {
        let unbeaten = state.unbeaten().into_iter();
        let numbers = unbeaten.map(|index| state.outcomes[index].number);
        let open: Vec<u64> = numbers
            .filter(|number| state.remembered.contains(number))
            .collect();
        for (number, ended, _) in self.recall(&open) {
            let known = state.outcomes.iter_mut();
            if let Some(known) = { known }.find(|known| known.number == number) {
                *known = *ended.outcome;
            }
            state.details.extend(ended.detail);
        }
    }

    /// The named heaps that were not replayed whole, and others that were broken
    /// off after windows had shown them worth it.
    fn unfinished(&self, state: &State<'_>, sampled: Option<&State<'_>>) -> Vec<Unfinished> {
        let on_windows = |number: u64| {
            let mut found = sampled?.outcomes.iter();
            let outcome = found.find(|outcome| outcome.number == number)?;
            Some(OnWindows {
                footprint: outcome.footprint,
                cycles_mean: outcome.cycles_mean,
                cycles_max: outcome.cycles_max,
            })
        };
        let at_least = |number: u64| {
            let mut broken_off = state.unfinished.iter();
            broken_off
                .find(|(other, _)| *other == number)
                .map(|(_, least)| *least)
        };
        let named = (0..self.whole.space().baselines()).filter(|&number| {
            let mut whole = state.outcomes.iter();
            whole.all(|outcome| outcome.number != number)
        });
        let others = (state.unfinished.iter())
            .map(|&(number, _)| number)
            .filter(|&number| self.name(number).is_none() && sampled.is_some());
        let all = named.chain(others);
        all.filter_map(|number| {
            let named = self.name(number);
            Some(Unfinished {
                heap: match named {
                    Some(name) => name.to_owned(),
                    None => self.whole.space().describe(number)?.name(),
                },
                named,
                at_least: at_least(number),
                on_windows: on_windows(number),
            })
        })
        .collect()
    }
}
