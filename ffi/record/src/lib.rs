//! The recorder: preloaded into a program (`LD_PRELOAD`), it takes the place of
//! the malloc family, forwards each call to glibc's own (`__libc_malloc` and
//! its kin, so nothing has to be looked up), and logs it.
//!
//! Invariants:
//! - the program gets from each call exactly what glibc gives;
//! - nothing here allocates, panics, or takes a lock that a signal handler or a
//!   forked child could find taken;
//! - an allocation is logged after glibc made it, a free before glibc sees it.
//!   `realloc` is both, so it logs its beginning, which detaches the old
//!   address, and its end, which attaches the new one; the reader makes one
//!   `resize` of the two. Thus no other thread's record of a re-used address
//!   can come before the record that gave the address up.
//!
//! Without the environment variable of [`layout::DIRECTORY_VARIABLE`] it only
//! forwards. Where the directory holds a file of the name of
//! [`path::ANNOUNCE_FILE`], events are announced to the access counter instead; where it holds one
//! of the name of [`layout::SITES_FILE`], call stacks are recorded, too ([`sites`]).
//!
//! A program that is linked with an allocator of its own is recorded, too: whatever that
//! allocator exports of the family, or beside it, is here as well (`metes-ffi`).

mod announce;
mod clock;
mod kernel;
mod path;
mod sites;
mod store;
mod thread;

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use metes_layout::recording as layout;

use layout::{ALLOC, FREE, RESIZE_BEGIN, RESIZE_END};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_valloc(size: usize) -> *mut c_void;
    fn __libc_pvalloc(size: usize) -> *mut c_void;
}

/// log2 of the alignment that malloc promises.
const MALLOC_ALIGN_LOG2: u32 = 4;

#[inline(always)]
fn log_alloc(block: *mut c_void, size: usize, align_log2: u32) {
    if !block.is_null() {
        store::log(ALLOC, block.addr(), size, align_log2);
    } else {
        store::leave();
    }
}

/// Sets the calling thread's `errno`.
fn set_errno(errno: c_int) {
    // SAFETY: the thread's own variable.
    unsafe { *libc::__errno_location() = errno };
}

/// `malloc` of the C library, logged.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    store::enter();
    // SAFETY: any size is a valid request.
    let block = unsafe { __libc_malloc(size) };
    log_alloc(block, size, MALLOC_ALIGN_LOG2);
    block
}

/// `calloc` of the C library, logged as an allocation of the product.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    store::enter();
    // SAFETY: any sizes are a valid request; glibc checks the product.
    let block = unsafe { __libc_calloc(count, size) };
    log_alloc(block, count.wrapping_mul(size), MALLOC_ALIGN_LOG2);
    block
}

/// `free` of the C library, logged before the block is given back.
///
/// # Safety
/// `block` is null or a live block of the malloc family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        store::log(FREE, block.addr(), 0, 0);
    }
    // SAFETY: the caller's promise.
    unsafe { __libc_free(block) }
    store::leave();
}

/// `free_sized` of C23.
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { free(block) }
}

/// `free_aligned_sized` of C23.
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { free(block) }
}

/// `realloc` of the C library: of null an allocation, to size zero a free,
/// else the beginning and the end of a resize.
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(size);
    }
    if size == 0 {
        // glibc frees the block and returns null.
        store::log(FREE, block.addr(), 0, 0);
        // SAFETY: the caller's promise.
        let nothing = unsafe { __libc_realloc(block, 0) };
        store::leave();
        return nothing;
    }
    store::log(RESIZE_BEGIN, block.addr(), size, MALLOC_ALIGN_LOG2);
    // SAFETY: the caller's promise.
    let moved = unsafe { __libc_realloc(block, size) };
    store::log(RESIZE_END, moved.addr(), size, MALLOC_ALIGN_LOG2);
    moved
}

/// `reallocarray` of the C library, logged as [`realloc`] of the product.
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => {
            set_errno(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

/// `memalign` of the C library; glibc rounds `align` up to a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    store::enter();
    // SAFETY: any values are a valid request.
    let block = unsafe { __libc_memalign(align, size) };
    let align = align.checked_next_power_of_two().unwrap_or(1);
    log_alloc(block, size, align.trailing_zeros());
    block
}

/// `aligned_alloc` of the C library: glibc treats it as [`memalign`].
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    memalign(align, size)
}

/// `posix_memalign` of the C library.
///
/// # Safety
/// `place` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let block = memalign(align, size);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { *place = block };
    0
}

/// `malloc_usable_size` of the C library, whose block it is: an allocator that the program
/// is linked with has a function of that name, too.
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let mut found = FOUND.load(Ordering::Relaxed);
    if found.is_null() {
        // By its version it is found in no other library.
        let version = if cfg!(target_arch = "x86_64") {
            c"GLIBC_2.2.5"
        } else {
            c"GLIBC_2.17"
        };
        let name = c"malloc_usable_size";
        // SAFETY: two strings.
        found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
        FOUND.store(found, Ordering::Relaxed);
    }
    // SAFETY: null, or a function of this type in every glibc.
    match unsafe { core::mem::transmute::<*mut c_void, Option<UsableSize>>(found) } {
        // SAFETY: the caller's promise: a block of glibc, as every name here gives.
        Some(usable_size) => unsafe { usable_size(block) },
        None => 0,
    }
}

/// The old name of [`free`].
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { free(block) }
}

metes_ffi::other_names!();

/// Bytes of a page.
fn page() -> usize {
    // SAFETY: takes and touches nothing but a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// `valloc` of the C library: aligned to a page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    store::enter();
    // SAFETY: any size is a valid request.
    let block = unsafe { __libc_valloc(size) };
    log_alloc(block, size, page().trailing_zeros());
    block
}

/// `pvalloc` of the C library: aligned to a page, and the size rounded up to
/// whole pages, as which it is logged.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    store::enter();
    // SAFETY: any size is a valid request.
    let block = unsafe { __libc_pvalloc(size) };
    let page = page();
    log_alloc(
        block,
        size.wrapping_add(page - 1) & !(page - 1),
        page.trailing_zeros(),
    );
    block
}
