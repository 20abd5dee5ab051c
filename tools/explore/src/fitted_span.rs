//! What first fit by a tree is laid out for, so that it suits a trace.
//!
//! A tree takes a share of all the memory that it is laid out for, so that a heap which grows needs to know how far. Laid
//! out is what first fit is guaranteed to need for the demand that the trace makes, where that is a guarantee that anyone
//! would ask for; else a few times the peak of live bytes, which no recorded program comes near.
//!
//! Invariant: the same for the same requests, whatever their order.

use metes_config::Config;
use metes_heap::bounds::{self, Demand};
use metes_heap::description::{LARGEST_SPAN, SMALLEST_SPAN};
use metes_heap::{Description, IndexKind};

use crate::events::{Events, Operation};
use crate::pools::Arena;
use crate::terms::USEFUL;

/// Without a useful guarantee, so many times the peak of live bytes.
const WITHOUT: u64 = 4;

/// Bytes to lay a tree out for. O(events).
pub(crate) fn fitted_span(events: &Events, arena: &Arena) -> usize {
    let demand = demand(events);
    let tree = IndexKind::FirstFit {
        by_class: true,
        span: None,
    };
    let bytes = guaranteed(&arena.config(Description::of(tree)), demand, arena)
        .unwrap_or(demand.live.saturating_mul(WITHOUT));
    // Memory comes in whole increments, the first of them with the table.
    let increment = arena.increment as u64;
    let bytes = (bytes + bytes / 32).saturating_add(2 * increment);
    let most = LARGEST_SPAN.min(arena.span);
    let bytes = usize::try_from(bytes).unwrap_or(most).min(most);
    (bytes.next_multiple_of(SMALLEST_SPAN)).clamp(SMALLEST_SPAN, most)
}

/// What suffices for the pools of a heap, where that is not too much to be asked for.
fn guaranteed(heap: &Config, demand: Demand, arena: &Arena) -> Option<u64> {
    let bytes = metes_config::span_for(heap, &demand).ok()??;
    let necessary = bounds::necessary(&arena.target.bounds(), &demand).ok()?;
    let useful = bytes <= necessary.saturating_mul(u128::from(USEFUL));
    u64::try_from(bytes).ok().filter(|_| useful)
}

/// What a program that makes these requests asks for.
fn demand(events: &Events) -> Demand {
    let mut sizes = vec![0; events.slots()];
    let (mut live, mut peak) = (0_u64, 1_u64);
    let (mut least, mut most, mut alignment) = (u64::MAX, 1, 1);
    let mut resizes = false;
    for event in events.as_slice() {
        let own = &mut sizes[event.slot() as usize];
        live -= *own;
        *own = 0;
        resizes |= event.operation() == Operation::Resize;
        if event.operation() != Operation::Free {
            let size = event.size() as u64;
            *own = size;
            live += size;
            peak = peak.max(live);
            (least, most) = (least.min(size.max(1)), most.max(size));
            alignment = alignment.max(event.align() as u64);
        }
    }
    let mut demand = Demand::new(peak.max(most), most, least.min(most));
    demand.alignment = alignment;
    demand.resized_in_place = resizes;
    demand
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventsBuilder;

    #[test]
    fn a_tree_is_laid_out_for_what_is_guaranteed() {
        let mut builder = EventsBuilder::new();
        for serial in 0..1000_u64 {
            builder
                .push(Operation::Allocate, serial, 64 + serial % 8 * 64, 0)
                .unwrap();
        }
        let events = builder.finish();
        let demand = demand(&events);
        assert_eq!((demand.largest, demand.smallest), (512, 64));
        let span = fitted_span(&events, &Arena::HOST);
        for by_class in [false, true] {
            let tree = IndexKind::FirstFit {
                by_class,
                span: Some(span),
            };
            let config = Arena::HOST.config(Description::of(tree));
            let needed = metes_config::suffices(&config, &demand).unwrap().unwrap();
            assert!(needed <= span as u128, "{needed} {span}");
            assert!(needed > span as u128 * 7 / 8, "{needed} {span}");
        }
        assert_eq!(
            fitted_span(&EventsBuilder::new().finish(), &Arena::HOST),
            3 * SMALLEST_SPAN
        );
    }
}
