//! What this thread has cost.
//!
//! *Invariant:* looks only.

/// Page faults of the calling thread until now.
pub(crate) fn faults_of_this_thread() -> u64 {
    // SAFETY: all zeros is a valid value; the call writes it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives until the call returns.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_minflt + usage.ru_majflt).unwrap_or(0)
}
