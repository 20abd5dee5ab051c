//! Host memory that a heap takes when it is made and gives back when it is dropped.
//!
//! Invariant: the memory is reached through the one reference that [`Owned::new`] gave out,
//! and its owner drops that reference's holder before the memory.

use core::ptr::NonNull;

/// Whether the host has room for so many elements now. Who takes them at once gets them; what follows a
/// refusal can be told, which a failed allocation cannot.
pub(crate) fn has_room<T>(elements: usize) -> bool {
    Vec::<T>::new().try_reserve_exact(elements).is_ok()
}

/// A boxed slice, lent out for as long as it lives.
#[derive(Debug)]
pub(crate) struct Owned<T> {
    memory: NonNull<[T]>,
}

// SAFETY: it owns the memory as a box does, and never accesses it before the drop.
unsafe impl<T: Send> Send for Owned<T> {}
// SAFETY: as above; a shared reference gives access to nothing.
unsafe impl<T: Sync> Sync for Owned<T> {}

impl<T> Owned<T> {
    /// Takes the memory, and lends it.
    ///
    /// # Safety
    /// Nothing uses the reference after the owner is dropped.
    pub(crate) unsafe fn new(memory: Box<[T]>) -> (Self, &'static mut [T]) {
        let mut memory = NonNull::from(Box::leak(memory));
        // SAFETY: a leaked box, valid until the owner is dropped, and this is the one
        // reference to it.
        let lent = unsafe { memory.as_mut() };
        (Owned { memory }, lent)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and by `new`'s contract nobody uses the
        // reference that was lent any more.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
    }
}
