//! A lock that notes how long it is held, in instructions.
//!
//! Invariant: one thread is stepped at a time, so what is noted is that thread's.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use metes_heap::lock::{Lock, Spin};

/// The longest that any lock was held since [`restart`], lock and note included.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// A spin lock that notes how many instructions it is held.
#[derive(Debug)]
pub(super) struct Watched(Spin);

impl Watched {
    pub(super) const fn new() -> Self {
        Watched(Spin::new())
    }
}

// SAFETY: the spin lock runs the closures one at a time.
unsafe impl Lock for Watched {
    #[inline]
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        self.0.hold(|| {
            let before = metes_step::so_far();
            let result = body();
            LONGEST.fetch_max(metes_step::so_far().saturating_sub(before), Relaxed);
            result
        })
    }
}

/// Forgets what was noted.
pub(super) fn restart() {
    LONGEST.store(0, Relaxed);
}

/// The longest that a lock was held.
pub(super) fn longest() -> u64 {
    LONGEST.load(Relaxed)
}
