//! How long each block had which size.
//!
//! A resize ends one residency and begins another. Both count at the time of the resize, because a
//! heap may move the block, and then has both for a while.
//!
//! Invariant: a block is live at a time only if the time is in one of its residencies, both ends
//! included.

use std::collections::BTreeMap;

use metes_trace::{Op, Trace};

use crate::axis::{Axis, Clock};
use crate::classes::{Classes, Counted};

/// A block while it has one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Residency {
    /// When it begins.
    pub(crate) born: u64,
    /// The last time at which the block is still live with this size.
    pub(crate) last: u64,
    /// The time of the free, or of the resize; `None` if it lasts to the end of the trace.
    pub(crate) ended: Option<u64>,
    /// What was asked for.
    pub(crate) size: u64,
    /// The event that begins it.
    pub(crate) event: u64,
}

/// The residencies of a trace by class, each in the order in which they begin.
pub(crate) struct Residencies {
    pub(crate) classes: BTreeMap<u64, Vec<Residency>>,
    /// The time of the last event.
    pub(crate) end: u64,
    /// Most bytes live at one time, a resized block in its new size alone.
    pub(crate) peak: u128,
    /// The event after which they first were.
    pub(crate) peak_event: u64,
    pub(crate) resizes: u64,
}

struct Open {
    class: u64,
    residency: usize,
    bytes: u64,
}

impl Residencies {
    /// O(events × log classes).
    pub(crate) fn of(trace: &Trace, axis: Axis, classes: Classes, counted: Counted) -> Self {
        let mut found = Residencies {
            classes: BTreeMap::new(),
            end: 0,
            peak: 0,
            peak_event: 0,
            resizes: 0,
        };
        let mut open: Vec<Option<Open>> = Vec::with_capacity(trace.block_count());
        open.resize_with(trace.block_count(), || None);
        let mut clock = Clock::new(trace, axis);
        let mut live = 0_u128;
        for (index, ((op, block), size)) in (trace
            .ops()
            .iter()
            .zip(trace.blocks())
            .zip(trace.sizes().iter()))
        .enumerate()
        {
            let now = clock.at(index);
            let place = &mut open[*block as usize];
            if matches!(op, Op::Free | Op::Resize)
                && let Some(Open {
                    class,
                    residency,
                    bytes,
                }) = place.take()
                && let Some(ended) = found.classes.get_mut(&class)
            {
                live -= u128::from(bytes);
                let ended = &mut ended[residency];
                ended.ended = Some(now);
                // Event by event a freed block is gone when its free is done; at one time of a
                // clock, and while it moves, it still counts.
                ended.last = match (axis, op) {
                    (Axis::Events, Op::Free) => now - 1,
                    _ => now,
                };
            }
            if matches!(op, Op::Alloc | Op::Resize) {
                let (class, bytes) = (classes.of(size), counted.bytes(size));
                let residencies = found.classes.entry(class).or_default();
                *place = Some(Open {
                    class,
                    residency: residencies.len(),
                    bytes,
                });
                residencies.push(Residency {
                    born: now,
                    last: u64::MAX,
                    ended: None,
                    size,
                    event: index as u64,
                });
                live += u128::from(bytes);
            }
            found.resizes += u64::from(*op == Op::Resize);
            if live > found.peak {
                (found.peak, found.peak_event) = (live, index as u64);
            }
            found.end = now;
        }
        for residency in found.classes.values_mut().flatten() {
            if residency.ended.is_none() {
                residency.last = found.end;
            }
        }
        found
    }

    /// All of them, in the order in which they begin.
    pub(crate) fn all(&self) -> Vec<Residency> {
        let mut all: Vec<_> = self.classes.values().flatten().copied().collect();
        all.sort_unstable_by_key(|residency| residency.event);
        all
    }
}
