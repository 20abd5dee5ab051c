//! The management library (`nvml.h`): one device, which nothing connects and nobody else uses.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use crate::attributes;
use crate::device;
use crate::entry::{entry_points, number, put, put_text};
use crate::error::{Answer, Code};

/// The device's handle: no address.
const DEVICE: usize = 0x6d65_0000_0000_0070;
/// Length of the name that identifies a device.
const UUID: &str = "GPU-6d657465-732d-6472-792d-646576696365";

/// `nvmlMemory_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// The management library's number for an answer.
fn managed(action: impl FnOnce() -> Answer) -> c_int {
    match number(device::initialize().and_then(|()| action())) {
        0 => 0,
        // 3: not supported.
        801 => 3,
        // 2: an argument that is none.
        _ => 2,
    }
}

fn known(device: *mut c_void) -> Answer {
    match device.addr() {
        DEVICE => Ok(()),
        _ => Err(Code::InvalidDevice),
    }
}

fn device_handle(place: *mut *mut c_void) -> Answer {
    put(place, std::ptr::without_provenance_mut(DEVICE))
}

/// What an error of the management library means.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(_error: c_int) -> *const c_char {
    c"not modelled by the dry device".as_ptr()
}

entry_points! {
    via crate::management::managed;

    /// `nvmlInit`.
    fn nvmlInit_v2() { Ok(()) }

    /// `nvmlInitWithFlags`.
    fn nvmlInitWithFlags(_flags: c_uint) { Ok(()) }

    /// `nvmlShutdown`.
    fn nvmlShutdown() { Ok(()) }

    /// `nvmlSystemGetCudaDriverVersion`.
    fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) {
        put(version, attributes::VERSION)
    }

    /// `nvmlSystemGetDriverVersion`.
    fn nvmlSystemGetDriverVersion(text: *mut c_char, length: c_uint) {
        put_text(text, length as c_int, "595.00")
    }

    /// `nvmlDeviceGetCount`: one.
    fn nvmlDeviceGetCount_v2(count: *mut c_uint) { put(count, 1) }

    /// `nvmlDeviceGetHandleByIndex`.
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut *mut c_void) {
        match index {
            0 => device_handle(device),
            _ => Err(Code::InvalidDevice),
        }
    }

    /// `nvmlDeviceGetHandleByPciBusId`.
    fn nvmlDeviceGetHandleByPciBusId_v2(_bus: *const c_char, device: *mut *mut c_void) {
        device_handle(device)
    }

    /// `nvmlDeviceGetHandleByUUID`.
    fn nvmlDeviceGetHandleByUUID(_uuid: *const c_char, device: *mut *mut c_void) {
        device_handle(device)
    }

    /// `nvmlDeviceGetUUID`.
    fn nvmlDeviceGetUUID(device: *mut c_void, text: *mut c_char, length: c_uint) {
        known(device)?;
        put_text(text, length as c_int, UUID)
    }

    /// `nvmlDeviceGetName`.
    fn nvmlDeviceGetName(device: *mut c_void, text: *mut c_char, length: c_uint) {
        known(device)?;
        put_text(text, length as c_int, attributes::NAME)
    }

    /// `nvmlDeviceGetMemoryInfo`.
    fn nvmlDeviceGetMemoryInfo(device: *mut c_void, memory: *mut Memory) {
        known(device)?;
        let figures = device::inspect(|device| device.engine.memory.figures());
        let figures = figures.ok_or(Code::NotInitialized)?;
        put(memory, Memory {
            total: figures.capacity,
            free: figures.capacity - figures.used,
            used: figures.used,
        })
    }

    /// `nvmlDeviceGetComputeRunningProcesses`: none but this one, which needs no mention.
    fn nvmlDeviceGetComputeRunningProcesses(
        device: *mut c_void,
        count: *mut c_uint,
        _processes: *mut c_void,
    ) {
        known(device)?;
        put(count, 0)
    }

    /// `nvmlDeviceGetNvLinkRemoteDeviceType`: there is no link.
    fn nvmlDeviceGetNvLinkRemoteDeviceType(
        _device: *mut c_void,
        _link: c_uint,
        _kind: *mut c_int,
    ) {
        Err(Code::NotSupported)
    }

    /// `nvmlDeviceGetNvLinkRemotePciInfo`: there is no link.
    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
        _device: *mut c_void,
        _link: c_uint,
        _place: *mut c_void,
    ) {
        Err(Code::NotSupported)
    }

    /// `nvmlDeviceGetGpuFabricInfoV`: there is no fabric.
    fn nvmlDeviceGetGpuFabricInfoV(_device: *mut c_void, _about: *mut c_void) {
        Err(Code::NotSupported)
    }

    /// `nvmlDeviceGetP2PStatus`: there is no other device.
    fn nvmlDeviceGetP2PStatus(
        _device: *mut c_void,
        _peer: *mut c_void,
        _kind: c_int,
        _status: *mut c_int,
    ) {
        Err(Code::NotSupported)
    }

    /// `nvmlDeviceGetUtilizationRates`: idle.
    fn nvmlDeviceGetUtilizationRates(device: *mut c_void, rates: *mut [c_uint; 2]) {
        known(device)?;
        put(rates, [0, 0])
    }
}
