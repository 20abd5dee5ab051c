//! malloc and its like, under their C names.
//!
//! Invariant: a module has one thread, so a call of this library is over before the next begins; no
//! reference to the heap outlives a call.

use core::arch::wasm32::memory_size;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use crate::arena::{ALIGNMENT, Arena};

/// Bytes of a page of linear memory.
const PAGE: usize = 1 << 16;
/// `EINVAL` of WASI.
const INVALID: c_int = 28;
/// `ENOMEM` of WASI.
const NO_MEMORY: c_int = 48;

unsafe extern "C" {
    /// Where the linker has put everything: memory from here on is free.
    static __heap_base: u8;
    static mut errno: c_int;
}

struct Only(UnsafeCell<Arena>);

// SAFETY: the target has one thread.
#[cfg(not(target_feature = "atomics"))]
unsafe impl Sync for Only {}

static ARENA: Only = Only(UnsafeCell::new(Arena::new()));

/// The heap. One at a time: callers are the functions below, of which none calls another while it
/// holds what this returns.
#[inline(always)]
fn arena() -> &'static mut Arena {
    // SAFETY: one thread, and no call of this library within another, so this is the only reference.
    unsafe { &mut *ARENA.0.get() }
}

/// The heap, with its memory.
#[inline(always)]
fn settled() -> &'static mut Arena {
    let arena = arena();
    if !arena.settled() {
        settle(arena);
    }
    arena
}

#[cold]
#[inline(never)]
fn settle(arena: &mut Arena) {
    let start = (&raw const __heap_base).cast_mut();
    let length = (memory_size(0) * PAGE).saturating_sub(start.addr());
    if let Some(start) = NonNull::new(start) {
        // SAFETY: the linker puts nothing behind `__heap_base`; this library stands in the place of
        // the one allocator that takes it, and whoever grows the memory gets what lies behind its
        // present end.
        unsafe { arena.settle(start, length) };
    }
}

#[cold]
#[inline(never)]
fn refused() -> *mut c_void {
    // SAFETY: one thread.
    unsafe { errno = NO_MEMORY };
    ptr::null_mut()
}

#[inline(always)]
fn given(place: Option<NonNull<u8>>) -> *mut c_void {
    match place {
        Some(place) => place.as_ptr().cast(),
        None => refused(),
    }
}

/// C's malloc. Constant time.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn malloc(size: usize) -> *mut c_void {
    given(settled().allocate(size))
}

/// C's free. Constant time.
///
/// # Safety
/// `place` is null or a block in use.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(place: *mut c_void) {
    if let Some(place) = NonNull::new(place) {
        // SAFETY: the caller's contract.
        unsafe { arena().free(place.cast()) };
    }
}

/// C's calloc. Linear in the bytes that it clears.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        return refused();
    };
    let place = malloc(bytes);
    if !place.is_null() {
        // SAFETY: the block has so many bytes.
        unsafe { place.write_bytes(0, bytes) };
    }
    place
}

/// C's realloc. Linear in the bytes that it copies.
///
/// # Safety
/// `place` is null or a block in use.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(place: *mut c_void, size: usize) -> *mut c_void {
    let Some(place) = NonNull::new(place) else {
        return malloc(size);
    };
    // SAFETY: the caller's contract.
    given(unsafe { arena().resize(place.cast(), size) })
}

/// C11's aligned_alloc. Constant time.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        // SAFETY: one thread.
        unsafe { errno = INVALID };
        return ptr::null_mut();
    }
    given(settled().allocate_aligned(size, align))
}

/// POSIX's posix_memalign. Constant time.
///
/// # Safety
/// `out` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(
    out: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return INVALID;
    }
    match settled().allocate_aligned(size, align) {
        Some(place) => {
            // SAFETY: the caller's contract.
            unsafe { out.write(place.as_ptr().cast()) };
            0
        }
        None => NO_MEMORY,
    }
}

/// Bytes that the program may use of a block, all of which realloc keeps.
///
/// # Safety
/// `place` is null or a block in use.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_usable_size(place: *const c_void) -> usize {
    match NonNull::new(place.cast_mut()) {
        // SAFETY: the caller's contract.
        Some(place) => unsafe { arena().usable(place.cast()) },
        None => 0,
    }
}

const _: () = assert!(ALIGNMENT >= size_of::<usize>());

/// The library is a part of programs in any language: it cannot say anything.
#[cfg(feature = "alone")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
