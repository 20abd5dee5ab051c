//! Where nodes wait for each other.
//!
//! *Invariant:* nobody passes before all have come; what was done before it is seen behind it.

use core::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Barrier {
    come: AtomicU32,
    turn: AtomicU32,
}

impl Barrier {
    pub(crate) const fn new() -> Self {
        Barrier {
            come: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    /// Waits until `all` have come.
    pub(crate) fn wait(&self, all: u32) {
        let turn = self.turn.load(Ordering::Acquire);
        if self.come.fetch_add(1, Ordering::AcqRel) + 1 == all {
            self.come.store(0, Ordering::Relaxed);
            self.turn.store(turn + 1, Ordering::Release);
        } else {
            while self.turn.load(Ordering::Acquire) == turn {
                core::hint::spin_loop();
            }
        }
    }
}
