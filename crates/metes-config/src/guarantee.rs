//! The bounds of a configured heap in 64-bit memory.
//!
//! Invariant: the list heads that the bound counts are those of a memory at
//! least as large as the bound, so that the size found holds with them.

use std::fmt;

use metes_heap::bounds::{self, Bound, BoundError, Demand, Geometry};
use metes_heap::index::Index;
use metes_heap::{AnyIndex, ByHandle, Ledger, store};

use crate::{Config, GEOMETRY, StoreKind};

/// Why a configuration has no guarantee for a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuaranteeError {
    /// The demand contradicts itself, or the bound exceeds 128 bits.
    Bound(BoundError),
    /// No index is laid out for so many bytes.
    Span {
        /// How many.
        bytes: u64,
    },
}

impl fmt::Display for GuaranteeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuaranteeError::Bound(error) => error.fmt(f),
            GuaranteeError::Span { bytes } => {
                write!(f, "no heap is laid out for {bytes} bytes: give a smaller M")
            }
        }
    }
}

impl std::error::Error for GuaranteeError {}

/// The guarantee of a heap in 64-bit memory. At most some 60 evaluations of
/// [`bounds::described_in`].
///
/// # Errors
/// [`GuaranteeError`] where there is none to compute.
pub fn guarantee(config: &Config, demand: &Demand) -> Result<Bound, GuaranteeError> {
    let shape = match config.store {
        StoreKind::Hardened => store::Geometry::hardened(8),
        _ => GEOMETRY,
    };
    let outside = Geometry::outside(shape.granule as u64);
    let sizes = config.level_sizes();
    if !config.store.inside() {
        return bounds::described_in(&config.heap, &sizes, &outside, demand)
            .map_err(GuaranteeError::Bound);
    }
    // The list heads lie in the memory, and how many there are depends on its
    // size: the size found with the heads of a larger memory holds.
    let mut span = demand.live.saturating_mul(2);
    loop {
        let heads = heads(config, span, shape).ok_or(GuaranteeError::Span { bytes: span })?;
        let geometry = Geometry::of(&shape, heads);
        let bound = bounds::described_in(&config.heap, &sizes, &geometry, demand)
            .map_err(GuaranteeError::Bound)?;
        let needed = bound.heap_bytes.unwrap_or(0);
        if needed <= u128::from(span) || span == u64::MAX {
            return Ok(bound);
        }
        span = u64::try_from(needed)
            .unwrap_or(u64::MAX)
            .max(span.saturating_mul(2));
    }
}

/// Most list heads of a pool of this heap in a memory of `span` bytes; None if
/// no index is laid out for so many.
fn heads(config: &Config, span: u64, shape: store::Geometry) -> Option<usize> {
    let span = usize::try_from(span).unwrap_or(usize::MAX);
    let mut most = 0;
    for pool in config.heap.general.iter() {
        let mut index = AnyIndex::new(pool.index, pool.limits);
        most = most.max(Index::<Ledger<'_, ByHandle>>::heads(
            &mut index, span, shape,
        )?);
    }
    Some(most + config.heap.dedicated.len())
}
