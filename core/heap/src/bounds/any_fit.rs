//! The bound of every coalescing heap whose search refuses only when no hole fits.
//!
//! Proof: `docs/guarantees.md#any-fit`. When a request of r bytes is refused, every hole is
//! smaller than the ceiling s' of its search, at most (M - r) / l blocks are live, and holes
//! lie between live blocks. Adding up gives H = max over r of
//! R + R (w + s' - g) / l + s' with R = M - r.

use super::BoundError;
use super::demand::{Load, Rounding, Sizes, product};
use crate::index::fixed::SizeTable;

/// How far above a block size a search may look past holes that would fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ceiling {
    /// Any hole that fits is found.
    Exact,
    /// Holes are kept in classes, `per_doubling` to a power of two, and the search starts at
    /// the first class all of whose members fit.
    Classes { per_doubling: u32 },
    /// A search in granules is rounded up to a class of the whole block, `per_doubling` to a
    /// power of two, and finds every hole of at least that size.
    Rounded { per_doubling: u32 },
    /// Blocks have the sizes of a table, above its largest powers of two.
    Table(SizeTable),
}

impl Ceiling {
    /// s': the size from which on every hole is found; the smallest class boundary that is at
    /// least `needed`. Classes are of what blocks can hold, so boundaries lie a record above
    /// multiples of their width.
    pub(super) fn of(self, needed: u128, load: &Load) -> u128 {
        let granule = load.granule;
        match self {
            Ceiling::Exact => needed,
            Ceiling::Classes { per_doubling } => {
                let record = load.record.next_multiple_of(granule);
                let held = needed.saturating_sub(record).max(granule);
                let width = (1u128 << held.ilog2()) / u128::from(per_doubling);
                record + held.next_multiple_of(width.max(granule))
            }
            Ceiling::Rounded { per_doubling } => {
                let width = (1u128 << needed.ilog2()) / u128::from(per_doubling);
                needed.next_multiple_of(width.max(granule))
            }
            Ceiling::Table(sizes) => {
                let mut rounded = sizes
                    .iter()
                    .map(|size| u128::from(size).next_multiple_of(granule));
                rounded
                    .find(|&size| size >= needed)
                    .unwrap_or_else(|| needed.next_power_of_two())
            }
        }
    }
}

/// Bytes of heap that suffice, a multiple of the granule; control bytes not included.
pub(super) fn bytes(load: &Load, ceiling: Ceiling) -> Result<u128, BoundError> {
    if let Some(bytes) = equal_blocks(load, ceiling) {
        return Ok(bytes);
    }
    let straight =
        ceiling == Ceiling::Exact && load.rounding == Rounding::Granule && load.sizes == Sizes::Any;
    let most = if straight {
        vertex(load)?
    } else {
        over_classes(load, ceiling)?
    };
    Ok(most / load.granule * load.granule)
}

/// The sum of the proof for one failing request.
pub(super) fn refused_at(load: &Load, ceiling: Ceiling, request: u128) -> Result<u128, BoundError> {
    let needed = load.gross(request) + load.pad;
    let found = ceiling.of(needed, load);
    let rest = load.live - request;
    let hole = found - load.granule;
    let occupied_and_holes = match load.rounding {
        Rounding::Granule => rest + product(rest, load.waste() + hole)? / load.smallest,
        Rounding::PowerOfTwo => load.occupied(rest)? + product(rest, hole)? / load.smallest,
    };
    Ok(occupied_and_holes + found)
}

/// The maximum where the ceiling is a staircase: within a stair the sum falls with r, so the
/// first request of each stair decides. Steps: number of classes.
fn over_classes(load: &Load, ceiling: Ceiling) -> Result<u128, BoundError> {
    let mut most = 0;
    let mut request = load.smallest;
    while request <= load.largest {
        most = most.max(refused_at(load, ceiling, request)?);
        let found = ceiling.of(load.gross(request) + load.pad, load);
        request = load.request_above(found - load.pad);
    }
    Ok(most)
}

/// The maximum where s' = s + pad: a concave parabola in the block size s, so the multiples of
/// the granule next to its vertex decide. Constant time; proof in `docs/guarantees.md#vertex`.
fn vertex(load: &Load) -> Result<u128, BoundError> {
    let first = load.gross(load.smallest);
    let last = load.gross(load.largest);
    let mut most = refused_at(load, Ceiling::Exact, load.smallest)?;
    if last > first {
        // With r = s - (record + granule - 1) the sum is A + pad + (A - s)(s + pad + w - g) / l,
        // A = M + record + granule - 1: greatest at s = (A + g - pad - w) / 2.
        let g = load.granule;
        let top = load.live + load.record + g - 1;
        let turn = (top + g).saturating_sub(load.pad + load.waste()) / 2;
        let below = turn / g * g;
        for block in [below, below + g] {
            let block = block.clamp(first + g, last);
            let request = load.request_above(block - g);
            most = most.max(refused_at(load, Ceiling::Exact, request)?);
        }
    }
    Ok(most)
}

/// Blocks of one size only: holes are multiples of it, except the last one.
fn equal_blocks(load: &Load, ceiling: Ceiling) -> Option<u128> {
    let block = load.gross(load.smallest);
    let equal = block == load.gross(load.top_request()) && load.pad == 0 && load.slack < block;
    equal.then(|| {
        let found = ceiling.of(block, load);
        let refused = (found - load.granule) / block * block;
        (load.live / load.smallest - 1) * (block + refused) + found
    })
}
