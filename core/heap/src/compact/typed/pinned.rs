//! Pins: a value stays where it is while somebody knows its address.
//!
//! Invariant: a [`Pinned`] or [`Kept`] stands for one pin of its value, taken back once.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::{TypedHandle, Values};
use crate::compact::handles::BadHandle;

/// A value that neither moves nor can be removed as long as this lives. The heap goes on by
/// way of [`values`](Pinned::values), and more values may be pinned there.
///
/// Forgetting it leaves the value pinned for ever.
pub struct Pinned<'heap, T> {
    values: &'heap mut Values,
    handle: TypedHandle<T>,
    address: NonNull<T>,
}

impl<T> Pinned<'_, T> {
    /// Where the value is. It may be used as such while this lives, and while no reference to
    /// the value does that would conflict.
    pub const fn address(&self) -> NonNull<T> {
        self.address
    }

    /// The handle of the value.
    pub const fn handle(&self) -> TypedHandle<T> {
        self.handle
    }

    /// The heap. Everything is allowed but to remove the value.
    pub const fn values(&mut self) -> &mut Values {
        self.values
    }

    /// Keeps the value pinned and gives the heap back; [`Values::unpin`] ends it.
    pub fn keep(self) -> Kept<T> {
        let pinned = ManuallyDrop::new(self);
        Kept {
            handle: pinned.handle,
            address: pinned.address,
        }
    }
}

impl<T> Drop for Pinned<'_, T> {
    /// Takes the pin back: O(1), or the moves that were put off meanwhile, each O(bytes of the
    /// page-block).
    fn drop(&mut self) {
        // Fails only where the program put another heap into the place of this one: then the
        // value, which is with the other, stays pinned.
        let _ = self.values.heap.unpin(self.handle.raw);
    }
}

impl<T> fmt::Debug for Pinned<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({:?} at {:?})", self.handle, self.address)
    }
}

/// A pin that does not borrow the heap, for addresses that others hold: a device, a foreign
/// function.
#[must_use = "the value stays pinned until `Values::unpin`"]
pub struct Kept<T> {
    handle: TypedHandle<T>,
    address: NonNull<T>,
}

impl<T> Kept<T> {
    /// Where the value is, until it is unpinned or the heap ends.
    pub const fn address(&self) -> NonNull<T> {
        self.address
    }

    /// The handle of the value.
    pub const fn handle(&self) -> TypedHandle<T> {
        self.handle
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({:?} at {:?})", self.handle, self.address)
    }
}

impl Values {
    /// Pins a value as long as the [`Pinned`] lives. Pages with pinned values do not count
    /// towards κ. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn pin<T>(&mut self, handle: TypedHandle<T>) -> Result<Pinned<'_, T>, BadHandle> {
        self.heap.pin(handle.raw)?;
        // No move is under way, so that pinning did not change the place.
        let address = self.value(handle)?;
        Ok(Pinned {
            values: self,
            handle,
            address,
        })
    }

    /// Ends a pin that was [kept](Pinned::keep): O(1), or the moves that were put off
    /// meanwhile, each O(bytes of the page-block).
    ///
    /// # Errors
    /// The pin back, where it is of another heap.
    pub fn unpin<T>(&mut self, kept: Kept<T>) -> Result<(), Kept<T>> {
        self.heap.unpin(kept.handle.raw).map_err(|_| kept)
    }
}
