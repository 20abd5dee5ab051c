//! Of what the bound of a heap of several pools is made.
//!
//! A request goes to one pool by its size, so each pool has a demand of its own, and what suffices for
//! each suffices together (`docs/guarantees.md#several-pools`).
//!
//! Invariant: the bounds that [`each_part`] gives are those that [`described`](super::described) adds up.

use super::{Bound, BoundError, Demand, Geometry, HeapKind, Part, Sizes};
use crate::description::{
    DedicatedPool, Description, GENERAL, General, IndexKind, OBJECTS, ObjectPoolKind,
};
use crate::index;

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
    // Without a limit on what is kept nothing is proved; then its parts are those without lists.
    let asked = asked(description, geometry, demand)?.unwrap_or(*demand);
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

/// What a dedicated list adds to the bound of a heap: its blocks count as live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptList {
    /// The list.
    pub list: DedicatedPool,
    /// Bytes of each of its blocks.
    pub block: u64,
    /// Bytes by which the live bytes of a general pool in its level are more; `None` where the list keeps
    /// without limit.
    pub live: Option<u64>,
}

/// What each dedicated list adds for a demand, by rising size.
///
/// # Errors
/// [`BoundError::Overflow`] for blocks beyond 64 bits.
pub fn each_list(
    description: &Description,
    geometry: &Geometry,
    demand: &Demand,
    visit: &mut dyn FnMut(KeptList),
) -> Result<(), BoundError> {
    let exact = exact(description, geometry, demand);
    for list in description.dedicated.iter() {
        let block = block(description, geometry, list).ok_or(BoundError::Overflow)?;
        let held = block - geometry.record;
        let limited = list.limit.map(|most| u64::from(most).saturating_mul(held));
        // Where blocks fit their requests exactly, live and kept ones of a size are no more than were live.
        let live = match (limited, exact) {
            (Some(bytes), true) => Some(bytes.min(demand.live)),
            (None, true) => Some(demand.live),
            (limited, false) => limited,
        };
        visit(KeptList { list, block, live });
    }
    Ok(())
}

/// Whether every block is as large as its request asks, so that none enters the list of another size, and merging
/// is not limited.
fn exact(description: &Description, geometry: &Geometry, demand: &Demand) -> bool {
    let unmerged = description.general.iter().any(|pool| {
        let never = matches!(
            pool.index,
            IndexKind::Kingsley | IndexKind::FixedSizes { .. }
        );
        never || pool.limits != index::Limits::NONE
    });
    let inexact = geometry.minimum > geometry.granule
        || demand.alignment > geometry.granule
        || demand.resized_in_place;
    !inexact && !unmerged
}

/// The largest block that a list keeps, whichever general pool of its level it stands before.
fn block(description: &Description, geometry: &Geometry, list: DedicatedPool) -> Option<u64> {
    let asked = (list.size as u64).checked_add(geometry.record)?;
    let block = asked
        .checked_next_multiple_of(geometry.granule)?
        .max(geometry.minimum);
    let pools = { description.general.iter() }.filter(|pool| pool.level == list.level);
    let blocks = pools.map(|pool| match pool.index {
        IndexKind::Kingsley | IndexKind::Buddy { .. } => block.checked_next_power_of_two(),
        IndexKind::FixedSizes { sizes } => {
            let block = usize::try_from(block).ok()?;
            Some(sizes.block_size(block) as u64)
        }
        _ => Some(block),
    });
    { blocks }.try_fold(block, |most, own| Some(most.max(own?)))
}

/// What general pools are asked for: what dedicated lists keep is live for them. `None` where a list keeps without
/// limit what no request of its size brought about.
pub(super) fn asked(
    description: &Description,
    geometry: &Geometry,
    demand: &Demand,
) -> Result<Option<Demand>, BoundError> {
    let mut live = Some(demand.live);
    let mut overflows = false;
    each_list(description, geometry, demand, &mut |list| {
        let sum = live.zip(list.live).map(|(sum, more)| sum.checked_add(more));
        overflows |= sum == Some(None);
        live = sum.flatten();
    })?;
    if overflows {
        return Err(BoundError::Overflow);
    }
    let lists = !description.dedicated.is_empty();
    Ok(live.map(|live| Demand {
        live,
        // A block that was large may be kept small, and then be for the pool what it was.
        live_at_largest: demand.live_at_largest && !(lists && demand.resized_in_place),
        ..*demand
    }))
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
