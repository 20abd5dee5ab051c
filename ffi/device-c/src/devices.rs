//! The heaps of the devices of this process, each made at its first use.
//!
//! A framework's allocator has no place for a heap of its own: it is functions, which know the
//! number of a device. So here is one heap a device, which is never given back: frameworks free
//! until the process ends.
//!
//! Invariant: a device has at most one heap in a process, and one that is found lives on.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use metes_device::backend::Backend;
use metes_device::backend::cuda::Cuda;

use crate::failure::{Failure, Status, guarded, status};
use crate::figures::Options;
use crate::heap::{Heap, Reclaim, Reclaimer, read};

/// Devices that are told apart.
const MOST: usize = 64;

static HEAPS: [AtomicPtr<Heap>; MOST] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST];

/// How heaps are made from now on; held while one is made.
static PLAN: Mutex<Making> = Mutex::new(Making {
    options: None,
    reclaimer: None,
    events: 0,
    fractions: [None; MOST],
});

struct Making {
    options: Option<Options>,
    reclaimer: Option<Reclaimer>,
    /// Events that heaps keep.
    events: usize,
    /// Of a device's whole memory.
    fractions: [Option<f64>; MOST],
}

fn place(device: i32) -> Result<(usize, &'static AtomicPtr<Heap>), Failure> {
    let number = usize::try_from(device).ok().filter(|number| *number < MOST);
    let number = number.ok_or_else(|| {
        Failure::invalid(format!(
            "there is no device {device}: they are numbered from 0 to 63"
        ))
    })?;
    Ok((number, &HEAPS[number]))
}

/// The heap of a device, if it was made.
pub(crate) fn known(device: i32) -> Option<&'static Heap> {
    let (_, heap) = place(device).ok()?;
    // SAFETY: null, or a heap that is never given back.
    unsafe { heap.load(Ordering::Acquire).as_ref() }
}

/// All heaps that were made, and their devices.
pub(crate) fn all() -> impl Iterator<Item = &'static Heap> {
    (0..MOST as i32).filter_map(known)
}

/// The heap that has an address.
pub(crate) fn of(address: u64) -> Result<&'static Heap, Failure> {
    let found = all().find(|heap| heap.range.holds(address, 1));
    found.ok_or_else(|| {
        Failure::new(
            Status::BadFree,
            format!("{address:#x} is no address of a heap: it was allocated elsewhere"),
        )
    })
}

/// The heap of a device, made if there is none.
pub(crate) fn heap(device: i32) -> Result<&'static Heap, Failure> {
    if let Some(heap) = known(device) {
        return Ok(heap);
    }
    let (number, place) = place(device)?;
    let making = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(heap) = known(device) {
        return Ok(heap);
    }
    let mut options = making.options.unwrap_or_default();
    if options.watch == 0 {
        // What a framework does for a block takes far longer than to write it down, and nobody
        // knows beforehand which run will have to be looked at.
        options.watch = 1;
    }
    if let Some(fraction) = making.fractions[number] {
        let total = Cuda::open(number as u32)?.capacity()?.total;
        let share = (total as f64 * fraction) as u64;
        options.cap = match options.cap {
            0 => share,
            cap => cap.min(share),
        };
    }
    let heap = Box::leak(Box::new(Heap::cuda(number as u32, &options)?));
    heap.on_out_of_memory(making.reclaimer);
    heap.record(making.events)?;
    place.store(heap, Ordering::Release);
    Ok(heap)
}

/// Lets heaps use at most a share of their device's memory.
pub(crate) fn limit(device: i32, fraction: f64) -> Result<(), Failure> {
    if !(fraction > 0.0 && fraction <= 1.0) {
        return Err(Failure::invalid(format!(
            "a fraction of {fraction} of the memory was asked for: give more than 0, and 1 at most"
        )));
    }
    let (number, _) = place(device)?;
    let mut making = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(heap) = known(device) {
        return heap.with(|heap| {
            let (_, total) = heap.capacity()?;
            heap.limit((total as f64 * fraction) as u64)
        });
    }
    making.fractions[number] = Some(fraction);
    Ok(())
}

/// See `metes_device.h`.
///
/// # Safety
/// `options` is null or points to options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_devices_configure(options: *const Options) -> Status {
    // SAFETY: the caller's contract.
    let options = unsafe { read(options) };
    status(|| {
        let mut making = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        if all().next().is_some() {
            return Err(Failure::invalid(
                "a device has a heap already, made as was asked for then: configure before the \
                 first allocation",
            ));
        }
        making.options = Some(options);
        Ok(())
    })
}

/// See `metes_device.h`.
///
/// # Safety
/// Any thread may call `reclaim` with `context` from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_devices_on_out_of_memory(
    reclaim: Option<Reclaim>,
    context: *mut c_void,
) -> Status {
    status(|| {
        let mut making = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        making.reclaimer = reclaim.map(|call| Reclaimer { call, context });
        for heap in all() {
            heap.on_out_of_memory(making.reclaimer);
        }
        Ok(())
    })
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_devices_record(most: usize) -> Status {
    status(|| {
        let mut making = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        making.events = most;
        for heap in all() {
            heap.record(most)?;
        }
        Ok(())
    })
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_devices_known(device: i32) -> *const Heap {
    known(device).map_or(ptr::null(), ptr::from_ref)
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_devices_heap(device: i32) -> *const Heap {
    guarded(|| heap(device)).map_or(ptr::null(), ptr::from_ref)
}
