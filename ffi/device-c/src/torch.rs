//! The functions of a pluggable allocator of PyTorch.
//!
//! Invariant: what is thrown is thrown by the functions that PyTorch calls where exceptions are
//! allowed; a free, which runs in destructors, throws nothing, and keeps its text.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::exception::{prepare, raise};
use crate::failure::{Failure, Status, guarded, last};
use crate::{devices, others};

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_torch_prepare() -> bool {
    prepare()
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn metes_torch_malloc(
    size: isize,
    device: c_int,
    stream: *mut c_void,
) -> *mut c_void {
    let bytes = u64::try_from(size).unwrap_or(u64::MAX);
    match guarded(|| others::allocate(bytes, device, stream)) {
        Ok(address) => address,
        Err(status) => {
            throw(status, device);
            ptr::null_mut()
        }
    }
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_torch_try_malloc(
    size: isize,
    device: c_int,
    stream: *mut c_void,
) -> *mut c_void {
    let bytes = u64::try_from(size).unwrap_or(u64::MAX);
    guarded(|| others::allocate(bytes, device, stream)).unwrap_or(ptr::null_mut())
}

/// Throws this thread's last failure.
fn throw(status: Status, device: c_int) {
    let text = last();
    let out_of_memory = status == Status::OutOfMemory;
    // The beginning of the framework's own text, by which programs know it.
    let text = match out_of_memory {
        true => format!("CUDA out of memory. {text} (device {device}, allocator metes)"),
        false => format!("metes: {text}"),
    };
    raise(out_of_memory, text);
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_torch_free(
    block: *mut c_void,
    _size: usize,
    device: c_int,
    _stream: *mut c_void,
) {
    // The stream is the one that the block was allocated for, which the heap knows.
    let _ = guarded(|| others::free(block, device));
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn metes_torch_record_stream(block: *mut c_void, stream: *mut c_void) {
    if block.is_null() {
        return;
    }
    let work = || {
        let address = block.addr() as u64;
        devices::of(address)?.with(|heap| heap.use_on(address, stream.addr() as u64))
    };
    if let Err(status) = guarded(work) {
        throw(status, 0);
    }
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn metes_torch_reset() {
    let work = || {
        for heap in devices::all() {
            heap.with(|heap| heap.trim(0))?;
        }
        Ok::<_, Failure>(())
    };
    if let Err(status) = guarded(work) {
        throw(status, 0);
    }
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn metes_torch_memory_fraction(fraction: f64, device: c_int) {
    if let Err(status) = guarded(|| devices::limit(device, fraction)) {
        throw(status, device);
    }
}

/// `c10::MempoolId_t`, a pair of numbers.
#[repr(C)]
pub struct PoolId {
    first: u64,
    second: u64,
}

impl PoolId {
    fn id(&self) -> (u64, u64) {
        (self.first, self.second)
    }
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn metes_torch_begin_pool(device: c_int, pool: PoolId, _filter: *mut c_void) {
    // The filter says whether a stream is of the capture; the driver is asked that.
    if let Err(status) = guarded(|| devices::heap(device)?.with(|heap| heap.begin_graph(pool.id())))
    {
        throw(status, device);
    }
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn metes_torch_end_pool(device: c_int, pool: PoolId) {
    let work = || {
        devices::heap(device)?.with(|heap| {
            heap.end_graph(pool.id());
            Ok(())
        })
    };
    if let Err(status) = guarded(work) {
        throw(status, device);
    }
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_torch_release_pool(device: c_int, pool: PoolId) {
    // Called as a graph is destroyed, where nothing may be thrown.
    let _ = guarded(|| devices::heap(device)?.with(|heap| heap.release_graph(pool.id())));
}
