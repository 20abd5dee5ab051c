//! The management library (`nvml.h`): one device, which nothing connects and nobody else uses.
//!
//! Memory is that of the model; temperature, power and clocks are those of an idle device.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use crate::attributes;
use crate::device;
use crate::entry::{entry_points, get, number, put, put_text};
use crate::error::{Answer, Code};
use crate::memory::Figures;

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

/// `nvmlMemory_v2_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemoryWithVersion {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlTemperature_v1_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Temperature {
    version: c_uint,
    sensor: c_uint,
    degrees: c_int,
}

/// `nvmlProcessInfo_v1_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ShortProcess {
    process: c_uint,
    used: c_ulonglong,
}

/// `nvmlProcessInfo_v2_t`: of no instance of a device in parts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Process {
    process: c_uint,
    used: c_ulonglong,
    instances: [c_uint; 2],
}

/// `nvmlPciInfo_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bus {
    short: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    identifier: c_uint,
    subsystem: c_uint,
    long: [c_char; 32],
}

/// What a device on sale shows when it is idle: nothing here depends on work.
const DEGREES: c_uint = 35;
const LIMIT_DEGREES: c_uint = 90;
const MILLIWATTS: c_uint = 70_000;
const LIMIT_MILLIWATTS: c_uint = 700_000;

/// The management library's number for an answer.
fn managed(action: impl FnOnce() -> Answer) -> c_int {
    match number(device::initialize().and_then(|()| action())) {
        0 => 0,
        // 3: not supported.
        801 => 3,
        // 7: there is no room for the answer.
        2 => 7,
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

fn figures() -> Answer<Figures> {
    device::inspect(|device| device.engine.memory.figures()).ok_or(Code::NotInitialized)
}

/// The version that the caller wrote into a structure, if it is the one that there is.
fn versioned<T>(place: *const c_uint, number: c_uint) -> Answer<c_uint> {
    let version = get(place)?;
    match version == size_of::<T>() as c_uint | number << 24 {
        true => Ok(version),
        false => Err(Code::InvalidValue),
    }
}

fn process_of(process: c_uint, used: c_ulonglong) -> Process {
    Process {
        process,
        used,
        instances: [c_uint::MAX; 2],
    }
}

/// Writes this process, if it has memory, and how many that are; where there is no room for it,
/// how many alone.
fn running<T>(
    device: *mut c_void,
    count: *mut c_uint,
    processes: *mut T,
    process: impl FnOnce(c_uint, c_ulonglong) -> T,
) -> Answer {
    known(device)?;
    let (room, used) = (get(count)?, figures()?.used);
    put(count, c_uint::from(used > 0))?;
    match (used, room) {
        (0, _) => Ok(()),
        // The code that stands for too little room.
        (_, 0) => Err(Code::OutOfMemory),
        _ => put(processes, process(std::process::id(), used)),
    }
}

/// Megahertz of a clock.
fn clock(which: c_int) -> c_uint {
    let kilohertz = match which {
        2 => attributes::MEMORY_CLOCK_KHZ,
        _ => attributes::CLOCK_KHZ,
    };
    kilohertz.unsigned_abs() / 1000
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
        let figures = figures()?;
        put(memory, Memory {
            total: figures.capacity,
            free: figures.capacity - figures.used,
            used: figures.used,
        })
    }

    /// `nvmlDeviceGetMemoryInfo_v2`: nothing is reserved.
    fn nvmlDeviceGetMemoryInfo_v2(device: *mut c_void, memory: *mut MemoryWithVersion) {
        known(device)?;
        let version = versioned::<MemoryWithVersion>(memory.cast(), 2)?;
        let figures = figures()?;
        put(memory, MemoryWithVersion {
            version,
            total: figures.capacity,
            reserved: 0,
            free: figures.capacity - figures.used,
            used: figures.used,
        })
    }

    /// `nvmlDeviceGetComputeRunningProcesses`: this one, if it has memory.
    fn nvmlDeviceGetComputeRunningProcesses(
        device: *mut c_void,
        count: *mut c_uint,
        processes: *mut ShortProcess,
    ) {
        running(device, count, processes, |process, used| ShortProcess { process, used })
    }

    /// `nvmlDeviceGetComputeRunningProcesses_v2`.
    fn nvmlDeviceGetComputeRunningProcesses_v2(
        device: *mut c_void,
        count: *mut c_uint,
        processes: *mut Process,
    ) {
        running(device, count, processes, process_of)
    }

    /// `nvmlDeviceGetComputeRunningProcesses_v3`.
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        device: *mut c_void,
        count: *mut c_uint,
        processes: *mut Process,
    ) {
        running(device, count, processes, process_of)
    }

    /// `nvmlDeviceGetGraphicsRunningProcesses`: none.
    fn nvmlDeviceGetGraphicsRunningProcesses(
        device: *mut c_void,
        count: *mut c_uint,
        _processes: *mut c_void,
    ) {
        known(device)?;
        put(count, 0)
    }

    /// `nvmlDeviceGetGraphicsRunningProcesses_v2`: none.
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(
        device: *mut c_void,
        count: *mut c_uint,
        _processes: *mut c_void,
    ) {
        known(device)?;
        put(count, 0)
    }

    /// `nvmlDeviceGetGraphicsRunningProcesses_v3`: none.
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(
        device: *mut c_void,
        count: *mut c_uint,
        _processes: *mut c_void,
    ) {
        known(device)?;
        put(count, 0)
    }

    /// `nvmlSystemGetProcessName`: of this process.
    fn nvmlSystemGetProcessName(process: c_uint, text: *mut c_char, length: c_uint) {
        if process != std::process::id() {
            return Err(Code::NotFound);
        }
        let program = std::env::current_exe().unwrap_or_default();
        put_text(text, length as c_int, &program.to_string_lossy())
    }

    /// `nvmlSystemGetNVMLVersion`.
    fn nvmlSystemGetNVMLVersion(text: *mut c_char, length: c_uint) {
        put_text(text, length as c_int, "13.595.00")
    }

    /// `nvmlDeviceGetIndex`.
    fn nvmlDeviceGetIndex(device: *mut c_void, index: *mut c_uint) {
        known(device)?;
        put(index, 0)
    }

    /// `nvmlDeviceGetMinorNumber`.
    fn nvmlDeviceGetMinorNumber(device: *mut c_void, number: *mut c_uint) {
        known(device)?;
        put(number, 0)
    }

    /// `nvmlDeviceGetCudaComputeCapability`.
    fn nvmlDeviceGetCudaComputeCapability(
        device: *mut c_void,
        major: *mut c_int,
        minor: *mut c_int,
    ) {
        known(device)?;
        let capability = device::inspect(|device| device.settings.capability);
        let (first, second) = capability.ok_or(Code::NotInitialized)?;
        put(major, first)?;
        put(minor, second)
    }

    /// `nvmlDeviceGetPciInfo_v3`.
    fn nvmlDeviceGetPciInfo_v3(device: *mut c_void, bus: *mut Bus) {
        known(device)?;
        let mut found = Bus {
            short: [0; 16],
            domain: 0,
            bus: 1,
            device: 0,
            identifier: 0,
            subsystem: 0,
            long: [0; 32],
        };
        put_text(found.short.as_mut_ptr(), 16, attributes::BUS_ADDRESS)?;
        put_text(found.long.as_mut_ptr(), 32, attributes::BUS_ADDRESS)?;
        put(bus, found)
    }

    /// `nvmlDeviceGetTemperature`.
    fn nvmlDeviceGetTemperature(device: *mut c_void, sensor: c_int, degrees: *mut c_uint) {
        known(device)?;
        match sensor {
            0 => put(degrees, DEGREES),
            _ => Err(Code::InvalidValue),
        }
    }

    /// `nvmlDeviceGetTemperatureV`.
    fn nvmlDeviceGetTemperatureV(device: *mut c_void, temperature: *mut Temperature) {
        known(device)?;
        let version = versioned::<Temperature>(temperature.cast(), 1)?;
        let sensor = get(temperature)?.sensor;
        put(temperature, Temperature { version, sensor, degrees: DEGREES as c_int })
    }

    /// `nvmlDeviceGetTemperatureThreshold`.
    fn nvmlDeviceGetTemperatureThreshold(
        device: *mut c_void,
        _which: c_int,
        degrees: *mut c_uint,
    ) {
        known(device)?;
        put(degrees, LIMIT_DEGREES)
    }

    /// `nvmlDeviceGetFanSpeed`: there is none.
    fn nvmlDeviceGetFanSpeed(_device: *mut c_void, _speed: *mut c_uint) {
        Err(Code::NotSupported)
    }

    /// `nvmlDeviceGetPowerUsage`.
    fn nvmlDeviceGetPowerUsage(device: *mut c_void, milliwatts: *mut c_uint) {
        known(device)?;
        put(milliwatts, MILLIWATTS)
    }

    /// `nvmlDeviceGetPowerManagementLimit`.
    fn nvmlDeviceGetPowerManagementLimit(device: *mut c_void, milliwatts: *mut c_uint) {
        known(device)?;
        put(milliwatts, LIMIT_MILLIWATTS)
    }

    /// `nvmlDeviceGetPowerManagementDefaultLimit`.
    fn nvmlDeviceGetPowerManagementDefaultLimit(device: *mut c_void, milliwatts: *mut c_uint) {
        known(device)?;
        put(milliwatts, LIMIT_MILLIWATTS)
    }

    /// `nvmlDeviceGetEnforcedPowerLimit`.
    fn nvmlDeviceGetEnforcedPowerLimit(device: *mut c_void, milliwatts: *mut c_uint) {
        known(device)?;
        put(milliwatts, LIMIT_MILLIWATTS)
    }

    /// `nvmlDeviceGetTotalEnergyConsumption`: not counted.
    fn nvmlDeviceGetTotalEnergyConsumption(_device: *mut c_void, _energy: *mut c_ulonglong) {
        Err(Code::NotSupported)
    }

    /// `nvmlDeviceGetClockInfo`: 2 is the memory's.
    fn nvmlDeviceGetClockInfo(device: *mut c_void, which: c_int, megahertz: *mut c_uint) {
        known(device)?;
        put(megahertz, clock(which))
    }

    /// `nvmlDeviceGetMaxClockInfo`.
    fn nvmlDeviceGetMaxClockInfo(device: *mut c_void, which: c_int, megahertz: *mut c_uint) {
        known(device)?;
        put(megahertz, clock(which))
    }

    /// `nvmlDeviceGetPerformanceState`: the highest.
    fn nvmlDeviceGetPerformanceState(device: *mut c_void, state: *mut c_int) {
        known(device)?;
        put(state, 0)
    }

    /// `nvmlDeviceGetPersistenceMode`: on.
    fn nvmlDeviceGetPersistenceMode(device: *mut c_void, mode: *mut c_int) {
        known(device)?;
        put(mode, 1)
    }

    /// `nvmlDeviceGetComputeMode`: any number of processes.
    fn nvmlDeviceGetComputeMode(device: *mut c_void, mode: *mut c_int) {
        known(device)?;
        put(mode, 0)
    }

    /// `nvmlDeviceGetMigMode`: it is not in parts.
    fn nvmlDeviceGetMigMode(_device: *mut c_void, _mode: *mut c_uint, _next: *mut c_uint) {
        Err(Code::NotSupported)
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
