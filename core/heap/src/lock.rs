//! Locks: how a heap is shared.
//!
//! The lock is a type parameter, because who interrupts whom is the system's
//! matter: nobody ([`Single`]), another core ([`Spin`]), an interrupt
//! (`CriticalSection`, feature `critical-section`), or threads of an operating
//! system (any `lock_api::RawMutex`, feature `lock_api`).

/// Runs a closure while nobody else does under the same lock.
///
/// # Safety
/// `hold` never runs two closures of one lock at the same time.
pub unsafe trait Lock {
    /// Runs `body` alone.
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R;
}

/// No lock: for programs in which nothing runs beside the allocating code.
#[derive(Debug)]
pub struct Single(());

impl Single {
    /// A lock that does nothing.
    ///
    /// # Safety
    /// The heap behind it is used by one thread only, and never from an
    /// interrupt or signal that can interrupt an operation of it.
    pub const unsafe fn new() -> Self {
        Single(())
    }
}

// SAFETY: whoever made it promised that there is one user.
unsafe impl Lock for Single {
    #[inline(always)]
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }
}

/// A spin lock, for cores that do not interrupt each other while they hold it.
#[cfg(target_has_atomic = "8")]
#[derive(Debug)]
pub struct Spin {
    taken: core::sync::atomic::AtomicBool,
}

#[cfg(target_has_atomic = "8")]
impl Spin {
    /// A free lock.
    pub const fn new() -> Self {
        Spin {
            taken: core::sync::atomic::AtomicBool::new(false),
        }
    }
}

#[cfg(target_has_atomic = "8")]
impl Default for Spin {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: one `swap` only sees `false` until the guard stores it again; acquire
// and release order the closures.
#[cfg(target_has_atomic = "8")]
unsafe impl Lock for Spin {
    #[inline]
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        use core::sync::atomic::{AtomicBool, Ordering};
        struct Release<'a>(&'a AtomicBool);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        while self.taken.swap(true, Ordering::Acquire) {
            // Read only, so that waiting does not take the line from the holder.
            while self.taken.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
        }
        let _release = Release(&self.taken);
        body()
    }
}

/// Any mutex of the `lock_api` ecosystem.
#[cfg(feature = "lock_api")]
#[derive(Debug)]
pub struct Raw<M>(M);

#[cfg(feature = "lock_api")]
impl<M: lock_api::RawMutex> Raw<M> {
    /// A free lock.
    pub const fn new() -> Self {
        Raw(M::INIT)
    }
}

#[cfg(feature = "lock_api")]
impl<M: lock_api::RawMutex> Default for Raw<M> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: `RawMutex` excludes by its own contract, and only we unlock.
#[cfg(feature = "lock_api")]
unsafe impl<M: lock_api::RawMutex> Lock for Raw<M> {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Release<'a, M: lock_api::RawMutex>(&'a M);
        impl<M: lock_api::RawMutex> Drop for Release<'_, M> {
            fn drop(&mut self) {
                // SAFETY: locked below, in this context.
                unsafe { self.0.unlock() };
            }
        }
        self.0.lock();
        let _release = Release(&self.0);
        body()
    }
}

/// The system's critical section: on one core, interrupts are off meanwhile.
#[cfg(feature = "critical-section")]
#[derive(Debug, Default)]
pub struct CriticalSection;

// SAFETY: the implementation of `critical-section` excludes by its contract.
#[cfg(feature = "critical-section")]
unsafe impl Lock for CriticalSection {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        critical_section::with(|_| body())
    }
}
