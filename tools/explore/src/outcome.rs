//! A configuration and what its replay found, as a search compares it.

use std::collections::HashSet;

use metes_heap::Description;
use metes_heap::complexity::{Axis, Growth};
use serde::Serialize;

use crate::engine::{Metrics, NO_GUARANTEE};
use crate::events::Events;
use crate::pareto::{self, Objectives};
use crate::replay::{Options, Replayer};
use crate::run::Totals;

/// A configuration and what its replay found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Its number in the space.
    pub number: u64,
    /// The heap's usual name, if it has one.
    pub named: Option<&'static str>,
    /// How the heap is written down.
    pub heap: String,
    /// The heap.
    #[serde(skip)]
    pub description: Description,
    /// Whether every operation takes constant time.
    pub constant_time: bool,
    /// Bytes that the heap took from the system; of several runs on the one on which it took most.
    pub footprint: u64,
    /// Bytes that it took on all runs together, each as often as its share says.
    #[serde(skip)]
    pub footprint_sum: u64,
    /// Modelled cycles of the whole trace.
    pub cycles: u64,
    /// Modelled cycles of an event, in the mean over the trace.
    pub cycles_mean: f64,
    /// Most modelled cycles of one operation, copying included; calls of the system that map large
    /// blocks are not: they depend on the requests alone.
    pub cycles_max: u64,
    /// Most modelled cycles of one operation without what it copied: the heap's own work.
    pub own_cycles_max: u64,
    /// Modelled cycles that went into copying blocks which moved, of the whole trace.
    pub copy_cycles: u64,
    /// Most modelled cycles that one operation spent on copying a block.
    pub copy_cycles_max: u64,
    /// Record words read.
    pub record_reads: u64,
    /// Record words written.
    pub record_writes: u64,
    /// Requests that failed; such a heap is in no Pareto set.
    pub failed: u64,
    /// All that is proved to suffice for the demand of a search; `None` where nothing finite is, and where
    /// nobody asked.
    pub guarantee: Option<u64>,
}

impl Outcome {
    /// What is minimised.
    pub fn objectives(&self) -> Objectives {
        [self.footprint, self.cycles, self.cycles_max]
    }

    /// What is minimised where it serves several runs: also the mean footprint.
    pub(crate) fn of_runs(&self) -> [u64; 4] {
        let [footprint, cycles, most] = self.objectives();
        [footprint, self.footprint_sum, cycles, most]
    }

    /// The same and the guarantee, of which a heap without one has more than any other.
    fn with_guarantee(&self) -> [u64; 5] {
        let [footprint, sum, cycles, most] = self.of_runs();
        let guarantee = self.guarantee.unwrap_or(NO_GUARANTEE);
        [footprint, sum, cycles, most, guarantee]
    }

    /// What is known of it by its metrics alone: of the most cycles not which were for copying.
    pub(crate) fn of_metrics(description: Description, metrics: &Metrics, requests: usize) -> Self {
        let totals = Totals {
            events: requests,
            footprint: metrics.footprint,
            footprint_sum: metrics.footprint_sum,
            cycles: metrics.cycles,
            most_cycles: [metrics.cycles_max; 3],
            reads: metrics.record_reads,
            writes: metrics.record_writes,
            failed: metrics.failed,
            ..Totals::default()
        };
        Outcome::of(description, &totals)
    }

    pub(crate) fn of(description: Description, totals: &Totals) -> Self {
        Outcome {
            number: 0,
            named: None,
            heap: String::new(),
            constant_time: constant_time(&description),
            description,
            footprint: totals.footprint,
            footprint_sum: totals.footprint_sum,
            cycles: totals.cycles,
            cycles_mean: totals.cycles as f64 / totals.events.max(1) as f64,
            cycles_max: most(totals),
            own_cycles_max: totals.most_own_cycles,
            copy_cycles: totals.copy_cycles,
            copy_cycles_max: totals.most_copy_cycles,
            record_reads: totals.reads,
            record_writes: totals.writes,
            failed: totals.failed,
            guarantee: None,
        }
    }
}

/// Whether every operation of the heap takes constant time.
pub fn constant_time(description: &Description) -> bool {
    description
        .general
        .iter()
        .all(|pool| pool.index.constant_time())
        // A list kept by address is walked when a block enters it.
        && description
            .dedicated
            .iter()
            .all(|pool| pool.order != metes_heap::Order::Address)
}

/// How fast the time of an allocation or a free grows with the heap, as declared.
pub(crate) fn slowness(description: &Description) -> Growth {
    let times = description.declares().times;
    times
        .allocate
        .along(Axis::Heap)
        .max(times.free.along(Axis::Heap))
}

/// Most cycles of one operation, whichever.
pub(crate) fn most(totals: &Totals) -> u64 {
    totals.most_cycles.into_iter().max().unwrap_or(0)
}

impl Replayer {
    /// Replays a trace for what a search compares; without hashes and curve.
    pub fn outcome(
        &mut self,
        description: &Description,
        events: &Events,
        options: &Options,
    ) -> Outcome {
        let measured = self.totals(description, events, options, &mut |_| true);
        Outcome::of(*description, &measured.totals)
    }
}

/// By what outcomes beat each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// What replays measured.
    Measured,
    /// And what heaps guarantee.
    Guarantee,
}

/// Positions of the outcomes that nothing `among` them beats, ascending; the earliest of equals.
pub(crate) fn unbeaten(
    outcomes: &[Outcome],
    by: By,
    among: impl Fn(&Outcome) -> bool,
) -> Vec<usize> {
    let able = (outcomes.iter().enumerate())
        .filter(|(_, outcome)| outcome.failed == 0 && among(outcome))
        .map(|(index, _)| index);
    if by == By::Guarantee {
        return unbeaten_in(able.collect(), |index| outcomes[index].with_guarantee());
    }
    let mut met = HashSet::new();
    let positions: Vec<usize> = able
        .filter(|&index| met.insert(outcomes[index].of_runs()))
        .collect();
    let on_one_run = |&&index: &&usize| outcomes[index].footprint_sum == outcomes[index].footprint;
    if positions.iter().filter(on_one_run).count() < positions.len() {
        return unbeaten_in(positions, |index| outcomes[index].of_runs());
    }
    let points: Vec<Objectives> = (positions.iter())
        .map(|&index| outcomes[index].objectives())
        .collect();
    let front = pareto::front(&points).into_iter();
    front.map(|at| positions[at]).collect()
}

/// The same by any objectives, of some positions. O(n log n + n × front).
fn unbeaten_in<const N: usize>(
    mut positions: Vec<usize>,
    point: impl Fn(usize) -> [u64; N],
) -> Vec<usize> {
    // What beats a point, or equals it and is earlier, comes before it in this order.
    positions.sort_by_key(|&index| point(index));
    let mut front = pareto::Front::new();
    for index in positions {
        front.enter(point(index), index);
    }
    let mut front: Vec<usize> = front.points().iter().map(|&(_, index)| index).collect();
    front.sort_unstable();
    front
}

/// The outcomes that nothing `among` them beats, by rising objectives; the earliest of equals.
pub(crate) fn best(outcomes: &[Outcome], by: By, among: impl Fn(&Outcome) -> bool) -> Vec<Outcome> {
    let front = unbeaten(outcomes, by, among).into_iter();
    let mut front: Vec<Outcome> = front.map(|index| outcomes[index].clone()).collect();
    front.sort_by_key(Outcome::objectives);
    front
}
