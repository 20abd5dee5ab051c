//! One heap behind C functions, compiled to one object file: the size of its text is
//! what the heap costs in a firmware. `../sizes` builds it for every target.
//!
//! Invariant: the object holds the functions a program needs (add a region, allocate
//! with any alignment, free, resize) and nothing else.
#![no_std]

use core::ptr::{NonNull, addr_of_mut, null_mut};

use metes_heap::{Heap, Memory, Tagged};

/// Without a feature: the default heap.
#[cfg(not(any(
    feature = "tlsf8",
    feature = "half-fit",
    feature = "segregated-fit",
    feature = "buddy",
    feature = "kingsley",
    feature = "first-fit"
)))]
type Index = metes_heap::Tlsf<32>;
#[cfg(feature = "tlsf8")]
type Index = metes_heap::Tlsf<8>;
#[cfg(feature = "half-fit")]
type Index = metes_heap::HalfFit;
#[cfg(feature = "segregated-fit")]
type Index = metes_heap::SegregatedFit;
#[cfg(feature = "buddy")]
type Index = metes_heap::Buddy;
#[cfg(feature = "kingsley")]
type Index = metes_heap::Kingsley<metes_heap::store::tagged::TaggedBlock>;
#[cfg(feature = "first-fit")]
type Index = metes_heap::ListFit<
    metes_heap::index::list::ConstantList<0, 0>,
    metes_heap::store::tagged::TaggedBlock,
>;

static mut HEAP: Heap<Index, Tagged> = Heap::new(Index::new(), Tagged::new());

/// The heap. One thread of control, as in a program without interrupts that allocate.
fn heap() -> &'static mut Heap<Index, Tagged> {
    // SAFETY: the functions below are documented to be called one at a time.
    unsafe { &mut *addr_of_mut!(HEAP) }
}

/// Adds `length` bytes at `start`; 0 if they were taken.
///
/// # Safety
/// The memory is valid and used by nothing else. As for all functions here: called
/// one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heap_add_region(start: *mut u8, length: usize) -> i32 {
    let Some(start) = NonNull::new(start) else {
        return 1;
    };
    // SAFETY: the caller's promise.
    let region = unsafe { Memory::from_raw(start, length) };
    i32::from(heap().add_region(region).is_err())
}

/// A block, or null.
///
/// # Safety
/// Called one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heap_allocate(size: usize, align: usize) -> *mut u8 {
    heap()
        .allocate(size, align)
        .map_or(null_mut(), NonNull::as_ptr)
}

/// Gives a block back; null is left alone.
///
/// # Safety
/// `block` came from `heap_allocate` and is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heap_free(block: *mut u8) {
    if let Some(block) = NonNull::new(block) {
        // SAFETY: the caller's promise.
        let _ = unsafe { heap().free(block) };
    }
}

/// Resizes a block; null if it cannot, when the block stays.
///
/// # Safety
/// As for `heap_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heap_resize(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    let Some(block) = NonNull::new(block) else {
        return null_mut();
    };
    // SAFETY: the caller's promise.
    unsafe { heap().resize(block, size, align) }
        .ok()
        .flatten()
        .map_or(null_mut(), NonNull::as_ptr)
}
