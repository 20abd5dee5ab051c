//! The runtime's device memory: blocks, copies, fills, and the pool of stream-ordered blocks.
//!
//! Stream-ordered blocks (`cudaMallocAsync`) are blocks like all others here, freed when their
//! stream comes to it: what a real pool keeps back between them is not modelled.

use std::ffi::{c_int, c_void};

use crate::device::with_context;
use crate::driver;
use crate::engine::Task;
use crate::entry::{entry_points, put};
use crate::error::{Answer, Code};
use crate::pools;
use crate::runtime::{answer_of, host};

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    HostToHost,
    In,
    Out,
    Within,
}

fn number(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}

/// The way that `kind` says; 4 leaves it to the addresses.
fn way(kind: c_int, destination: u64, source: u64) -> Answer<Way> {
    match kind {
        0 => Ok(Way::HostToHost),
        1 => Ok(Way::In),
        2 => Ok(Way::Out),
        3 => Ok(Way::Within),
        4 => with_context(|device| {
            let memory = &device.engine.memory;
            Ok(
                match (memory.is_known(destination), memory.is_known(source)) {
                    (false, false) => Way::HostToHost,
                    (true, false) => Way::In,
                    (false, true) => Way::Out,
                    (true, true) => Way::Within,
                },
            )
        }),
        _ => Err(Code::InvalidValue),
    }
}

/// A copy as work of a stream; None for one within the host, which is done.
fn copy(destination: u64, source: u64, size: u64, kind: c_int) -> Answer<Option<Task>> {
    Ok(match way(kind, destination, source)? {
        Way::HostToHost => {
            let bytes = crate::content::host_bytes(source, size)?;
            // SAFETY: a destination of `size` bytes is what the program promises.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    std::ptr::with_exposed_provenance_mut(destination as usize),
                    bytes.len(),
                )
            };
            None
        }
        Way::In => Some(Task::CopyIn {
            destination,
            source,
            size,
        }),
        Way::Out => Some(Task::CopyOut {
            destination,
            source,
            size,
        }),
        Way::Within => Some(Task::CopyWithin {
            destination,
            source,
            size,
        }),
    })
}

fn fill(destination: u64, value: c_int, size: usize) -> Task {
    Task::Fill {
        destination,
        pattern: [value as u8; 4],
        unit: 1,
        size: size as u64,
    }
}

entry_points! {
    via crate::runtime::remembered;

    /// `cudaMalloc`.
    fn cudaMalloc(place: *mut *mut c_void, size: usize) {
        if place.is_null() {
            return Err(Code::InvalidValue);
        }
        if size == 0 {
            return put(place, std::ptr::null_mut());
        }
        // SAFETY: not null; a device address has the size of a pointer.
        answer_of(unsafe { driver::cuMemAlloc_v2(place.cast(), size) })
    }

    /// `cudaFree`: managed memory too.
    fn cudaFree(pointer: *mut c_void) {
        if pointer.is_null() || host::free(pointer) {
            return Ok(());
        }
        // SAFETY: takes no pointers of the host.
        answer_of(unsafe { driver::cuMemFree_v2(number(pointer)) })
    }

    /// `cudaMemGetInfo`.
    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        // SAFETY: the caller's pointers, on the same terms.
        answer_of(unsafe { driver::cuMemGetInfo_v2(free, total) })
    }

    /// `cudaMemcpy`.
    fn cudaMemcpy(destination: *mut c_void, source: *const c_void, size: usize, kind: c_int) {
        match copy(number(destination), number(source), size as u64, kind)? {
            Some(task) => driver::complete(task),
            None => Ok(()),
        }
    }

    /// `cudaMemcpyAsync`.
    fn cudaMemcpyAsync(
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        match copy(number(destination), number(source), size as u64, kind)? {
            Some(task) => driver::submit(stream, task),
            None => Ok(()),
        }
    }

    /// `cudaMemcpyPeerAsync`: both devices are the same.
    fn cudaMemcpyPeerAsync(
        destination: *mut c_void,
        _to: c_int,
        source: *const c_void,
        _from: c_int,
        size: usize,
        stream: *mut c_void,
    ) {
        driver::submit(stream, Task::CopyWithin {
            destination: number(destination),
            source: number(source),
            size: size as u64,
        })
    }

    /// `cudaMemcpy2DAsync`, row by row.
    fn cudaMemcpy2DAsync(
        destination: *mut c_void,
        destination_pitch: usize,
        source: *const c_void,
        source_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        if width > destination_pitch || width > source_pitch {
            return Err(Code::InvalidValue);
        }
        for row in 0..height {
            let to = number(destination) + (row * destination_pitch) as u64;
            let from = number(source) + (row * source_pitch) as u64;
            if let Some(task) = copy(to, from, width as u64, kind)? {
                driver::submit(stream, task)?;
            }
        }
        Ok(())
    }

    /// `cudaMemset`.
    fn cudaMemset(pointer: *mut c_void, value: c_int, size: usize) {
        driver::complete(fill(number(pointer), value, size))
    }

    /// `cudaMemsetAsync`.
    fn cudaMemsetAsync(pointer: *mut c_void, value: c_int, size: usize, stream: *mut c_void) {
        driver::submit(stream, fill(number(pointer), value, size))
    }

    /// `cudaMallocAsync`.
    fn cudaMallocAsync(place: *mut *mut c_void, size: usize, stream: *mut c_void) {
        if place.is_null() {
            return Err(Code::InvalidValue);
        }
        if size == 0 {
            return put(place, std::ptr::null_mut());
        }
        // SAFETY: not null; a device address has the size of a pointer.
        answer_of(unsafe { pools::cuMemAllocAsync(place.cast(), size, stream) })
    }

    /// `cudaFreeAsync`.
    fn cudaFreeAsync(pointer: *mut c_void, stream: *mut c_void) {
        match pointer.is_null() {
            true => Ok(()),
            false => driver::submit(stream, Task::Free(number(pointer))),
        }
    }

    /// `cudaDeviceGetDefaultMemPool`.
    fn cudaDeviceGetDefaultMemPool(place: *mut *mut c_void, device: c_int) {
        // SAFETY: the caller's pointer, on the same terms.
        answer_of(unsafe { pools::cuDeviceGetDefaultMemPool(place, device) })
    }

    /// `cudaMemPoolSetAttribute`: accepted, without effect.
    fn cudaMemPoolSetAttribute(handle: *mut c_void, _attribute: c_int, _value: *mut c_void) {
        pools::known(handle)
    }

    /// `cudaMemPoolGetAttribute`: reserved and used bytes and their peaks (5 to 8) are those of
    /// the device.
    fn cudaMemPoolGetAttribute(handle: *mut c_void, attribute: c_int, value: *mut c_void) {
        pools::known(handle)?;
        let figures = with_context(|device| Ok(device.engine.memory.figures()))?;
        match attribute {
            1..=3 => put(value.cast::<c_int>(), 1),
            5 | 7 => put(value.cast::<u64>(), figures.used),
            6 | 8 => put(value.cast::<u64>(), figures.peak_used),
            _ => put(value.cast::<u64>(), 0),
        }
    }

    /// `cudaMemPoolSetAccess`: there is no other device.
    fn cudaMemPoolSetAccess(handle: *mut c_void, _about: *const c_void, _count: usize) {
        pools::known(handle)
    }

    /// `cudaMemPoolTrimTo`: nothing is kept back.
    fn cudaMemPoolTrimTo(handle: *mut c_void, _keep: usize) {
        pools::known(handle)
    }

    /// `cudaIpcGetMemHandle`: there is no device that another process could share.
    fn cudaIpcGetMemHandle(_handle: *mut c_void, _pointer: *mut c_void) {
        Err(Code::NotSupported)
    }

    /// `cudaIpcOpenMemHandle`: see [`cudaIpcGetMemHandle`].
    fn cudaIpcOpenMemHandle(_place: *mut *mut c_void, _handle: crate::runtime::SharedHandle, _flags: u32) {
        Err(Code::NotSupported)
    }

    /// `cudaIpcCloseMemHandle`: see [`cudaIpcGetMemHandle`].
    fn cudaIpcCloseMemHandle(_pointer: *mut c_void) {
        Err(Code::NotSupported)
    }
}
