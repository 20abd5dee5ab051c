//! Spaces on the heap of a host, zero-filled by whoever gives the memory.
//!
//! Invariant: only types for which all zero is a value are [`Zeroed`].

#![allow(unsafe_code)]

use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;

use crate::index::{Bitmap32, Bitmap64, Layered};
use crate::{Frames, Links, Packed, PackedLinks, Space, Wide};

/// Types of which a value is all zero, and a useful one: nothing mapped, one region.
///
/// # Safety
/// All bytes zero is a valid value, and the type has a size above zero.
pub unsafe trait Zeroed {}

// SAFETY: arrays of integers, of at least one entry, as `new` asserts powers of two.
unsafe impl<const PAGES: usize> Zeroed for Wide<PAGES> {}
// SAFETY: as above.
unsafe impl<const PAGES: usize> Zeroed for Packed<PAGES> {}
// SAFETY: integers and arrays of integers.
unsafe impl<const A: usize, const B: usize, const C: usize> Zeroed for Bitmap64<A, B, C> {}
// SAFETY: integers and arrays of integers.
unsafe impl<const A: usize, const B: usize, const C: usize> Zeroed for Bitmap32<A, B, C> {}
// SAFETY: nodes of integers and arrays of integers.
unsafe impl<const A: usize, const B: usize, const C: usize> Zeroed for Layered<A, B, C> {}
// SAFETY: integers, and two that are zeroed; a domain is an integer, too.
unsafe impl<T: Zeroed, I: Zeroed> Zeroed for Space<T, I> {}
// SAFETY: integers, and links that are zeroed.
unsafe impl<L: Links + Zeroed> Zeroed for Frames<L> {}
// SAFETY: the caller's array of words; of length zero it has no size, which `zeroed` refuses.
unsafe impl<const FRAMES: usize> Zeroed for [u32; FRAMES] {}
// SAFETY: as above.
unsafe impl<const PAIRS: usize> Zeroed for PackedLinks<PAIRS> {}

/// A value of zeroes on the heap, never on the stack: these are megabytes, which the system gives
/// as they are used.
///
/// # Panics
/// If the type has no size. Memory that runs out ends the process, as for any box.
pub fn zeroed<T: Zeroed>() -> Box<T> {
    let layout = Layout::new::<T>();
    assert!(layout.size() != 0, "nothing to allocate");
    // SAFETY: the layout has a size. The memory is zeroed, which is a value of `T` by the contract
    // of `Zeroed`, and comes from the allocator that a box gives it back to.
    unsafe {
        let memory = alloc_zeroed(layout).cast::<T>();
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        Box::from_raw(memory)
    }
}
