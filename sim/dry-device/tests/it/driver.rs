//! The driver's C interface, called through bindings that another project made from the driver's
//! own header: names, layouts and numbers are compared with something that is not ours.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::{MutexGuard, PoisonError};

use crate::TURN;
use cudarc::driver::sys::{self, CUresult};
use metes_dry_device::driver;
use metes_dry_device::library::Library;
use metes_dry_device::memory::GRANULARITY;

const PAGE: usize = GRANULARITY as usize;
const OK: CUresult = CUresult::CUDA_SUCCESS;
const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

struct Rig {
    library: Library,
    _turn: MutexGuard<'static, ()>,
}

impl Rig {
    fn new(pages: usize) -> Rig {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let library = Library::load().expect("the library is built with its tests");
        library.open((pages * PAGE) as u64, true).unwrap();
        let mut context = ptr::null_mut();
        // SAFETY: pointers of ours.
        unsafe {
            assert_eq!(sys::cuInit(0), OK);
            assert_eq!(sys::cuDevicePrimaryCtxRetain(&mut context, 0), OK);
            assert_eq!(sys::cuCtxSetCurrent(context), OK);
        }
        Rig {
            library,
            _turn: turn,
        }
    }
}

fn here() -> sys::CUmemLocation {
    // SAFETY: all zeros are a valid location.
    let mut location: sys::CUmemLocation = unsafe { std::mem::zeroed() };
    location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = 0;
    location
}

fn properties() -> sys::CUmemAllocationProp {
    // SAFETY: all zeros are valid properties.
    let mut about: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    about.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    about.location = here();
    about
}

fn open(start: u64, size: usize) -> CUresult {
    let description = sys::CUmemAccessDesc {
        location: here(),
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    // SAFETY: one description.
    unsafe { sys::cuMemSetAccess(start, size, &description, 1) }
}

fn stream() -> sys::CUstream {
    let mut stream = ptr::null_mut();
    // SAFETY: a pointer of ours.
    assert_eq!(unsafe { sys::cuStreamCreate(&mut stream, 1) }, OK);
    stream
}

fn event() -> sys::CUevent {
    let mut event = ptr::null_mut();
    // SAFETY: a pointer of ours.
    assert_eq!(unsafe { sys::cuEventCreate(&mut event, 2) }, OK);
    event
}

fn block(size: usize) -> u64 {
    let mut block = 0;
    // SAFETY: a pointer of ours.
    assert_eq!(unsafe { sys::cuMemAlloc_v2(&mut block, size) }, OK);
    block
}

fn byte_at(address: u64) -> u8 {
    let mut byte = 0_u8;
    let place = (&raw mut byte).cast::<c_void>();
    // SAFETY: room for one byte.
    assert_eq!(unsafe { sys::cuMemcpyDtoH_v2(place, address, 1) }, OK);
    byte
}

#[test]
fn layouts_are_those_of_the_header() {
    assert_eq!(
        size_of::<driver::Properties>(),
        size_of::<sys::CUmemAllocationProp>()
    );
    assert_eq!(
        size_of::<driver::AccessDescription>(),
        size_of::<sys::CUmemAccessDesc>()
    );
    assert_eq!(
        size_of::<metes_dry_device::pools::PoolProperties>(),
        size_of::<sys::CUmemPoolProps>()
    );
    assert_eq!(
        std::mem::offset_of!(metes_dry_device::pools::PoolProperties, location),
        std::mem::offset_of!(sys::CUmemPoolProps, location)
    );
    assert_eq!(
        std::mem::offset_of!(driver::Properties, location),
        std::mem::offset_of!(sys::CUmemAllocationProp, location)
    );
    assert_eq!(
        std::mem::offset_of!(driver::AccessDescription, flags),
        std::mem::offset_of!(sys::CUmemAccessDesc, flags)
    );
}

/// Blocks of pools go in the order of their stream; a pool is the device's own, or made and not
/// destroyed.
#[test]
fn pools_give_blocks_in_the_order_of_streams() {
    let rig = Rig::new(4);
    let stream = stream();
    // SAFETY: places of ours, structures as the header has them; the model refuses the rest.
    unsafe {
        let mut own = ptr::null_mut();
        assert_eq!(sys::cuDeviceGetDefaultMemPool(&mut own, 0), OK);
        assert_eq!(sys::cuMemPoolDestroy(own), INVALID);
        let mut about: sys::CUmemPoolProps = std::mem::zeroed();
        let mut pool = ptr::null_mut();
        assert_eq!(sys::cuMemPoolCreate(&mut pool, &about), INVALID);
        about.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        about.location = here();
        assert_eq!(sys::cuMemPoolCreate(&mut pool, &about), OK);
        assert_ne!(pool, own);
        let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let mut most = u64::MAX;
        assert_eq!(
            sys::cuMemPoolSetAttribute(pool, threshold, (&raw mut most).cast()),
            OK
        );

        let (mut one, mut other) = (0, 0);
        assert_eq!(sys::cuMemAllocAsync(&mut one, 2 * PAGE, stream), OK);
        assert_eq!(
            sys::cuMemAllocFromPoolAsync(&mut other, 2 * PAGE, pool, stream),
            OK
        );
        let mut third = 0;
        assert_eq!(
            sys::cuMemAllocAsync(&mut third, 1, stream),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        );
        // What the stream has not come to is not free.
        rig.library.hold(stream.cast()).unwrap();
        assert_eq!(sys::cuMemFreeAsync(one, stream), OK);
        assert_eq!(
            sys::cuMemAllocAsync(&mut third, PAGE, stream),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        );
        rig.library.release(stream.cast()).unwrap();
        assert_eq!(sys::cuMemAllocAsync(&mut third, PAGE, stream), OK);
        assert_eq!(sys::cuMemFreeAsync(third, stream), OK);
        assert_eq!(sys::cuMemFreeAsync(other, stream), OK);
        assert_eq!(sys::cuMemFreeAsync(0x1234, stream), INVALID);
        assert_eq!(sys::cuMemPoolTrimTo(pool, 0), OK);
        assert_eq!(sys::cuMemPoolDestroy(pool), OK);
        assert_eq!(sys::cuMemPoolDestroy(pool), INVALID);
        assert_eq!(
            sys::cuMemAllocFromPoolAsync(&mut other, 1, pool, stream),
            INVALID
        );
        assert_eq!(sys::cuStreamDestroy_v2(stream), OK);
    }
    assert_eq!(rig.library.figures().unwrap().used, 0);
}

#[test]
fn error_numbers_are_those_of_the_header() {
    let _rig = Rig::new(1);
    for (result, name) in [
        (INVALID, c"CUDA_ERROR_INVALID_VALUE"),
        (
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            c"CUDA_ERROR_OUT_OF_MEMORY",
        ),
        (
            CUresult::CUDA_ERROR_INVALID_CONTEXT,
            c"CUDA_ERROR_INVALID_CONTEXT",
        ),
        (
            CUresult::CUDA_ERROR_INVALID_HANDLE,
            c"CUDA_ERROR_INVALID_HANDLE",
        ),
        (CUresult::CUDA_ERROR_NOT_READY, c"CUDA_ERROR_NOT_READY"),
        (
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
            c"CUDA_ERROR_ILLEGAL_ADDRESS",
        ),
        (
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
            c"CUDA_ERROR_NOT_SUPPORTED",
        ),
        (
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        ),
        (
            CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        ),
        (
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
            c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
        ),
        (
            CUresult::CUDA_ERROR_CAPTURED_EVENT,
            c"CUDA_ERROR_CAPTURED_EVENT",
        ),
    ] {
        let (mut found, mut text) = (ptr::null(), ptr::null());
        // SAFETY: the pointers are of ours, the strings static.
        unsafe {
            assert_eq!(sys::cuGetErrorName(result, &mut found), OK);
            assert_eq!(CStr::from_ptr(found), name);
            assert_eq!(sys::cuGetErrorString(result, &mut text), OK);
            assert!(!CStr::from_ptr(text).is_empty());
        }
    }
}

#[test]
fn the_device_says_what_it_is() {
    let _rig = Rig::new(5);
    let (mut count, mut device, mut value) = (0, -1, 0);
    let (mut total, mut free, mut all) = (0, 0, 0);
    let mut name = [0; 64];
    use sys::CUdevice_attribute as Attribute;
    // SAFETY: pointers of ours.
    unsafe {
        assert_eq!(sys::cuDeviceGetCount(&mut count), OK);
        assert_eq!(count, 1);
        assert_eq!(sys::cuDeviceGet(&mut device, 0), OK);
        assert_eq!(
            sys::cuDeviceGet(&mut device, 1),
            CUresult::CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(sys::cuDeviceTotalMem_v2(&mut total, device), OK);
        assert_eq!(total, 5 * PAGE);
        assert_eq!(sys::cuDeviceGetName(name.as_mut_ptr(), 64, device), OK);
        assert!(
            CStr::from_ptr(name.as_ptr())
                .to_string_lossy()
                .contains("dry")
        );
        for (attribute, expected) in [
            (
                Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                1,
            ),
            (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9),
            (Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
            (Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1),
            (Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
        ] {
            assert_eq!(sys::cuDeviceGetAttribute(&mut value, attribute, device), OK);
            assert_eq!(value, expected, "{attribute:?}");
        }
        let held = block(2 * PAGE);
        assert_eq!(sys::cuMemGetInfo_v2(&mut free, &mut all), OK);
        assert_eq!((free, all), (3 * PAGE, 5 * PAGE));
        assert_eq!(sys::cuMemFree_v2(held), OK);
    }
}

#[test]
fn nothing_works_before_the_beginning_or_after_the_end() {
    let rig = Rig::new(2);
    rig.library.close().unwrap();
    let (mut count, mut block, mut context) = (0, 0, ptr::null_mut());
    // SAFETY: pointers of ours.
    unsafe {
        assert_eq!(
            sys::cuDeviceGetCount(&mut count),
            CUresult::CUDA_ERROR_NOT_INITIALIZED
        );
        rig.library.open(PAGE as u64, true).unwrap();
        assert_eq!(sys::cuInit(0), OK);
        // The thread's context is one of the device that is gone.
        assert_eq!(
            sys::cuMemAlloc_v2(&mut block, 1),
            CUresult::CUDA_ERROR_INVALID_CONTEXT
        );
        assert_eq!(sys::cuDevicePrimaryCtxRetain(&mut context, 0), OK);
        assert_eq!(sys::cuMemAlloc_v2(&mut block, 1), OK);
        assert_eq!(sys::cuDevicePrimaryCtxRelease_v2(0), OK);
        assert_eq!(
            sys::cuMemFree_v2(block),
            CUresult::CUDA_ERROR_INVALID_CONTEXT
        );
        assert_eq!(
            sys::cuDevicePrimaryCtxRelease_v2(0),
            CUresult::CUDA_ERROR_INVALID_CONTEXT
        );
    }
    assert_eq!(rig.library.figures().unwrap().used, 0);
}

#[test]
fn mapped_memory_end_to_end() {
    let rig = Rig::new(4);
    let about = properties();
    let (mut range, mut handle, mut granularity) = (0, 0, 0);
    // SAFETY: pointers of ours.
    unsafe {
        let option = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        assert_eq!(
            sys::cuMemGetAllocationGranularity(&mut granularity, &about, option),
            OK
        );
        assert_eq!(granularity, PAGE);
        assert_eq!(sys::cuMemAddressReserve(&mut range, 8 * PAGE, 0, 0, 0), OK);
        assert_eq!(
            sys::cuMemAddressReserve(&mut range, 8 * PAGE, 0, 0, 1),
            INVALID
        );
        assert_eq!(sys::cuMemCreate(&mut handle, PAGE, &about, 0), OK);
        assert_eq!(sys::cuMemCreate(&mut handle, PAGE / 2, &about, 0), INVALID);
        let mut elsewhere = about;
        elsewhere.location.id = 1;
        let mut other = 0;
        assert_eq!(
            sys::cuMemCreate(&mut other, PAGE, &elsewhere, 0),
            CUresult::CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(
            sys::cuMemCreate(&mut other, 4 * PAGE, &about, 0),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        );
        assert_eq!(sys::cuMemMap(range, PAGE, 0, handle, 0), OK);
        let mut flags = 9;
        assert_eq!(sys::cuMemGetAccess(&mut flags, &here(), range), OK);
        assert_eq!(flags, 0);
        assert_eq!(open(range, PAGE), OK);
        assert_eq!(sys::cuMemGetAccess(&mut flags, &here(), range), OK);
        assert_eq!(flags, 3);
        assert_eq!(sys::cuMemsetD32_v2(range, 0x0403_0201, PAGE / 4), OK);
        assert_eq!(byte_at(range + PAGE as u64 - 1), 4);
        assert_eq!(sys::cuMemRelease(handle), OK);
        assert_eq!(sys::cuMemRelease(handle), INVALID);
        assert_eq!(sys::cuMemAddressFree(range, 8 * PAGE), INVALID);
        assert_eq!(sys::cuMemUnmap(range, PAGE), OK);
        assert_eq!(sys::cuMemAddressFree(range, 8 * PAGE), OK);
    }
    assert_eq!(rig.library.figures().unwrap().used, 0);
    assert_eq!(rig.library.calls(c"cuMemRelease"), 2);
}

#[test]
fn work_on_memory_without_access_ends_the_context() {
    let rig = Rig::new(4);
    let about = properties();
    let (mut range, mut handle, mut context) = (0, 0, ptr::null_mut());
    // SAFETY: pointers of ours.
    unsafe {
        assert_eq!(sys::cuMemAddressReserve(&mut range, PAGE, 0, 0, 0), OK);
        assert_eq!(sys::cuMemCreate(&mut handle, PAGE, &about, 0), OK);
        assert_eq!(sys::cuMemMap(range, PAGE, 0, handle, 0), OK);
        // An address of nothing is refused, and that is all.
        assert_eq!(sys::cuMemsetD8_v2(4096, 1, 1), INVALID);
        assert_eq!(
            sys::cuMemsetD8_v2(range, 1, 1),
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        );
        assert_eq!(
            sys::cuMemRelease(handle),
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        );
        assert_eq!(sys::cuDevicePrimaryCtxReset_v2(0), OK);
        assert_eq!(sys::cuDevicePrimaryCtxRetain(&mut context, 0), OK);
        // Mapped memory belongs to no context.
        assert_eq!(sys::cuMemUnmap(range, PAGE), OK);
        assert_eq!(sys::cuMemRelease(handle), OK);
        assert_eq!(sys::cuMemAddressFree(range, PAGE), OK);
    }
    assert_eq!(rig.library.figures().unwrap().reserved, 0);
}

#[test]
fn early_reuse_on_another_stream_is_seen() {
    let rig = Rig::new(4);
    let (late, early, done) = (stream(), stream(), event());
    let memory = block(64);
    // SAFETY: pointers of ours.
    unsafe {
        rig.library.hold(late.cast()).unwrap();
        assert_eq!(sys::cuMemsetD8Async(memory, 1, 64, late), OK);
        assert_eq!(sys::cuEventRecord(done, late), OK);
        assert_eq!(sys::cuEventQuery(done), CUresult::CUDA_ERROR_NOT_READY);
        assert_eq!(sys::cuStreamQuery(late), CUresult::CUDA_ERROR_NOT_READY);
        // Without a wait the other stream is first, and what it writes is lost.
        assert_eq!(sys::cuMemsetD8Async(memory, 2, 64, early), OK);
        rig.library.release(late.cast()).unwrap();
        assert_eq!(sys::cuEventQuery(done), OK);
        assert_eq!(byte_at(memory), 1);
        // With one it is not.
        rig.library.hold(late.cast()).unwrap();
        assert_eq!(sys::cuMemsetD8Async(memory, 3, 64, late), OK);
        assert_eq!(sys::cuEventRecord(done, late), OK);
        assert_eq!(sys::cuStreamWaitEvent(early, done, 0), OK);
        assert_eq!(sys::cuMemsetD8Async(memory, 4, 64, early), OK);
        rig.library.release(late.cast()).unwrap();
        assert_eq!(byte_at(memory), 4);
    }
}

#[test]
fn a_held_copy_keeps_the_bytes_of_its_source() {
    let rig = Rig::new(4);
    let side = stream();
    let memory = block(64);
    // SAFETY: pointers of ours.
    unsafe {
        rig.library.hold(side.cast()).unwrap();
        assert_eq!(sys::cuMemsetD8Async(memory, 1, 64, side), OK);
        let mut source = [5_u8; 64];
        let place = source.as_ptr().cast();
        assert_eq!(sys::cuMemcpyHtoDAsync_v2(memory, place, 64, side), OK);
        source.fill(6);
        assert_eq!(sys::cuStreamSynchronize(side), OK);
        assert_eq!(byte_at(memory), 5);
        assert_eq!(source[0], 6);
    }
}

#[test]
fn unmapping_under_late_work_faults() {
    let rig = Rig::new(4);
    let side = stream();
    let about = properties();
    let (mut range, mut handle) = (0, 0);
    // SAFETY: pointers of ours.
    unsafe {
        assert_eq!(sys::cuMemAddressReserve(&mut range, PAGE, 0, 0, 0), OK);
        assert_eq!(sys::cuMemCreate(&mut handle, PAGE, &about, 0), OK);
        assert_eq!(sys::cuMemMap(range, PAGE, 0, handle, 0), OK);
        assert_eq!(open(range, PAGE), OK);
        rig.library.hold(side.cast()).unwrap();
        assert_eq!(sys::cuMemsetD8Async(range, 1, PAGE, side), OK);
        assert_eq!(sys::cuMemUnmap(range, PAGE), OK);
        assert_eq!(
            sys::cuStreamSynchronize(side),
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        );
        assert_eq!(
            sys::cuCtxSynchronize(),
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        );
    }
}

#[test]
fn what_was_destroyed_is_refused() {
    let _rig = Rig::new(4);
    let (side, mark) = (stream(), event());
    // SAFETY: handles that the interface gave.
    unsafe {
        assert_eq!(sys::cuStreamDestroy_v2(side), OK);
        assert_eq!(sys::cuEventDestroy_v2(mark), OK);
        let gone = CUresult::CUDA_ERROR_INVALID_HANDLE;
        assert_eq!(sys::cuStreamQuery(side), gone);
        assert_eq!(sys::cuStreamDestroy_v2(side), gone);
        assert_eq!(sys::cuEventRecord(mark, ptr::null_mut()), gone);
        assert_eq!(sys::cuEventDestroy_v2(mark), gone);
        assert_eq!(sys::cuMemFree_v2(12345), INVALID);
        let held = block(1);
        assert_eq!(sys::cuMemFree_v2(held), OK);
        assert_eq!(sys::cuMemFree_v2(held), INVALID);
    }
}

#[test]
fn a_recording_forbids_allocation_unless_the_thread_allows_it() {
    let _rig = Rig::new(4);
    let side = stream();
    let mut graph = ptr::null_mut();
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let global = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: pointers of ours.
    unsafe {
        assert_eq!(sys::cuStreamBeginCapture_v2(side, global), OK);
        assert_eq!(sys::cuStreamIsCapturing(side, &mut status), OK);
        assert_eq!(
            status,
            sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        );
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_eq!(sys::cuThreadExchangeStreamCaptureMode(&mut mode), OK);
        assert_eq!(mode, global);
        let held = block(1);
        assert_eq!(sys::cuThreadExchangeStreamCaptureMode(&mut mode), OK);
        assert_eq!(sys::cuStreamEndCapture(side, &mut graph), OK);
        assert!(!graph.is_null());
        assert_eq!(sys::cuMemFree_v2(held), OK);

        assert_eq!(sys::cuStreamBeginCapture_v2(side, global), OK);
        let mut refused = 0;
        assert_eq!(
            sys::cuMemAlloc_v2(&mut refused, 1),
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        );
        assert_eq!(
            sys::cuStreamEndCapture(side, &mut graph),
            CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        );
    }
}

#[test]
fn functions_are_found_by_name() {
    let _rig = Rig::new(1);
    for (name, found) in [
        (c"cuMemAlloc", true),
        (c"cuMemAlloc_v2", true),
        (c"cuMemMap", true),
        (c"cuStreamBeginCapture", true),
        (c"cuNothing", false),
    ] {
        let mut function = ptr::null_mut();
        let mut status = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
        // SAFETY: pointers of ours.
        let result = unsafe {
            sys::cuGetProcAddress_v2(name.as_ptr(), &mut function, 13_000, 0, &mut status)
        };
        assert_eq!(result == OK, found, "{name:?}");
        assert_eq!(!function.is_null(), found, "{name:?}");
    }
}

#[test]
fn host_access_faults() {
    let _rig = Rig::new(4);
    let memory = block(4096);
    // SAFETY: the child only reads one byte, which must end it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            // It is ended if it waits for a lock that nobody holds in it.
            libc::alarm(100);
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            let byte = ptr::with_exposed_provenance::<u8>(memory as usize).read_volatile();
            libc::_exit(i32::from(byte));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFSIGNALED(status));
        assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
    }
}

#[test]
fn a_fork_cannot_use_the_device() {
    let _rig = Rig::new(4);
    // SAFETY: the child only calls the library and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            // It is ended if it waits for a lock that nobody holds in it.
            libc::alarm(100);
            let mut memory = 0;
            let gone = CUresult::CUDA_ERROR_NOT_INITIALIZED;
            let refused = sys::cuInit(0) == gone && sys::cuMemAlloc_v2(&mut memory, 1) == gone;
            libc::_exit(i32::from(!refused));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
    }
    assert_ne!(block(1), 0);
}

#[test]
fn there_may_be_no_device() {
    let rig = Rig::new(1);
    rig.library.open(0, true).unwrap();
    let mut count = 0;
    // SAFETY: a pointer of ours.
    unsafe {
        let none = CUresult::CUDA_ERROR_NO_DEVICE;
        assert_eq!(sys::cuInit(0), none);
        assert_eq!(sys::cuDeviceGetCount(&mut count), none);
    }
}
