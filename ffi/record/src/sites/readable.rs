//! Which memory of a stack can be read.
//!
//! Unwinding reads words where tables of the program, or its frame pointers, lead. Both may be wrong:
//! code without tables keeps other things in the register of the frame pointer. So a word is read only
//! from pages that were found readable, by asking the kernel. The pages of a thread's stack stay what they
//! are, so each is asked for once; a thread that goes on on another stack (a coroutine, a signal's own
//! stack) begins anew.
//!
//! *Invariant:* a word is read only if its page was found readable since the thread came to this stack.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::kernel;
use crate::thread;

/// log2 of the bytes of a page, the smallest in use.
const PAGE_SHIFT: u32 = 12;
/// Pages that a run of them may have, and that are asked for to make one longer.
const MOST_PAGES: u64 = 1 << 12;
/// Bits of the packed form for the number of pages.
const COUNT_BITS: u32 = 16;

/// A run of readable pages: from the first on, so many.
#[derive(Clone, Copy)]
pub(super) struct Readable {
    first: u64,
    behind: u64,
    /// As the thread has it packed.
    kept: u64,
}

impl Readable {
    /// The pages known of the calling thread's stack, whose pointer is `sp`.
    #[inline(always)]
    pub(super) fn of_thread(sp: u64) -> Readable {
        // SAFETY: the thread's own word, which its signal handlers may change, hence atomic.
        let kept = unsafe { packed() }.load(Ordering::Relaxed);
        let first = kept >> COUNT_BITS;
        let behind = first + (kept & ((1 << COUNT_BITS) - 1));
        let mut own = Readable {
            first,
            behind,
            kept,
        };
        let page = sp >> PAGE_SHIFT;
        if page < own.first || page >= own.behind {
            own.come_to(page);
        }
        own
    }

    /// The stack pointer is on `page`, which is not in the run.
    #[cold]
    fn come_to(&mut self, page: u64) {
        let near = page < self.first && self.behind - page <= MOST_PAGES;
        if near && (page..self.first).all(|page| kernel::readable(page << PAGE_SHIFT)) {
            self.first = page;
        } else {
            self.first = page;
            self.behind = page + 1;
        }
    }

    /// The word at `address`; None if it cannot be read.
    #[inline(always)]
    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        if address & 7 != 0 {
            return None;
        }
        let page = address >> PAGE_SHIFT;
        if (page < self.first || page >= self.behind) && !self.find(page) {
            return None;
        }
        // SAFETY: an aligned word on a page that can be read.
        Some(unsafe { (address as *const u64).read_volatile() })
    }

    /// Whether `page` can be read, which is not in the run.
    #[cold]
    fn find(&mut self, page: u64) -> bool {
        if page >= self.behind && page - self.first < MOST_PAGES {
            while self.behind <= page && kernel::readable(self.behind << PAGE_SHIFT) {
                self.behind += 1;
            }
            if page < self.behind {
                return true;
            }
        }
        page >> (63 - PAGE_SHIFT) == 0 && kernel::readable(page << PAGE_SHIFT)
    }

    /// Has the thread keep what was found.
    #[inline(always)]
    pub(super) fn keep(self) {
        let packed_now = self.first << COUNT_BITS | (self.behind - self.first);
        if packed_now != self.kept {
            // SAFETY: as in `of_thread`.
            unsafe { packed() }.store(packed_now, Ordering::Relaxed);
        }
    }
}

/// Where the calling thread keeps its run.
///
/// # Safety
/// The reference does not outlive the thread.
#[inline(always)]
unsafe fn packed<'a>() -> &'a AtomicU64 {
    // SAFETY: aligned, valid while the thread lives, and touched through here alone.
    unsafe { AtomicU64::from_ptr(&raw mut (*thread::current()).readable) }
}
