//! Heaps as `#[global_allocator]`.
//!
//! [`Locked`] shares a heap whose memory is added by the program;
//! [`StaticHeap`] also carries the memory and needs no set-up.
//!
//! Invariant: the heap is touched under the lock only.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use crate::heap::Heap;
use crate::index::Index;
use crate::lock::Lock;
use crate::statistics::Statistics;
use crate::store::RegionError;
use crate::store::tagged::{Memory, Tagged};

/// A heap behind a lock.
///
/// ```
/// use metes_heap::{Heap, Memory, Tagged, Tlsf, global::Locked, lock::Spin};
///
/// static HEAP: Locked<Spin, Tlsf<16>> =
///     Locked::new(Spin::new(), Heap::new(Tlsf::new(), Tagged::new()));
///
/// HEAP.add_region(Memory::from_static(Box::leak(Box::new_uninit_slice(1 << 16)))).unwrap();
/// assert_eq!(HEAP.statistics().live, 0);
/// ```
#[derive(Debug)]
pub struct Locked<L, I, const STATISTICS: bool = true> {
    lock: L,
    heap: UnsafeCell<Heap<I, Tagged<STATISTICS>>>,
}

// SAFETY: the heap is only reached through `with`, under the lock.
unsafe impl<L: Lock + Sync, I: Send, const S: bool> Sync for Locked<L, I, S> {}

impl<L: Lock, I: Index<Tagged<STATISTICS>>, const STATISTICS: bool> Locked<L, I, STATISTICS> {
    /// Shares `heap` under `lock`.
    pub const fn new(lock: L, heap: Heap<I, Tagged<STATISTICS>>) -> Self {
        Locked {
            lock,
            heap: UnsafeCell::new(heap),
        }
    }

    /// Runs `body` on the heap, alone.
    #[inline]
    pub fn with<R>(&self, body: impl FnOnce(&mut Heap<I, Tagged<STATISTICS>>) -> R) -> R {
        // SAFETY: the lock admits one closure at a time, and the reference ends
        // with it.
        self.lock.hold(|| body(unsafe { &mut *self.heap.get() }))
    }

    /// Adds memory.
    ///
    /// # Errors
    /// As [`Heap::add_region`].
    pub fn add_region(&self, memory: Memory) -> Result<(), RegionError> {
        self.with(|heap| heap.add_region(memory))
    }

    /// What the heap holds and has held. Linear.
    pub fn statistics(&self) -> Statistics {
        self.with(|heap| heap.statistics())
    }
}

fn pointer(place: Option<NonNull<u8>>) -> *mut u8 {
    place.map_or(ptr::null_mut(), NonNull::as_ptr)
}

// SAFETY: a `Heap` gives out blocks that do not overlap, of at least the size
// and alignment asked for, and keeps them until they are freed or moved.
unsafe impl<L: Lock, I: Index<Tagged<S>>, const S: bool> GlobalAlloc for Locked<L, I, S> {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        pointer(self.with(|heap| heap.allocate(layout.size(), layout.align())))
    }

    #[inline(never)]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let Some(place) = NonNull::new(place) else {
            return;
        };
        // SAFETY: the caller gives back a block of this allocator.
        let freed = self.with(|heap| unsafe { heap.free_sized(place, layout.size()) });
        debug_assert!(freed.is_ok());
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        pointer(self.with(|heap| heap.allocate_zeroed(layout.size(), layout.align())))
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(place) = NonNull::new(place) else {
            return ptr::null_mut();
        };
        // SAFETY: the caller passes a block of this allocator.
        let moved = self.with(|heap| unsafe { heap.resize(place, size, layout.align()) });
        pointer(moved.unwrap_or(None))
    }
}

/// `BYTES` of memory, aligned to a page.
#[repr(C, align(4096))]
#[derive(Debug)]
struct Arena<const BYTES: usize>(UnsafeCell<MaybeUninit<[u8; BYTES]>>);

/// A heap with its own memory, ready to be a `static`.
///
/// ```
/// use metes_heap::{Tlsf, global::StaticHeap, lock::Spin};
///
/// #[global_allocator]
/// static HEAP: StaticHeap<Spin, Tlsf<16>, { 4 << 20 }> =
///     StaticHeap::new(Spin::new(), Tlsf::new());
///
/// assert_eq!((0..1000).map(Box::new).map(|number| *number).sum::<u32>(), 499_500);
/// assert!(HEAP.statistics().peak_live >= 4);
/// ```
#[derive(Debug)]
pub struct StaticHeap<L, I, const BYTES: usize, const STATISTICS: bool = true> {
    locked: Locked<L, I, STATISTICS>,
    arena: Arena<BYTES>,
}

// SAFETY: the arena is reached through the heap only, and that under the lock.
unsafe impl<L: Lock + Sync, I: Send, const B: usize, const S: bool> Sync
    for StaticHeap<L, I, B, S>
{
}

impl<L: Lock, I: Index<Tagged<S>>, const BYTES: usize, const S: bool> StaticHeap<L, I, BYTES, S> {
    /// A heap that chooses by `index` in `BYTES` bytes of its own.
    pub const fn new(lock: L, index: I) -> Self {
        StaticHeap {
            locked: Locked::new(lock, Heap::new(index, Tagged::new())),
            arena: Arena(UnsafeCell::new(MaybeUninit::uninit())),
        }
    }

    /// The heap, which takes possession of the arena at first use. Only with a
    /// static: the arena must never move.
    #[inline]
    fn with<R>(&self, body: impl FnOnce(&mut Heap<I, Tagged<S>>) -> R) -> R {
        self.locked.with(|heap| {
            if heap.footprint() == 0 {
                self.settle(heap);
            }
            body(heap)
        })
    }

    #[cold]
    fn settle(&self, heap: &mut Heap<I, Tagged<S>>) {
        let start = NonNull::new(self.arena.0.get()).map(NonNull::cast);
        if let Some(start) = start {
            // SAFETY: `GlobalAlloc` requires that an allocator's memory stays
            // while it is in use, so the arena does not move once blocks are out;
            // before the first block nothing points into it.
            let memory = unsafe { Memory::from_raw(start, BYTES) };
            // An arena too small for a heap serves nothing: every request fails.
            let _ = heap.add_only_region(memory);
        }
    }

    /// What the heap holds and has held. Linear.
    pub fn statistics(&'static self) -> Statistics {
        self.with(|heap| heap.statistics())
    }

    /// Calls `visit` with every block in address order; `visit` must not
    /// allocate from this heap. Linear.
    pub fn visit(&'static self, visit: impl FnMut(crate::BlockInfo)) {
        let walked = self.with(|heap| heap.walk(visit));
        debug_assert!(walked.is_ok());
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// The first [`Corruption`](crate::Corruption) found.
    pub fn check(&'static self) -> Result<(), crate::Corruption> {
        self.with(|heap| heap.check())
    }
}

// SAFETY: as for `Locked`.
unsafe impl<L: Lock, I: Index<Tagged<S>>, const B: usize, const S: bool> GlobalAlloc
    for StaticHeap<L, I, B, S>
{
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        pointer(self.with(|heap| heap.allocate(layout.size(), layout.align())))
    }

    #[inline(never)]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { self.locked.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        pointer(self.with(|heap| heap.allocate_zeroed(layout.size(), layout.align())))
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.locked.realloc(place, layout, size) }
    }
}
