//! Time without a call of the system: the monotonic clock as the kernel maps it into the process.
//!
//! *Invariant:* one origin and one unit (nanoseconds) for releases, deadlines and answers.

use std::time::Duration;

/// Nanoseconds of the monotonic clock.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of processor time of this thread, by a system call.
pub(crate) fn processor() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of a clock of the system.
pub(crate) fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec of ours to be written to.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of a duration; the longest that can be told for longer ones.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps until an instant of [`now`].
pub(crate) fn sleep_until(instant: u64) {
    let left = instant.saturating_sub(now());
    std::thread::sleep(Duration::from_nanos(left));
}
