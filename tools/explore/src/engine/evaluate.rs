//! One configuration by replay, ended early where it is beaten already.
//!
//! It is replayed on the whole trace, on several runs, or on windows that stand for them; of several it needs as
//! much memory as on the one on which it needs most, and beside that its mean over the runs is known.
//!
//! Invariant: a replay is ended only when a point of the front dominates what
//! the configuration needs at least: footprint so far and never less than the
//! peak of live bytes, what it guarantees, record accesses so far and the least that the rest takes,
//! the application's own accesses, energy and time charged so far and the least
//! for what remains ([`Pricer::least`]). So a configuration that belongs to the front
//! is never ended, nor one that equals a point of it. What a replay finds depends on configuration
//! and events alone; how it is watched decides only whether it comes to its end.

use std::borrow::Cow;
use std::cell::RefCell;

use metes_config::Config;
use metes_heap::description::LEVELS;
use serde_json::Value;

use super::folder::{Manifest, trace_hash};
use super::objective::{Front, Objective, ObjectiveSet};
use super::row::{Form, Metrics, NO_GUARANTEE, Row, Status};
use crate::compare::Compared;
use crate::energy::{EnergyError, PriceReport, Pricer, Work};
use crate::events::Events;
use crate::hierarchy::{Counts, Hierarchy};
use crate::least::{LeastCost, least_rest};
use crate::outcome::{Outcome, most};
use crate::replay::{Options, Replayer};
use crate::run::{CHECK_EVERY, Totals};
use crate::runs::Runs;
use crate::search::AtLeast;
use crate::space::Space;
use crate::terms::Terms;
use crate::windows::windows;

/// Replays configurations of a space.
#[derive(Clone, Debug)]
pub struct Evaluator<'e> {
    space: &'e Space,
    /// The trace; of several runs the longest.
    events: &'e Events,
    /// The runs, where there are several.
    runs: Option<&'e Runs>,
    options: Options,
    objectives: ObjectiveSet,
    hierarchy: Option<&'e Hierarchy>,
    terms: Option<Terms>,
    /// Whether heaps that do not keep a limit are left out.
    excludes: bool,
    work: Work,
    ground: Vec<Part<'e>>,
}

/// Events that configurations are replayed on: the whole trace, or a window of it.
#[derive(Clone, Debug)]
struct Part<'e> {
    events: Cow<'e, Events>,
    /// How often it counts.
    weight: u64,
    /// Least cost of the rest of them after each check.
    least: Vec<LeastCost>,
    /// That of the parts behind.
    after: LeastCost,
    /// The least that all footprints of those behind come to: their peaks of live bytes.
    after_live: u64,
}

/// What ends a replay early.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'w> {
    /// What beats it, unless it is wanted to its end.
    pub(crate) front: Option<&'w Front>,
    /// Cycles beyond which it is not worth its time.
    pub(crate) most_cycles: u64,
    /// Whether there is time for more.
    pub(crate) time: &'w dyn Fn() -> Time,
}

/// What the clock says of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// It may go on.
    Left,
    /// It has taken too long.
    TooLong,
    /// The time of all is over.
    Over,
}

/// A replay that ended.
pub(crate) struct Ended {
    /// What became of the configuration; what it needs at least where its time was over.
    pub(crate) row: Result<Row, AtLeast>,
    /// What was counted; of a replay that came to its end, all there is.
    pub(crate) outcome: Box<Outcome>,
    /// Events replayed.
    pub(crate) replayed: u64,
    /// All there is to know of it, if that was wanted and it came to its end.
    pub(crate) detail: Option<Compared>,
}

impl Ended {
    /// What is known of a replay of an earlier run: its row, and what follows from it.
    pub(crate) fn remembered(row: Row, config: &Config, requests: usize) -> Self {
        Ended {
            outcome: Box::new(Outcome::of_metrics(config.heap, &row.metrics, requests)),
            row: Ok(row),
            replayed: 0,
            detail: None,
        }
    }
}

/// Why a replay did not come to its end, and what is known then.
enum Early {
    Judged(Status, Metrics),
    Unfinished(AtLeast),
}

thread_local! {
    static REPLAYER: RefCell<Replayer> = RefCell::default();
}

/// Traces with what their rests cost at least.
fn ground<'e>(
    traces: impl IntoIterator<Item = (Cow<'e, Events>, u64)>,
    options: &Options,
) -> Vec<Part<'e>> {
    let traces = traces.into_iter();
    let mut parts: Vec<Part<'e>> = traces
        .map(|(events, weight)| {
            let (least, after) = least_rest(&events, options);
            Part {
                after_live: events.peak_live().saturating_mul(weight),
                events,
                weight,
                least,
                after,
            }
        })
        .collect();
    let (mut behind, mut live) = (LeastCost::default(), 0_u64);
    for part in parts.iter_mut().rev() {
        let own = std::mem::replace(&mut part.after, behind);
        behind += own.times(part.weight);
        let own = std::mem::replace(&mut part.after_live, live);
        live = live.saturating_add(own);
    }
    parts
}

impl<'e> Evaluator<'e> {
    /// Replays of `events` by `options`, for `objectives`. O(events).
    pub fn new(
        space: &'e Space,
        events: &'e Events,
        options: &Options,
        objectives: ObjectiveSet,
    ) -> Self {
        Evaluator {
            hierarchy: None,
            terms: None,
            excludes: false,
            work: Work::of(events, &options.cost),
            ground: ground([(Cow::Borrowed(events), 1)], options),
            space,
            events,
            runs: None,
            options: *options,
            objectives,
        }
    }

    /// Replays of several runs by `options`, for `objectives`. O(events).
    pub fn over(
        space: &'e Space,
        runs: &'e Runs,
        options: &Options,
        objectives: ObjectiveSet,
    ) -> Option<Self> {
        let (longest, _) = runs.distinct().next()?;
        let whole = runs.distinct();
        Some(Evaluator {
            hierarchy: None,
            terms: None,
            excludes: false,
            work: Work::of(longest, &options.cost),
            ground: ground(
                whole.map(|(events, weight)| (Cow::Borrowed(events), weight)),
                options,
            ),
            space,
            events: longest,
            runs: Some(runs),
            options: *options,
            objectives,
        })
    }

    /// The same on windows of about `sample` events that stand for what heaps are replayed on; `None` where they
    /// would not be much less work.
    pub(crate) fn on_windows(&self, sample: usize) -> Option<Self> {
        let whole = self.replayed();
        let mut parts: Vec<(Cow<'e, Events>, u64)> = Vec::new();
        let mut any = false;
        for part in &self.ground {
            let own = sample as u128 * part.events.len() as u128 / u128::from(whole.max(1));
            match windows(&part.events, own as usize) {
                Some(windows) => {
                    any = true;
                    let windows = windows.into_iter();
                    parts.extend(windows.map(|window| (Cow::Owned(window), part.weight)));
                }
                // One that is short already stands for itself.
                None => parts.push((part.events.clone(), part.weight)),
            }
        }
        any.then(|| self.with(parts))
    }

    fn with(&self, parts: Vec<(Cow<'e, Events>, u64)>) -> Self {
        Evaluator {
            ground: ground(parts, &self.options),
            hierarchy: None,
            ..self.clone()
        }
    }

    /// How many traces configurations are replayed on.
    pub(crate) fn traces(&self) -> usize {
        self.ground.len()
    }

    /// Events that a replay takes, those that set heaps up included.
    pub(crate) fn replayed(&self) -> u64 {
        let parts = self.ground.iter();
        parts.map(|part| part.events.len() as u64).sum()
    }

    /// What tells an exploration from others; `search` says how configurations are chosen.
    pub fn manifest(&self, search: String, end_early: bool) -> Manifest {
        let (metes, format) = Manifest::versions(self.form());
        Manifest {
            metes,
            format,
            trace: self.trace(),
            events: self.replayed(),
            space: self.space.text().to_owned(),
            size: self.space.size(),
            objectives: self.objectives.to_string(),
            options: serde_json::json!(self.options),
            hierarchy: serde_json::json!(self.hierarchy),
            guarantee: self
                .terms
                .map_or(Value::Null, |terms| terms.written(self.excludes)),
            search,
            end_early,
        }
    }

    /// The space.
    pub fn space(&self) -> &'e Space {
        self.space
    }

    /// What is minimised.
    pub fn objectives(&self) -> ObjectiveSet {
        self.objectives
    }

    /// Events of the trace; of several runs those of the longest.
    pub fn events(&self) -> &'e Events {
        self.events
    }

    /// The runs, where there are several.
    pub fn runs(&self) -> Option<&'e Runs> {
        self.runs
    }

    /// Requests that are counted, each as often as its run.
    pub(crate) fn requests(&self) -> usize {
        let parts = self.ground.iter();
        let lengths =
            parts.map(|part| (part.events.len() - part.events.counted()) as u64 * part.weight);
        lengths.sum::<u64>() as usize
    }

    /// Most bytes live at once, whichever the run.
    pub(crate) fn peak_live(&self) -> u64 {
        let parts = self.ground.iter();
        parts.map(|part| part.events.peak_live()).max().unwrap_or(0)
    }

    /// What tells the trace from others, or the runs.
    fn trace(&self) -> String {
        let Some(runs) = self.runs else {
            return trace_hash(self.events);
        };
        let each = runs.distinct().map(|(events, weight)| match weight {
            1 => trace_hash(events),
            weight => format!("{}*{weight}", trace_hash(events)),
        });
        each.collect::<Vec<_>>().join(" ")
    }

    /// Prices replays on a hierarchy of memory levels.
    ///
    /// # Errors
    /// [`EnergyError`] when heaps of the space and the hierarchy do not go
    /// together; said of the heaps to compare with and of the first one.
    pub fn on(mut self, hierarchy: &'e Hierarchy) -> Result<Self, EnergyError> {
        self.hierarchy = Some(hierarchy);
        let last = self.space.size().saturating_sub(1);
        for number in (0..=self.space.baselines()).chain([last]) {
            if let Some(config) = self.space.describe(number) {
                self.pricer(&config)?;
            }
        }
        Ok(self)
    }

    /// Says of every heap what it guarantees. Where a limit was asked for, heaps that do not keep it are not
    /// replayed.
    #[must_use]
    pub fn guaranteeing(mut self, terms: Terms) -> Self {
        self.terms = Some(terms);
        self.excludes = true;
        self
    }

    /// Says of every heap what it guarantees, and minimises that, too. Every heap is replayed.
    #[must_use]
    pub fn weighing(mut self, terms: Terms) -> Self {
        self.terms = Some(terms);
        self.objectives = self.objectives.with(Objective::Guarantee);
        self
    }

    /// What is asked of guarantees, if anything is.
    pub fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// What rows have.
    fn form(&self) -> Form {
        match self.terms {
            Some(_) => Form::Guaranteed,
            None => Form::Measured,
        }
    }

    /// What a heap guarantees, as rows have it. Memory levels that replays are priced on have a size, so nothing is
    /// guaranteed of a heap that is proved to need more.
    fn guarantee(&self, config: &Config) -> u64 {
        let Some(terms) = &self.terms else {
            return Metrics::default().guarantee;
        };
        let room = self.hierarchy.map_or([None; LEVELS], Hierarchy::sizes);
        let heap = &config.heap;
        let levels = (heap.general.iter().map(|pool| pool.level))
            .chain(heap.objects.iter().map(|pool| pool.level));
        let room = levels.filter_map(|level| room.get(usize::from(level)).copied()?);
        let room = room.min().map_or(u64::MAX, |bytes| bytes as u64);
        // Memory comes in whole increments.
        let growth = (heap.general.len() * config.arena.increment) as u64;
        let bytes = terms.guarantee_of(config);
        bytes
            .filter(|bytes| bytes.saturating_add(growth) <= room)
            .unwrap_or(NO_GUARANTEE)
    }

    /// The hierarchy, if replays are priced.
    pub fn hierarchy(&self) -> Option<&'e Hierarchy> {
        self.hierarchy
    }

    fn pricer(&self, config: &Config) -> Result<Option<Pricer<'e>>, EnergyError> {
        let Some(hierarchy) = self.hierarchy else {
            return Ok(None);
        };
        let word = self.events.access_word();
        let sizes = config.level_sizes();
        hierarchy.pricer(&config.heap, &sizes, word).map(Some)
    }

    /// Energy and time of what a replay of a configuration counted, explained;
    /// none without a hierarchy, or where pools took more than it has.
    pub fn price(&self, config: &Config, counts: &[Counts; LEVELS]) -> Option<PriceReport> {
        let pricer = self.pricer(config).ok()??;
        let price = pricer.price(counts, &self.work).ok()?;
        Some(pricer.explain(counts, &price))
    }

    /// How all configurations are replayed, but for what each says itself.
    pub fn common_options(&self) -> Options {
        self.options
    }

    /// How a configuration is replayed: with its growth, and no more in a level
    /// than it has.
    pub fn options(&self, config: &Config) -> Options {
        let mut options = self.options;
        options.arena.increment = config.arena.increment;
        options.arena.mapped = config.arena.mapped;
        options.arena.pages = config.arena.pages;
        options.arena.levels = config.level_sizes();
        if let Some(hierarchy) = self.hierarchy {
            for (own, most) in options.arena.levels.iter_mut().zip(hierarchy.sizes()) {
                *own = own.or(most);
            }
        }
        options
    }

    /// Replays the configuration of a number below the space's size; a front
    /// ends it early. Numbers outside of the space fail.
    pub fn row(&self, number: u64, front: Option<&Front>) -> Row {
        let failed = || Row {
            number,
            status: Status::Failed,
            metrics: Metrics::default(),
        };
        let Some(config) = self.space.describe(number) else {
            return failed();
        };
        let watch = Watch {
            front,
            most_cycles: u64::MAX,
            time: &|| Time::Left,
        };
        let ended = self.replay(number, &config, None, &watch);
        ended.row.unwrap_or_else(|_| failed())
    }

    /// Replays the configuration of a number; under a name, on a whole trace, all is kept that there
    /// is to know.
    pub(crate) fn replay(
        &self,
        number: u64,
        config: &Config,
        keep: Option<&str>,
        watch: &Watch<'_>,
    ) -> Ended {
        let options = self.options(config);
        let mut sum = Totals::default();
        let mut ended = Ended {
            row: Ok(Row {
                number,
                status: Status::Failed,
                metrics: Metrics::default(),
            }),
            outcome: Box::new(Outcome::of(config.heap, &sum)),
            replayed: 0,
            detail: None,
        };
        let Ok(pricer) = self.pricer(config) else {
            return ended;
        };
        let guarantee = self.guarantee(config);
        let beyond = |terms: &Terms| self.excludes && terms.excludes(guarantee);
        if self.terms.as_ref().is_some_and(beyond) {
            ended.row = Ok(Row {
                number,
                status: Status::Beyond,
                metrics: Metrics {
                    guarantee,
                    ..Metrics::default()
                },
            });
            return ended;
        }
        let mut early = None;
        let mut complete = true;
        for part in &self.ground {
            let mut look = |totals: &Totals| {
                if totals.events <= CHECK_EVERY {
                    // A replay that is repeated with larger arrays starts afresh.
                    early = None;
                }
                early = self.ends(part, &sum, totals, pricer.as_ref(), guarantee, watch);
                early.is_none()
            };
            let (heap, events) = (&config.heap, &*part.events);
            let measured = REPLAYER.with_borrow_mut(|replayer| match keep {
                Some(name) => {
                    let (replay, curve, measured) =
                        replayer.replay_while(name, heap, events, &options, &mut look);
                    ended.detail = Some(Compared {
                        description: *heap,
                        replay,
                        curve,
                    });
                    measured
                }
                None => replayer.totals(heap, events, &options, &mut look),
            });
            ended.replayed += measured.totals.events as u64;
            sum = added(&sum, &measured.totals, part);
            // Nothing is replayed where not even the control structure fits.
            complete &= measured.complete || part.events.is_empty();
            if early.is_some() {
                ended.detail = None;
                break;
            }
        }
        let row = match early {
            Some(Early::Unfinished(least)) => Err(least),
            Some(Early::Judged(status, metrics)) => Ok((status, metrics)),
            None => Ok(self.judged(complete, &sum, pricer.as_ref(), guarantee)),
        };
        ended.row = row.map(|(status, metrics)| Row {
            number,
            status,
            metrics,
        });
        ended.outcome = Box::new(Outcome::of(config.heap, &sum));
        ended
    }

    /// What became of a configuration whose replay came to its end.
    fn judged(
        &self,
        complete: bool,
        totals: &Totals,
        pricer: Option<&Pricer<'_>>,
        guarantee: u64,
    ) -> (Status, Metrics) {
        let mut metrics = self.metrics(totals, guarantee);
        if !complete || metrics.failed != 0 {
            return (Status::Failed, metrics);
        }
        if let Some(pricer) = pricer {
            match pricer.price(&totals.levels, &self.work) {
                Ok(price) => {
                    (metrics.energy_fj, metrics.time_ps) = (price.energy_fj, price.time_ps);
                }
                Err(_) => return (Status::Failed, metrics),
            }
        }
        (Status::Complete, metrics)
    }

    /// Whether a replay ends here, after `before` on earlier parts and `totals` on this one.
    fn ends(
        &self,
        part: &Part<'_>,
        before: &Totals,
        totals: &Totals,
        pricer: Option<&Pricer<'_>>,
        guarantee: u64,
        watch: &Watch<'_>,
    ) -> Option<Early> {
        let time = (watch.time)();
        if time == Time::Left && watch.front.is_none() && watch.most_cycles == u64::MAX {
            return None;
        }
        let setup = part.events.counted();
        let counted = totals.events.saturating_sub(setup);
        let mut so_far = *totals;
        if counted == 0 && setup > 0 {
            // What setting up costs is forgotten with the first event that counts.
            so_far.forget_cost();
        }
        let so_far = added(before, &so_far, part);
        if so_far.failed != 0 && watch.front.is_some() && time != Time::Over {
            return Some(Early::Judged(
                Status::Failed,
                self.metrics(&so_far, guarantee),
            ));
        }
        let checks = counted.div_ceil(CHECK_EVERY).max(1) - 1;
        let own = part.least.get(checks).copied().unwrap_or_default();
        let mut rest = part.after;
        rest += own.times(part.weight);
        let mut least = self.metrics(&so_far, guarantee);
        least.footprint = least.footprint.max(self.peak_live());
        let more = part.events.peak_live().saturating_sub(totals.footprint);
        least.footprint_sum = (least.footprint_sum)
            .saturating_add(more.saturating_mul(part.weight))
            .saturating_add(part.after_live);
        least.accesses += rest.reads + rest.writes;
        least.cycles += rest.cycles;
        if let Some(pricer) = pricer {
            let price = pricer.least(&so_far.levels, &self.work, rest.reads, rest.writes);
            (least.energy_fj, least.time_ps) = (price.energy_fj, price.time_ps);
        }
        if time == Time::Over {
            return Some(Early::Unfinished(AtLeast {
                events: (before.events + totals.events) as u64,
                footprint: least.footprint,
                cycles: least.cycles,
                cycles_max: least.cycles_max,
            }));
        }
        if time == Time::TooLong || least.cycles > watch.most_cycles {
            return Some(Early::Judged(Status::Slow, least));
        }
        let front = watch.front?;
        let beaten = front.beats(&self.objectives.point(&least));
        beaten.then_some(Early::Judged(Status::Beaten, least))
    }

    fn metrics(&self, totals: &Totals, guarantee: u64) -> Metrics {
        let application = self.events.application();
        let mut metrics = metrics(totals);
        metrics.guarantee = guarantee;
        metrics.accesses += application.reads + application.writes;
        metrics
    }
}

fn metrics(totals: &Totals) -> Metrics {
    Metrics {
        footprint: totals.footprint,
        footprint_sum: totals.footprint_sum,
        accesses: totals.reads + totals.writes,
        record_reads: totals.reads,
        record_writes: totals.writes,
        energy_fj: 0,
        time_ps: 0,
        cycles: totals.cycles,
        cycles_max: most(totals),
        failed: totals.failed,
        guarantee: 0,
    }
}

/// What was found with what a further trace found, as often as that counts: a heap needs as much memory as on
/// the one on which it needs most. Of memory levels those of the latest.
fn added(sum: &Totals, of: &Totals, part: &Part<'_>) -> Totals {
    let (setup, weight) = (part.events.counted(), part.weight);
    let mut most_cycles = sum.most_cycles;
    for (most, of) in most_cycles.iter_mut().zip(of.most_cycles) {
        *most = (*most).max(of);
    }
    Totals {
        events: sum.events + of.events.saturating_sub(setup) * weight as usize,
        failed: sum.failed + of.failed,
        footprint: sum.footprint.max(of.footprint),
        footprint_sum: sum
            .footprint_sum
            .saturating_add(of.footprint.saturating_mul(weight)),
        reads: sum.reads + of.reads * weight,
        writes: sum.writes + of.writes * weight,
        cycles: sum.cycles + of.cycles * weight,
        copy_cycles: sum.copy_cycles + of.copy_cycles * weight,
        most_own_cycles: sum.most_own_cycles.max(of.most_own_cycles),
        most_copy_cycles: sum.most_copy_cycles.max(of.most_copy_cycles),
        most_cycles,
        ..*of
    }
}
