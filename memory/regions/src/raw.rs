//! System calls past the C library: for a thread that it knows nothing of, and that has no `errno`.

/// Error numbers are negative results.
pub(crate) fn failed(result: isize) -> bool {
    (-4095..0).contains(&result)
}

/// A system call.
///
/// # Safety
/// As that call asks for.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let result;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel's convention: it keeps all registers but these three. What the call does is
    // the caller's care.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// A system call.
///
/// # Safety
/// As that call asks for.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let result;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel's convention: it keeps all registers but the first. What the call does is the
    // caller's care.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

/// A system call, through the C library: no thread of our own runs on this processor.
///
/// # Safety
/// As that call asks for.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's contract.
    unsafe { libc::syscall(number, a, b, c, d, e, f) as isize }
}

/// Whether [`call`] goes past the C library.
pub(crate) const PAST_LIBRARY: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
