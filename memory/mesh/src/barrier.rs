//! A barrier that every thread of the process passes, where the system has one: `membarrier` of Linux.
//!
//! Invariant: after [`pass`] has said that it did, each thread has passed a full barrier since it was called.

/// Gets ready; false where there is no such barrier.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn prepare() -> bool {
    call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// Makes every thread pass a barrier.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn pass() -> bool {
    call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn call(command: libc::c_int) -> bool {
    // SAFETY: a command without memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0) == 0 }
}

/// Gets ready; false where there is no such barrier.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn prepare() -> bool {
    false
}

/// Makes every thread pass a barrier.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn pass() -> bool {
    false
}
