//! Heaps that never merge blocks: each size class keeps the memory of its own peak.
//!
//! Proof: `docs/guarantees.md#storage`. A block of a class is made only while all blocks of
//! that class are live, so a class has at most floor(M / r) blocks, r its smallest request; and
//! phases that fill one class after another reach that number in every class.

use super::BoundError;
use super::any_fit::Ceiling;
use super::demand::{Load, product};

/// Classes after which a per-size storage is summed by an upper estimate instead.
const EXACT_CLASSES: u32 = 1 << 16;

/// Bytes for storage whose blocks are the class ceilings; classes take memory in `page`s
/// (0: block by block).
pub(super) fn bytes(load: &Load, classes: Ceiling, page: u128) -> Result<u128, BoundError> {
    let mut total: u128 = 0;
    let mut request = load.smallest;
    for _ in 0..EXACT_CLASSES {
        if request > load.largest {
            return Ok(total);
        }
        let block = classes.of(load.gross(request), load);
        let blocks = load.live / request;
        let taken = if page == 0 {
            product(blocks, block)?
        } else if block <= page {
            product(blocks.div_ceil(page / block), page)?
        } else {
            product(blocks, block.next_multiple_of(page))?
        };
        total = total.checked_add(taken).ok_or(BoundError::Overflow)?;
        request = load.request_above(block);
    }
    // Each further size takes at most M (1 + (record + granule - 1) / r) bytes.
    let sizes = (load.gross(load.largest) - load.gross(request)) / load.granule + 1;
    let most = load.live + product(load.live, load.record + load.granule)? / request + page;
    total
        .checked_add(product(sizes, most)?)
        .ok_or(BoundError::Overflow)
}

/// Bytes of a pool of equal slots, in whole slabs of `slab` bytes (0: slot by slot). `None` where
/// a slab holds no slot.
pub(super) fn pool(load: &Load, slot: u128, slab: u128) -> Result<Option<u128>, BoundError> {
    let slot = slot.next_multiple_of(load.granule);
    let slots = load.live / load.smallest;
    if slab == 0 {
        return product(slots, slot).map(Some);
    }
    match slab / slot {
        0 => Ok(None),
        each => product(slots.div_ceil(each), slab).map(Some),
    }
}
