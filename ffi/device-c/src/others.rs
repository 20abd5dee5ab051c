//! Functions of the shapes that CuPy and RMM take. They throw nothing: null is a failure.
//!
//! Invariant: a block is freed for its own stream and for the one that frees it, so that neither
//! loses it early.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::devices;
use crate::failure::{Failure, guarded};

/// What `cudaMalloc` aligns to.
const ALIGN: u64 = 256;

/// A block of a device; null for no bytes.
pub(crate) fn allocate(
    bytes: u64,
    device: c_int,
    stream: *mut c_void,
) -> Result<*mut c_void, Failure> {
    if bytes == 0 {
        return Ok(ptr::null_mut());
    }
    let address = devices::heap(device)?.allocate(bytes, ALIGN, stream.addr() as u64)?;
    Ok(ptr::without_provenance_mut(address as usize))
}

/// Frees a block; null is none.
pub(crate) fn free(block: *mut c_void, device: c_int) -> Result<(), Failure> {
    if block.is_null() {
        return Ok(());
    }
    let address = block.addr() as u64;
    let heap = match devices::known(device) {
        Some(heap) => heap,
        None => devices::of(address)?,
    };
    heap.with(|heap| heap.free(address))
}

/// Frees a block that `stream` used last.
fn free_on(block: *mut c_void, device: c_int, stream: *mut c_void) -> Result<(), Failure> {
    if block.is_null() {
        return Ok(());
    }
    let address = block.addr() as u64;
    devices::of(address)?.with(|heap| heap.use_on(address, stream.addr() as u64))?;
    free(block, device)
}

/// The number of a device, which travels as a pointer.
fn number(device: *mut c_void) -> c_int {
    c_int::try_from(device.addr()).unwrap_or(-1)
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_rmm_allocate(
    bytes: usize,
    stream: *mut c_void,
    device: *mut c_void,
) -> *mut c_void {
    guarded(|| allocate(bytes as u64, number(device), stream)).unwrap_or(ptr::null_mut())
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_rmm_deallocate(
    block: *mut c_void,
    _bytes: usize,
    stream: *mut c_void,
    device: *mut c_void,
) {
    let _ = guarded(|| free_on(block, number(device), stream));
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_cupy_malloc(
    _parameter: *mut c_void,
    bytes: usize,
    device: c_int,
) -> *mut c_void {
    guarded(|| allocate(bytes as u64, device, ptr::null_mut())).unwrap_or(ptr::null_mut())
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_cupy_free(_parameter: *mut c_void, block: *mut c_void, device: c_int) {
    let _ = guarded(|| free(block, device));
}
