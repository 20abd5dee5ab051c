//! Heaps of several threads that one thread drives: what a recorded program would take of them.
//!
//! Blocks are nobody's to write to; of the memory only records are ever touched.
//!
//! Invariant: whoever has the value is the only one to use its heaps, so each node is used by one thread.

use core::fmt;
use core::ptr::{self, NonNull};
use std::vec::Vec;

use metes_heap::lock::Lock;

use crate::heaps::{Ground, NotFreed, PART_ALIGN, PARTS, Part, ThreadHeaps};
use crate::node::Node;
use crate::page::{KINDS, Page};

/// Addresses of pages of each kind.
const PAGES: usize = if cfg!(miri) { 4 << 20 } else { 16 << 30 };

/// Heaps of a program's threads, driven by one.
pub struct Driven {
    heaps: ThreadHeaps<Alone>,
    /// By thread; none: it has not begun, or shares the node of nobody.
    nodes: Vec<Option<NonNull<Node>>>,
    begun: Vec<bool>,
}

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driven")
            .field("threads", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

/// Memory of one user.
struct Alone {
    start: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: one thread at a time has it, and bodies do not begin others' bodies.
unsafe impl Lock for Alone {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }
}

// SAFETY: all is open from the beginning, was zero, and is the heaps' alone.
unsafe impl Ground for Alone {
    fn open(&self, _part: usize, _bytes: usize) -> bool {
        true
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // SAFETY: mapped so, and the heaps go with it.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

impl Driven {
    /// Heaps for so many threads with a heap of their own, of a program of `threads`; `None` where the system gives no
    /// addresses.
    #[must_use]
    pub fn new(own: usize, threads: usize) -> Option<Self> {
        let whole = |bytes: usize| bytes.next_multiple_of(PART_ALIGN);
        let sizes: [usize; PARTS] = core::array::from_fn(|part| match part {
            part if part < KINDS.len() => PAGES,
            part if part < 2 * KINDS.len() => {
                whole((PAGES >> KINDS[part - KINDS.len()].log2) * size_of::<Page>())
            }
            _ => whole((own + 1) * size_of::<Node>()),
        });
        let bytes = sizes.iter().sum::<usize>() + PART_ALIGN;
        // SAFETY: a mapping anywhere, of nobody else's memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let heaps = ThreadHeaps::new(Alone { start, bytes });
        let first: *mut u8 = start.cast();
        let mut next = first.wrapping_add(first.align_offset(PART_ALIGN));
        let parts = core::array::from_fn(|part| {
            let bytes = sizes[part];
            let part = Part { start: next, bytes };
            next = next.wrapping_add(bytes);
            part
        });
        // SAFETY: once, before anything else; the parts are the heaps' own.
        let laid = unsafe { heaps.lay(parts, own) };
        laid.then(|| Driven {
            heaps,
            nodes: std::vec![None; threads],
            begun: std::vec![false; threads],
        })
    }

    /// A block of a thread, as [`ThreadHeaps::allocate_aligned`]; `None` for what is too large, too. A thread begins with its
    /// first.
    ///
    /// # Panics
    /// For a thread that there is not.
    pub fn allocate(&mut self, thread: usize, size: usize, align: usize) -> Option<NonNull<u8>> {
        if !self.begun[thread] {
            self.begun[thread] = true;
            self.nodes[thread] = self.heaps.bind();
        }
        match self.nodes[thread] {
            // SAFETY: there is one user of all nodes.
            Some(node) if align <= crate::ALIGN => unsafe { self.heaps.allocate(node, size) },
            // SAFETY: as above.
            Some(node) => unsafe { self.heaps.allocate_aligned(node, size, align) },
            None => self.heaps.allocate_shared(size, align),
        }
    }

    /// Bytes that a block holds.
    ///
    /// # Errors
    /// [`NotFreed`] for what is none.
    pub fn usable(&self, block: NonNull<u8>) -> Result<usize, NotFreed> {
        self.heaps.usable(block)
    }

    /// A thread frees a block of any.
    ///
    /// # Errors
    /// [`NotFreed`] for what is none; nothing has changed.
    ///
    /// # Panics
    /// For a thread that there is not.
    pub fn free(&mut self, thread: usize, block: NonNull<u8>) -> Result<(), NotFreed> {
        let node = self.nodes[thread].map_or(ptr::null(), |node| node.as_ptr().cast_const());
        // SAFETY: there is one user of all nodes, and nobody uses a block but by these heaps.
        unsafe { self.heaps.free(node, block) }
    }

    /// A thread ends; its blocks stay in use, and its node is for the next that begins.
    ///
    /// # Panics
    /// For a thread that there is not.
    pub fn end(&mut self, thread: usize) {
        if let Some(node) = self.nodes[thread].take() {
            // SAFETY: the thread has it no more.
            unsafe { self.heaps.leave(node) };
        }
    }

    /// Bytes that all of them took: of pages, and of what is kept of them. It never falls.
    #[must_use]
    pub fn footprint(&self) -> usize {
        let footprint = self.heaps.footprint();
        footprint.pages + footprint.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_from_a_thread_that_ended_to_the_next() {
        let mut heaps = Driven::new(4, 3).expect("addresses");
        let none = heaps.footprint();
        let one: Vec<_> = (0..100)
            .map(|_| heaps.allocate(0, 1000, 16).expect("memory"))
            .collect();
        let first = heaps.footprint();
        assert!(first > none);
        assert_eq!(heaps.usable(one[0]), Ok(1024));
        for &block in &one {
            // Another thread's frees.
            heaps.free(1, block).expect("a block");
        }
        assert!(heaps.free(1, one[0]).is_err(), "freed twice");
        heaps.end(0);
        for _ in 0..100 {
            heaps.allocate(2, 1000, 16).expect("memory");
        }
        assert_eq!(heaps.footprint(), first, "the same pages serve");
    }

    #[test]
    fn who_has_no_heap_of_its_own_shares_one() {
        let mut heaps = Driven::new(1, 3).expect("addresses");
        for thread in 0..3 {
            let block = heaps.allocate(thread, 64, 64).expect("memory");
            heaps.free(2 - thread, block).expect("a block");
        }
        assert_eq!(heaps.allocate(0, 1 << 20, 16), None, "too large");
    }
}
