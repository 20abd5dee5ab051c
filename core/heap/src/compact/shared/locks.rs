//! What lies behind a lock, and the ways to it from a handle.
//!
//! Invariant: a class is reached through [`Classes::hold`] only, the reserve through
//! [`Guarded::hold`], contents of a page by who holds what guards them.

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;

use super::super::automaton::Class;
use super::super::backing::Place;
use super::super::handles::{BadHandle, Handle};
use super::super::layout::Tables;
use super::SharedCompactFit;
use crate::lock::Lock;

/// A value behind a lock, in cache lines of its own: what threads only read is elsewhere.
#[repr(align(64))]
pub(super) struct Guarded<L, T> {
    lock: L,
    value: UnsafeCell<T>,
}

impl<L, T> Guarded<L, T> {
    pub(super) fn new(lock: L, value: T) -> Self {
        Guarded {
            lock,
            value: UnsafeCell::new(value),
        }
    }

    pub(super) fn alone(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<L: Lock, T> Guarded<L, T> {
    /// Runs `body` with the value, alone. Not from within itself.
    #[inline(always)]
    pub(super) fn hold<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the lock excludes every other `hold`; `alone` borrows exclusively.
        self.lock.hold(|| body(unsafe { &mut *self.value.get() }))
    }
}

impl<L, T> fmt::Debug for Guarded<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guarded")
    }
}

/// The lock of a class, in a cache line of its own: classes are used side by side.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Apart<L> {
    pub(super) lock: L,
    /// Bytes of a page-block, β.
    pub(super) bytes: u32,
}

/// The classes, each behind its lock.
#[derive(Debug)]
pub(super) struct Classes<L: 'static> {
    locks: &'static [Apart<L>],
    first: NonNull<Class>,
    #[cfg(all(test, loom))]
    table: super::Table<'static>,
}

impl<L: 'static> Classes<L> {
    pub(super) fn new(locks: &'static [Apart<L>], tables: &mut Tables) -> Self {
        let classes = core::mem::take(&mut tables.classes);
        debug_assert_eq!(locks.len(), classes.len());
        Classes {
            locks: &locks[..classes.len()],
            first: NonNull::from(classes).cast(),
            #[cfg(all(test, loom))]
            table: tables.table,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.locks.len()
    }

    /// Bytes of a page-block of a class.
    pub(super) fn bytes(&self, index: usize) -> usize {
        self.locks[index].bytes as usize
    }

    /// Bytes of a page-block of the largest class.
    pub(super) fn largest(&self) -> usize {
        self.locks.last().map_or(0, |last| last.bytes as usize)
    }

    pub(super) fn bytes_of_records(&self) -> usize {
        self.count() * (size_of::<Apart<L>>() + size_of::<Class>())
    }

    pub(super) fn alone(&mut self) -> &mut [Class] {
        // SAFETY: as many classes as locks, and the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.first.as_ptr(), self.locks.len()) }
    }
}

impl<L: Lock + 'static> Classes<L> {
    /// Runs `body` with a class, alone. Within it, only of a larger class.
    #[inline(always)]
    pub(super) fn hold<R>(&self, index: usize, body: impl FnOnce(&mut Class) -> R) -> R {
        self.locks[index].lock.hold(|| {
            // SAFETY: as many classes as locks, so it exists; every way to it takes this lock.
            let class = unsafe { self.first.add(index).as_mut() };
            let result = body(class);
            // Records of another class's pages are behind another lock.
            #[cfg(all(test, loom))]
            assert!(self.count() > 1 || class.check(&self.table), "{class:?}");
            result
        })
    }
}

impl<L: Lock + 'static> SharedCompactFit<L> {
    /// The class that owns the page at `place`, or owned it. A hint, unless that class is held.
    #[inline(always)]
    pub(super) fn class_at(&self, place: Place) -> usize {
        // A place may be read while its entry changes; verified later, it may be none.
        let page = self.table.get(self.page_of(place));
        page.map_or(0, |page| usize::from(page.class.get()))
    }

    /// Runs `body` with the contents of the page at `place`, of a class that is held.
    #[inline(always)]
    pub(super) fn in_contents_of<R>(&self, place: Place, body: impl FnOnce() -> R) -> R {
        match self.pages.get(self.page_of(place) as usize) {
            Some(lock) => lock.hold(body),
            None => body(),
        }
    }

    /// Runs `body` with the contents of the page at `place`, no class being held; `None` if
    /// the page has changed its class meanwhile.
    #[inline(always)]
    pub(super) fn in_contents<R>(&self, place: Place, body: impl FnOnce() -> R) -> Option<R> {
        if let Some(lock) = self.pages.get(self.page_of(place) as usize) {
            return Some(lock.hold(body));
        }
        let index = self.class_at(place);
        self.classes
            .hold(index, |_| (self.class_at(place) == index).then(body))
    }

    /// Runs `body` with what guards the block of a handle, and its place.
    ///
    /// # Errors
    /// [`BadHandle`] when the handle does not resolve.
    #[inline(always)]
    pub(super) fn at_block<R>(
        &self,
        handle: Handle,
        mut body: impl FnMut(Place) -> R,
    ) -> Result<R, BadHandle> {
        loop {
            let place = self.entries.place(handle)?;
            let done = self.in_contents(place, || {
                let stands = self.entries.stands(handle, place)?;
                Ok(stands.then(|| body(place)))
            });
            match done {
                Some(Ok(Some(result))) => return Ok(result),
                Some(Err(bad)) => return Err(bad),
                _ => {}
            }
        }
    }

    /// Runs `body` with the class of a handle's block, its number, and the place that the
    /// block had; again while `body` finds it elsewhere and gives back `None`.
    ///
    /// # Errors
    /// [`BadHandle`] when the handle does not resolve, and those of `body`.
    #[inline(always)]
    pub(super) fn in_class<R>(
        &self,
        handle: Handle,
        mut body: impl FnMut(&mut Class, usize, Place) -> Result<Option<R>, BadHandle>,
    ) -> Result<R, BadHandle> {
        loop {
            let place = self.entries.place(handle)?;
            let index = self.class_at(place);
            let done = self
                .classes
                .hold(index, |class| match self.class_at(place) == index {
                    true => body(class, index, place),
                    false => Ok(None),
                })?;
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }
}
