//! What the recorder keeps for each thread.
//!
//! Invariant: reaching it never allocates. The general thread-local model may:
//! after a `dlopen` the first access in a thread can grow the thread's table
//! by `malloc`, which would come back here. So the state lives in static
//! thread-local storage (initial-exec model), which every preloaded library
//! has; stable Rust has no word for that, hence the assembly.

use core::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(1);

/// State of a thread; zeroes in a new one.
#[repr(C)]
pub(crate) struct Thread {
    /// Time of the last record, in the units of the layout.
    pub(crate) last: u64,
    /// Number of the thread, from 1; 0 before its first record.
    pub(crate) number: u32,
    /// Pages of its stack that are known to be readable, as `sites/readable.rs` packs them.
    pub(crate) readable: u64,
}

/// A number that no thread had before. 26 bits; later threads share the last.
pub(crate) fn new_number() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed).min((1 << 26) - 1)
}

core::arch::global_asm!(
    ".pushsection .tbss.metes_thread,\"awT\",@nobits",
    ".globl metes_thread",
    ".hidden metes_thread",
    ".type metes_thread, @object",
    ".size metes_thread, {size}",
    ".p2align 4",
    "metes_thread:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Thread>(),
);

/// The state of the calling thread: valid, and touched by nobody else but the
/// thread's own signal handlers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn current() -> *mut Thread {
    let place: *mut Thread;
    // SAFETY: address arithmetic only: the thread pointer, which x86-64 keeps
    // at `fs:0`, plus the offset that the linker resolves for our bytes.
    unsafe {
        core::arch::asm!(
            "mov {place}, qword ptr [rip + metes_thread@GOTTPOFF]",
            "add {place}, qword ptr fs:[0]",
            place = out(reg) place,
            options(nostack, pure, readonly),
        );
    }
    place
}

/// The state of the calling thread: valid, and touched by nobody else but the
/// thread's own signal handlers.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn current() -> *mut Thread {
    let place: *mut Thread;
    // SAFETY: address arithmetic only: the thread pointer plus the offset that
    // the linker resolves for our bytes.
    unsafe {
        core::arch::asm!(
            "mrs {place}, tpidr_el0",
            "adrp {offset}, :gottprel:metes_thread",
            "ldr {offset}, [{offset}, :gottprel_lo12:metes_thread]",
            "add {place}, {place}, {offset}",
            place = out(reg) place,
            offset = out(reg) _,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    place
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("metes-record knows the thread pointer of x86-64 and aarch64 only");
