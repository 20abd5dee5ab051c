//! Threads of the operating system: cores, a lock, a common start.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use metes_heap::lock::Lock;

/// Cores that this program may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Most threads that are measured: a program can tell 65 535 heaps apart, and every round makes
/// new ones.
const MOST: usize = 32;

/// Numbers of threads to measure: powers of two up to the cores, and these; at least 1 and 2.
pub(super) fn thread_counts(cores: usize) -> Vec<usize> {
    let most = cores.clamp(2, MOST);
    let mut counts: Vec<usize> = (0..)
        .map(|log| 1 << log)
        .take_while(|&n| n < most)
        .collect();
    counts.push(most);
    counts
}

/// A lock of the operating system: on fewer cores than threads, waiting threads give way.
pub(super) struct System {
    lock: Mutex<()>,
    /// Whether it notes how long it is held.
    timed: bool,
}

impl System {
    pub(super) fn new(timed: bool) -> Self {
        System {
            lock: Mutex::new(()),
            timed,
        }
    }
}

thread_local! {
    /// Nanoseconds that this thread held a timed lock at the longest, since it was set back.
    pub(super) static LONGEST: Cell<f64> = const { Cell::new(0.0) };
}

// SAFETY: the guard lives as long as the body runs.
unsafe impl Lock for System {
    #[inline]
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        let guard = self
            .lock
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        if !self.timed {
            return body();
        }
        let start = Instant::now();
        let result = body();
        let held = start.elapsed();
        drop(guard);
        LONGEST.set(LONGEST.get().max(held.as_nanos() as f64));
        result
    }
}

/// Binds the calling thread to one of the cores that it may use, by its number: threads that
/// share a core would take turns instead of running side by side.
pub(super) fn bind(thread: usize) {
    // SAFETY: a set of zeros is an empty set, and both calls get its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut allowed) != 0 {
            return;
        }
        let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
            .filter(|&core| libc::CPU_ISSET(core, &allowed))
            .collect();
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cores[thread % cores.len()], &mut one);
        libc::sched_setaffinity(0, size, &one);
    }
}

/// Where threads wait for each other without leaving their cores, if there are enough.
pub(super) struct Start {
    missing: AtomicUsize,
}

impl Start {
    pub(super) fn of(threads: usize) -> Self {
        Start {
            missing: AtomicUsize::new(threads),
        }
    }

    pub(super) fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        let mut turns = 0_u32;
        while self.missing.load(Ordering::Acquire) > 0 {
            turns += 1;
            match turns % 4096 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_threads_end_with_the_cores() {
        assert_eq!(thread_counts(1), [1, 2]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(8), [1, 2, 4, 8]);
        assert_eq!(thread_counts(200).last(), Some(&MOST));
    }
}
