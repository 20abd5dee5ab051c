//! Heaps of threads as `#[global_allocator]`, on Linux.
//!
//! Blocks above [`LARGEST`] are mappings of their own.
//!
//! Invariant: the heaps are laid once, before the first request is served; the lock is held while a process forks.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

use metes_heap::lock::Lock;

use crate::classes::{LARGEST, aligned, class_of};
use crate::heaps::{Footprint, Ground, NotFreed, PART_ALIGN, PARTS, Part, ThreadHeaps};

/// Addresses of pages of each kind, where there are so many, and the fewest.
const PAGES: usize = 64 << 30;
const FEWEST: usize = 4 << 20;
const PAGE: usize = 4096;
/// Blocks up to so many bytes, aligned to no more, lie in the narrowest pages.
const NARROW: usize = 8 << 10;
/// Threads that have a node of their own.
const THREADS: usize = 256;

/// A heap for each thread. Threads beyond 256 at a time share one.
///
/// See the [crate](crate) for an example.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadAlloc(());

/// A process has its threads once.
static HEAPS: ThreadHeaps<System> = ThreadHeaps::new(System {
    taken: AtomicBool::new(false),
});

impl ThreadAlloc {
    /// The heaps of the process, which take their memory at the first request.
    pub const fn new() -> Self {
        ThreadAlloc(())
    }

    /// What the heaps took, but for large blocks. Linear.
    pub fn footprint(&self) -> Footprint {
        HEAPS.footprint()
    }

    #[cold]
    #[inline(never)]
    fn allocate(layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        if align <= crate::classes::ALIGN
            && let Some(block) = HEAPS.allocate_next(size)
        {
            return block.as_ptr();
        }
        match aligned(size, align) {
            Some(_) if laid() => pointer(HEAPS.allocate_by_thread(size, align)),
            Some(_) => ptr::null_mut(),
            None => map(size, align),
        }
    }
}

/// Frees what is not freed quickly, though it is small: of wider pages, as its alignment was wide, or freed before.
#[cold]
unsafe extern "C" fn free_elsewhere(place: *mut u8) {
    if let Some(place) = NonNull::new(place) {
        // SAFETY: the caller gives back a block of this allocator.
        let freed = unsafe { HEAPS.free_by_thread(place) };
        debug_assert!(freed.is_ok(), "{freed:?}");
    }
}

fn pointer(block: Option<NonNull<u8>>) -> *mut u8 {
    block.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Whether there are heaps, which are laid now if they were not.
fn laid() -> bool {
    static LAYING: Once = Once::new();
    static LAID: AtomicBool = AtomicBool::new(false);
    let mut first = false;
    LAYING.call_once(|| {
        first = true;
        // SAFETY: once, before anything else; the parts were just mapped.
        let laid = parts().is_some_and(|parts| unsafe { HEAPS.lay(parts, THREADS) });
        LAID.store(laid && HEAPS.watch_threads(), Ordering::Relaxed);
    });
    if first {
        watch_forks();
    }
    LAID.load(Ordering::Relaxed)
}

/// Holds the lock while the process forks. Not under the lock: it may allocate.
fn watch_forks() {
    extern "C" fn before() {
        HEAPS.ground().take();
    }
    extern "C" fn after() {
        HEAPS.ground().give();
    }
    // SAFETY: functions that stay. Where there is no memory for them, forks are as they were.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

// SAFETY: slots and mappings do not overlap, are as large and aligned as their class or layout says, and stay until they are
// freed.
unsafe impl GlobalAlloc for ThreadAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= crate::classes::ALIGN
            && let Some(block) = HEAPS.allocate_at_hand(layout.size())
        {
            return block.as_ptr();
        }
        Self::allocate(layout)
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if layout.size() <= NARROW && layout.align() <= NARROW {
            // SAFETY: the caller gives back a block of this allocator.
            return unsafe { HEAPS.free_at_hand(place, free_elsewhere) };
        }
        let Some(place) = NonNull::new(place) else {
            return;
        };
        // SAFETY: as above.
        match unsafe { HEAPS.free_by_thread(place) } {
            Ok(()) => {}
            // SAFETY: as above; it is a mapping of its own.
            Err(NotFreed::Elsewhere) => unsafe { unmap(place, layout.size()) },
            Err(NotFreed::Bad(why)) => debug_assert!(false, "{why:?}"),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let block = unsafe { self.alloc(layout) };
        // What is mapped is zero.
        if !block.is_null() && aligned(layout.size(), layout.align()).is_some() {
            // SAFETY: a new block of that size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (before, align) = (layout.size(), layout.align());
        let stays = before <= LARGEST
            && size <= LARGEST
            && align <= crate::classes::ALIGN
            && class_of(before.max(1)) == class_of(size.max(1));
        if stays {
            return place;
        }
        // SAFETY: the size is the caller's, and the alignment one that there is.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, align)) };
        if !new.is_null() {
            // SAFETY: two blocks, each of at least that many bytes; the old one is given back.
            unsafe {
                ptr::copy_nonoverlapping(place, new, before.min(size));
                self.dealloc(place, layout);
            }
        }
        new
    }
}

/// The system's memory, and a lock that is held for short.
#[derive(Debug)]
struct System {
    taken: AtomicBool,
}

impl System {
    fn take(&self) {
        while self.taken.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn give(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

// SAFETY: one `swap` alone sees `false` until it is stored again.
unsafe impl Lock for System {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        self.take();
        let result = body();
        self.give();
        result
    }
}

// SAFETY: all parts are mapped, readable and writable, from the beginning.
unsafe impl Ground for System {
    fn open(&self, _part: usize, _bytes: usize) -> bool {
        true
    }
}

/// Parts of as many addresses as can be had.
fn parts() -> Option<[Part; PARTS]> {
    let mut pages = PAGES;
    while pages >= FEWEST {
        let mut start = map(pages * PARTS, PART_ALIGN);
        if !start.is_null() {
            return Some(core::array::from_fn(|_| {
                let part = Part {
                    start,
                    bytes: pages,
                };
                start = start.wrapping_add(pages);
                part
            }));
        }
        pages /= 2;
    }
    None
}

/// A private mapping that is taken as it is written; null where there is none.
fn map(size: usize, align: usize) -> *mut u8 {
    let Some(length) = size.checked_next_multiple_of(PAGE) else {
        return ptr::null_mut();
    };
    let Some(wide) = length.checked_add(if align > PAGE { align } else { 0 }) else {
        return ptr::null_mut();
    };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, wherever there is room.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), wide.max(PAGE), access, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    let start: *mut u8 = mapped.cast();
    let skip = start.addr().wrapping_neg() & (align.max(PAGE) - 1);
    // SAFETY: parts of the mapping outside of what is kept, whole pages.
    unsafe {
        if skip > 0 {
            libc::munmap(mapped, skip);
        }
        if wide > skip + length {
            libc::munmap(
                start.wrapping_add(skip + length).cast(),
                wide - skip - length,
            );
        }
    }
    start.wrapping_add(skip)
}

/// Gives a mapping back.
///
/// # Safety
/// `place` was mapped by [`map`] for `size` bytes, and is used no more.
unsafe fn unmap(place: NonNull<u8>, size: usize) {
    // SAFETY: the caller's contract.
    unsafe { libc::munmap(place.as_ptr().cast(), size.next_multiple_of(PAGE).max(PAGE)) };
}
