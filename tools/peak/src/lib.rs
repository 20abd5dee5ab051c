//! How much memory something takes, for tests: the system's allocator, counted.
//!
//! A test binary makes [`Counting`] its global allocator and asks [`peak`] what a call took at most:
//!
//! ```
//! #[global_allocator]
//! static COUNTED: metes_peak::Counting = metes_peak::Counting;
//!
//! let (_, bytes) = metes_peak::peak(|| vec![0_u8; 1000].len());
//! assert_eq!(bytes, 1000);
//! ```
//!
//! *Invariant:* counts are of the requested bytes. Those of a thread are its own, so that tests beside
//! each other do not disturb one another; what is freed by another thread than took it is counted there.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// Bytes that this thread took and did not give back, and the most of them.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// Bytes of all threads.
static ALL: AtomicUsize = AtomicUsize::new(0);
/// The most of them.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// More are refused, which ends the process as running out of memory does.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's allocator, counted. O(1) beside it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

fn takes(bytes: usize) -> bool {
    let all = ALL.fetch_add(bytes, Relaxed) + bytes;
    if all > LIMIT.load(Relaxed) {
        ALL.fetch_sub(bytes, Relaxed);
        return false;
    }
    MOST.fetch_max(all, Relaxed);
    // A thread that is ending has no counter any more.
    let _ = HELD.try_with(|counts| {
        let (held, most) = counts.get();
        let held = held + bytes as isize;
        counts.set((held, most.max(held)));
    });
    true
}

fn gives(bytes: usize) {
    ALL.fetch_sub(bytes, Relaxed);
    let _ = HELD.try_with(|counts| {
        let (held, most) = counts.get();
        counts.set((held - bytes as isize, most));
    });
}

// SAFETY: every call goes to the system's allocator with what it was given; counting does not
// allocate, as its thread-local is constant and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !takes(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !takes(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there while what is in the block is copied.
        if !takes(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is the system's.
        let moved = unsafe { System.realloc(block, layout, size) };
        gives(if moved.is_null() { size } else { layout.size() });
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        gives(layout.size());
        // SAFETY: the caller's promise is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

/// What a call gives, and the most bytes that this thread held in it beyond what it held before.
/// Calls may be nested; the outer one then counts from the last inner one on.
pub fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.with(|counts| {
        let (held, _) = counts.get();
        counts.set((held, held));
        held
    });
    let result = run();
    let most = HELD.with(|counts| counts.get().1);
    (result, usize::try_from(most - before).unwrap_or(0))
}

/// The most bytes that all threads held since this was asked last, beyond those held now.
pub fn peak_of_all() -> usize {
    let held = ALL.load(Relaxed);
    MOST.swap(held, Relaxed).saturating_sub(held)
}

/// Refuses all that would make the process hold more bytes: what asks for it ends the process.
pub fn refuse_beyond(bytes: usize) {
    LIMIT.store(bytes, Relaxed);
}
