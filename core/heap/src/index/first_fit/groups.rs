//! The free blocks that end in one group: runs of bits where blocks have addresses, else a list.
//!
//! Invariant: a bit is set exactly when its granule belongs to a free block that ends in the group; a list holds exactly
//! these blocks, in the order of their addresses.

use super::tree::Tree;
use super::{Part, runs};
use crate::index::links::{Links, Ring};
use crate::index::list::Order;
use crate::index::walk_list;
use crate::store::{Geometry, Store};

/// Granules of a group that is a word.
const BITS: usize = usize::BITS as usize;

/// Where a free block lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The group in which it ends.
    pub(super) group: usize,
    pub(super) granules: usize,
    /// Its first granule in that group, and its last one.
    low: u32,
    high: u32,
}

impl Place {
    /// The place of a block that begins `from` bytes behind the beginning of the region whose first group is `first`.
    #[inline(always)]
    pub(super) fn new<S: Store>(
        tree: &Tree,
        first: usize,
        from: usize,
        size: usize,
        geometry: Geometry,
    ) -> Self {
        let (from, granules) = (geometry.granules(from), geometry.granules(size));
        let last = from + granules - 1;
        let width_log2 = tree.width_log2::<S>();
        let begins = last >> width_log2 << width_log2;
        Place {
            group: first + (last >> width_log2),
            granules,
            low: from.saturating_sub(begins) as u32,
            high: (last - begins) as u32,
        }
    }

    #[inline(always)]
    pub(super) fn ending(&self) -> Ending {
        Ending {
            group: self.group,
            high: self.high,
        }
    }
}

/// Where a block ends: the group, and the granule in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    group: usize,
    high: u32,
}

impl Ending {
    /// The place of a block of so many granules that ends there.
    #[inline(always)]
    pub(super) fn place(self, granules: usize) -> Place {
        Place {
            group: self.group,
            granules,
            low: (self.high as usize + 1).saturating_sub(granules) as u32,
            high: self.high,
        }
    }
}

#[inline(always)]
fn ring<B>(head: B) -> Ring<B> {
    Ring {
        head,
        order: Order::Address,
        links: Links::Double,
    }
}

/// Adds a block. O(1) with bits; else at most a step for each block of the group.
#[inline(always)]
pub(super) fn insert<S: Store>(store: &mut S, tree: &Tree, place: Place, block: S::Block) {
    if S::ADDRESSED {
        store.touch(1, 1);
        let word = tree.word(place.group);
        tree.set_word(place.group, word | runs::between(place.low, place.high));
    } else {
        let head = store.head(place.group);
        ring(head).insert(store, block);
    }
}

/// Takes a block out. O(1).
#[inline(always)]
pub(super) fn remove<S: Store>(store: &mut S, tree: &Tree, place: Place, block: S::Block) {
    if S::ADDRESSED {
        store.touch(1, 1);
        let word = tree.word(place.group);
        tree.set_word(place.group, word & !runs::between(place.low, place.high));
    } else {
        store.unlink(block);
    }
}

/// Bytes of the blocks of a region. Linear in the number of regions.
fn room<S: Store>(store: &S, part: &Part<S::Block>) -> usize {
    (0..)
        .map_while(|number| store.region(number)?.ok())
        .find(|region| region.first == part.first)
        .map_or(0, |region| region.room)
}

/// Whether a free block of so many granules may lie at an offset of a region, whatever the bits say: for stores that
/// verify, and for a check.
fn may_lie<S: Store>(store: &S, part: &Part<S::Block>, from: usize, granules: usize) -> bool {
    let geometry = store.geometry();
    let shift = geometry.granule.trailing_zeros();
    let block = store.after(part.first, from << shift);
    (from + granules) << shift <= room(store, part)
        && store.can_be_listed(block)
        && store.header(block).size == granules << shift
}

/// The block that ends with the `ones` lowest granules of a group, and its size in granules; `None` if what its end says
/// was overwritten.
#[inline(always)]
fn lowest<S: Store>(
    store: &S,
    part: &Part<S::Block>,
    group: usize,
    ones: u32,
) -> Option<(S::Block, usize)> {
    let geometry = store.geometry();
    let shift = geometry.granule.trailing_zeros();
    let end = ((group - part.group) * BITS + ones as usize) << shift;
    if S::VERIFIES && end > room(store, part) {
        return None;
    }
    let behind = store.after(part.first, end);
    let block = store.before(behind);
    let verified = !S::VERIFIES
        || (store.fault().is_none()
            && !store.precedes(block, part.first)
            && store.precedes(block, behind)
            && store.header(block).size == store.distance(block, behind)
            && store.free_is_sound(block));
    verified.then(|| (block, geometry.granules(store.distance(block, behind))))
}

/// The first block of a group with at least `served` granules; `None` if it is not as its summary says.
#[inline(always)]
pub(super) fn first<S: Store>(
    store: &S,
    tree: &Tree,
    part: &Part<S::Block>,
    group: usize,
    served: usize,
) -> Option<(S::Block, Place)> {
    let geometry = store.geometry();
    let shift = geometry.granule.trailing_zeros();
    if !S::ADDRESSED {
        let head = store.head(group);
        let mut block = store.next(head);
        while block != head {
            let size = store.free_size(block);
            if geometry.granules(size) >= served {
                let from = store.offset(block) - part.offset;
                return Some((
                    block,
                    Place::new::<S>(tree, part.group, from, size, geometry),
                ));
            }
            block = store.next(block);
        }
        return None;
    }
    store.touch(1, 0);
    let word = tree.word(group);
    if word & 1 != 0 {
        let ones = word.trailing_ones();
        let (block, granules) = lowest(store, part, group, ones)?;
        if granules >= served {
            let place = Place {
                group,
                granules,
                low: 0,
                high: ones - 1,
            };
            return Some((block, place));
        }
    }
    // The lowest run is too short, whatever of it lies in this group.
    if served > BITS {
        return None;
    }
    let low = runs::first_of(word, served as u32)?;
    let ones = (word >> low).trailing_ones();
    let from = (group - part.group) * BITS + low as usize;
    let block = store.after(part.first, from << shift);
    if S::VERIFIES && !(may_lie(store, part, from, ones as usize) && store.free_is_sound(block)) {
        return None;
    }
    let place = Place {
        group,
        granules: ones as usize,
        low,
        high: low + ones - 1,
    };
    Some((block, place))
}

/// Granules of the largest block of a group.
#[inline(always)]
pub(super) fn largest<S: Store>(
    store: &S,
    tree: &Tree,
    part: &Part<S::Block>,
    group: usize,
) -> usize {
    if !S::ADDRESSED {
        let geometry = store.geometry();
        let head = store.head(group);
        let mut block = store.next(head);
        let mut largest = 0;
        while block != head {
            largest = largest.max(geometry.granules(store.free_size(block)));
            block = store.next(block);
        }
        return largest;
    }
    store.touch(1, 0);
    let word = tree.word(group);
    if word == 0 {
        return 0;
    }
    // Without the lowest run, which may reach back.
    let rest = if word & 1 != 0 {
        word & word.wrapping_add(1)
    } else {
        word
    };
    let inside = runs::longest(rest) as usize;
    if word & 1 == 0 {
        return inside;
    }
    match lowest(store, part, group, word.trailing_ones()) {
        Some((_, granules)) => inside.max(granules),
        None => inside,
    }
}

/// Calls `visit` with every block of a group and its size in granules.
pub(super) fn each<S: Store>(
    store: &S,
    tree: &Tree,
    part: &Part<S::Block>,
    group: usize,
    visit: &mut dyn FnMut(S::Block, usize) -> bool,
) -> bool {
    let geometry = store.geometry();
    if !S::ADDRESSED {
        let mut last = None;
        return walk_list(store, group, &mut |block| {
            let rising = last.is_none_or(|last| store.precedes(last, block));
            last = Some(block);
            let (from, size) = (store.offset(block) - part.offset, store.header(block).size);
            rising
                && Place::new::<S>(tree, part.group, from, size, geometry).group == group
                && visit(block, geometry.granules(size))
        });
    }
    let shift = geometry.granule.trailing_zeros();
    let begins = (group - part.group) * BITS;
    let mut word = tree.word(group);
    let mut at = 0;
    while word != 0 {
        at += word.trailing_zeros();
        word >>= word.trailing_zeros();
        let ones = word.trailing_ones();
        let end = begins + (at + ones) as usize;
        if end << shift > room(store, part) {
            return false;
        }
        // The lowest run may reach back, as far as the footer says.
        let mut from = begins + at as usize;
        if at == 0 {
            let block = store.before(store.after(part.first, end << shift));
            if !store.can_be_listed(block) || store.precedes(block, part.first) {
                return false;
            }
            from = geometry.granules(store.distance(part.first, block));
            if from > begins {
                return false;
            }
        }
        // Runs are blocks, no more and no less.
        let block = store.after(part.first, from << shift);
        let granules = end - from;
        if !may_lie(store, part, from, granules) || !visit(block, granules) {
            return false;
        }
        at += ones;
        word = word.checked_shr(ones).unwrap_or(0);
    }
    true
}

/// Moves what is known of a group's blocks to a later group.
pub(super) fn shift<S: Store>(store: &mut S, tree: &Tree, group: usize, by: usize) {
    if S::ADDRESSED {
        store.touch(1, 1);
        tree.set_word(group + by, tree.word(group));
    }
}

/// Makes a group one without blocks.
pub(super) fn clear<S: Store>(store: &mut S, tree: &Tree, group: usize) {
    if S::ADDRESSED {
        store.touch(0, 1);
        tree.set_word(group, 0);
    }
}
