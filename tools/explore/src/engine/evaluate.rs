//! One configuration by replay, ended early where it is beaten already.
//!
//! Invariant: a replay is ended only when a point of the front dominates what
//! the configuration needs at least: footprint so far and never less than the
//! peak of live bytes, record accesses so far and the least that the rest takes,
//! the application's own accesses, energy and time charged so far and the least
//! for what remains ([`Pricer::least`]). So a configuration that belongs to the front
//! is never ended, nor one that equals a point of it.

use std::cell::RefCell;

use metes_config::Config;
use metes_heap::description::LEVELS;

use super::objective::Front;
use super::objective::ObjectiveSet;
use super::row::{Metrics, Row, Status};
use crate::energy::{EnergyError, PriceReport, Pricer, Work};
use crate::events::Events;
use crate::hierarchy::{Counts, Hierarchy};
use crate::least::least_rest;
use crate::outcome::most;
use crate::replay::{Options, Replayer};
use crate::run::{CHECK_EVERY, Totals};
use crate::space::Space;

/// Replays configurations of a space.
#[derive(Clone, Debug)]
pub struct Evaluator<'e> {
    space: &'e Space,
    events: &'e Events,
    options: Options,
    objectives: ObjectiveSet,
    hierarchy: Option<&'e Hierarchy>,
    work: Work,
    /// Least record words read and written, and cycles, of the rest after each
    /// check.
    least_reads: Vec<u64>,
    least_writes: Vec<u64>,
    least_cycles: Vec<u64>,
}

thread_local! {
    static REPLAYER: RefCell<Replayer> = RefCell::default();
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
            work: Work::of(events, &options.cost),
            least_reads: least_rest(events, options, |_, (reads, _)| reads),
            least_writes: least_rest(events, options, |_, (_, writes)| writes),
            least_cycles: least_rest(events, options, |operation, (reads, writes)| {
                options.cost.cycles(operation, reads, writes, 0)
            }),
            space,
            events,
            options: *options,
            objectives,
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

    /// Events of the trace.
    pub fn events(&self) -> &'e Events {
        self.events
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

    /// How a configuration is replayed: with its growth, and no more in a level
    /// than it has.
    pub fn options(&self, config: &Config) -> Options {
        let mut options = self.options;
        options.arena.increment = config.arena.increment;
        options.arena.mapped = config.arena.mapped;
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
        let failed = |metrics| Row {
            number,
            status: Status::Failed,
            metrics,
        };
        let Some(config) = self.space.describe(number) else {
            return failed(Metrics::default());
        };
        let Ok(pricer) = self.pricer(&config) else {
            return failed(Metrics::default());
        };
        let options = self.options(&config);
        let peak = self.events.peak_live();
        let mut early = None;
        let mut watch = |totals: &Totals| {
            if totals.events <= CHECK_EVERY {
                // A replay that is repeated with larger arrays starts afresh.
                early = None;
            }
            let Some(front) = front else { return true };
            if totals.failed != 0 {
                early = Some((Status::Failed, self.metrics(totals)));
                return false;
            }
            let check = totals.events.div_ceil(CHECK_EVERY).max(1) - 1;
            let mut least = self.metrics(totals);
            least.footprint = least.footprint.max(peak);
            let (reads, writes) = (self.least_reads[check], self.least_writes[check]);
            least.accesses += reads + writes;
            least.cycles += self.least_cycles[check];
            if let Some(pricer) = &pricer {
                let price = pricer.least(&totals.levels, &self.work, reads, writes);
                (least.energy_fj, least.time_ps) = (price.energy_fj, price.time_ps);
            }
            if front.beats(&self.objectives.point(&least)) {
                early = Some((Status::Beaten, least));
                return false;
            }
            true
        };
        let measured = REPLAYER.with_borrow_mut(|replayer| {
            replayer.totals(&config.heap, self.events, &options, &mut watch)
        });
        if let Some((status, metrics)) = early {
            return Row {
                number,
                status,
                metrics,
            };
        }
        let mut metrics = self.metrics(&measured.totals);
        // Nothing is replayed where not even the control structure fits.
        let complete = measured.complete || self.events.is_empty();
        if !complete || metrics.failed != 0 {
            return failed(metrics);
        }
        if let Some(pricer) = &pricer {
            match pricer.price(&measured.totals.levels, &self.work) {
                Ok(price) => {
                    (metrics.energy_fj, metrics.time_ps) = (price.energy_fj, price.time_ps);
                }
                Err(_) => return failed(metrics),
            }
        }
        Row {
            number,
            status: Status::Complete,
            metrics,
        }
    }

    fn metrics(&self, totals: &Totals) -> Metrics {
        let application = self.events.application();
        let mut metrics = metrics(totals);
        metrics.accesses += application.reads + application.writes;
        metrics
    }
}

fn metrics(totals: &Totals) -> Metrics {
    Metrics {
        footprint: totals.footprint,
        accesses: totals.reads + totals.writes,
        record_reads: totals.reads,
        record_writes: totals.writes,
        energy_fj: 0,
        time_ps: 0,
        cycles: totals.cycles,
        cycles_max: most(totals),
        failed: totals.failed,
    }
}
