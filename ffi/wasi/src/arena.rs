//! A heap over one range of memory, aligned as C demands.
//!
//! Boundary tags of 32-bit words keep blocks at multiples of eight bytes; `max_align_t` of this
//! target needs sixteen. If every block's size is a multiple of sixteen and the first payload lies at
//! one, all do, without a search for an aligned place: so requests are rounded here, and the
//! range begins where its first payload is aligned.
//!
//! Invariant: block sizes are multiples of [`ALIGNMENT`].

use core::ptr::NonNull;

use metes_heap::index::Index;
use metes_heap::store::Geometry;
use metes_heap::{Heap, Memory, Tagged};

/// The index: which free block serves.
#[cfg(not(feature = "half-fit"))]
pub type Choice = metes_heap::Tlsf<16>;
/// The index: which free block serves.
#[cfg(feature = "half-fit")]
pub type Choice = metes_heap::HalfFit;

/// What `max_align_t` needs.
pub const ALIGNMENT: usize = 16;

const GEOMETRY: Geometry = Geometry::tagged(size_of::<usize>());

/// The largest range that boundary tags of this target manage: what is beyond stays unused.
pub const LARGEST: usize = Tagged::<false>::LARGEST_REGION;

/// A heap that gets its range with the first request.
#[derive(Debug)]
pub struct Arena {
    heap: Heap<Choice, Tagged<false>>,
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    /// A heap without memory.
    pub const fn new() -> Self {
        Arena {
            heap: Heap::new(Choice::new(), Tagged::new()),
        }
    }

    /// Whether it has its memory.
    #[inline(always)]
    pub fn settled(&self) -> bool {
        self.heap.footprint() != 0
    }

    /// Takes possession of a range. Too small a one serves nothing. Linear in the number of size
    /// classes.
    ///
    /// # Safety
    /// The range is the heap's alone as long as the heap is used.
    pub unsafe fn settle(&mut self, start: NonNull<u8>, length: usize) {
        let length = length.min(LARGEST);
        let Some(heads) =
            <Choice as Index<Tagged<false>>>::heads(&mut Choice::new(), length, GEOMETRY)
        else {
            return;
        };
        let first = GEOMETRY.first_block(heads, GEOMETRY.granule) + GEOMETRY.header;
        let skip = (start.addr().get() + first).wrapping_neg() % ALIGNMENT;
        let Some(rest) = length.checked_sub(skip) else {
            return;
        };
        // As many lists as were reckoned with, whatever was skipped.
        self.heap.reserve_span(length);
        // SAFETY: `skip` is no more than the length, and the caller gives the range.
        let memory = unsafe { Memory::from_raw(start.add(skip), rest) };
        // Where it is refused the heap stays without memory.
        let _ = self.heap.add_only_region(memory);
    }

    /// The request whose block has a multiple of [`ALIGNMENT`] bytes. What is beyond any block stays so.
    #[inline(always)]
    const fn rounded(size: usize) -> usize {
        match size.checked_add(GEOMETRY.header + ALIGNMENT - 1) {
            Some(raised) => (raised & !(ALIGNMENT - 1)) - GEOMETRY.header,
            None => usize::MAX,
        }
    }

    /// A block of `size` bytes at a multiple of [`ALIGNMENT`]. Constant time.
    // Once in the code: a module pays for every byte, and a call is ten operators.
    #[inline(never)]
    pub fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.heap.allocate(Self::rounded(size), 1)
    }

    /// A block of `size` bytes at a multiple of `align`, a power of two. Constant time.
    #[inline(never)]
    pub fn allocate_aligned(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if align <= ALIGNMENT {
            return self.allocate(size);
        }
        self.heap.allocate(Self::rounded(size), align)
    }

    /// Takes a block back. Constant time.
    ///
    /// # Safety
    /// The block is in use, and nothing points into it.
    #[inline(never)]
    pub unsafe fn free(&mut self, place: NonNull<u8>) {
        // SAFETY: the caller's contract. Boundary tags cannot tell a bad free.
        let _ = unsafe { self.heap.free(place) };
    }

    /// Resizes a block, where it lies or elsewhere with its bytes. Linear in bytes copied.
    ///
    /// # Safety
    /// As [`free`](Self::free).
    pub unsafe fn resize(&mut self, place: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the caller's contract.
        let here = unsafe { self.heap.resize_where_it_is(place, Self::rounded(size), 1) };
        if here == Ok(true) {
            return Some(place);
        }
        let new = self.allocate(size)?;
        // SAFETY: the caller's contract; what did not fit where it was is larger than that, and two blocks in
        // use do not overlap.
        unsafe {
            let kept = self.usable(place).min(size);
            new.copy_from_nonoverlapping(place, kept);
            self.free(place);
        }
        Some(new)
    }

    /// Bytes that a block has.
    ///
    /// # Safety
    /// The block is in use.
    #[inline(always)]
    pub unsafe fn usable(&self, place: NonNull<u8>) -> usize {
        // SAFETY: the caller's contract.
        unsafe { self.heap.usable_size(place) }.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Range([u8; 1 << 16]);

    /// An arena over a range that begins so many bytes behind a multiple of 64.
    fn arena(range: &mut Range, skip: usize) -> Arena {
        let mut arena = Arena::new();
        let start = NonNull::new(range.0[skip..].as_mut_ptr()).expect("an address");
        // SAFETY: the range is the arena's while it is borrowed.
        unsafe { arena.settle(start, (1 << 16) - skip) };
        arena
    }

    #[test]
    fn blocks_are_aligned_wherever_the_range_begins() {
        for skip in [0, 1, 4, 8, 12, 24, 33] {
            let mut range = Range([0; 1 << 16]);
            let mut arena = arena(&mut range, skip);
            assert!(arena.settled());
            let mut held = Vec::new();
            for size in 0..200 {
                let align = 1 << (size % 9);
                let place = arena.allocate_aligned(size, align).expect("room");
                assert_eq!(
                    place.addr().get() % align.max(ALIGNMENT),
                    0,
                    "{size} at {skip}"
                );
                // SAFETY: the block is in use.
                assert!(unsafe { arena.usable(place) } >= size);
                held.push(place);
            }
            for place in held.into_iter().step_by(2) {
                // SAFETY: the block is in use, and given back once.
                unsafe { arena.free(place) };
            }
            let place = arena.allocate(1000).expect("room");
            assert_eq!(place.addr().get() % ALIGNMENT, 0);
        }
    }

    #[test]
    fn a_resized_block_keeps_its_bytes() {
        let mut range = Range([0; 1 << 16]);
        let mut arena = arena(&mut range, 0);
        let place = arena.allocate(40).expect("room");
        // SAFETY: the block has so many bytes.
        unsafe { place.write_bytes(7, 40) };
        let behind = arena.allocate(40).expect("room");
        // SAFETY: the block is in use.
        let moved = unsafe { arena.resize(place, 4000) }.expect("room");
        assert_ne!(moved, place);
        // SAFETY: the block has so many bytes.
        let kept = unsafe { core::slice::from_raw_parts(moved.as_ptr(), 40) };
        assert_eq!(kept, [7; 40]);
        // SAFETY: blocks in use, given back once.
        unsafe {
            arena.free(behind);
            arena.free(moved);
        }
        // Everything is one block again, as far as one class a power of two can tell.
        assert!(arena.allocate(32_000).is_some());
    }

    #[test]
    fn what_no_range_holds_is_refused() {
        let mut range = Range([0; 1 << 16]);
        let mut whole = arena(&mut range, 0);
        assert_eq!(whole.allocate(usize::MAX), None);
        assert_eq!(whole.allocate(usize::MAX / 2), None);
        assert_eq!(whole.allocate_aligned(8, 1 << 40), None);
        assert_eq!(whole.allocate(1 << 16), None);
        let mut range = Range([0; 1 << 16]);
        let mut narrow = arena(&mut range, (1 << 16) - 64);
        assert!(!narrow.settled());
        assert_eq!(narrow.allocate(1), None);
        let mut none = Arena::new();
        assert_eq!(none.allocate(1), None);
    }
}
