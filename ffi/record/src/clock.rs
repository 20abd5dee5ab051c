//! The clock of the records: the processor's constant-rate counter, a fifth of
//! the cost of the monotonic clock. The driver turns ticks into nanoseconds.

/// A record's unit of time is two to this power of ticks: some 100 ns.
#[cfg(target_arch = "x86_64")]
pub(crate) const SHIFT: u32 = 8;
/// A record's unit of time is two to this power of ticks: 1 to 40 ns.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const SHIFT: u32 = 0;

/// Ticks of the clock.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: reads a counter; every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Ticks of the clock.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn now() -> u64 {
    let ticks: u64;
    // SAFETY: reads the virtual counter, which Linux lets user space read.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// Monotonic time in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}
