//! Whether two runs of a program asked for the same, and one trace of both.
//!
//! Invariant: times come from one run and counts from the other only if every
//! request of the two is equal; a join never moves a count to another block.

use std::collections::HashMap;

use serde::Serialize;

use crate::event::Op;
use crate::trace::{Trace, TraceBuilder};

/// How two runs compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Requests of the light recording.
    pub light_events: u64,
    /// Requests of the counted run.
    pub counted_events: u64,
    /// Requests equal from the beginning on: operation, block, size, alignment,
    /// thread.
    pub equal_from_start: u64,
    /// Requests that one run has more than the other, whatever their order:
    /// operation, size, alignment.
    pub differing: u64,
}

impl Agreement {
    /// Every request of one is that of the other, in order.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.light_events == self.counted_events && self.equal_from_start == self.light_events
    }
}

type Request = (Op, u64, u64, u32, u32);

fn requests(trace: &Trace) -> impl Iterator<Item = Request> + '_ {
    let events = trace.iter().filter(|event| event.op != Op::Access);
    events.map(|e| (e.op, e.block, e.size, e.align, e.thread))
}

/// Compares a light recording with a counted run. O(events).
#[must_use]
pub fn agree(light: &Trace, counted: &Trace) -> Agreement {
    let pairs = requests(light).zip(requests(counted));
    let equal_from_start = pairs.take_while(|(a, b)| a == b).count() as u64;
    let mut kinds: HashMap<(Op, u64, u32), i64> = HashMap::new();
    for (op, _, size, align, _) in requests(light) {
        *kinds.entry((op, size, align)).or_default() += 1;
    }
    for (op, _, size, align, _) in requests(counted) {
        *kinds.entry((op, size, align)).or_default() -= 1;
    }
    Agreement {
        light_events: requests(light).count() as u64,
        counted_events: requests(counted).count() as u64,
        equal_from_start,
        differing: kinds.values().map(|more| more.unsigned_abs()).sum(),
    }
}

/// The counted trace with the light one's times; None unless they agree wholly.
/// O(events).
#[must_use]
pub fn join(light: &Trace, counted: &Trace) -> Option<Trace> {
    if !agree(light, counted).is_equal() {
        return None;
    }
    let mut builder = TraceBuilder::new();
    // The light recording has no accesses, the counted one has them at the end.
    for (index, mut event) in counted.iter().enumerate() {
        let last = light.times().last().unwrap_or(0);
        event.time_ns = light.times().get(index).unwrap_or(last);
        builder.push(event).ok()?;
    }
    let mut provenance = light.provenance.clone();
    provenance.recorder = format!(
        "{}, counts by {}",
        light.provenance.recorder, counted.provenance.recorder
    );
    provenance.access_word = counted.provenance.access_word;
    provenance.instructions = counted.provenance.instructions;
    provenance.threads = counted.provenance.threads;
    Some(builder.finish(provenance))
}
