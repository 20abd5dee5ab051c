//! Of what the bound of a heap of several pools is made.
//!
//! A request goes to one pool by its size, so each pool has a demand of its own, and what suffices for
//! each suffices together (`docs/guarantees.md#several-pools`).
//!
//! Invariant: the bounds that [`each_part`] gives are those that [`described`](super::described) adds up.

use super::{Bound, BoundError, Demand, Geometry, HeapKind, Part, Sizes};
use crate::description::{Description, GENERAL, General, OBJECTS, ObjectPoolKind};

/// A pool of a described heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Equal slots.
    Objects(ObjectPoolKind),
    /// One that takes a range of requests.
    General(General),
}

/// What one pool adds to the bound of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartBound {
    /// The pool.
    pub pool: Pool,
    /// The requests that reach it; its live bytes count dedicated lists in front of it.
    pub demand: Demand,
    /// What suffices for it.
    pub bound: Bound,
}

impl Part<'_> {
    /// What of a demand is routed to this pool.
    pub(super) fn routed(&self, demand: &Demand) -> Option<Demand> {
        let smallest = demand.smallest.max(self.smallest);
        let largest = demand.largest.min(self.largest);
        (smallest <= largest).then(|| Demand {
            live: self.live.unwrap_or(demand.live).min(demand.live),
            largest,
            smallest,
            // Doublings of the whole demand's l need not be doublings of the pool's own l.
            sizes: Sizes::Any,
            ..*demand
        })
    }
}

/// Tells the pools that requests of a demand reach, by rising size, and what each adds to the bound of the
/// heap. Nothing where no bound is added up: where ranges of pools overlap.
///
/// # Errors
/// As [`super::described`].
pub fn each_part(
    description: &Description,
    geometry: &Geometry,
    demand: &Demand,
    visit: &mut dyn FnMut(PartBound),
) -> Result<(), BoundError> {
    if !description.partitions() {
        return Ok(());
    }
    let asked = asked(description, demand)?;
    let objects = description.objects.iter().map(Pool::Objects);
    let pools = objects.chain(description.general.iter().map(Pool::General));
    for (part, pool) in parts_of(description, geometry, demand).iter().zip(pools) {
        let Some(demand) = part.routed(&asked) else {
            continue;
        };
        let bound = super::bound(&part.heap, &part.geometry, &demand)?;
        visit(PartBound {
            pool,
            demand,
            bound,
        });
    }
    Ok(())
}

/// What general pools are asked for: dedicated lists keep what would be free without them.
pub(super) fn asked(description: &Description, demand: &Demand) -> Result<Demand, BoundError> {
    let lists = description.dedicated.len() as u64;
    let live = demand.live.checked_mul(lists + 1);
    Ok(Demand {
        live: live.ok_or(BoundError::Overflow)?,
        ..*demand
    })
}

/// Object pools and general pools, each with the requests that are routed to it.
pub(super) fn parts_of(
    description: &Description,
    geometry: &Geometry,
    demand: &Demand,
) -> [Part<'static>; OBJECTS + GENERAL] {
    let none = Part {
        smallest: u64::MAX,
        largest: 0,
        live: None,
        heap: HeapKind::Composite(&[]),
        geometry: *geometry,
    };
    let mut parts = [none; OBJECTS + GENERAL];
    let mut filled = parts.iter_mut();
    let mut smallest = 1u64;
    for pool in description.objects.iter() {
        let Some(part) = filled.next() else { break };
        *part = Part {
            smallest,
            largest: pool.size as u64,
            // Dedicated lists stand in front of the general pools only.
            live: Some(demand.live),
            heap: HeapKind::ObjectPool {
                slot: pool.size as u64,
                slab: pool.slab as u64,
            },
            geometry: Geometry::outside(crate::objects::GRANULE as u64),
        };
        smallest = pool.size as u64 + 1;
    }
    for pool in description.general.iter() {
        let Some(part) = filled.next() else { break };
        *part = Part {
            smallest,
            largest: pool.up_to as u64,
            live: None,
            heap: HeapKind::of(pool.index, pool.limits),
            geometry: *geometry,
        };
        smallest = smallest.max((pool.up_to as u64).saturating_add(1));
    }
    parts
}
