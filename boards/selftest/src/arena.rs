//! The memory lent to one heap after another.
//!
//! Invariant: an `Arena` is the only owner of its memory, and all of it that a heap
//! was given comes back when the borrow of the loan ends.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Memory that is lent to heaps, one after another.
pub struct Arena {
    base: NonNull<u8>,
    len: usize,
}

impl Arena {
    /// Takes the memory over for good.
    pub fn new(memory: &'static mut [MaybeUninit<u8>]) -> Self {
        Self {
            len: memory.len(),
            base: NonNull::from(memory).cast(),
        }
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True of an arena without memory.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lends `from..to` as a region for a heap, filled with `0xA5` so that a heap that
    /// takes fresh memory for zeroed memory is found out.
    ///
    /// # Safety
    /// No other loan that overlaps is used from now on: heaps that were given one are
    /// dead, and loans for the same heap do not overlap.
    pub unsafe fn lend(&mut self, from: usize, to: usize) -> &'static mut [MaybeUninit<u8>] {
        assert!(from <= to && to <= self.len);
        // SAFETY: `from..to` lies within the memory taken over in `new`, which lives
        // for ever; the caller answers for exclusiveness.
        unsafe {
            let start = self.base.as_ptr().add(from);
            start.write_bytes(0xA5, to - from);
            core::slice::from_raw_parts_mut(start.cast(), to - from)
        }
    }

    /// True if `size` bytes at `address` lie within `from..to` of the arena.
    pub fn holds(&self, address: usize, size: usize, (from, to): (usize, usize)) -> bool {
        let base = self.base.as_ptr().addr();
        address >= base + from
            && address
                .checked_add(size)
                .is_some_and(|end| end <= base + to)
    }
}
