//! Heaps over memory of the test, with as many pages as it says.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use metes_heap::lock::{Lock, Spin};
use metes_threads::{Ground, NotFreed, PART_ALIGN, PARTS, Part, ThreadHeaps};

/// Memory that is there from the beginning.
pub(crate) struct Memory {
    lock: Spin,
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is used by the heaps alone.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

// SAFETY: it is a lock's.
unsafe impl Lock for Memory {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        self.lock.hold(body)
    }
}

// SAFETY: all is open, was zero, and is the heaps' alone.
unsafe impl Ground for Memory {
    fn open(&self, _part: usize, _bytes: usize) -> bool {
        true
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated so, and the heaps go with it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

pub(crate) type Heaps = ThreadHeaps<Memory>;

/// Heaps of up to `threads` threads with so many MiB of pages of each kind.
pub(crate) fn heaps(mebibytes: usize, threads: usize) -> Heaps {
    let bytes = mebibytes * PART_ALIGN;
    // A node is a few KiB, a page's description one and a half.
    let records = (bytes / 32).max(256 << 10).next_multiple_of(PART_ALIGN);
    let nodes = ((threads + 1) * 8192).next_multiple_of(PART_ALIGN);
    let kinds = PARTS / 2;
    let sizes: Vec<usize> = (0..PARTS)
        .map(|part| match part {
            part if part < kinds => bytes,
            part if part < 2 * kinds => records,
            _ => nodes,
        })
        .collect();
    let layout = Layout::from_size_align(sizes.iter().sum(), PART_ALIGN).expect("a layout");
    // SAFETY: a layout with bytes.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
    let heaps = ThreadHeaps::new(Memory {
        lock: Spin::new(),
        start,
        layout,
    });
    let mut next = start.as_ptr();
    let parts = std::array::from_fn(|part| {
        let bytes = sizes[part];
        let part = Part { start: next, bytes };
        next = next.wrapping_add(bytes);
        part
    });
    // SAFETY: once, and the parts are the heaps' own.
    assert!(unsafe { heaps.lay(parts, threads) });
    heaps
}

/// A thread's view: bound to a node, or to none.
pub(crate) struct Member<'h> {
    heaps: &'h Heaps,
    node: Option<NonNull<metes_threads::Node>>,
}

// SAFETY: it is bound to its node wherever it is.
unsafe impl Send for Member<'_> {}

impl<'h> Member<'h> {
    pub(crate) fn new(heaps: &'h Heaps) -> Self {
        Member {
            heaps,
            node: heaps.bind(),
        }
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.node.is_some()
    }

    pub(crate) fn allocate(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        match self.node {
            Some(node) if align <= 16 => {
                // SAFETY: bound to it.
                let at_hand = unsafe { self.heaps.allocate_small(node.as_ptr(), size) };
                // SAFETY: as above.
                at_hand.or_else(|| unsafe { self.heaps.allocate(node, size) })
            }
            // SAFETY: as above.
            Some(node) => unsafe { self.heaps.allocate_aligned(node, size, align) },
            None => self.heaps.allocate_shared(size, align),
        }
    }

    pub(crate) fn free(&self, place: NonNull<u8>) -> Result<(), NotFreed> {
        let node = self
            .node
            .map_or(std::ptr::null(), |node| node.as_ptr().cast_const());
        // SAFETY: bound to it, or to none; the test is done with the block.
        unsafe { self.heaps.free(node, place) }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if let Some(node) = self.node {
            // SAFETY: used no more.
            unsafe { self.heaps.leave(node) };
        }
    }
}
