//! One configuration by replay, ended early where it is beaten already.
//!
//! Invariant: a replay is ended only when a point of the front dominates what
//! the configuration needs at least: footprint so far and never less than the
//! peak of live bytes, record accesses so far and the least that the rest takes,
//! the application's own accesses. So a configuration that belongs to the front
//! is never ended, nor one that equals a point of it.

use std::cell::RefCell;

use metes_config::Config;

use super::front::Front;
use super::objective::ObjectiveSet;
use super::row::{Metrics, Row, Status};
use crate::events::Events;
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
    /// Least record accesses and cycles of the rest after each check.
    least_accesses: Vec<u64>,
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
            least_accesses: least_rest(events, options, |_, (reads, writes)| reads + writes),
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

    /// How a configuration is replayed.
    pub fn options(&self, config: &Config) -> Options {
        let mut options = self.options;
        options.arena.increment = config.arena.increment;
        options
    }

    /// Replays the configuration of a number below the space's size; a front
    /// ends it early. Numbers outside of the space fail.
    pub fn row(&self, number: u64, front: Option<&Front>) -> Row {
        let Some(config) = self.space.describe(number) else {
            return Row {
                number,
                status: Status::Failed,
                metrics: Metrics::default(),
            };
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
                early = Some((Status::Failed, metrics(totals)));
                return false;
            }
            let check = totals.events.div_ceil(CHECK_EVERY).max(1) - 1;
            let mut least = metrics(totals);
            least.footprint = least.footprint.max(peak);
            least.accesses += self.least_accesses[check];
            least.cycles += self.least_cycles[check];
            if front.beats(&self.objectives.point(&least)) {
                early = Some((Status::Beaten, least));
                return false;
            }
            true
        };
        let measured = REPLAYER.with_borrow_mut(|replayer| {
            replayer.totals(&config.heap, self.events, &options, &mut watch)
        });
        let (status, metrics) = early.unwrap_or_else(|| {
            let metrics = metrics(&measured.totals);
            // Nothing is replayed where not even the control structure fits.
            match measured.complete && metrics.failed == 0 || self.events.is_empty() {
                true => (Status::Complete, metrics),
                false => (Status::Failed, metrics),
            }
        });
        Row {
            number,
            status,
            metrics,
        }
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
