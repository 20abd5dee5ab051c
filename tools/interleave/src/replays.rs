//! Heaps on many interleavings.
//!
//! Invariant: the interleaving of a number depends on it, the seed and the recording alone, and so do all figures; a time
//! limit decides how many there are and never what one says.

use metes_config::{Config, ThreadHeap};
use metes_explore::report::{DemandFigures, HeapOver, Interleaved, LiveOver, Spread};
use metes_explore::{EventError, Events, Options, Replayer};
use rayon::prelude::*;

use crate::contention::{sharing, thread_figures};
use crate::peak::{Effort, Peak};
use crate::per_thread::per_thread_footprint;
use crate::shuffle::{Within, shuffled};
use crate::threads::Threads;

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Heaps that give addresses.
    pub heaps: &'a [Config],
    /// A heap for each thread is looked at, too.
    pub per_thread: bool,
    /// How many interleavings are drawn at most.
    pub shuffles: u32,
    /// The seed of the first; that of each next is one more.
    pub seed: u64,
    /// How far they go.
    pub within: Within,
    /// How much is done for the bound.
    pub effort: Effort,
}

/// What heaps take on one interleaving.
struct Looked {
    live: u64,
    /// Footprint, and requests that failed.
    heaps: Vec<(u64, u64)>,
    per_thread: Option<u64>,
}

/// Looks at all heaps on the recorded order, on drawn ones, and on one with many live bytes; `goes_on` is asked before each
/// few.
///
/// # Errors
/// [`EventError`] where the recording is none of a heap.
pub fn interleaved(
    threads: &Threads,
    demand: DemandFigures,
    plan: &Plan<'_>,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Interleaved, EventError> {
    let look = |order: &[u32]| -> Result<Looked, EventError> {
        let events = threads.events(order)?;
        Ok(Looked {
            live: events.peak_live(),
            heaps: plan
                .heaps
                .iter()
                .map(|heap| replay(heap, &events))
                .collect(),
            per_thread: (plan.per_thread)
                .then(|| per_thread_footprint(threads, order))
                .flatten(),
        })
    };
    let recorded = look(&threads.recorded())?;
    let peak = Peak::of(threads, &plan.effort);
    let mut highest = look(&peak.order)?;
    let mut drawn: Vec<(u64, Looked)> = Vec::new();
    let few = (2 * rayon::current_num_threads()) as u32;
    let mut number = 0;
    while number < plan.shuffles && goes_on() {
        let next = plan.shuffles.min(number.saturating_add(few));
        let some: Result<Vec<_>, EventError> = (number..next)
            .into_par_iter()
            .map(|number| {
                let seed = plan.seed.wrapping_add(u64::from(number));
                Ok((seed, look(&shuffled(threads, seed, plan.within))?))
            })
            .collect();
        drawn.extend(some?);
        number = next;
    }
    // Where the bound was left too large, one that was drawn may have more than what was found with it.
    let most = drawn.iter().max_by_key(|(_, looked)| looked.live);
    if let Some((seed, _)) = most.filter(|(_, looked)| looked.live > highest.live) {
        highest = look(&shuffled(threads, *seed, plan.within))?;
    }
    let spread = |figure: &dyn Fn(&Looked) -> u64| {
        Spread::of(
            drawn
                .iter()
                .map(|(seed, looked)| (figure(looked), *seed))
                .collect(),
        )
    };
    let guaranteed = |heap: &Config, live: u64| {
        let demand = DemandFigures { live, ..demand }.demand();
        let bytes = metes_config::suffices(heap, &demand).ok().flatten();
        bytes.and_then(|bytes| u64::try_from(bytes).ok())
    };
    let mut heaps: Vec<HeapOver> = Vec::new();
    heaps.extend(plan.heaps.iter().enumerate().map(|(number, heap)| {
        HeapOver {
            heap: heap.name(),
            recorded: recorded.heaps[number].0,
            drawn: spread(&|looked| looked.heaps[number].0),
            at_reached: highest.heaps[number].0,
            failed: (drawn.iter().map(|(_, looked)| looked))
                .chain([&recorded, &highest])
                .map(|looked| looked.heaps[number].1)
                .max()
                .unwrap_or(0),
            guarantee_recorded: guaranteed(heap, recorded.live),
            guarantee: guaranteed(heap, peak.bytes),
        }
    }));
    if let Some((recorded, at_reached)) = recorded.per_thread.zip(highest.per_thread) {
        heaps.push(HeapOver {
            heap: ThreadHeap::default().to_string(),
            recorded,
            drawn: spread(&|looked| looked.per_thread.unwrap_or(recorded)),
            at_reached,
            failed: 0,
            guarantee_recorded: None,
            guarantee: None,
        });
    }
    Ok(Interleaved {
        threads: threads.threads().len() as u32,
        events: threads.steps().len() as u64,
        shuffles: drawn.len() as u32,
        seed: plan.seed,
        within: match plan.within {
            Within::All => None,
            Within::Events(events) => Some(events),
        },
        live: LiveOver {
            recorded: recorded.live,
            drawn: spread(&|looked| looked.live),
            bound: peak.bytes,
            of_threads: peak.of_threads,
            reached: highest.live,
            exact: highest.live == peak.bytes,
        },
        heaps,
        sharing: sharing(threads),
        per_thread: thread_figures(threads),
    })
}

/// Footprint, and requests that failed.
fn replay(heap: &Config, events: &Events) -> (u64, u64) {
    let outcome = Replayer::new().outcome(&heap.heap, events, &Options::of(heap));
    (outcome.footprint, outcome.failed)
}
