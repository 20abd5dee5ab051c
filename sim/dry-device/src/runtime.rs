//! The runtime's C interface (`cuda_runtime_api.h`, version 13) to the model.
//!
//! The runtime is the driver with less ceremony: the first call makes the device and its context,
//! and each thread remembers its last error. Kernels are looked up, configured and launched, and
//! do nothing.
//!
//! Invariant: what the model decides, the driver's calls decide; nothing here has state of its own
//! but the last error, host memory, launch configurations and symbols.

pub mod graphs;
pub mod host;
pub mod launch;
pub mod memory;
pub mod properties;
pub mod streams;

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::attributes;
use crate::device::{self, CONTEXT};
use crate::driver;
use crate::entry::{entry_points, number, put, put_if_wanted, put_text, text};
use crate::error::{Answer, Code};

thread_local! {
    static LAST_ERROR: Cell<c_int> = const { Cell::new(0) };
    /// The context that this thread was prepared for.
    static PREPARED: Cell<u64> = const { Cell::new(0) };
}

/// The context that the runtime holds.
static RETAINED: AtomicU64 = AtomicU64::new(0);

/// Makes device and context, and the context current in this thread.
fn prepare() -> Answer {
    let age = device::age();
    if age > 0 && age == PREPARED.get() && age == RETAINED.load(Ordering::Acquire) {
        return Ok(());
    }
    device::initialize()?;
    let age = device::age();
    if RETAINED.swap(age, Ordering::AcqRel) != age {
        device::inspect(|device| device.retained += 1);
    }
    if device::current() == 0 {
        device::push_current(CONTEXT);
    }
    PREPARED.set(age);
    Ok(())
}

/// What another process would share memory or an event by.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SharedHandle {
    bytes: [u8; 64],
}

/// The number of what `action` answers on a prepared device; an error is remembered.
pub(crate) fn remembered(action: impl FnOnce() -> Answer) -> c_int {
    let number = number(prepare().and_then(|()| action()));
    if number != 0 {
        LAST_ERROR.set(number);
    }
    number
}

/// The answer that a number of the driver stands for.
pub(crate) fn answer_of(number: c_int) -> Answer {
    match (number, Code::from_number(number)) {
        (0, _) => Ok(()),
        (_, Some(code)) => Err(code),
        (_, None) => Err(Code::NotSupported),
    }
}

/// The last error of this thread, which is forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> c_int {
    LAST_ERROR.replace(0)
}

/// The last error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> c_int {
    LAST_ERROR.get()
}

/// The name of an error.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(error: c_int) -> *const c_char {
    let name = match (error, Code::from_number(error)) {
        (0, _) => c"cudaSuccess",
        (_, Some(code)) => code.runtime_name(),
        (_, None) => c"unrecognized error code",
    };
    name.as_ptr()
}

/// What an error means.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(error: c_int) -> *const c_char {
    let text = match (error, Code::from_number(error)) {
        (0, _) => c"no error",
        (_, Some(code)) => code.text(),
        (_, None) => c"unrecognized error code",
    };
    text.as_ptr()
}

entry_points! {
    via crate::runtime::remembered;

    /// `cudaRuntimeGetVersion`.
    fn cudaRuntimeGetVersion(version: *mut c_int) {
        put(version, attributes::VERSION)
    }

    /// `cudaDriverGetVersion`.
    fn cudaDriverGetVersion(version: *mut c_int) {
        put(version, attributes::VERSION)
    }

    /// `cudaGetDeviceCount`: one.
    fn cudaGetDeviceCount(count: *mut c_int) {
        put(count, 1)
    }

    /// `cudaGetDevice`.
    fn cudaGetDevice(device: *mut c_int) {
        put(device, 0)
    }

    /// `cudaSetDevice`.
    fn cudaSetDevice(device: c_int) {
        driver::device_number(device)
    }

    /// `cudaDeviceGetAttribute`.
    fn cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) {
        driver::device_number(device)?;
        device::with_device(|found| {
            put(value, attributes::value(attribute, found.settings.capability))
        })
    }

    /// `cudaDeviceGetPCIBusId`.
    fn cudaDeviceGetPCIBusId(name: *mut c_char, length: c_int, device: c_int) {
        driver::device_number(device)?;
        put_text(name, length, attributes::BUS_ADDRESS)
    }

    /// `cudaDeviceGetStreamPriorityRange`.
    fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        put_if_wanted(least, 0);
        put_if_wanted(greatest, -5);
        Ok(())
    }

    /// `cudaDeviceCanAccessPeer`: there is no other device.
    fn cudaDeviceCanAccessPeer(can: *mut c_int, _device: c_int, _peer: c_int) {
        put(can, 0)
    }

    /// `cudaDeviceEnablePeerAccess`: there is no other device.
    fn cudaDeviceEnablePeerAccess(_peer: c_int, _flags: c_uint) {
        Err(Code::InvalidDevice)
    }

    /// `cudaDeviceSynchronize`.
    fn cudaDeviceSynchronize() {
        // SAFETY: takes no pointers.
        answer_of(unsafe { driver::cuCtxSynchronize() })
    }

    /// `cudaProfilerStart`.
    fn cudaProfilerStart() { Ok(()) }

    /// `cudaProfilerStop`.
    fn cudaProfilerStop() { Ok(()) }

    /// `cudaGetDriverEntryPointByVersion`: entry points of the driver that are modelled.
    fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char,
        function: *mut *mut c_void,
        _version: c_uint,
        _flags: c_ulonglong,
        status: *mut c_int,
    ) {
        let found = driver::find(text(symbol)?);
        // 1 stands for a symbol that is not found.
        put_if_wanted(status, c_int::from(found.is_none()));
        put(function, found.map_or(std::ptr::null_mut(), <*const c_void>::cast_mut))
    }
}
