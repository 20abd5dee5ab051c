//! The driver's pools of stream-ordered blocks.
//!
//! Such blocks are blocks like all others here, freed when their stream comes to it. What a real
//! pool keeps back between them is not modelled, so its attributes have no effect.

use std::ffi::{c_int, c_void};

use crate::device::{with_context, with_device};
use crate::driver::{self, Location, stream_of};
use crate::engine::Task;
use crate::entry::{entry_points, get, put};
use crate::error::{Answer, Code};

/// The device's own pool: no address. The pools of programs have the numbers behind it.
pub(crate) const DEFAULT: usize = 0x6d65_0000_0000_0020;

/// `CUmemPoolProps`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolProperties {
    /// 1 is pinned, the only kind.
    pub kind: c_int,
    /// How blocks may be exported: not at all.
    pub handle_types: c_int,
    /// Where the memory lies.
    pub location: Location,
    /// Of another system.
    pub security: *mut c_void,
    /// Most bytes; 0 says nothing.
    pub most: usize,
    /// Zeros.
    pub rest: [u8; 56],
}

/// Refuses what is no pool, or was destroyed.
pub(crate) fn known(handle: *mut c_void) -> Answer {
    with_device(|device| match device.pools.contains(&handle.addr()) {
        true => Ok(()),
        false => Err(Code::InvalidValue),
    })
}

/// A block for `stream`.
fn allocate(place: *mut u64, size: usize, stream: *mut c_void) -> Answer {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    let block = with_context(|device| {
        device.streams.is_idle(stream_of(stream))?;
        device.engine.memory.allocate(size as u64)
    })?;
    put(place, block)
}

entry_points! {
    via crate::entry::answered;

    /// `cuMemAllocAsync`: from the device's own pool.
    fn cuMemAllocAsync(place: *mut u64, size: usize, stream: *mut c_void) {
        allocate(place, size, stream)
    }

    /// `cuMemAllocFromPoolAsync`.
    fn cuMemAllocFromPoolAsync(
        place: *mut u64,
        size: usize,
        pool: *mut c_void,
        stream: *mut c_void,
    ) {
        known(pool)?;
        allocate(place, size, stream)
    }

    /// `cuMemFreeAsync`: in the order of the stream.
    fn cuMemFreeAsync(pointer: u64, stream: *mut c_void) {
        driver::submit(stream, Task::Free(pointer))
    }

    /// `cuDeviceGetDefaultMemPool`.
    fn cuDeviceGetDefaultMemPool(place: *mut *mut c_void, device: c_int) {
        driver::device_number(device)?;
        put(place, std::ptr::without_provenance_mut(DEFAULT))
    }

    /// `cuMemPoolCreate`.
    fn cuMemPoolCreate(place: *mut *mut c_void, about: *const PoolProperties) {
        let about = get(about)?;
        let here = Location { kind: 1, id: 0 };
        if about.kind != 1 || about.handle_types != 0 || about.location != here {
            return Err(Code::InvalidValue);
        }
        let number = with_device(|device| {
            let number = device.next_pool;
            device.next_pool += 16;
            device.pools.insert(number);
            Ok(number)
        })?;
        put(place, std::ptr::without_provenance_mut(number))
    }

    /// `cuMemPoolDestroy`. The device's own pool stays.
    fn cuMemPoolDestroy(pool: *mut c_void) {
        with_device(|device| {
            match pool.addr() != DEFAULT && device.pools.remove(&pool.addr()) {
                true => Ok(()),
                false => Err(Code::InvalidValue),
            }
        })
    }

    /// `cuMemPoolSetAttribute`: reuse (1 to 3), release threshold (4), peaks to reset (6, 8).
    fn cuMemPoolSetAttribute(pool: *mut c_void, attribute: c_int, value: *mut c_void) {
        known(pool)?;
        match attribute {
            1..=3 => get(value.cast::<c_int>()).map(drop),
            4 => get(value.cast::<u64>()).map(drop),
            6 | 8 if get(value.cast::<u64>())? == 0 => Ok(()),
            _ => Err(Code::InvalidValue),
        }
    }

    /// `cuMemPoolTrimTo`: nothing is kept back.
    fn cuMemPoolTrimTo(pool: *mut c_void, _keep: usize) {
        known(pool)
    }
}
