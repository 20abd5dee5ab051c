//! Metes for C: the functions of `metes.h`, which documents them.
//!
//! Invariants:
//! - all state of a heap lies in the memory that the program gave;
//! - no function of the malloc family is called (see [`Scratch`]).

pub mod compact;
mod heap;
pub mod mesh;
pub mod pages;
pub mod status;

use core::ffi::{CStr, c_char, c_void};
use core::ptr;

use heap::{ALIGN, State};
use metes_ffi::Scratch;

#[global_allocator]
static SCRATCH: Scratch = Scratch::new();

/// `metes_error`.
#[repr(C)]
pub struct Error {
    message: [c_char; 256],
}

/// `metes_statistics`.
#[repr(C)]
pub struct Statistics {
    live: usize,
    peak_live: usize,
    blocks: usize,
    peak_blocks: usize,
    allocations: u64,
    frees: u64,
    resizes: u64,
    failures: u64,
    largest_free: usize,
    free_blocks: usize,
    free_bytes: usize,
    footprint: usize,
    record_bytes: usize,
}

impl From<metes_heap::Statistics> for Statistics {
    fn from(own: metes_heap::Statistics) -> Self {
        Statistics {
            live: own.live,
            peak_live: own.peak_live,
            blocks: own.blocks,
            peak_blocks: own.peak_blocks,
            allocations: own.allocations,
            frees: own.frees,
            resizes: own.resizes,
            failures: own.failures,
            largest_free: own.largest_free,
            free_blocks: own.free_blocks,
            free_bytes: own.free_bytes,
            footprint: own.footprint,
            record_bytes: own.record_bytes,
        }
    }
}

/// `metes_block`.
#[repr(C)]
pub struct Block {
    address: *const c_void,
    size: usize,
    requested: usize,
    used: bool,
}

/// Writes why a call failed, as far as there is room.
///
/// # Safety
/// `error` is null or valid for a write.
unsafe fn tell(error: *mut Error, why: &str) {
    if error.is_null() {
        return;
    }
    let mut message = [0 as c_char; 256];
    let mut end = why.len().min(message.len() - 1);
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    for (to, &from) in message.iter_mut().zip(&why.as_bytes()[..end]) {
        *to = from as c_char;
    }
    // SAFETY: the caller's contract.
    unsafe { error.write(Error { message }) };
}

/// See `metes.h`.
///
/// # Safety
/// As `metes.h` says: memory of that length, a string, and an error or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_create(
    memory: *mut c_void,
    length: usize,
    spec: *const c_char,
    error: *mut Error,
) -> *mut State {
    // SAFETY: the caller's contract.
    unsafe { metes_heap_create_spanning(memory, length, spec, 0, error) }
}

/// See `metes.h`.
///
/// # Safety
/// As [`metes_heap_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_create_spanning(
    memory: *mut c_void,
    length: usize,
    spec: *const c_char,
    largest_region: usize,
    error: *mut Error,
) -> *mut State {
    if memory.is_null() || spec.is_null() {
        // SAFETY: the caller's contract.
        unsafe { tell(error, "memory and spec must not be NULL") };
        return ptr::null_mut();
    }
    // SAFETY: a string, by the caller's contract.
    let spec = unsafe { CStr::from_ptr(spec) };
    let made = match spec.to_str() {
        // SAFETY: the caller's contract.
        Ok(spec) => unsafe { State::create(memory.cast(), length, spec, largest_region) },
        Err(_) => Err("the spec is not UTF-8 text".to_owned()),
    };
    match made {
        Ok(state) => state,
        Err(why) => {
            // SAFETY: the caller's contract.
            unsafe { tell(error, &why) };
            ptr::null_mut()
        }
    }
}

/// What is told of no heap.
const NO_HEAP: &str = "heap must not be NULL";

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `length` bytes from `memory` the caller's to give.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_add_region(
    heap: *mut State,
    memory: *mut c_void,
    length: usize,
    error: *mut Error,
) -> bool {
    // SAFETY: the caller's contract.
    let added = match unsafe { heap.as_mut() } {
        None => Err(NO_HEAP.to_owned()),
        Some(_) if memory.is_null() => Err("memory must not be NULL".to_owned()),
        // SAFETY: the caller's contract.
        Some(heap) => unsafe { heap.add_region(memory.cast(), length) },
    };
    if let Err(why) = &added {
        // SAFETY: the caller's contract.
        unsafe { tell(error, why) };
    }
    added.is_ok()
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_allocate(heap: *mut State, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    match unsafe { heap.as_mut() } {
        Some(heap) => heap.allocate(size, ALIGN).cast(),
        None => ptr::null_mut(),
    }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_allocate_aligned(
    heap: *mut State,
    align: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's contract.
    match unsafe { heap.as_mut() } {
        Some(heap) if align.is_power_of_two() => heap.allocate(size, align).cast(),
        _ => ptr::null_mut(),
    }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_allocate_zeroed(
    heap: *mut State,
    count: usize,
    size: usize,
) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else {
        return ptr::null_mut();
    };
    // SAFETY: the caller's contract.
    let block = unsafe { metes_heap_allocate(heap, size) };
    if !block.is_null() {
        // SAFETY: a new block of that size.
        unsafe { ptr::write_bytes(block.cast::<u8>(), 0, size) };
    }
    block
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `block` null or a block of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_resize(
    heap: *mut State,
    block: *mut c_void,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's contract.
    match unsafe { heap.as_mut() } {
        None => ptr::null_mut(),
        Some(heap) if block.is_null() => heap.allocate(size, ALIGN).cast(),
        Some(heap) => heap.resize(block.cast(), size).cast(),
    }
}

/// See `metes.h`.
///
/// # Safety
/// As [`metes_heap_resize`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_free(heap: *mut State, block: *mut c_void) -> bool {
    // SAFETY: the caller's contract.
    block.is_null() || unsafe { heap.as_mut() }.is_some_and(|heap| heap.free(block.cast()))
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_fault(heap: *const State) -> *const c_char {
    // SAFETY: the caller's contract.
    let fault = unsafe { heap.as_ref() }.and_then(State::fault);
    fault.map_or(ptr::null(), CStr::as_ptr)
}

/// See `metes.h`.
///
/// # Safety
/// As [`metes_heap_resize`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_usable_size(heap: *const State, block: *const c_void) -> usize {
    // SAFETY: the caller's contract.
    unsafe { heap.as_ref() }.map_or(0, |heap| heap.usable_size(block.cast_mut().cast()))
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap; `visit` does not change it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_walk(
    heap: *const State,
    visit: extern "C" fn(context: *mut c_void, block: *const Block) -> bool,
    context: *mut c_void,
) -> bool {
    // SAFETY: the caller's contract.
    let Some(heap) = (unsafe { heap.as_ref() }) else {
        return false;
    };
    heap.walk(|address, size, requested| {
        let block = Block {
            address: address.cast(),
            size,
            requested: requested.unwrap_or(0),
            used: requested.is_some(),
        };
        visit(context, &block)
    })
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `statistics` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_statistics(heap: *const State, statistics: *mut Statistics) {
    // SAFETY: the caller's contract.
    let found = unsafe { heap.as_ref() }.map_or_else(Default::default, State::statistics);
    if !statistics.is_null() {
        // SAFETY: the caller's contract.
        unsafe { statistics.write(found.into()) };
    }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_check(heap: *const State, error: *mut Error) -> bool {
    // SAFETY: the caller's contract.
    let checked = unsafe { heap.as_ref() }.map_or(Err(NO_HEAP.to_owned()), State::check);
    if let Err(why) = &checked {
        // SAFETY: the caller's contract.
        unsafe { tell(error, why) };
    }
    checked.is_ok()
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, which is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_heap_destroy(heap: *mut State) {
    if !heap.is_null() {
        // SAFETY: the caller's contract.
        unsafe { ptr::drop_in_place(heap) };
    }
}

/// See `metes.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
