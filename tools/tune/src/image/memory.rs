//! The memory that a heap has in an image: what its replay took, or what is proved to suffice.
//!
//! *Invariant:* no range is smaller than what the replay took of it.

use metes_config::Config;
use metes_emit::Ranges;
use metes_explore::{Events, Replayer, Terms, Wanted};
use metes_heap::bounds::{self, Pool};
use metes_heap::description::IndexKind;

use super::{Error, INCREMENT};
use crate::ranges::ranges_of;
use crate::search::Searched;

/// Where a buddy heap of a large span begins is a multiple of this.
const PAGE: usize = 4096;
/// From this span on.
const LARGE: usize = 256 * PAGE;
/// What memory begins at a multiple of at least, as slabs need.
const BEGINNING: usize = 16;

/// The memory of a heap, and whether it is proved to suffice.
pub(super) struct Memory {
    pub(super) ranges: Ranges,
    pub(super) guaranteed: bool,
}

/// The memory that a heap which was found has in the image.
pub(super) fn memory(
    config: &Config,
    events: &Events,
    searched: &Searched,
    wanted: &Wanted,
) -> Result<Memory, Error> {
    let options = &searched.options;
    let aligned = events.as_slice().iter().map(|event| event.align()).max();
    let mut beginning = aligned.unwrap_or(1).max(BEGINNING);
    let buddy = |kind: IndexKind| matches!(kind, IndexKind::Buddy { .. });
    if options.arena.span >= LARGE && config.heap.general.iter().any(|pool| buddy(pool.index)) {
        beginning = beginning.max(PAGE);
    }
    let mut ranges = ranges_of(config, events, options, beginning);
    let terms = searched.budget.terms.filter(|_| wanted.asked());
    let guaranteed = match terms {
        Some(terms) => widen(&mut ranges, config, events, searched, &terms)?,
        None => false,
    };
    Ok(Memory { ranges, guaranteed })
}

/// Gives each pool what is proved to suffice for a demand, where that is known; whether it is.
fn widen(
    ranges: &mut Ranges,
    config: &Config,
    events: &Events,
    searched: &Searched,
    terms: &Terms,
) -> Result<bool, Error> {
    if terms.guarantee_of(config).is_none() {
        return Ok(false);
    }
    let arena = searched.options.arena;
    let detail = Replayer::new().inspect(&config.heap, events, &searched.options);
    let step = INCREMENT.max(ranges.beginning);
    let mut slabs = 0;
    let mut wide = *ranges;
    let mut largest = 0;
    let visited = bounds::each_part(
        &config.heap,
        &arena.target.bounds(),
        &terms.demand,
        &mut |part| {
            let bytes = part.bound.heap_bytes.unwrap_or(u128::MAX);
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            match part.pool {
                Pool::Objects(_) => slabs += bytes.div_ceil(config.heap.slabs().bytes()),
                Pool::General(general) => {
                    let number = config.heap.general.iter().position(|pool| pool == general);
                    let number = number.unwrap_or(0);
                    // The lists of an index lie in its pool.
                    let control = detail.parts.get(number).map_or(0, |part| part.control);
                    let bytes = bytes.saturating_add(control as usize);
                    largest = largest.max(bytes);
                    let bytes = bytes.checked_next_multiple_of(step).unwrap_or(usize::MAX);
                    wide.pools[number] = wide.pools[number].max(bytes);
                }
            }
        },
    );
    if visited.is_err() {
        return Ok(false);
    }
    if largest > ranges.span {
        return Err(Error::Span {
            heap: config.name(),
            bytes: largest as u64,
            span: ranges.span as u64,
        });
    }
    wide.slabs = wide.slabs.max(slabs);
    *ranges = wide;
    Ok(true)
}
