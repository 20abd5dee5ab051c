//! The runtime's C interface: layouts against bindings that another project made from the
//! runtime's own header, and what it adds to the driver's interface.
//!
//! Functions are those linked into this program, which share one device: one test at a time.

use std::ffi::{CStr, c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::{MutexGuard, PoisonError};

use crate::TURN;
use cudarc::runtime::sys;
use metes_dry_device::control::metes_dry_open;
use metes_dry_device::runtime::graphs::{
    cudaGraphInstantiate, cudaGraphLaunch, cudaStreamBeginCapture, cudaStreamEndCapture,
};
use metes_dry_device::runtime::host::{
    PointerAttributes, cudaFreeHost, cudaHostAlloc, cudaHostRegister, cudaHostUnregister,
    cudaPointerGetAttributes,
};
use metes_dry_device::runtime::launch::{
    __cudaPopCallConfiguration, __cudaPushCallConfiguration, Extent, FunctionAttributes,
    cudaFuncGetAttributes, cudaLaunchKernel,
};
use metes_dry_device::runtime::memory::{
    cudaFree, cudaFreeAsync, cudaMalloc, cudaMallocAsync, cudaMemGetInfo, cudaMemcpy, cudaMemset,
};
use metes_dry_device::runtime::properties::{DeviceProperties, cudaGetDeviceProperties};
use metes_dry_device::runtime::streams::{
    cudaEventCreateWithFlags, cudaEventQuery, cudaEventRecord, cudaStreamAddCallback,
    cudaStreamCreateWithFlags, cudaStreamDestroy, cudaStreamQuery,
};
use metes_dry_device::runtime::{
    cudaDeviceSynchronize, cudaGetErrorName, cudaGetErrorString, cudaGetLastError,
    cudaPeekAtLastError,
};

const MIB: usize = 1 << 20;

fn device(mib: usize) -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(metes_dry_open((mib * MIB) as u64, true), 0);
    cudaGetLastError();
    turn
}

fn block(size: usize) -> *mut c_void {
    let mut block = ptr::null_mut();
    // SAFETY: a pointer of ours; so throughout.
    assert_eq!(unsafe { cudaMalloc(&mut block, size) }, 0);
    block
}

fn stream() -> *mut c_void {
    let mut stream = ptr::null_mut();
    // SAFETY: a pointer of ours.
    assert_eq!(unsafe { cudaStreamCreateWithFlags(&mut stream, 1) }, 0);
    stream
}

#[test]
fn layouts_are_those_of_the_header() {
    type Theirs = sys::cudaDeviceProp;
    assert_eq!(size_of::<DeviceProperties>(), size_of::<Theirs>());
    for (ours, theirs) in [
        (offset_of!(DeviceProperties, uuid), offset_of!(Theirs, uuid)),
        (
            offset_of!(DeviceProperties, total),
            offset_of!(Theirs, totalGlobalMem),
        ),
        (
            offset_of!(DeviceProperties, warp),
            offset_of!(Theirs, warpSize),
        ),
        (
            offset_of!(DeviceProperties, threads_per_block),
            offset_of!(Theirs, maxThreadsPerBlock),
        ),
        (
            offset_of!(DeviceProperties, major),
            offset_of!(Theirs, major),
        ),
        (
            offset_of!(DeviceProperties, minor),
            offset_of!(Theirs, minor),
        ),
        (
            offset_of!(DeviceProperties, processors),
            offset_of!(Theirs, multiProcessorCount),
        ),
        (
            offset_of!(DeviceProperties, bus),
            offset_of!(Theirs, pciBusID),
        ),
        (
            offset_of!(DeviceProperties, unified_addressing),
            offset_of!(Theirs, unifiedAddressing),
        ),
        (
            offset_of!(DeviceProperties, cache),
            offset_of!(Theirs, l2CacheSize),
        ),
        (
            offset_of!(DeviceProperties, threads_per_processor),
            offset_of!(Theirs, maxThreadsPerMultiProcessor),
        ),
        (
            offset_of!(DeviceProperties, shared_per_processor),
            offset_of!(Theirs, sharedMemPerMultiprocessor),
        ),
        (
            offset_of!(DeviceProperties, shared_opt_in),
            offset_of!(Theirs, sharedMemPerBlockOptin),
        ),
        (
            offset_of!(DeviceProperties, blocks_per_processor),
            offset_of!(Theirs, maxBlocksPerMultiProcessor),
        ),
        (
            offset_of!(DeviceProperties, pools),
            offset_of!(Theirs, memoryPoolsSupported),
        ),
    ] {
        assert_eq!(ours, theirs);
    }
    assert_eq!(
        size_of::<PointerAttributes>(),
        size_of::<sys::cudaPointerAttributes>()
    );
    assert_eq!(
        size_of::<FunctionAttributes>(),
        size_of::<sys::cudaFuncAttributes>()
    );
}

#[test]
fn a_thread_remembers_its_last_error() {
    let _turn = device(64);
    let mut refused = ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaMalloc(&mut refused, 65 * MIB), 2);
        assert_eq!(cudaPeekAtLastError(), 2);
        let other = std::thread::spawn(|| cudaPeekAtLastError());
        assert_eq!(other.join().unwrap(), 0);
        let held = block(MIB);
        assert_eq!(cudaGetLastError(), 2);
        assert_eq!(cudaGetLastError(), 0);
        assert_eq!(cudaFree(held), 0);
        assert_eq!(cudaFree(ptr::null_mut()), 0);
        assert_eq!(
            CStr::from_ptr(cudaGetErrorName(2)),
            c"cudaErrorMemoryAllocation"
        );
        // Frameworks look for these words.
        assert_eq!(CStr::from_ptr(cudaGetErrorString(2)), c"out of memory");
        assert_eq!(CStr::from_ptr(cudaGetErrorName(0)), c"cudaSuccess");
        assert!(!cudaGetErrorString(12_345).is_null());
    }
}

#[test]
fn the_device_is_described() {
    let _turn = device(100);
    // SAFETY: all zeros are valid properties.
    let mut about: DeviceProperties = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaGetDeviceProperties(&mut about, 0), 0);
        assert_eq!(cudaGetDeviceProperties(&mut about, 1), 101);
        assert_eq!(cudaGetDeviceProperties(ptr::null_mut(), 0), 1);
        let (mut free, mut total) = (0, 0);
        assert_eq!(cudaMemGetInfo(&mut free, &mut total), 0);
        assert_eq!((free, total), (100 * MIB, 100 * MIB));
    }
    assert_eq!(about.total, 100 * MIB);
    assert_eq!((about.major, about.minor, about.warp), (9, 0, 32));
}

#[test]
fn copies_go_every_way() {
    let _turn = device(64);
    let (left, right) = (block(64), block(64));
    let source = [7_u8; 64];
    let mut back = [0_u8; 64];
    let place = back.as_mut_ptr().cast::<c_void>();
    // SAFETY: as above; blocks and arrays of 64 bytes.
    unsafe {
        for kinds in [[1, 3, 2], [4, 4, 4]] {
            assert_eq!(cudaMemset(right, 0, 64), 0);
            back.fill(0);
            assert_eq!(cudaMemcpy(left, source.as_ptr().cast(), 64, kinds[0]), 0);
            assert_eq!(cudaMemcpy(right, left, 64, kinds[1]), 0);
            assert_eq!(cudaMemcpy(place, right, 64, kinds[2]), 0);
            assert_eq!(back, source);
        }
        // A device address is no host memory, whatever the program says.
        assert_eq!(cudaMemcpy(left, right, 64, 1), 1);
        assert_eq!(cudaMemcpy(place, left, 64, 9), 1);
        // Within the host.
        assert_eq!(cudaMemcpy(place, [3_u8; 64].as_ptr().cast(), 64, 0), 0);
        assert_eq!(back, [3; 64]);
        assert_eq!(cudaFree(left), 0);
        assert_eq!(cudaFree(right), 0);
    }
}

#[test]
fn pointers_are_known_for_what_they_are() {
    let _turn = device(64);
    let held = block(1000);
    let mut pinned = ptr::null_mut();
    let mut own = vec![0_u8; 4096];
    let registered = own.as_mut_ptr().cast::<c_void>();
    let kind = |pointer: *const c_void| {
        // SAFETY: all zeros are valid attributes.
        let mut about: PointerAttributes = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        assert_eq!(unsafe { cudaPointerGetAttributes(&mut about, pointer) }, 0);
        // SAFETY: the kind comes first.
        unsafe { (&raw const about).cast::<c_int>().read() }
    };
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaHostAlloc(&mut pinned, 5000, 0), 0);
        pinned.cast::<u8>().add(4999).write(1);
        assert_eq!(cudaHostRegister(registered, 4096, 0), 0);
        assert_eq!(kind(held.byte_add(999)), 2);
        assert_eq!(kind(pinned.byte_add(4999)), 1);
        assert_eq!(kind(registered), 1);
        assert_eq!(kind((&raw const held).cast()), 0);
        assert_eq!(cudaHostUnregister(registered), 0);
        assert_eq!(cudaHostUnregister(registered), 1);
        assert_eq!(cudaFreeHost(registered), 1);
        assert_eq!(cudaFreeHost(pinned), 0);
        assert_eq!(cudaFreeHost(pinned), 1);
        assert_eq!(kind(registered), 0);
        assert_eq!(cudaFree(held), 0);
    }
}

#[test]
fn stream_ordered_blocks_end_in_their_turn() {
    let _turn = device(8);
    let side = stream();
    let mut held = ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaMallocAsync(&mut held, 8 * MIB, side), 0);
        assert_eq!(metes_dry_device::control::metes_dry_hold_stream(side), 0);
        assert_eq!(cudaFreeAsync(held, side), 0);
        let mut refused = ptr::null_mut();
        assert_eq!(cudaMallocAsync(&mut refused, MIB, side), 2);
        assert_eq!(cudaDeviceSynchronize(), 0);
        assert_eq!(cudaMallocAsync(&mut held, MIB, side), 0);
        assert_eq!(cudaFreeAsync(held, side), 0);
        assert_eq!(cudaDeviceSynchronize(), 0);
        assert_eq!(cudaFree(held), 1);
    }
}

#[test]
fn launches_are_configured_and_ordered() {
    let _turn = device(64);
    let side = stream();
    let (mut event, mut found) = (ptr::null_mut(), ptr::null_mut());
    let (mut grid, mut threads, mut shared) = (Extent::default(), Extent::default(), 0);
    // SAFETY: as above.
    unsafe {
        let extent = |x: u32| std::mem::transmute::<[u32; 3], Extent>([x, 2, 3]);
        assert_eq!(
            __cudaPushCallConfiguration(extent(5), extent(6), 77, side),
            0
        );
        assert_eq!(
            __cudaPopCallConfiguration(&mut grid, &mut threads, &mut shared, &mut found),
            0
        );
        assert_eq!(std::mem::transmute::<Extent, [u32; 3]>(grid), [5, 2, 3]);
        assert_eq!(std::mem::transmute::<Extent, [u32; 3]>(threads), [6, 2, 3]);
        assert_eq!((shared, found), (77, side));
        assert_eq!(
            __cudaPopCallConfiguration(&mut grid, &mut threads, &mut shared, &mut found),
            1
        );
        let kernel = (&raw const shared).cast();
        let launch = || cudaLaunchKernel(kernel, grid, threads, ptr::null_mut(), 0, side);
        assert_eq!(cudaEventCreateWithFlags(&mut event, 2), 0);
        assert_eq!(metes_dry_device::control::metes_dry_hold_stream(side), 0);
        assert_eq!(launch(), 0);
        assert_eq!(cudaEventRecord(event, side), 0);
        assert_eq!(cudaEventQuery(event), 600);
        assert_eq!(metes_dry_device::control::metes_dry_release_stream(side), 0);
        assert_eq!(cudaEventQuery(event), 0);
        // Into a graph.
        let (mut graph, mut executable) = (ptr::null_mut(), ptr::null_mut());
        assert_eq!(cudaStreamBeginCapture(side, 0), 0);
        assert_eq!(launch(), 0);
        assert_eq!(cudaStreamEndCapture(side, &mut graph), 0);
        assert_eq!(cudaGraphInstantiate(&mut executable, graph, 0), 0);
        assert_eq!(cudaGraphLaunch(executable, side), 0);
        assert_eq!(cudaGraphLaunch(graph, side), 400);
        // On a stream that is gone.
        assert_eq!(cudaStreamDestroy(side), 0);
        assert_eq!(launch(), 400);
        assert_eq!(cudaStreamQuery(side), 400);
        let mut about = std::mem::zeroed::<FunctionAttributes>();
        assert_eq!(cudaFuncGetAttributes(&mut about, kernel), 0);
    }
}

unsafe extern "C" fn count(stream: *mut c_void, status: c_int, data: *mut c_void) {
    assert!(!stream.is_null() && status == 0);
    // SAFETY: the counter below. Calling back into the device shows that no lock is held.
    unsafe {
        *data.cast::<u32>() += 1;
        assert_eq!(cudaStreamQuery(stream), 0);
    }
}

#[test]
fn callbacks_come_in_their_turn_and_may_ask() {
    let _turn = device(64);
    let side = stream();
    let mut calls = 0_u32;
    let data = (&raw mut calls).cast::<c_void>();
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaStreamAddCallback(side, Some(count), data, 0), 0);
        assert_eq!(data.cast::<u32>().read(), 1);
        assert_eq!(metes_dry_device::control::metes_dry_hold_stream(side), 0);
        assert_eq!(cudaStreamAddCallback(side, Some(count), data, 0), 0);
        assert_eq!(data.cast::<u32>().read(), 1);
        assert_eq!(cudaDeviceSynchronize(), 0);
        assert_eq!(data.cast::<u32>().read(), 2);
        assert_eq!(cudaStreamAddCallback(side, None, data, 0), 1);
        assert_eq!(
            cudaStreamAddCallback(
                ptr::null_mut::<u8>().wrapping_add(99).cast(),
                Some(count),
                data,
                0
            ),
            400
        );
    }
}
