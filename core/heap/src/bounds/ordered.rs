//! Bounds of buddies, of half-fit on powers of two, and of every heap that never moves a block.
//! Buddies in address order follow *frontiers*, as [`super::first_fit`] does.
//!
//! Invariant: every quotient is rounded so that an upper bound rises and a lower one falls.
//! Proof: `docs/guarantees.md#buddy`.

use super::BoundError;
use super::demand::{Load, Sizes, product};

/// Bytes that suffice for buddies that take the lowest aligned free place of any order.
pub(super) fn lowest_buddy(load: &Load) -> Result<u128, BoundError> {
    let unit = load.gross(load.smallest);
    let orders = (load.gross(load.top_request()) / unit).ilog2();
    let total = load.occupied(load.live)? / unit;
    let mut frontiers = [0u128; 64];
    for order in 0..=orders {
        let chunk = 1u128 << order;
        let mut sum = total;
        for lower in 0..order {
            sum += frontiers[lower as usize].div_ceil(chunk) << lower;
        }
        let below = if order > 0 {
            frontiers[order as usize - 1]
        } else {
            0
        };
        frontiers[order as usize] = (sum / chunk * chunk).max(below);
    }
    let chunk = 1u128 << orders;
    Ok(frontiers[orders as usize].next_multiple_of(chunk) * unit)
}

/// Bytes that suffice for buddies whichever free chunk of whichever order they take: a refused
/// order finds a live block in each of its chunks.
pub(super) fn any_buddy(load: &Load) -> Result<u128, BoundError> {
    let top = load.gross(load.top_request());
    let mut most = 0;
    for (request, chunk) in load.steps() {
        // Chunks that live blocks can keep busy, per requested byte.
        let (mut busy, mut bytes) = (0, 1);
        for (other, block) in load.steps() {
            let covers = (block / chunk).max(1);
            if covers * bytes > busy * other {
                (busy, bytes) = (covers, other);
            }
        }
        let chunks = product(load.live - request, busy)? / bytes + 1;
        most = most.max(product(chunks, chunk)?);
    }
    Ok(most.next_multiple_of(top))
}

/// Robson's closed form M'(1 + log2(n) / 2) - n + 1 in units of the smallest block, rounded up
/// to the largest block; M' is the sum of the rounded blocks.
pub(super) fn robson_buddy(load: &Load) -> Result<u128, BoundError> {
    let unit = load.gross(load.smallest);
    let top = load.gross(load.top_request());
    let orders = u128::from((top / unit).ilog2());
    let total = load.occupied(load.live)? / unit;
    let units = total + product(total, orders)?.div_ceil(2) + 1 - top / unit;
    Ok((units * unit).next_multiple_of(top))
}

/// Herter's M'(1 + ceil(log2 n)) for half-fit on power-of-two blocks.
pub(super) fn herter_half_fit(load: &Load) -> Result<u128, BoundError> {
    let unit = load.gross(load.smallest);
    let orders = u128::from((load.gross(load.top_request()) / unit).ilog2());
    product(load.occupied(load.live)? / unit * unit, orders + 1)
}

/// Robson's lower bound: bytes without which no heap that never moves blocks serves every
/// sequence, in requested bytes (no records, no rounding).
///
/// The formula l (M (1 + k/2) - 2^k) + 1, M in multiples of the smallest block, is applied to
/// every k with 2^k l <= n and M cut to a multiple of 2^k, where it is exact; the greatest
/// counts. Never below the most bytes that can be live at once.
pub(super) fn necessary(load: &Load) -> Result<u128, BoundError> {
    let units = load.live / load.smallest;
    let mut most = match load.sizes {
        Sizes::Any => product(units, load.largest)?.min(load.live),
        Sizes::Doubling => units * load.smallest,
    };
    for k in 0..=(load.largest / load.smallest).ilog2() {
        let cut = units >> k << k;
        let spread = cut + product(cut, k.into())? / 2 - (1 << k);
        most = most.max(product(spread, load.smallest)? + 1);
    }
    Ok(most)
}
