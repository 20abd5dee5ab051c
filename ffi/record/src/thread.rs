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
    /// Where its next record goes.
    pub(crate) next: usize,
    /// Where its segment ends.
    pub(crate) end: usize,
    /// Time of the last record, in the units of the layout.
    pub(crate) last: u64,
    /// Number of the thread, from 1; 0 before its first record.
    pub(crate) number: u32,
    /// Segments that it has begun.
    pub(crate) segments: u32,
    /// Records that may yet have the time of the last.
    pub(crate) same: u32,
    /// Pages of its stack that are known to be readable, as `sites/readable.rs` packs them.
    pub(crate) readable: u64,
}

impl Thread {
    /// That of a new thread.
    pub(crate) const NEW: Thread = Thread {
        next: 0,
        end: 0,
        last: 0,
        number: 0,
        segments: 0,
        same: 0,
        readable: 0,
    };
}

/// A number that no thread had before.
pub(crate) fn new_number() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Adds `bytes` to where the thread's next record goes, and gives what it was: by one instruction, which no
/// signal handler can come into.
///
/// # Safety
/// `thread` is the calling thread's.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn advance(thread: *mut Thread, bytes: usize) -> usize {
    let mut place = bytes;
    // SAFETY: the caller's promise: no other thread touches it, so that no bus lock is needed, which takes longer
    // than all the rest.
    unsafe {
        core::arch::asm!(
            "xadd qword ptr [{next}], {place}",
            next = in(reg) &raw mut (*thread).next,
            place = inout(reg) place,
            options(nostack),
        );
    }
    place
}

/// As for x86-64.
///
/// # Safety
/// `thread` is the calling thread's.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) unsafe fn advance(thread: *mut Thread, bytes: usize) -> usize {
    use core::sync::atomic::AtomicUsize;
    // SAFETY: the caller's promise.
    unsafe { AtomicUsize::from_ptr(&raw mut (*thread).next) }.fetch_add(bytes, Ordering::Relaxed)
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
