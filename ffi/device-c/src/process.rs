//! Forks: how many this process is away from the one that made something.
//!
//! Invariant: the number differs between a process and its forks, and asking for it calls
//! nobody: a child learns of the fork by the handler that the C library runs in it.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The number of this process.
pub(crate) fn number() -> u32 {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a handler that touches one atomic number. If it cannot be registered, a
        // backend still refuses in a fork, after the lock was taken.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    FORKS.load(Ordering::Relaxed)
}
