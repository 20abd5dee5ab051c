//! Which block lies at an address: a table of three stages over granules.
//!
//! Invariant: readers take no lock; a leaf, once made, stays. Writers are
//! serialised by their caller, but for marks. 0 stands for no block, else the
//! number of its slot plus one, and a mark.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// log2 of the bytes under a leaf.
const LEAF_SHIFT: u32 = 20;
/// log2 of the leaves under a middle table.
const MIDDLE_SHIFT: u32 = 13;
/// log2 of the bytes of the address space that has blocks.
const SPACE_SHIFT: u32 = 47;
/// Entries of a leaf with the finest granules, 4 bytes.
const LEAF: usize = 1 << (LEAF_SHIFT - 2);

/// The mark: the slice that begins in this granule was touched.
const TOUCHED: u32 = 1 << 31;
const _: () = assert!(crate::layout::SLOTS < TOUCHED as usize);

type Leaf = [AtomicU32; LEAF];
type Middle = [AtomicPtr<Leaf>; 1 << MIDDLE_SHIFT];
type Top = [AtomicPtr<Middle>; 1 << (SPACE_SHIFT - LEAF_SHIFT - MIDDLE_SHIFT)];

static TOP: Top = [const { AtomicPtr::new(ptr::null_mut()) }; _];
/// log2 of a granule's bytes: half of what the guest's malloc aligns to.
static GRANULE: AtomicU32 = AtomicU32::new(3);

/// Sets the size of a granule, before the first block.
pub(crate) fn set_granule_shift(shift: u32) {
    GRANULE.store(shift, Ordering::Relaxed);
}

/// Bytes of a granule.
#[inline(always)]
pub(crate) fn granule() -> u64 {
    1 << GRANULE.load(Ordering::Relaxed)
}

/// What the table has for the granule of `address`. O(1).
#[inline(always)]
pub(crate) fn at(address: u64) -> u32 {
    leaf(address).map_or(0, |leaf| {
        entry(leaf, address).load(Ordering::Relaxed) & !TOUCHED
    })
}

/// Marks the granule of `address`, where a slice of the block of `value`
/// begins; whether it was not marked. Where the granule names a neighbour,
/// which begins in it, nothing is marked. O(1).
#[inline(always)]
pub(crate) fn mark(address: u64, value: u32) -> bool {
    let Some(leaf) = leaf(address) else {
        return true;
    };
    let entry = entry(leaf, address);
    match entry.load(Ordering::Relaxed) {
        found if found == value | TOUCHED => false,
        found if found == value => entry
            .compare_exchange(value, value | TOUCHED, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok(),
        _ => true,
    }
}

/// Whether a block may lie in the `bytes` bytes at `address`, fewer than a leaf
/// has: false for most of what is neither heap nor near it. O(1).
#[inline(always)]
pub(crate) fn may_hold(address: u64, bytes: u64) -> bool {
    leaf(address).is_some() || leaf(address.wrapping_add(bytes - 1)).is_some()
}

#[inline(always)]
fn leaf(address: u64) -> Option<&'static Leaf> {
    if address >> SPACE_SHIFT != 0 {
        return None;
    }
    let middle = TOP[(address >> (LEAF_SHIFT + MIDDLE_SHIFT)) as usize].load(Ordering::Acquire);
    // SAFETY: null, or a table that stays.
    let middle = unsafe { middle.as_ref() }?;
    // SAFETY: as above.
    unsafe { slot_of(middle, address).load(Ordering::Acquire).as_ref() }
}

#[inline(always)]
fn slot_of(middle: &Middle, address: u64) -> &AtomicPtr<Leaf> {
    &middle[(address >> LEAF_SHIFT) as usize & ((1 << MIDDLE_SHIFT) - 1)]
}

#[inline(always)]
fn entry(leaf: &Leaf, address: u64) -> &AtomicU32 {
    let within = address & ((1 << LEAF_SHIFT) - 1);
    &leaf[(within >> GRANULE.load(Ordering::Relaxed)) as usize]
}

/// Notes `value` for each granule of the `size` bytes at `address`; what lies
/// outside the table's space is left out. O(size).
pub(crate) fn set(address: u64, size: u64, value: u32) {
    let end = address.saturating_add(size).min(1 << SPACE_SHIFT);
    let mut at = address & !(granule() - 1);
    while at < end {
        let leaf_end = ((at >> LEAF_SHIFT) + 1) << LEAF_SHIFT;
        let leaf = make_leaf(at);
        while at < end.min(leaf_end) {
            entry(leaf, at).store(value, Ordering::Relaxed);
            at += granule();
        }
    }
}

/// The leaf of `address`, below the end of the space.
fn make_leaf(address: u64) -> &'static Leaf {
    if let Some(leaf) = leaf(address) {
        return leaf;
    }
    let place = &TOP[(address >> (LEAF_SHIFT + MIDDLE_SHIFT)) as usize];
    if place.load(Ordering::Relaxed).is_null() {
        place.store(zeroed::<Middle>(), Ordering::Release);
    }
    // SAFETY: just made sure that it is there; it stays.
    let middle = unsafe { &*place.load(Ordering::Relaxed) };
    let place = slot_of(middle, address);
    if place.load(Ordering::Relaxed).is_null() {
        place.store(zeroed::<Leaf>(), Ordering::Release);
    }
    // SAFETY: as above.
    unsafe { &*place.load(Ordering::Relaxed) }
}

/// A table of zeroes that is never given back.
fn zeroed<T>() -> *mut T {
    let layout = std::alloc::Layout::new::<T>();
    // SAFETY: the layout has bytes; the tables are arrays of integers and
    // pointers, for which zeroes are valid.
    let place = unsafe { std::alloc::alloc_zeroed(layout) };
    if place.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    place.cast()
}
