//! Which heaps can be joined to a module, and what memory they take of it.
//!
//! *Invariant:* a heap that is joined has, range by range, at least what its replay took.

use metes_config::Config;
use metes_emit::WasiPool;
use metes_explore::{Events, Exploration, Options, Outcome, Replayer, Target, constant_time};
use metes_heap::description::GENERAL;

use crate::joined::BEGINNING;
use crate::splice::PAGE;

/// Whether a heap can be joined to a module: it serves every request, and its slabs have no more slots than emitted C
/// keeps account of in words of 32 bits.
pub(crate) fn joins(outcome: &Outcome) -> bool {
    outcome.failed == 0 && Target::Wasm32.summarises(&outcome.description.slabs())
}

/// What memory a heap takes of a module in which it is to do as replayed: for each pool what it took, and the rest of the
/// last page to the last general one.
pub(crate) fn pool_of(config: &Config, events: &Events, options: &Options) -> WasiPool {
    let detail = Replayer::new().inspect(&config.heap, events, options);
    let general = config.heap.general.len();
    let mut pool = WasiPool {
        pools: [0; GENERAL],
        slabs: 0,
        span: options.arena.span,
    };
    for (bytes, part) in pool.pools.iter_mut().zip(detail.parts.iter().take(general)) {
        *bytes = (part.footprint as usize).next_multiple_of(BEGINNING as usize);
    }
    if let Some(objects) = detail.parts.get(general) {
        // The records lie elsewhere.
        let slabs = (objects.footprint - objects.control) as usize;
        pool.slabs = (slabs / config.heap.slabs().bytes()).max(1);
    }
    let bytes = pool.bytes(&config.heap);
    let spare = bytes.next_multiple_of(PAGE as usize) - bytes;
    pool.pools[general - 1] += spare / BEGINNING as usize * BEGINNING as usize;
    pool
}

/// The outcomes of a search that can be joined and stay within the limit, of which one is chosen.
pub(crate) fn joined(found: &Exploration, limit: Option<u64>) -> Exploration {
    let fits =
        |outcome: &&Outcome| joins(outcome) && limit.is_none_or(|limit| outcome.footprint <= limit);
    let mut kept = found.clone();
    kept.pareto = found.outcomes.iter().filter(fits).cloned().collect();
    let constant = kept.pareto.iter();
    kept.constant_time = constant
        .filter(|outcome| constant_time(&outcome.description))
        .cloned()
        .collect();
    kept.outcomes = kept.pareto.clone();
    if let Some(guaranteed) = &mut kept.guaranteed {
        *guaranteed = guaranteed.among(&kept.outcomes);
    }
    kept
}
