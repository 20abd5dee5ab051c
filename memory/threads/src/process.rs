//! The heaps of a process, as its threads reach them: which node a thread has, from its first request until it ends.
//!
//! A thread is bound at its first request. When it ends its node is given back; what runs after that in the thread (other
//! libraries' destructors, the C library itself) uses the shared node.
//!
//! Invariant: a thread that is bound has told the C library to say when it ends, or is the one that ended.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::classes::ALIGN;
use crate::current::{current, node};
use crate::heaps::{Ground, NotFreed, ThreadHeaps};
use crate::node::Node;

/// The key by which the C library tells that a thread ends, and one more; 0 before there is one.
static KEY: AtomicUsize = AtomicUsize::new(0);

impl<G: Ground> ThreadHeaps<G> {
    /// Gets ready to be told when threads end; false where the C library has no key left. Once, before the first request. One
    /// set of heaps in a process has threads.
    pub fn watch_threads(&'static self) -> bool {
        let mut key = 0;
        // SAFETY: makes a key whose destructor is there as long as this code is.
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(ended::<G>)) } == 0;
        if made {
            KEY.store(key as usize + 1, Ordering::Relaxed);
        }
        made
    }

    /// The node of the calling thread, which is bound to one now if there is one.
    fn bound(&'static self) -> Option<NonNull<Node>> {
        let current = current();
        match NonNull::new(current.bound.get().cast_mut()) {
            Some(node) => Some(node),
            None if current.shares.get() => None,
            None => self.bind_thread(),
        }
    }

    #[cold]
    fn bind_thread(&'static self) -> Option<NonNull<Node>> {
        let current = current();
        let Some(node) = self.bind() else {
            current.shares.set(true);
            return None;
        };
        current.bound.set(node.as_ptr());
        if self.ground().is_direct() {
            current.node.set(node.as_ptr());
        }
        let key = KEY.load(Ordering::Relaxed);
        // From here on requests are served, and this may be one. The first keys of a thread take no memory.
        // SAFETY: a key that was made.
        unsafe {
            if key != 0 {
                libc::pthread_setspecific(
                    key as libc::pthread_key_t - 1,
                    ptr::from_ref(self).cast(),
                );
            }
        }
        Some(node)
    }

    /// A block of up to 1 KiB of the calling thread's node, if it is bound and has one at hand; none otherwise. A constant
    /// number of instructions, without a loop or an exchange.
    #[inline(always)]
    pub fn allocate_at_hand(&'static self, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the thread is bound to it, or it has no pages.
        unsafe { self.allocate_small(node(), size) }
    }

    /// As [`allocate_at_hand`](Self::allocate_at_hand), where that has found none: of the rest of the page. A constant number of
    /// instructions, too.
    #[inline(always)]
    pub fn allocate_next(&'static self, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the thread is bound to it, or it has no pages.
        unsafe { self.allocate_small_next(node(), size) }
    }

    /// A block of the calling thread, of up to [`LARGEST`](crate::LARGEST) bytes, aligned to a power of two up to that; none
    /// where there is no memory.
    pub fn allocate_by_thread(&'static self, size: usize, align: usize) -> Option<NonNull<u8>> {
        match self.bound() {
            // SAFETY: the thread is bound to it.
            Some(node) if align <= ALIGN => unsafe { self.allocate(node, size) },
            // SAFETY: as above.
            Some(node) => unsafe { self.allocate_aligned(node, size, align) },
            None => self.allocate_shared(size, align),
        }
    }

    /// Frees a block of any thread, of pages of up to 8 KiB; what it does not find there goes to `otherwise`, and nothing has
    /// changed.
    ///
    /// # Safety
    /// As [`free_by_thread`](Self::free_by_thread).
    #[inline(always)]
    pub unsafe fn free_at_hand(
        &'static self,
        place: *mut u8,
        otherwise: unsafe extern "C" fn(*mut u8),
    ) {
        // SAFETY: the thread is bound to that node, or the node has no pages.
        unsafe { self.free_quickly(node(), place, otherwise) }
    }

    /// Frees a block of any thread.
    ///
    /// # Errors
    /// [`NotFreed`]; nothing has changed.
    ///
    /// # Safety
    /// The block, if it is one, is no longer in use.
    pub unsafe fn free_by_thread(&'static self, place: NonNull<u8>) -> Result<(), NotFreed> {
        // SAFETY: the thread is bound to that node, or it is null.
        unsafe { self.free(current().bound.get(), place) }
    }
}

/// A thread that was bound ends.
unsafe extern "C" fn ended<G: Ground>(heaps: *mut c_void) {
    let current = current();
    let Some(node) = NonNull::new(current.bound.get().cast_mut()) else {
        return;
    };
    current.share();
    // SAFETY: what was told when the thread was bound: heaps that stay.
    let heaps = unsafe { &*heaps.cast_const().cast::<ThreadHeaps<G>>() };
    // SAFETY: the thread uses it no more.
    unsafe { heaps.leave(node) };
}
