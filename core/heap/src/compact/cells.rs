//! The cells and atomics of what threads share: those of `core`, or those of the model
//! checker, which runs every interleaving and reports unordered accesses (`--cfg loom`).

#[cfg(not(all(test, loom)))]
pub(super) use core::{
    cell::Cell,
    sync::atomic::{AtomicU8, AtomicU32, Ordering},
};
#[cfg(all(test, loom))]
pub(super) use loom::{
    cell::Cell,
    sync::atomic::{AtomicU8, AtomicU32, Ordering},
};

/// A byte that is written under a lock and may be read without it, as a hint that is
/// verified under the lock.
#[derive(Debug)]
pub(super) struct Hint(AtomicU8);

impl Hint {
    pub(super) fn new(value: u8) -> Self {
        Hint(AtomicU8::new(value))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn set(&self, value: u8) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// A word of an entry of the handle table: of one thread, or of several.
pub(super) trait Word {
    fn new(value: u32) -> Self;
    /// Reads it, and what was written before the value that is read.
    fn get(&self) -> u32;
    /// Writes it, after all that was written before.
    fn set(&self, value: u32);
}

impl Word for core::cell::Cell<u32> {
    #[inline(always)]
    fn new(value: u32) -> Self {
        core::cell::Cell::new(value)
    }

    #[inline(always)]
    fn get(&self) -> u32 {
        core::cell::Cell::get(self)
    }

    #[inline(always)]
    fn set(&self, value: u32) {
        core::cell::Cell::set(self, value);
    }
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn new(value: u32) -> Self {
        AtomicU32::new(value)
    }

    #[inline(always)]
    fn get(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn set(&self, value: u32) {
        self.store(value, Ordering::Release);
    }
}
