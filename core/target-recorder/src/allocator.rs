//! A global allocator that is recorded.
//!
//! *Invariant:* the program gets from each call exactly what the allocator gives. A block is given up in the ring before
//! the allocator can give it to somebody else.

use core::alloc::{GlobalAlloc, Layout};

use crate::{Recorder, Target};

/// An allocator whose requests are recorded.
pub struct Recorded<A, T: 'static, const EVENTS: usize> {
    inner: A,
    recorder: &'static Recorder<T, EVENTS>,
}

impl<A, T: Target, const EVENTS: usize> Recorded<A, T, EVENTS> {
    /// `inner`, recorded.
    pub const fn new(inner: A, recorder: &'static Recorder<T, EVENTS>) -> Self {
        Recorded { inner, recorder }
    }

    /// The allocator itself.
    pub const fn inner(&self) -> &A {
        &self.inner
    }
}

// SAFETY: every call is answered by `inner`, an allocator, with what it was asked.
unsafe impl<A: GlobalAlloc, T: Target, const EVENTS: usize> GlobalAlloc for Recorded<A, T, EVENTS> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { self.inner.alloc(layout) };
        self.recorder
            .allocated(block.addr(), layout.size(), layout.align());
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        self.recorder
            .allocated(block.addr(), layout.size(), layout.align());
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.recorder.freed(block.addr());
        // SAFETY: the caller's promise.
        unsafe { self.inner.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.recorder.resizing(block.addr(), size, layout.align());
        // SAFETY: the caller's promise.
        let moved = unsafe { self.inner.realloc(block, layout, size) };
        self.recorder.resized(block.addr(), moved.addr());
        moved
    }
}
