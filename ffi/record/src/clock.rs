//! The clock of the records: the processor's constant-rate counter, a fifth of
//! the cost of the monotonic clock. The driver turns ticks into nanoseconds.

use crate::kernel::File;

/// A record's unit of time is two to this power of ticks: some 5 ns, a tenth of what it takes to hand a block to
/// another processor.
#[cfg(target_arch = "x86_64")]
pub(crate) const SHIFT: u32 = 4;
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

/// Ticks of the clock, read after all reads before it are done.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn now_after_reads() -> u64 {
    let mut processor = 0;
    // SAFETY: waits for what is before it, and reads a counter; `processor` is a place for which processor it is.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut processor) }
}

/// As [`now`]: elsewhere threads share a clock.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn now_after_reads() -> u64 {
    now()
}

/// Whether all processors have the same time, to less than it takes to hand a block from one to another: the kernel
/// offers the counter as its own clock only as long as it finds it so.
pub(crate) fn is_common() -> bool {
    if cfg!(not(target_arch = "x86_64")) {
        return false;
    }
    let path = c"/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let mut names = [0u8; 128];
    let length = File::open(path, libc::O_RDONLY).map_or(0, |file| file.read(&mut names));
    let names = names.get(..length).unwrap_or(&[]);
    names
        .split(|&byte| byte == b' ' || byte == b'\n')
        .any(|name| name == b"tsc")
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
