//! Announcing to the access counter instead of recording: under QEMU, whose
//! plug-in sees every system call, one with a number that no system knows
//! carries the event (`metes_layout::accesses`).
//!
//! Invariant: nothing here touches memory or `errno`.

/// The system call that announces.
const ANNOUNCE: usize = 0x4a5e;

/// The allocator begins to work in this thread.
pub(crate) const ENTER: u64 = 5;
/// The allocator ends its work in this thread.
pub(crate) const LEAVE: u64 = 6;

/// Announces an event; kinds are those of the records, and the two above.
#[inline(never)]
pub(crate) fn say(kind: u64, address: usize, size: usize, align_log2: u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the system refuses the number and touches nothing.
    unsafe {
        core::arch::asm!(
            "syscall",
            inout("rax") ANNOUNCE => _,
            in("rdi") kind,
            in("rsi") address,
            in("rdx") size,
            in("r10") u64::from(align_log2),
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") ANNOUNCE,
            inout("x0") kind => _,
            in("x1") address,
            in("x2") size,
            in("x3") u64::from(align_log2),
            options(nostack),
        );
    }
}
