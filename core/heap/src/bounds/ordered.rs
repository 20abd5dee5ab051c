//! Bounds of heaps that always take the lowest place: first fit and aligned buddies in address
//! order. Both follow *frontiers*: how high a block of at most a given size was ever placed.
//!
//! Proofs: `docs/guarantees.md#first-fit` and `docs/guarantees.md#buddy`.

use super::BoundError;
use super::demand::{Load, Sizes, product};

/// Size classes of the frontier recursion: exact up to 16 granules, 16 to a power of two above.
const PER_DOUBLING: u64 = 16;
const CLASSES: usize = 1024;
/// Fixed-point scale of the recursion's quotients; every quotient is rounded up.
const SCALE: u128 = 1 << 16;

/// Bytes that suffice for first fit in address order, or `None` where the recursion leaves
/// 128-bit arithmetic. Steps: square of the number of classes, at most 16 log2(n / g) of them.
pub(super) fn first_fit(load: &Load) -> Result<Option<u128>, BoundError> {
    let g = load.granule;
    let occupied = load.occupied(load.live)? / g;
    Ok(frontier(load, occupied).map(|units| units * g))
}

fn frontier(load: &Load, occupied: u128) -> Option<u128> {
    let g = load.granule;
    let (pad, slack) = (load.pad / g, load.slack / g);
    let mut lows = [0u64; CLASSES];
    let mut frontiers = [0u128; CLASSES];
    let mut count = 0;
    let mut next = Some((load.gross(load.smallest) / g) as u64);
    while let Some(low) = next {
        let high = class_top(load, low);
        if count == CLASSES {
            return None;
        }
        lows[count] = low;
        let (low, high) = (u128::from(low), u128::from(high));
        let hole = high + pad - 1;
        // Blocks below the request own at least this much of the memory, by Abel summation.
        let mut scaled = occupied.checked_sub(low)?.checked_mul(SCALE)?;
        for class in 0..count {
            let (a, b) = (u128::from(lows[class]), u128::from(lows[class + 1]));
            let weight = hole.checked_mul(b - a)?.checked_mul(SCALE)?;
            let scale = (a + hole).checked_mul(b + hole)?;
            scaled += frontiers[class].checked_mul(weight)?.div_ceil(scale);
        }
        let place = scaled.checked_mul(low + hole)? / (low * SCALE);
        let end = pad + place + high + slack;
        let before = if count > 0 { frontiers[count - 1] } else { 0 };
        frontiers[count] = end.max(before);
        count += 1;
        next = next_low(load, high as u64);
    }
    Some(frontiers[count - 1])
}

/// Largest block, in granules, of the class that starts at `low`.
fn class_top(load: &Load, low: u64) -> u64 {
    match load.sizes {
        Sizes::Doubling => low,
        Sizes::Any => {
            let width = ((1 << low.ilog2()) / PER_DOUBLING).max(1);
            let top = low / width * width + width - 1;
            top.min((load.gross(load.largest) / load.granule) as u64)
        }
    }
}

/// Smallest block, in granules, above `high` that a request of the demand takes.
fn next_low(load: &Load, high: u64) -> Option<u64> {
    let request = load.request_above(u128::from(high) * load.granule);
    (request <= load.largest).then(|| (load.gross(request) / load.granule) as u64)
}

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
