//! What heaps are replayed on, and one heap's replay on it.
//!
//! A *ground* is a whole trace, or windows of one that stand for it. A replay ends
//! early when even what the heap would need at least is beaten (footprint and
//! cycles so far only grow, and the remaining events have a least cost), when it
//! is hopelessly slow, or when its time is over.
//!
//! Invariant: what a replay finds depends on heap and ground alone; how it is
//! watched decides only whether it comes to its end.

use std::borrow::Cow;
use std::cell::RefCell;
use std::time::Duration;

use metes_heap::Description;

use super::AtLeast;
use super::state::SearchFront;
use crate::clock::{Moment, Timer};
use crate::compare::Compared;
use crate::events::Events;
use crate::least::least_rest_and_all;
use crate::outcome::{Outcome, most};
use crate::replay::{Options, Replayer};
use crate::run::{CHECK_EVERY, Totals};

thread_local! {
    static REPLAYER: RefCell<Replayer> = RefCell::default();
}

/// One trace of a ground.
struct Part<'e> {
    events: Cow<'e, Events>,
    /// Least cycles of its events after each check, and of the parts behind it.
    least: Vec<u64>,
    after: u64,
}

/// A whole trace, or windows of it.
pub(super) struct Ground<'e> {
    parts: Vec<Part<'e>>,
    options: &'e Options,
}

/// What ends a replay early.
#[derive(Clone, Copy)]
pub(super) struct Watch<'w> {
    pub(super) timer: &'w Timer<'w>,
    /// When its time is over; unless it must come to its end whatever happens.
    pub(super) deadline: Moment,
    pub(super) must_end: bool,
    /// What beats it, unless it is wanted to its end.
    pub(super) front: Option<&'w SearchFront>,
    /// Cycles, and time on the clock, beyond which it is not worth its time.
    pub(super) most_cycles: u64,
    pub(super) most_time: Option<Duration>,
}

/// What became of a candidate.
pub(super) enum Verdict {
    Complete(Box<Outcome>),
    Beaten,
    Slow,
    /// Its time was over; what it needs at least.
    Unfinished(AtLeast),
}

/// A replay that ended.
pub(super) struct Ended {
    pub(super) verdict: Verdict,
    /// Events replayed.
    pub(super) replayed: u64,
    /// By the clock.
    pub(super) took: Duration,
    /// All there is to know of it, if that was wanted and it came to its end.
    pub(super) detail: Option<Compared>,
}

impl<'e> Ground<'e> {
    /// All of a trace.
    pub(super) fn whole(events: &'e Events, options: &'e Options) -> Self {
        Ground::of([Cow::Borrowed(events)], options)
    }

    /// Windows that stand for a trace.
    pub(super) fn windows(windows: Vec<Events>, options: &'e Options) -> Self {
        Ground::of(windows.into_iter().map(Cow::Owned), options)
    }

    fn of(traces: impl IntoIterator<Item = Cow<'e, Events>>, options: &'e Options) -> Self {
        let parts = traces.into_iter().map(|events| {
            let cost =
                |operation, (reads, writes)| options.cost.cycles(operation, reads, writes, 0);
            let (least, all) = least_rest_and_all(&events, options, cost);
            let after = all;
            Part {
                events,
                least,
                after,
            }
        });
        let mut parts: Vec<Part<'e>> = parts.collect();
        let mut behind = 0;
        for part in parts.iter_mut().rev() {
            behind += std::mem::replace(&mut part.after, behind);
        }
        Ground { parts, options }
    }

    /// How many traces it is.
    pub(super) fn traces(&self) -> usize {
        self.parts.len()
    }

    /// Events that a replay on it takes, those that set heaps up included.
    pub(super) fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.events.len() as u64).sum()
    }

    /// Replays a heap on it. With a name, of a whole trace, all is kept that there
    /// is to know.
    pub(super) fn replay(
        &self,
        description: &Description,
        keep: Option<&str>,
        watch: &Watch<'_>,
    ) -> Ended {
        let start = watch.timer.now();
        let mut sum = Totals::default();
        let mut replayed = 0;
        let mut detail = None;
        let mut verdict = None;
        for part in &self.parts {
            let mut early = None;
            let mut look = |totals: &Totals| {
                if totals.events <= CHECK_EVERY {
                    // A replay that is repeated with larger arrays starts afresh.
                    early = None;
                }
                early = part.ends(&sum, totals, watch, start);
                early.is_none()
            };
            let measured = REPLAYER.with_borrow_mut(|replayer| match keep {
                Some(name) => {
                    let (replay, curve, measured) = replayer.replay_while(
                        name,
                        description,
                        &part.events,
                        self.options,
                        &mut look,
                    );
                    detail = Some(Compared {
                        description: *description,
                        replay,
                        curve,
                    });
                    measured
                }
                None => replayer.totals(description, &part.events, self.options, &mut look),
            });
            replayed += measured.totals.events as u64;
            add(&mut sum, &measured.totals, part.events.counted());
            if early.is_some() {
                verdict = early;
                detail = None;
                break;
            }
        }
        Ended {
            verdict: verdict
                .unwrap_or_else(|| Verdict::Complete(Box::new(Outcome::of(*description, &sum)))),
            replayed,
            took: watch.timer.now().saturating_sub(start),
            detail,
        }
    }
}

impl Part<'_> {
    /// Whether a replay ends here, after `before` on earlier parts and `totals` on
    /// this one.
    fn ends(
        &self,
        before: &Totals,
        totals: &Totals,
        watch: &Watch<'_>,
        start: Duration,
    ) -> Option<Verdict> {
        let setup = self.events.counted();
        let counted = totals.events.saturating_sub(setup);
        // What setting up costs is forgotten with the first event that counts.
        let (so_far, most_so_far) = match counted == 0 && setup > 0 {
            true => (0, 0),
            false => (totals.cycles, most(totals)),
        };
        let checks = counted.div_ceil(CHECK_EVERY).max(1) - 1;
        let rest = self.least.get(checks).copied().unwrap_or(0) + self.after;
        let cycles = before.cycles + so_far + rest;
        let least = [
            before.footprint.max(totals.footprint),
            cycles,
            most(before).max(most_so_far),
        ];
        if !watch.must_end && watch.timer.past(watch.deadline) {
            return Some(Verdict::Unfinished(AtLeast {
                events: (before.events + totals.events) as u64,
                footprint: least[0],
                cycles: least[1],
                cycles_max: least[2],
            }));
        }
        let took = || watch.timer.now().saturating_sub(start);
        if cycles > watch.most_cycles || watch.most_time.is_some_and(|most| took() > most) {
            return Some(Verdict::Slow);
        }
        let beaten = watch.front.is_some_and(|front| front.beats(&least));
        beaten.then_some(Verdict::Beaten)
    }
}

/// Adds up what windows found: a heap needs as much memory as in the window in
/// which it needs most.
fn add(sum: &mut Totals, of: &Totals, setup: usize) {
    sum.events += of.events.saturating_sub(setup);
    sum.failed += of.failed;
    sum.footprint = sum.footprint.max(of.footprint);
    sum.reads += of.reads;
    sum.writes += of.writes;
    sum.cycles += of.cycles;
    sum.copy_cycles += of.copy_cycles;
    sum.most_own_cycles = sum.most_own_cycles.max(of.most_own_cycles);
    sum.most_copy_cycles = sum.most_copy_cycles.max(of.most_copy_cycles);
    for (most, of) in sum.most_cycles.iter_mut().zip(of.most_cycles) {
        *most = (*most).max(of);
    }
}
