//! What a measured allocator is to the harness: a table of function pointers.
//!
//! Every allocator is reached through the same five pointers, so each pays the
//! same call and return. The functions behind them are monomorphised per
//! allocator and never inlined: their machine code is what an embedder who
//! writes `malloc` and `free` over that allocator would get.
//!
//! Invariant: a [`Session`] owns its stretch of arena exclusively until it is
//! dropped.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::reservation::Reservation;

/// What an allocator returns for a block: an address, or for allocators that
/// keep their records elsewhere whatever the caller must present to free it.
/// Zero means that the request failed.
pub(crate) type Handle = usize;

/// The alignment of a plain `malloc`.
pub(crate) const ALIGN: usize = 16;

/// A heap that lives in one arena of fixed size.
///
/// The five measured functions are generated from this trait by [`Peer::arena`].
pub(crate) trait FixedArena: Sized {
    /// Bytes by which a request must be reduced so that the block, with its
    /// record, is a whole number of the allocator's granules. Used by the
    /// Robson ramp, whose block sizes are those of the allocator, not of the
    /// caller.
    const RECORD: usize;

    /// Starts a heap over `length` bytes at `base`; `None` if they are too few.
    ///
    /// # Safety
    /// The bytes are readable and writable, used by nobody else while the heap
    /// lives, and `base` is aligned to 16.
    unsafe fn new(base: *mut u8, length: usize) -> Option<Self>;

    /// A block of `size` bytes aligned to `align`, or zero.
    fn allocate(&mut self, size: usize, align: usize) -> Handle;

    /// Takes a block back.
    ///
    /// # Safety
    /// `handle` came from this heap for `size` and `align` and is live.
    unsafe fn free(&mut self, handle: Handle, size: usize, align: usize);

    /// Changes the size of a block, moving it if need be, or returns zero and
    /// leaves it. The default is allocate, copy, free: what a caller of an
    /// allocator without `realloc` writes.
    ///
    /// # Safety
    /// As for [`FixedArena::free`] with `old` the present size.
    #[cfg_attr(
        feature = "plain",
        allow(dead_code, reason = "left out of plain builds")
    )]
    unsafe fn resize(&mut self, handle: Handle, old: usize, new: usize, align: usize) -> Handle {
        let moved = self.allocate(new, align);
        if moved != 0 {
            // SAFETY: both blocks are live, distinct and at least min(old, new) long.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    std::ptr::with_exposed_provenance::<u8>(handle),
                    std::ptr::with_exposed_provenance_mut::<u8>(moved),
                    old.min(new),
                );
                self.free(handle, old, align);
            }
        }
        moved
    }
}

/// What kind of allocator a peer is; it decides which measurements make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not an allocator but a limit of the harness or of physics.
    Floor,
    /// A heap inside an arena of fixed size.
    Arena,
    /// A heap inside an arena of fixed size whose records lie elsewhere.
    OutOfBand,
    /// A heap inside an arena of fixed size whose blocks move, and are reached by handle.
    Moving,
    /// A process-wide allocator that takes memory from the system as it likes.
    General,
}

impl Kind {
    /// The kind in the words of the reports.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Kind::Floor => "floor",
            Kind::Arena => "arena",
            Kind::OutOfBand => "out of band",
            Kind::Moving => "arena, blocks move",
            Kind::General => "general",
        }
    }
}

/// The measured functions. The heap is the last argument so that an allocator
/// without a heap pointer need not move its arguments about.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    /// Allocate with the alignment of `malloc`.
    pub(crate) allocate: unsafe extern "C" fn(usize, *mut c_void) -> Handle,
    /// Free a block of that alignment: handle, size, heap.
    pub(crate) free: unsafe extern "C" fn(Handle, usize, *mut c_void),
    /// Allocate: size, align, heap.
    pub(crate) allocate_aligned: unsafe extern "C" fn(usize, usize, *mut c_void) -> Handle,
    /// Free: handle, size, align, heap.
    pub(crate) free_aligned: unsafe extern "C" fn(Handle, usize, usize, *mut c_void),
    /// Resize: handle, old size, new size, align, heap.
    pub(crate) resize: unsafe extern "C" fn(Handle, usize, usize, usize, *mut c_void) -> Handle,
}

/// Starts a heap in a stretch of memory; null if it is too small.
type Open = unsafe fn(*mut u8, usize) -> *mut c_void;

/// One measured allocator.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    /// Name on the command line and in tables.
    pub(crate) name: &'static str,
    /// Package of the registry it comes from; empty for our own.
    pub(crate) package: &'static str,
    /// Which measurements make sense.
    pub(crate) kind: Kind,
    /// One of ours, under the gate.
    pub(crate) ours: bool,
    /// Claims constant time, so that its longest calls are under the gate.
    pub(crate) constant_time: bool,
    /// Bytes of record per block inside the arena (see [`FixedArena::RECORD`]).
    pub(crate) record: usize,
    /// Bytes of the control structure that the harness places in the arena.
    pub(crate) control: usize,
    /// The measured functions.
    pub(crate) calls: Calls,
    open: Open,
    close: unsafe fn(*mut c_void),
}

impl Peer {
    /// A peer over a [`FixedArena`].
    pub(crate) const fn arena<H: FixedArena>(
        name: &'static str,
        package: &'static str,
        kind: Kind,
    ) -> Self {
        Peer {
            name,
            package,
            kind,
            ours: false,
            constant_time: false,
            record: H::RECORD,
            control: size_of::<H>(),
            calls: Calls {
                allocate: measured_allocate::<H>,
                free: measured_free::<H>,
                #[cfg(not(feature = "plain"))]
                allocate_aligned: measured_allocate_aligned::<H>,
                #[cfg(not(feature = "plain"))]
                free_aligned: measured_free_aligned::<H>,
                #[cfg(not(feature = "plain"))]
                resize: measured_resize::<H>,
                #[cfg(feature = "plain")]
                allocate_aligned: absent::allocate_aligned,
                #[cfg(feature = "plain")]
                free_aligned: absent::free_aligned,
                #[cfg(feature = "plain")]
                resize: absent::resize,
            },
            open: open::<H>,
            close: close::<H>,
        }
    }

    /// A process-wide allocator; its heap pointer is never null but never read.
    pub(crate) const fn general(name: &'static str, package: &'static str, calls: Calls) -> Self {
        Peer {
            name,
            package,
            kind: Kind::General,
            ours: false,
            constant_time: false,
            record: 0,
            control: 0,
            calls,
            open: |base, _| base.cast(),
            close: |_| {},
        }
    }

    /// One of our heaps, put under the gate.
    pub(crate) const fn metes<H: FixedArena>(
        name: &'static str,
        kind: Kind,
        constant_time: bool,
    ) -> Self {
        let mut peer = Self::arena::<H>(name, "", kind);
        peer.ours = true;
        peer.constant_time = constant_time;
        peer
    }

    /// A heap over the first `length` bytes of `memory`, or `None` if they are
    /// too few for this allocator to start.
    pub(crate) fn start<'a>(
        &self,
        memory: &'a mut Reservation,
        length: usize,
    ) -> Option<Session<'a>> {
        assert!(length <= memory.length(), "arena beyond the reservation");
        // SAFETY: the reservation is ours alone for 'a, readable and writable,
        // and its base is aligned far beyond 16.
        let heap = unsafe { (self.open)(memory.base(), length) };
        (!heap.is_null()).then(|| Session {
            heap,
            calls: self.calls,
            close: self.close,
            memory: PhantomData,
        })
    }
}

/// A running heap.
pub(crate) struct Session<'a> {
    /// Last argument of every measured function.
    pub(crate) heap: *mut c_void,
    /// The measured functions.
    pub(crate) calls: Calls,
    close: unsafe fn(*mut c_void),
    memory: PhantomData<&'a mut Reservation>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: `heap` came from the matching `open` and is closed once.
        unsafe { (self.close)(self.heap) }
    }
}

/// The control structure goes to the end of the arena: its bytes count, and the
/// base keeps the alignment that buddy heaps live on.
unsafe fn open<H: FixedArena>(base: *mut u8, length: usize) -> *mut c_void {
    let align = align_of::<H>().max(ALIGN);
    let Some(room) = length.checked_sub(size_of::<H>() + align) else {
        return std::ptr::null_mut();
    };
    let place = (base.addr() + room).next_multiple_of(align) - base.addr();
    // SAFETY: `place + size_of::<H>()` is at most `length` by the choice of
    // `room`, so the slot is inside the arena and disjoint from what the heap gets.
    unsafe {
        match H::new(base, place & !(ALIGN - 1)) {
            Some(heap) => {
                let slot = base.add(place).cast::<H>();
                slot.write(heap);
                slot.cast()
            }
            None => std::ptr::null_mut(),
        }
    }
}

unsafe fn close<H: FixedArena>(heap: *mut c_void) {
    // SAFETY: `heap` was written by `open::<H>` and is dropped once.
    unsafe { heap.cast::<H>().drop_in_place() }
}

#[inline(never)]
unsafe extern "C" fn measured_allocate<H: FixedArena>(size: usize, heap: *mut c_void) -> Handle {
    // SAFETY: the session passes the heap that `open::<H>` made.
    unsafe { (*heap.cast::<H>()).allocate(size, ALIGN) }
}

#[inline(never)]
unsafe extern "C" fn measured_free<H: FixedArena>(handle: Handle, size: usize, heap: *mut c_void) {
    // SAFETY: as above; the player frees live blocks with their size.
    unsafe { (*heap.cast::<H>()).free(handle, size, ALIGN) }
}

#[cfg(not(feature = "plain"))]
#[inline(never)]
unsafe extern "C" fn measured_allocate_aligned<H: FixedArena>(
    size: usize,
    align: usize,
    heap: *mut c_void,
) -> Handle {
    // SAFETY: the session passes the heap that `open::<H>` made.
    unsafe { (*heap.cast::<H>()).allocate(size, align) }
}

#[cfg(not(feature = "plain"))]
#[inline(never)]
unsafe extern "C" fn measured_free_aligned<H: FixedArena>(
    handle: Handle,
    size: usize,
    align: usize,
    heap: *mut c_void,
) {
    // SAFETY: as above; the player frees live blocks with their size and alignment.
    unsafe { (*heap.cast::<H>()).free(handle, size, align) }
}

#[cfg(not(feature = "plain"))]
#[inline(never)]
unsafe extern "C" fn measured_resize<H: FixedArena>(
    handle: Handle,
    old: usize,
    new: usize,
    align: usize,
    heap: *mut c_void,
) -> Handle {
    // SAFETY: as above; the player resizes live blocks with their size and alignment.
    unsafe { (*heap.cast::<H>()).resize(handle, old, new, align) }
}

/// What stands for the functions that a `plain` build leaves out: every request
/// is refused, so nothing is ever freed through them.
#[cfg(feature = "plain")]
mod absent {
    use super::{Handle, c_void};

    pub(super) unsafe extern "C" fn allocate_aligned(_: usize, _: usize, _: *mut c_void) -> Handle {
        0
    }

    pub(super) unsafe extern "C" fn free_aligned(_: Handle, _: usize, _: usize, _: *mut c_void) {}

    pub(super) unsafe extern "C" fn resize(
        _: Handle,
        _: usize,
        _: usize,
        _: usize,
        _: *mut c_void,
    ) -> Handle {
        0
    }
}
