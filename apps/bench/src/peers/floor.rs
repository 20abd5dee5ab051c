//! The floors: what the harness itself costs, and what no allocator can beat.
//!
//! They are yardsticks, not heaps. The null allocator gives the cost of the
//! call; the pool that of one pop or push; the power-of-two lists that of
//! finding a class and popping, without any coalescing.

use crate::peer::{FixedArena, Handle};

/// Always the same answer and no work: the cost of call and return.
pub(crate) struct Null;

impl FixedArena for Null {
    const RECORD: usize = 0;

    unsafe fn new(_: *mut u8, _: usize) -> Option<Self> {
        Some(Null)
    }

    fn allocate(&mut self, _: usize, _: usize) -> Handle {
        16
    }

    unsafe fn free(&mut self, _: Handle, _: usize, _: usize) {}

    unsafe fn resize(&mut self, handle: Handle, _: usize, _: usize, _: usize) -> Handle {
        handle
    }
}

/// One list of 64-byte slots. It gives every request a slot, whatever its size:
/// right for the `lifo` workload, elsewhere only the cost of a pop.
pub(crate) struct Pool64 {
    free: *mut *mut u8,
}

impl FixedArena for Pool64 {
    const RECORD: usize = 0;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        let mut free: *mut *mut u8 = std::ptr::null_mut();
        // A million slots are more than any workload here holds.
        for slot in (0..(length / 64).min(1 << 20)).rev() {
            // SAFETY: slot lies within the arena, aligned to 64.
            unsafe {
                let here = base.add(slot * 64).cast::<*mut u8>();
                here.write(free.cast());
                free = here;
            }
        }
        Some(Pool64 { free })
    }

    #[inline(always)]
    fn allocate(&mut self, _: usize, _: usize) -> Handle {
        let slot = self.free;
        if slot.is_null() {
            return 0;
        }
        // SAFETY: slots on the list are free and hold the next link.
        self.free = unsafe { slot.read().cast() };
        slot.expose_provenance()
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, _: usize, _: usize) {
        let slot = std::ptr::with_exposed_provenance_mut::<*mut u8>(handle);
        // SAFETY: the slot is ours and no longer used by the caller.
        unsafe { slot.write(self.free.cast()) };
        self.free = slot;
    }
}

/// One list per power of two, refilled by a bump pointer, never coalesced.
pub(crate) struct PowerLists {
    lists: [*mut u8; 32],
    next: *mut u8,
    end: *mut u8,
}

impl PowerLists {
    #[inline(always)]
    fn class(size: usize) -> u32 {
        usize::BITS - ((size - 1) | 15).leading_zeros()
    }
}

impl FixedArena for PowerLists {
    const RECORD: usize = 0;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        Some(PowerLists {
            lists: [std::ptr::null_mut(); 32],
            next: base,
            end: base.wrapping_add(length),
        })
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        // Blocks are aligned to 16, not to their size: a greater alignment is
        // outside what this floor can do.
        if align > 16 {
            return 0;
        }
        let class = Self::class(size);
        let head = &mut self.lists[class as usize & 31];
        if !head.is_null() {
            let block = *head;
            // SAFETY: a block on a list is free and holds the next link.
            *head = unsafe { block.cast::<*mut u8>().read() };
            return block.expose_provenance();
        }
        let bytes = 1_usize << class;
        if bytes > self.end.addr() - self.next.addr() {
            return 0;
        }
        let block = self.next;
        self.next = block.wrapping_add(bytes);
        block.expose_provenance()
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, size: usize, _: usize) {
        let block = std::ptr::with_exposed_provenance_mut::<u8>(handle);
        let head = &mut self.lists[Self::class(size) as usize & 31];
        // SAFETY: the block is ours, at least 16 bytes, no longer used.
        unsafe { block.cast::<*mut u8>().write(*head) };
        *head = block;
    }
}
