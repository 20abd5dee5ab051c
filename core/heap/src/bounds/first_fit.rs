//! First fit in address order, by exact sizes or by classes: *frontiers*, that is, how high a
//! block of at most a given size was ever placed.
//!
//! Invariant: shares are rounded down, which raises the bound; places are rounded down to
//! granules only, where holes begin.
//! Proof: `docs/guarantees.md#first-fit`.

use super::any_fit::Ceiling;
use super::demand::{Load, Sizes};

/// Most classes of sizes: beyond 256 to a power of two they are cut until 256 suffice, but never
/// below 16.
const CLASSES: usize = 1024;
const EXACT: u64 = 256;
const COARSEST: u64 = 16;
/// Fixed-point scale of shares.
const SCALE: u128 = 1 << 40;

/// Bytes that suffice for first fit in address order, or `None` where the recursion leaves
/// 128-bit arithmetic. `resized`: blocks are also resized in place, and M counts each at the
/// largest request it has had. Steps: square of the number of classes.
pub(super) fn first_fit(load: &Load, ceiling: Ceiling, resized: bool) -> Option<u128> {
    let mut last = 0;
    frontiers(load, ceiling, resized, |_, _, end| last = end)?;
    Some(last)
}

/// Tells `found` the frontiers of all classes, sizes rising: the smallest and the largest block of
/// each, and how high one of them or below was ever placed.
pub(super) fn frontiers(
    load: &Load,
    ceiling: Ceiling,
    resized: bool,
    mut found: impl FnMut(u128, u128, u128),
) -> Option<()> {
    let mut lows = [0u128; CLASSES];
    let mut ends = [0u128; CLASSES];
    let (mut count, mut highest) = (0, 0);
    let mut next = Some(load.gross(load.smallest));
    let per_doubling = per_doubling(load);
    while let Some(low) = next {
        if count == CLASSES {
            return None;
        }
        lows[count] = low;
        let high = class_top(load, low, per_doubling);
        // First fit passed over every hole below: none is larger than this.
        let hole = ceiling.of(high + load.pad, load) - load.granule;
        let rest = load.live - request_of(load, low);
        let below = (&lows[..=count], &ends[..count]);
        let mut place = place(load, below, hole + load.slack, hole + load.slack, rest)?;
        if load.slack > 0 && low > hole && !resized {
            // Above the last frontier no block has both slack and a hole behind it.
            let own = hole.max(load.slack);
            let closer = self::place(load, below, hole + load.slack, own, rest)?;
            place = place.min(closer + 2 * load.slack);
        }
        if resized {
            // A block that grew in place began where its former size may.
            place = place.max(highest);
            highest = place;
        }
        let end = place / load.granule * load.granule + load.pad + high + load.slack;
        let before = if count > 0 { ends[count - 1] } else { 0 };
        ends[count] = end.max(before);
        found(low, high, ends[count]);
        count += 1;
        let request = load.request_above(high);
        next = (request <= load.largest).then(|| load.gross(request));
    }
    Some(())
}

/// Where the hole taken begins at most: the live bytes `rest`, and what the frontiers below save,
/// over the share of the class itself. A block owns `extra` bytes beyond its size at most, above
/// the last frontier `own`.
fn place(
    load: &Load,
    (lows, ends): (&[u128], &[u128]),
    extra: u128,
    own: u128,
    rest: u128,
) -> Option<u128> {
    let mut share = share(load, lows[lows.len() - 1], own);
    let last = share;
    let mut scaled = rest.checked_mul(SCALE)?;
    for (&low, &end) in lows.iter().zip(ends).rev() {
        let lower = self::share(load, low, extra).min(share);
        scaled = scaled.checked_add(end.checked_mul(share - lower)?)?;
        share = lower;
    }
    scaled.checked_div(last)
}

/// Least quotient of request and owned bytes, of blocks of at least `low` bytes.
pub(super) fn share(load: &Load, low: u128, extra: u128) -> u128 {
    let of = |request: u128, block: u128| request * SCALE / (block + extra);
    let mut request = request_of(load, low);
    let mut block = low;
    let mut least = of(request, block);
    loop {
        // With any sizes the quotient grows from the second block size on.
        request = load.request_above(block);
        if request > load.largest {
            return least;
        }
        block = load.gross(request);
        least = least.min(of(request, block));
        if load.sizes == Sizes::Any {
            return least;
        }
    }
}

/// Smallest request whose block is `block` bytes: of a smallest block any that it can hold.
pub(super) fn request_of(load: &Load, block: u128) -> u128 {
    if block <= load.minimum {
        return load.smallest;
    }
    load.request_above(block - load.granule)
}

/// Classes to a power of two: all sizes alone if there are few.
fn per_doubling(load: &Load) -> u64 {
    let first = load.gross(load.smallest) / load.granule;
    let last = load.gross(load.largest) / load.granule;
    if last - first < u128::from(EXACT) {
        return u64::MAX;
    }
    let doublings = u64::from(last.ilog2() - first.ilog2()) + 1;
    let fit = (EXACT / doublings).max(COARSEST);
    1 << fit.ilog2()
}

/// Largest block of the class that starts at `low`.
fn class_top(load: &Load, low: u128, per_doubling: u64) -> u128 {
    match load.sizes {
        Sizes::Doubling => low,
        Sizes::Any => {
            let granules = low / load.granule;
            let width = ((1 << granules.ilog2()) / u128::from(per_doubling)).max(1);
            let top = granules / width * width + width - 1;
            (top * load.granule).min(load.gross(load.largest))
        }
    }
}
