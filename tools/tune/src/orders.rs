//! A program of several threads in other orders, on the heap that was chosen.
//!
//! Invariant: no run is needed; of a recording that is too long nothing is said.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use metes_config::Config;
use metes_explore::report::{DemandFigures, Interleaved};
use metes_interleave::{Effort, Plan, Threads, Within, interleaved};
use metes_trace::Trace;

use crate::error::Error;

/// Orders drawn at most.
const SHUFFLES: u32 = 30;
/// They take at most the exploration's seconds over this.
const SHARE: f64 = 10.0;
/// Longer recordings would take too much memory beside all else: some 60 bytes an event.
const MOST_EVENTS: usize = 2_000_000;
/// Less than `metes interleave` does, as it is one row of many.
const EFFORT: Effort = Effort {
    pairs: 50_000,
    work: 50_000_000,
};

/// What other orders come to; nothing for one thread.
pub(crate) fn look(
    trace: &Trace,
    demand: DemandFigures,
    heap: &Config,
    exploration: f64,
    stop: &AtomicBool,
) -> Result<Option<Interleaved>, Error> {
    if trace.len() > MOST_EVENTS {
        return Ok(None);
    }
    let threads = Threads::of(trace)?;
    if threads.threads().len() < 2 {
        return Ok(None);
    }
    let plan = Plan {
        heaps: std::slice::from_ref(heap),
        per_thread: true,
        shuffles: SHUFFLES,
        seed: 1,
        within: Within::All,
        effort: EFFORT,
    };
    let began = Instant::now();
    let goes_on =
        || began.elapsed().as_secs_f64() < exploration / SHARE && !stop.load(Ordering::Relaxed);
    Ok(Some(interleaved(&threads, demand, &plan, &goes_on)?))
}
