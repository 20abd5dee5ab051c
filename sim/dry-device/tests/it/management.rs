//! The management library, and what programs say of managed memory.
//!
//! Functions are those linked into this program, which share one device: one test at a time.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{MutexGuard, PoisonError};

use crate::TURN;
use metes_dry_device::control::metes_dry_open;
use metes_dry_device::driver::Location;
use metes_dry_device::management::{
    nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetCudaComputeCapability,
    nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetMemoryInfo_v2, nvmlDeviceGetPowerUsage,
    nvmlDeviceGetTemperature, nvmlDeviceGetTemperatureV, nvmlInit_v2, nvmlSystemGetProcessName,
};
use metes_dry_device::modules::{cuMemAdvise, cuMemAllocManaged, cuMemPrefetchAsync_v2};
use metes_dry_device::runtime::host::{
    cudaMallocManaged, cudaMemAdvise, cudaMemPrefetchAsync, cudaMemRangeGetAttribute,
    cudaMemRangeGetAttributes,
};
use metes_dry_device::runtime::memory::{cudaFree, cudaMalloc};

const MIB: usize = 1 << 20;
const INVALID: c_int = 1;

fn device(mib: usize) -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(metes_dry_open((mib * MIB) as u64, true), 0);
    turn
}

/// Handle of the device, after a block of 4 MiB.
fn managed() -> *mut c_void {
    let (mut block, mut handle) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: pointers of ours; so throughout.
    unsafe {
        assert_eq!(nvmlInit_v2(), 0);
        assert_eq!(cudaMalloc(&mut block, 4 * MIB), 0);
        assert_eq!(nvmlDeviceGetHandleByIndex_v2(0, &mut handle), 0);
    }
    handle
}

#[test]
fn memory_with_a_version() {
    let _turn = device(64);
    let handle = managed();
    // As the header lays it out: a version, and four sums.
    let mut memory = [0_u64; 5];
    memory[0] = 40 | 2 << 24;
    // SAFETY: as above.
    unsafe {
        assert_eq!(
            nvmlDeviceGetMemoryInfo_v2(handle, memory.as_mut_ptr().cast()),
            0
        );
        let mib = MIB as u64;
        assert_eq!(memory[1..], [64 * mib, 0, 60 * mib, 4 * mib]);
        memory[0] = 24 | 1 << 24;
        assert_eq!(
            nvmlDeviceGetMemoryInfo_v2(handle, memory.as_mut_ptr().cast()),
            2
        );
    }
}

#[test]
fn this_process_is_the_one_that_runs() {
    let _turn = device(64);
    let handle = managed();
    let (mut count, mut processes) = (0, [0_u64; 3]);
    // SAFETY: as above.
    unsafe {
        let mut ask = |count: &mut c_uint| {
            nvmlDeviceGetComputeRunningProcesses_v3(handle, count, processes.as_mut_ptr().cast())
        };
        // There is no room, and how much is wanted is said.
        assert_eq!((ask(&mut count), count), (7, 1));
        assert_eq!((ask(&mut count), count), (0, 1));
        assert_eq!(processes[0] as c_uint, std::process::id());
        assert_eq!(processes[1..], [4 * MIB as u64, u64::MAX]);
        let mut name = [0 as c_char; 512];
        assert_eq!(
            nvmlSystemGetProcessName(std::process::id(), name.as_mut_ptr(), 512),
            0
        );
        assert_ne!(name[0], 0);
        assert_eq!(nvmlSystemGetProcessName(1, name.as_mut_ptr(), 512), 2);
    }
}

#[test]
fn an_idle_device_is_cool() {
    let _turn = device(64);
    let handle = managed();
    let (mut degrees, mut milliwatts) = (0, 0);
    let mut versioned = [12 | 1 << 24, 0, 0];
    let (mut major, mut minor) = (0, 0);
    // SAFETY: as above.
    unsafe {
        assert_eq!(nvmlDeviceGetTemperature(handle, 0, &mut degrees), 0);
        assert_eq!(nvmlDeviceGetTemperature(handle, 9, &mut degrees), 2);
        let place = versioned.as_mut_ptr();
        assert_eq!(nvmlDeviceGetTemperatureV(handle, place.cast()), 0);
        assert_eq!(versioned[2], degrees);
        assert_eq!(nvmlDeviceGetPowerUsage(handle, &mut milliwatts), 0);
        assert!((1..100).contains(&degrees) && milliwatts > 1000);
        assert_eq!(
            nvmlDeviceGetCudaComputeCapability(handle, &mut major, &mut minor),
            0
        );
        assert_eq!((major, minor), (9, 0));
    }
}

const HERE: Location = Location { kind: 1, id: 0 };
const HOST: Location = Location { kind: 2, id: 0 };
const OTHER: Location = Location { kind: 1, id: 1 };

#[test]
fn managed_memory_is_advised_and_prefetched() {
    let _turn = device(64);
    let (mut block, mut plain) = (ptr::null_mut(), ptr::null_mut());
    let none = ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaMallocManaged(&mut block, 4 * MIB, 1), 0);
        assert_eq!(cudaMalloc(&mut plain, 4 * MIB), 0);
        let prefetch =
            |place: *mut c_void, size, to| cudaMemPrefetchAsync(place, size, to, 0, none);
        assert_eq!(prefetch(block, 4 * MIB, HERE), 0);
        assert_eq!(prefetch(plain, 4 * MIB, HERE), INVALID);
        assert_eq!(prefetch(block, 4 * MIB + 1, HERE), INVALID);
        assert_eq!(prefetch(block, 0, HERE), INVALID);
        assert_eq!(prefetch(block, MIB, OTHER), 101);
        let unknown = ptr::without_provenance_mut(99);
        assert_eq!(cudaMemPrefetchAsync(block, MIB, HERE, 0, unknown), 400);
        let ask = |which| {
            let mut found: c_int = 77;
            let place = (&raw mut found).cast();
            assert_eq!(cudaMemRangeGetAttribute(place, 4, which, block, 4 * MIB), 0);
            found
        };
        assert_eq!([ask(1), ask(2), ask(4), ask(7)], [0, -2, 0, 1]);
        for (what, place) in [(1, HERE), (3, HOST), (5, HERE)] {
            assert_eq!(cudaMemAdvise(block, 4 * MIB, what, place), 0);
        }
        assert_eq!([ask(1), ask(2), ask(3), ask(5)], [1, -1, 0, 2]);
        assert_eq!(cudaMemAdvise(block, 4 * MIB, 7, HERE), INVALID);
        // Several at once, and of devices as many as there is room for.
        let (mut mostly, mut devices): (c_int, [c_int; 3]) = (9, [9; 3]);
        let mut places = [(&raw mut mostly).cast(), devices.as_mut_ptr().cast()];
        assert_eq!(
            cudaMemRangeGetAttributes(
                places.as_mut_ptr(),
                [4, 12].as_mut_ptr(),
                [1, 3].as_mut_ptr(),
                2,
                block,
                4 * MIB
            ),
            0
        );
        assert_eq!((mostly, devices), (1, [0, -2, -2]));
        // What was said of a part is no answer for the whole.
        assert_eq!(prefetch(block, MIB, HOST), 0);
        assert_eq!(ask(4), -2);
        assert_eq!(cudaFree(block), 0);
        assert_eq!(prefetch(block, MIB, HERE), INVALID);
        // By the driver's names.
        let mut address = 0;
        assert_eq!(cuMemAllocManaged(&mut address, MIB, 1), 0);
        assert_eq!(cuMemAllocManaged(&mut address, MIB, 9), INVALID);
        assert_eq!(cuMemPrefetchAsync_v2(address, MIB, HERE, 0, none), 0);
        assert_eq!(cuMemAdvise(address, MIB, 3, -1), 0);
        assert_eq!(cuMemAdvise(address, MIB, 3, 1), 101);
    }
}
