//! Host memory that the runtime hands out or is told of: pinned, managed, registered.
//!
//! Invariant: an address is in the table while the memory is held, with its kind and size.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device;
use crate::entry::{entry_points, put};
use crate::error::{Answer, Code};

/// Numbers of `cudaMemoryType`.
const HOST: c_int = 1;
const DEVICE: c_int = 2;
const MANAGED: c_int = 3;

#[derive(Clone, Copy, Debug)]
struct Held {
    size: u64,
    kind: c_int,
    /// Of the program, which only told of it.
    foreign: bool,
}

static TABLE: Mutex<BTreeMap<u64, Held>> = Mutex::new(BTreeMap::new());

fn table() -> MutexGuard<'static, BTreeMap<u64, Held>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cudaPointerAttributes`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
    reserved: [i64; 8],
}

fn allocate(place: *mut *mut c_void, size: usize, kind: c_int) -> Answer {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    if size == 0 {
        return put(place, ptr::null_mut());
    }
    // SAFETY: a new mapping; the result is checked.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(Code::OutOfMemory);
    }
    table().insert(
        memory.addr() as u64,
        Held {
            size: size as u64,
            kind,
            foreign: false,
        },
    );
    put(place, memory)
}

/// Frees memory that was handed out here; whether it was.
pub(crate) fn free(pointer: *mut c_void) -> bool {
    let mut table = table();
    let address = pointer.addr() as u64;
    let Some(held) = table.get(&address).copied().filter(|held| !held.foreign) else {
        return false;
    };
    table.remove(&address);
    // SAFETY: the whole of a mapping made here, which the program gave back.
    unsafe { libc::munmap(pointer, held.size as usize) };
    true
}

/// What is known of an address: its kind; 0 if nothing.
fn kind_of(address: u64) -> c_int {
    let on_device = device::inspect(|device| device.engine.memory.is_known(address));
    if on_device == Some(true) {
        return DEVICE;
    }
    let table = table();
    let found = table.range(..=address).next_back();
    found
        .filter(|(start, held)| address - **start < held.size)
        .map_or(0, |(_, held)| held.kind)
}

entry_points! {
    via crate::runtime::remembered;

    /// `cudaHostAlloc`.
    fn cudaHostAlloc(place: *mut *mut c_void, size: usize, _flags: c_uint) {
        allocate(place, size, HOST)
    }

    /// `cudaMallocHost`.
    fn cudaMallocHost(place: *mut *mut c_void, size: usize) {
        allocate(place, size, HOST)
    }

    /// `cudaMallocManaged`: memory of the host. What would move to the device is not known.
    fn cudaMallocManaged(place: *mut *mut c_void, size: usize, _flags: c_uint) {
        allocate(place, size, MANAGED)
    }

    /// `cudaFreeHost`.
    fn cudaFreeHost(pointer: *mut c_void) {
        match pointer.is_null() || free(pointer) {
            true => Ok(()),
            false => Err(Code::InvalidValue),
        }
    }

    /// `cudaHostRegister`.
    fn cudaHostRegister(pointer: *mut c_void, size: usize, _flags: c_uint) {
        if pointer.is_null() || size == 0 {
            return Err(Code::InvalidValue);
        }
        table().insert(pointer.addr() as u64, Held {
            size: size as u64,
            kind: HOST,
            foreign: true,
        });
        Ok(())
    }

    /// `cudaHostUnregister`.
    fn cudaHostUnregister(pointer: *mut c_void) {
        let mut table = table();
        let address = pointer.addr() as u64;
        match table.get(&address) {
            Some(held) if held.foreign => {
                table.remove(&address);
                Ok(())
            }
            _ => Err(Code::InvalidValue),
        }
    }

    /// `cudaPointerGetAttributes`.
    fn cudaPointerGetAttributes(about: *mut PointerAttributes, pointer: *const c_void) {
        let address = pointer.addr() as u64;
        let kind = kind_of(address);
        put(about, PointerAttributes {
            kind,
            device: if kind == 0 { -2 } else { 0 },
            device_pointer: if kind == 0 { 0 } else { address },
            host_pointer: if kind == DEVICE { 0 } else { address },
            reserved: [0; 8],
        })
    }
}
