//! What a recording says of all orders: sequences of threads, chains of blocks.
//!
//! Invariant: the recorded order is itself an interleaving, so there is always one.

use std::collections::HashMap;

use metes_explore::{EventError, Events, EventsBuilder, Operation};
use metes_trace::{Op, Trace};

/// The events of an interleaving, by their recorded places.
pub type Order = Vec<u32>;

/// There is no such event.
pub(crate) const NONE: u32 = u32::MAX;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub operation: Operation,
    /// The block's number.
    pub block: u32,
    /// Requested bytes, at least 1; 0 for a free.
    pub size: u64,
    /// Requested alignment; 0: none.
    pub align: u32,
    /// Who asks, numbered from 0 by first appearance.
    pub thread: u32,
    /// When, nanoseconds as recorded.
    pub time_ns: u64,
    /// By how much the live bytes change. It does not depend on the order, as a block's events keep theirs.
    pub change: i64,
    /// Who allocated the block.
    pub owner: u32,
    /// The event of the same block before this one, or `u32::MAX`.
    pub(crate) before: u32,
    /// The place among the events of its thread.
    pub(crate) place: u32,
}

/// All events, and who has which.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    steps: Vec<Step>,
    threads: Vec<Vec<u32>>,
}

impl Threads {
    /// Those of a recording; what the program did to its blocks is left out. O(events).
    ///
    /// # Errors
    /// [`EventError`] for rows that are no trace of a heap; [`EventError::TooManyLive`] also for more than 2³² events.
    pub fn of(trace: &Trace) -> Result<Self, EventError> {
        let mut threads: Vec<Vec<u32>> = Vec::new();
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut steps: Vec<Step> = Vec::new();
        // Of each live block: its last event, and its bytes.
        let mut live: Vec<(u32, u64)> = vec![(NONE, 0); trace.block_count()];
        for event in trace.iter() {
            let operation = match event.op {
                Op::Alloc => Operation::Allocate,
                Op::Free => Operation::Free,
                Op::Resize => Operation::Resize,
                Op::Access => continue,
            };
            let index = u32::try_from(steps.len()).map_err(|_| EventError::TooManyLive)?;
            if index == NONE {
                return Err(EventError::TooManyLive);
            }
            let next = numbers.len() as u32;
            let thread = *numbers.entry(event.thread).or_insert(next);
            if thread as usize == threads.len() {
                threads.push(Vec::new());
            }
            let refused =
                |refusal: fn(u64, u64) -> EventError| Err(refusal(u64::from(index), event.block));
            let Some(known) = live.get_mut(event.block as usize) else {
                return refused(|event, block| EventError::NotLive { event, block });
            };
            let (before, held) = *known;
            let size = match operation {
                Operation::Free => 0,
                _ => event.size.max(1),
            };
            match operation {
                Operation::Allocate if held > 0 => {
                    return refused(|event, block| EventError::StillLive { event, block });
                }
                Operation::Free | Operation::Resize if held == 0 => {
                    return refused(|event, block| EventError::NotLive { event, block });
                }
                _ => *known = (index, size),
            }
            let own = &mut threads[thread as usize];
            steps.push(Step {
                operation,
                block: event.block as u32,
                size,
                align: event.align,
                thread,
                owner: match before {
                    _ if operation == Operation::Allocate => thread,
                    before => steps[before as usize].owner,
                },
                time_ns: event.time_ns,
                change: size as i64 - held as i64,
                before,
                place: own.len() as u32,
            });
            own.push(index);
        }
        Ok(Threads { steps, threads })
    }

    /// The events as recorded.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The recorded places of each thread's events, in its order.
    #[must_use]
    pub fn threads(&self) -> &[Vec<u32>] {
        &self.threads
    }

    /// The recorded order.
    #[must_use]
    pub fn recorded(&self) -> Order {
        (0..self.steps.len() as u32).collect()
    }

    /// Whether an event may be next where each thread has come so far.
    pub(crate) fn may_follow(&self, event: u32, so_far: &[u32]) -> bool {
        let before = self.steps[event as usize].before;
        if before == NONE {
            return true;
        }
        let before = &self.steps[before as usize];
        so_far[before.thread as usize] > before.place
    }

    /// An order as what replays stream. O(events).
    ///
    /// # Errors
    /// [`EventError`] for what is no interleaving.
    pub fn events(&self, order: &[u32]) -> Result<Events, EventError> {
        let mut builder = EventsBuilder::new();
        for &event in order {
            let step = &self.steps[event as usize];
            builder.push(
                step.operation,
                u64::from(step.block),
                step.size,
                u64::from(step.align),
            )?;
        }
        Ok(builder.finish())
    }

    /// Most live bytes in an order. O(events).
    #[must_use]
    pub fn peak_live(&self, order: &[u32]) -> u64 {
        let mut live = 0;
        let changes = order.iter().map(|&event| {
            live += self.steps[event as usize].change;
            live
        });
        changes.max().map_or(0, |most| most.max(0) as u64)
    }
}
