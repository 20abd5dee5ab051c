//! Host memory that the runtime hands out or is told of: pinned, managed, registered.
//!
//! Invariant: an address is in the table while the memory is held, with its kind and size.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device;
use crate::driver::{self, Location};
use crate::entry::{entry_points, get, put};
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
    /// Of managed memory: what was advised.
    advice: Advice,
}

/// What the program said of a block of managed memory as a whole. Of parts of it nothing is
/// remembered, and what they differ in has no answer.
#[derive(Clone, Copy, Debug, Default)]
struct Advice {
    read_mostly: bool,
    preferred: Option<Location>,
    accessed: bool,
    prefetched: Option<Location>,
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
            advice: Advice::default(),
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

/// A block of managed memory for the driver's interface.
pub(crate) fn allocate_managed(place: *mut u64, size: usize) -> Answer {
    if place.is_null() || size == 0 {
        return Err(Code::InvalidValue);
    }
    let mut memory = ptr::null_mut();
    allocate(&raw mut memory, size, MANAGED)?;
    put(place, memory.expose_provenance() as u64)
}

/// Something of the block of managed memory that holds a range; whether the range is all of it.
fn managed<T>(
    address: u64,
    size: usize,
    action: impl FnOnce(&mut Advice, bool) -> Answer<T>,
) -> Answer<T> {
    let mut table = table();
    let around = table.range_mut(..=address).next_back();
    let (start, held) = around
        .filter(|(start, held)| {
            let end = (address - **start).checked_add(size as u64);
            held.kind == MANAGED && size > 0 && end.is_some_and(|end| end <= held.size)
        })
        .ok_or(Code::InvalidValue)?;
    let whole = *start == address && held.size == size as u64;
    action(&mut held.advice, whole)
}

/// Where memory may lie: on the device (1), or on the host (2, 3 or 4).
fn place_of(location: Location) -> Answer<Location> {
    match (location.kind, location.id) {
        (1, 0) | (2..=4, _) => Ok(location),
        (1, _) => Err(Code::InvalidDevice),
        _ => Err(Code::InvalidValue),
    }
}

/// `cudaMemPrefetchAsync`: nothing moves, as where managed memory lies is not modelled.
pub(crate) fn prefetch(
    address: u64,
    size: usize,
    location: Location,
    stream: *mut c_void,
) -> Answer {
    let location = place_of(location)?;
    device::with_context(|device| device.streams.is_idle(driver::stream_of(stream)).map(drop))?;
    managed(address, size, |advice, whole| {
        advice.prefetched = whole.then_some(location);
        Ok(())
    })
}

/// `cudaMemAdvise`: read mostly (1, and 2 takes it back), preferred place (3, 4), accessed by the
/// device (5, 6).
pub(crate) fn advise(address: u64, size: usize, what: c_int, location: Location) -> Answer {
    managed(address, size, |advice, whole| {
        match what {
            1 | 2 => advice.read_mostly = whole && what == 1,
            3 => advice.preferred = Some(place_of(location)?).filter(|_| whole),
            4 => advice.preferred = None,
            5 | 6 => {
                place_of(location)?;
                advice.accessed = whole && what == 5;
            }
            _ => return Err(Code::InvalidValue),
        }
        Ok(())
    })
}

/// `cudaMemRangeGetAttribute`: one number of four bytes; of devices, as many as there is room for.
pub(crate) fn attribute(
    place: *mut c_int,
    room: usize,
    attribute: c_int,
    address: u64,
    size: usize,
) -> Answer {
    let words = room / 4;
    if !room.is_multiple_of(4) || words == 0 || (attribute != 3 && words != 1) {
        return Err(Code::InvalidValue);
    }
    // -1 is the host, -2 nowhere.
    let number = |location: Option<Location>| match location {
        None => -2,
        Some(location) if location.kind == 1 => location.id,
        Some(_) => -1,
    };
    let kind = |location: Option<Location>| location.map_or(0, |location| location.kind);
    let id = |location: Option<Location>| location.map_or(0, |location| location.id);
    let advice = managed(address, size, |advice, _| Ok(*advice))?;
    let found = match attribute {
        1 => c_int::from(advice.read_mostly),
        2 => number(advice.preferred),
        3 if advice.accessed => 0,
        3 => -2,
        4 => number(advice.prefetched),
        5 => kind(advice.preferred),
        6 => id(advice.preferred),
        7 => kind(advice.prefetched),
        8 => id(advice.prefetched),
        _ => return Err(Code::InvalidValue),
    };
    put(place, found)?;
    (1..words).try_for_each(|word| put(place.wrapping_add(word), -2))
}

/// `cudaMemRangeGetAttributes`: several at once.
pub(crate) fn attributes(
    places: *mut *mut c_void,
    rooms: *const usize,
    wanted: *const c_int,
    count: usize,
    address: u64,
    size: usize,
) -> Answer {
    (0..count).try_for_each(|index| {
        let place = get(places.wrapping_add(index))?;
        let room = get(rooms.wrapping_add(index))?;
        let wanted = get(wanted.wrapping_add(index))?;
        attribute(place.cast(), room, wanted, address, size)
    })
}

entry_points! {
    via crate::runtime::remembered;

    /// `cudaMemPrefetchAsync`.
    fn cudaMemPrefetchAsync(
        pointer: *const c_void,
        size: usize,
        location: Location,
        _flags: c_uint,
        stream: *mut c_void,
    ) {
        prefetch(pointer.addr() as u64, size, location, stream)
    }

    /// `cudaMemPrefetchAsync_v2`: the same by its older name.
    fn cudaMemPrefetchAsync_v2(
        pointer: *const c_void,
        size: usize,
        location: Location,
        _flags: c_uint,
        stream: *mut c_void,
    ) {
        prefetch(pointer.addr() as u64, size, location, stream)
    }

    /// `cudaMemAdvise`.
    fn cudaMemAdvise(pointer: *const c_void, size: usize, what: c_int, location: Location) {
        advise(pointer.addr() as u64, size, what, location)
    }

    /// `cudaMemAdvise_v2`: the same by its older name.
    fn cudaMemAdvise_v2(pointer: *const c_void, size: usize, what: c_int, location: Location) {
        advise(pointer.addr() as u64, size, what, location)
    }

    /// `cudaMemRangeGetAttribute`.
    fn cudaMemRangeGetAttribute(
        place: *mut c_void,
        room: usize,
        wanted: c_int,
        pointer: *const c_void,
        size: usize,
    ) {
        attribute(place.cast(), room, wanted, pointer.addr() as u64, size)
    }

    /// `cudaMemRangeGetAttributes`.
    fn cudaMemRangeGetAttributes(
        places: *mut *mut c_void,
        rooms: *mut usize,
        wanted: *mut c_int,
        count: usize,
        pointer: *const c_void,
        size: usize,
    ) {
        attributes(places, rooms, wanted, count, pointer.addr() as u64, size)
    }

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
            advice: Advice::default(),
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
