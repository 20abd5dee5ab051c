//! Heaps in Rust from the registry, each behind [`FixedArena`].
//!
//! Each adapter does what an embedder's `malloc` and `free` would do and no
//! more; `resize` uses the allocator's own where it has one.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

use crate::peer::{FixedArena, Handle};

/// The layout of a request. Callers pass powers of two as alignment.
#[inline]
fn layout(size: usize, align: usize) -> Layout {
    // SAFETY: workloads carry power-of-two alignments and sizes far below
    // isize::MAX; both are checked where workloads are made.
    unsafe { Layout::from_size_align_unchecked(size, align) }
}

#[inline]
fn pointer(handle: Handle) -> NonNull<u8> {
    // SAFETY: handles of live blocks are never zero.
    unsafe { NonNull::new_unchecked(std::ptr::with_exposed_provenance_mut(handle)) }
}

#[inline]
fn handle(block: Option<NonNull<u8>>) -> Handle {
    block.map_or(0, |block| block.as_ptr().expose_provenance())
}

/// First-level classes of rlsf: arenas up to 1 GiB.
const FIRST_LEVEL: usize = 25;

/// rlsf with 32 second-level classes.
pub(crate) struct Rlsf32(rlsf::Tlsf<'static, u32, u32, FIRST_LEVEL, 32>);
/// rlsf with 8 second-level classes.
pub(crate) struct Rlsf8(rlsf::Tlsf<'static, u32, u8, FIRST_LEVEL, 8>);

macro_rules! rlsf_arena {
    ($name:ident) => {
        impl FixedArena for $name {
            const RECORD: usize = 16;

            unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
                let mut heap = rlsf::Tlsf::new();
                let arena = NonNull::slice_from_raw_parts(NonNull::new(base)?, length);
                // SAFETY: the arena is ours alone while the heap lives.
                unsafe { heap.insert_free_block_ptr(arena) }?;
                Some($name(heap))
            }

            #[inline(always)]
            fn allocate(&mut self, size: usize, align: usize) -> Handle {
                handle(self.0.allocate(layout(size, align)))
            }

            #[inline(always)]
            unsafe fn free(&mut self, handle: Handle, _: usize, align: usize) {
                // SAFETY: the trait's contract.
                unsafe { self.0.deallocate(pointer(handle), align) }
            }

            #[inline(always)]
            unsafe fn resize(
                &mut self,
                block: Handle,
                _: usize,
                new: usize,
                align: usize,
            ) -> Handle {
                // SAFETY: the trait's contract.
                handle(unsafe { self.0.reallocate(pointer(block), layout(new, align)) })
            }
        }
    };
}
rlsf_arena!(Rlsf32);
rlsf_arena!(Rlsf8);

/// talc with its default bins and no way to grow.
pub(crate) struct Talc(talc::base::Talc<talc::source::Manual, talc::DefaultBinning>);

impl FixedArena for Talc {
    const RECORD: usize = 8;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        let mut heap = talc::base::Talc::new(talc::source::Manual);
        // SAFETY: the arena is ours alone while the heap lives.
        unsafe { heap.claim(base, length) }?;
        Some(Talc(heap))
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        // SAFETY: workloads have no request of zero bytes.
        handle(unsafe { self.0.allocate(layout(size, align)) })
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, size: usize, align: usize) {
        // SAFETY: the trait's contract.
        unsafe {
            self.0
                .deallocate(pointer(handle).as_ptr(), layout(size, align))
        }
    }

    #[inline(always)]
    unsafe fn resize(&mut self, block: Handle, old: usize, new: usize, align: usize) -> Handle {
        let (from, present) = (pointer(block), layout(old, align));
        // SAFETY: the trait's contract; the copy is between live distinct blocks.
        unsafe {
            if self.0.try_realloc_in_place(from.as_ptr(), present, new) {
                return block;
            }
            let moved = self.0.allocate(layout(new, align));
            if let Some(to) = moved {
                to.copy_from_nonoverlapping(from, old.min(new));
                self.0.deallocate(from.as_ptr(), present);
            }
            handle(moved)
        }
    }
}

/// buddy_system_allocator with orders for arenas up to 1 GiB.
pub(crate) struct Buddy(buddy_system_allocator::Heap<31>);

impl FixedArena for Buddy {
    const RECORD: usize = 0;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        let mut heap = buddy_system_allocator::Heap::new();
        // SAFETY: the arena is ours alone while the heap lives.
        unsafe { heap.init(base.expose_provenance(), length) };
        Some(Buddy(heap))
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        handle(self.0.alloc(layout(size, align)).ok())
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, size: usize, align: usize) {
        // SAFETY: the trait's contract.
        unsafe { self.0.dealloc(pointer(handle), layout(size, align)) }
    }
}

/// linked_list_allocator: address-ordered first fit.
pub(crate) struct LinkedList(linked_list_allocator::Heap);

impl FixedArena for LinkedList {
    const RECORD: usize = 0;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        // Below three words `Heap::new` panics.
        (length >= 64).then(|| {
            // SAFETY: the arena is ours alone while the heap lives.
            LinkedList(unsafe { linked_list_allocator::Heap::new(base, length) })
        })
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        handle(self.0.allocate_first_fit(layout(size, align)).ok())
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, size: usize, align: usize) {
        // SAFETY: the trait's contract.
        unsafe { self.0.deallocate(pointer(handle), layout(size, align)) }
    }
}

/// The arena as the system memory of dlmalloc: contiguous, never given back.
struct Region {
    next: Cell<usize>,
    end: usize,
}

// SAFETY: every range returned is fresh, mapped, page-sized and handed out once.
unsafe impl dlmalloc::Allocator for Region {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let base = self.next.get();
        if size > self.end - base {
            return (std::ptr::null_mut(), 0, 0);
        }
        self.next.set(base + size);
        (std::ptr::with_exposed_provenance_mut(base), size, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        false
    }

    fn page_size(&self) -> usize {
        4096
    }
}

/// The dlmalloc crate, taking memory from its arena 1 KiB at a time (its
/// default of 64 KiB would waste most of a small arena).
pub(crate) struct Dlmalloc(dlmalloc::Dlmalloc<Region>);

impl FixedArena for Dlmalloc {
    const RECORD: usize = 8;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        let base = base.expose_provenance();
        let mut heap = dlmalloc::Dlmalloc::new_with_allocator(Region {
            next: Cell::new(base),
            end: base + length,
        });
        heap.set_granularity(1024).then_some(Dlmalloc(heap))
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        // SAFETY: `align` is a power of two.
        unsafe { self.0.malloc(size, align) }.expose_provenance()
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, size: usize, align: usize) {
        // SAFETY: the trait's contract.
        unsafe { self.0.free(pointer(handle).as_ptr(), size, align) }
    }

    #[inline(always)]
    unsafe fn resize(&mut self, handle: Handle, old: usize, new: usize, align: usize) -> Handle {
        // SAFETY: the trait's contract.
        unsafe { self.0.realloc(pointer(handle).as_ptr(), old, align, new) }.expose_provenance()
    }
}

/// offset-allocator: records outside the arena, at most [`OFFSET_BLOCKS`] live
/// blocks, offsets without alignment. A handle is the crate's `Allocation`:
/// the offset in the low half, the record's index in the high half.
pub(crate) struct Offset(offset_allocator::Allocator<u32>);

/// Live blocks that the record table of [`Offset`] is made for.
pub(crate) const OFFSET_BLOCKS: u32 = 128 * 1024;

/// Where an offset handle points in the arena.
#[cfg(all(test, not(feature = "plain")))]
pub(crate) fn offset_of(handle: Handle) -> usize {
    allocation(handle).offset as usize
}

const _: () = assert!(size_of::<offset_allocator::Allocation<u32>>() == size_of::<Handle>());

#[inline]
fn allocation(handle: Handle) -> offset_allocator::Allocation<u32> {
    // SAFETY: same size, and only values that came from an `Allocation` are
    // passed; the type is plain data.
    unsafe { std::mem::transmute::<Handle, offset_allocator::Allocation<u32>>(handle) }
}

impl FixedArena for Offset {
    const RECORD: usize = 0;

    unsafe fn new(_: *mut u8, length: usize) -> Option<Self> {
        Some(Offset(offset_allocator::Allocator::with_max_allocs(
            u32::try_from(length).ok()?,
            OFFSET_BLOCKS,
        )))
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        if align > 16 {
            return 0;
        }
        match self.0.allocate(size as u32) {
            // SAFETY: same size, plain data; never zero because the record's
            // index is stored in a form without zero.
            Some(block) => unsafe {
                std::mem::transmute::<offset_allocator::Allocation<u32>, Handle>(block)
            },
            None => 0,
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, _: usize, _: usize) {
        self.0.free(allocation(handle));
    }

    /// No memory to copy: the offsets stand for memory elsewhere.
    unsafe fn resize(&mut self, handle: Handle, _: usize, new: usize, align: usize) -> Handle {
        let moved = self.allocate(new, align);
        if moved != 0 {
            self.0.free(allocation(handle));
        }
        moved
    }
}
