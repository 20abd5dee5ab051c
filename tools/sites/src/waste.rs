//! What blocks take beyond what was requested, by site, on a heap.
//!
//! The heap is driven by the trace up to its peak. Of each block that lives there the heap says what it takes: its
//! record, what the request was rounded up to, the rest of a slot. Free blocks, the heap's fragmentation, are nobody's.
//! Large blocks are served by the pools, too: as mappings of their own they would take whole pages.
//!
//! *Invariant:* a block's waste is that of the replay, at the event at which most bytes are live.

use metes_config::Config;
use metes_explore::{Options, Replayer, Simulated};
use metes_trace::{Op, Trace};

use crate::figures::Sites;

/// Why there is no such figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WasteError {
    /// The heap cannot serve the trace.
    #[error(
        "the heap refuses event {0} of the trace: give it a larger arena, or take another heap"
    )]
    Refused(usize),
    /// The arena is too small for its records.
    #[error("the heap's arena has no room for its own records: give it a larger one")]
    NoRoom,
}

/// A block of the trace: in the heap, of whom, how large.
type Held = Option<(u32, u32, u64)>;

/// Adds to each site what its blocks take beyond their bytes at the peak, on a heap. O(events), the heap's own time
/// for each.
///
/// # Errors
/// [`WasteError`] if the heap does not serve the trace up to there.
pub fn waste(trace: &Trace, sites: &mut Sites, heap: &Config) -> Result<(), WasteError> {
    let mut options = Options::of(heap);
    options.arena.mapped = None;
    let mut outcome = Err(WasteError::NoRoom);
    let peak = sites.peak_event;
    let most = most_blocks(trace, peak);
    let count = sites.figures.len();
    let driven = Replayer::new().simulate(&heap.heap, &options, most, &mut |heap| {
        outcome = drive(trace, peak, count, heap);
    });
    if !driven {
        return Err(WasteError::NoRoom);
    }
    for (figures, waste) in sites.figures.iter_mut().zip(outcome?) {
        figures.waste = Some(waste);
    }
    Ok(())
}

/// Blocks that live at once, at most, up to an event.
fn most_blocks(trace: &Trace, last: usize) -> usize {
    let (mut live, mut most) = (0usize, 0);
    for op in trace.ops().iter().take(last + 1) {
        match op {
            Op::Alloc => live += 1,
            Op::Free => live = live.saturating_sub(1),
            Op::Resize | Op::Access => {}
        }
        most = most.max(live);
    }
    most
}

/// Waste by site at the end of an event.
fn drive(
    trace: &Trace,
    last: usize,
    sites: usize,
    heap: &mut dyn Simulated,
) -> Result<Vec<u64>, WasteError> {
    let mut held: Vec<Held> = Vec::with_capacity(trace.block_count());
    for (index, event) in trace.iter().enumerate().take(last + 1) {
        let site = trace
            .stacks
            .stack(event.site)
            .map_or(0, |_| event.site as u32);
        let refused = WasteError::Refused(index);
        let size = usize::try_from(event.size).map_err(|_| refused)?;
        match event.op {
            Op::Alloc => {
                let block = heap.allocate_aligned(size, event.align as usize);
                held.push(Some((block.ok_or(refused)?, site, event.size)));
            }
            Op::Resize => {
                if let Some(Some((block, owner, own))) = held.get_mut(event.block as usize) {
                    if !heap.resize(*block, size, event.align as usize) {
                        return Err(refused);
                    }
                    (*owner, *own) = (site, event.size);
                }
            }
            Op::Free => {
                if let Some((block, ..)) = held.get_mut(event.block as usize).and_then(Option::take)
                {
                    heap.free(block);
                }
            }
            Op::Access => {}
        }
    }
    let mut waste = vec![0u64; sites];
    for (block, owner, size) in held.into_iter().flatten() {
        let taken = heap.taken(block).unwrap_or(size);
        let own = &mut waste[owner as usize];
        *own = own.saturating_add(taken.saturating_sub(size));
    }
    Ok(waste)
}

#[cfg(test)]
mod tests {
    use metes_trace::stacks::Ending;
    use metes_trace::{Provenance, StacksBuilder, TraceBuilder};

    use super::*;

    #[test]
    fn waste_is_of_the_blocks_at_the_peak() {
        let mut events = TraceBuilder::new();
        let freed = events.alloc_at(1, 0, 0, 1000, 16).unwrap();
        events.free(0, 0, freed).unwrap();
        for _ in 0..3 {
            events.alloc_at(1, 0, 0, 1000, 16).unwrap();
        }
        let grows = events.alloc_at(2, 0, 0, 10, 16).unwrap();
        events.resize_at(2, 0, 0, grows, 600, 16).unwrap();
        let mut trace = events.finish(Provenance::default());
        let mut stacks = StacksBuilder::default();
        for place in [1, 2] {
            stacks.stack(&[(None, place)], Ending::Whole);
        }
        trace.stacks = stacks.finish();
        let mut sites = Sites::of(&trace);
        let heap = metes_config::resolve("buddy").unwrap();
        waste(&trace, &mut sites, &heap).unwrap();
        let wastes: Vec<Option<u64>> = sites.figures.iter().map(|own| own.waste).collect();
        // Blocks of 1024 bytes, all of them.
        assert_eq!(wastes, [Some(0), Some(3 * 24), Some(424)]);
    }
}
