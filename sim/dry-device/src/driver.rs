//! The driver's C interface (`cuda.h`) to the model.
//!
//! Names, numbers and layouts are those of the public header, version 13. A function of the driver
//! that is not here is not modelled: `dlsym` and `cuGetProcAddress` do not find it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use crate::attributes;
use crate::device::{self, CONTEXT, with_context, with_device};
use crate::engine::{HostCall, Task};
use crate::entry::{Entry, entry_points, get, put, put_if_wanted, put_text, text};
use crate::error::{Answer, Code};
use crate::knowledge::Kept;
use crate::memory::{Access, GRANULARITY};
use crate::streams::{CaptureMode, Capturing, DEFAULT, StreamId};

/// `CUmemLocation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Location {
    /// 1 is a device.
    pub kind: c_int,
    /// The device's number.
    pub id: c_int,
}

/// `CUmemAllocationProp`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Properties {
    /// 1 is pinned, the only kind.
    pub kind: c_int,
    /// How the handle may be exported: a set of bits.
    pub handle_types: c_int,
    /// Where the memory lies.
    pub location: Location,
    /// Of another system.
    pub metadata: *mut c_void,
    /// Compression, remote access, usage.
    pub flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AccessDescription {
    /// Who may.
    pub location: Location,
    /// 0 nothing, 1 read, 3 read and write.
    pub flags: c_int,
}

/// The device's only place for memory.
const HERE: Location = Location { kind: 1, id: 0 };
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR` and `..._FABRIC`: asked for, never exported.
const HANDLE_TYPES: c_int = 1 | 8;

/// The default stream of a thread is the default stream: there is one model of both.
pub(crate) fn stream_of(handle: *mut c_void) -> StreamId {
    match handle.addr() {
        0..=2 => DEFAULT,
        other => other as StreamId,
    }
}

fn handle_of(number: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(number as usize)
}

/// Refuses all devices but the one that there is.
pub(crate) fn device_number(device: c_int) -> Answer {
    match device {
        0 => Ok(()),
        _ => Err(Code::InvalidDevice),
    }
}

fn zero(flags: c_ulonglong) -> Answer {
    match flags {
        0 => Ok(()),
        _ => Err(Code::InvalidValue),
    }
}

fn properties(place: *const Properties) -> Answer<Properties> {
    let found = get(place)?;
    if found.location.kind == HERE.kind && found.location != HERE {
        return Err(Code::InvalidDevice);
    }
    let plain = found.kind == 1 && found.location == HERE && found.metadata.is_null();
    match plain && found.handle_types & !HANDLE_TYPES == 0 {
        true => Ok(found),
        false => Err(Code::InvalidValue),
    }
}

/// Refuses a call while a stream records a graph, unless this thread allows it.
fn not_while_capturing(device: &mut device::Device) -> Answer {
    device.streams.refuse_unsafe_call(device::capture_mode())
}

/// A copy or fill that the host does not wait for.
pub(crate) fn submit(stream: *mut c_void, task: Task) -> Answer {
    let stream = stream_of(stream);
    with_context(|device| {
        let task = known(device, task)?;
        let task = staged(device, stream, task)?;
        device.submit(stream, task)
    })
}

/// A copy or fill that the host waits for.
pub(crate) fn complete(task: Task) -> Answer {
    with_context(|device| {
        not_while_capturing(device)?;
        let task = known(device, task)?;
        device.submit(DEFAULT, task)?;
        let device::Device {
            streams, engine, ..
        } = device;
        let answer = streams.synchronize(DEFAULT, engine);
        device.noticed(answer)
    })
}

/// Refuses at once what names no device address at all; the rest is found when the work is done.
fn known(device: &device::Device, task: Task) -> Answer<Task> {
    let memory = &device.engine.memory;
    let known = match task {
        Task::CopyIn { destination, .. }
        | Task::CopyStaged { destination, .. }
        | Task::Fill { destination, .. } => memory.is_known(destination),
        Task::CopyOut { source, .. } => memory.is_known(source),
        Task::CopyWithin {
            destination,
            source,
            ..
        } => memory.is_known(destination) && memory.is_known(source),
        Task::Free(block) => memory.is_known(block),
        Task::Kernel(_) | Task::Call(_) => true,
    };
    let empty = match task {
        Task::CopyIn { size, .. }
        | Task::CopyOut { size, .. }
        | Task::CopyWithin { size, .. }
        | Task::Fill { size, .. } => size == 0,
        Task::CopyStaged { .. } | Task::Free(_) | Task::Kernel(_) | Task::Call(_) => false,
    };
    match known || empty {
        true => Ok(task),
        false => Err(Code::InvalidValue),
    }
}

/// A copy from pageable memory reads its source before the call returns. Where the stream is busy,
/// the bytes are taken now.
fn staged(device: &mut device::Device, stream: StreamId, task: Task) -> Answer<Task> {
    match task {
        Task::CopyIn {
            destination,
            source,
            size,
        } if device.settings.kept != Kept::Nothing && !device.streams.is_idle(stream)? => {
            let bytes = crate::content::host_bytes(source, size)?;
            Ok(Task::CopyStaged { destination, bytes })
        }
        other => Ok(other),
    }
}

fn fill(destination: u64, value: u32, unit: usize, count: usize) -> Answer<Task> {
    let size = (count as u64).checked_mul(unit as u64);
    Ok(Task::Fill {
        destination,
        pattern: value.to_le_bytes(),
        unit,
        size: size.ok_or(Code::InvalidValue)?,
    })
}

entry_points! {
    via crate::entry::answered;

    /// `cuInit`.
    fn cuInit(flags: c_uint) {
        zero(c_ulonglong::from(flags))?;
        device::initialize()
    }

    /// `cuDriverGetVersion`.
    fn cuDriverGetVersion(version: *mut c_int) {
        put(version, attributes::VERSION)
    }

    /// `cuGetErrorName`.
    fn cuGetErrorName(error: c_int, name: *mut *const c_char) {
        let found = match error {
            0 => c"CUDA_SUCCESS",
            _ => Code::from_number(error).ok_or(Code::InvalidValue)?.driver_name(),
        };
        put(name, found.as_ptr())
    }

    /// `cuGetErrorString`.
    fn cuGetErrorString(error: c_int, name: *mut *const c_char) {
        let found: &CStr = match error {
            0 => c"no error",
            _ => Code::from_number(error).ok_or(Code::InvalidValue)?.text(),
        };
        put(name, found.as_ptr())
    }

    /// `cuDeviceGetCount`: one.
    fn cuDeviceGetCount(count: *mut c_int) {
        with_device(|_| put(count, 1))
    }

    /// `cuDeviceGet`.
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        with_device(|_| {
            device_number(ordinal)?;
            put(device, ordinal)
        })
    }

    /// `cuDeviceGetName`.
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) {
        with_device(|_| {
            device_number(device)?;
            put_text(name, length, attributes::NAME)
        })
    }

    /// `cuDeviceGetUuid`.
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) {
        with_device(|_| {
            device_number(device)?;
            put(uuid, attributes::UUID)
        })
    }

    /// `cuDeviceGetPCIBusId`.
    fn cuDeviceGetPCIBusId(name: *mut c_char, length: c_int, device: c_int) {
        with_device(|_| {
            device_number(device)?;
            put_text(name, length, attributes::BUS_ADDRESS)
        })
    }

    /// `cuDeviceTotalMem`.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) {
        with_device(|found| {
            device_number(device)?;
            put(bytes, found.engine.memory.capacity() as usize)
        })
    }

    /// `cuDeviceGetAttribute`.
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) {
        with_device(|found| {
            device_number(device)?;
            put(value, attributes::value(attribute, found.settings.capability))
        })
    }

    /// `cuDevicePrimaryCtxRetain`.
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) {
        with_device(|found| {
            device_number(device)?;
            put(context, handle_of(CONTEXT as u64))?;
            found.retained += 1;
            Ok(())
        })
    }

    /// `cuDevicePrimaryCtxRelease`: the last one ends the context.
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        device_number(device)?;
        let released = device::inspect(|found| match found.retained {
            0 => Err(Code::InvalidContext),
            1 => {
                found.end_context();
                Ok(())
            }
            _ => {
                found.retained -= 1;
                Ok(())
            }
        });
        released.unwrap_or(Err(Code::NotInitialized))
    }

    /// `cuDevicePrimaryCtxReset`: ends the context, whoever retains it.
    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        device_number(device)?;
        device::inspect(device::Device::end_context).ok_or(Code::NotInitialized)
    }

    /// `cuDevicePrimaryCtxGetState`.
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) {
        device_number(device)?;
        let retained = device::inspect(|found| found.retained).ok_or(Code::NotInitialized)?;
        put(flags, 0)?;
        put(active, c_int::from(retained > 0))
    }

    /// `cuDevicePrimaryCtxSetFlags`.
    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, _flags: c_uint) {
        with_device(|_| device_number(device))
    }

    /// `cuCtxSetCurrent`.
    fn cuCtxSetCurrent(context: *mut c_void) {
        with_device(|_| {
            if !matches!(context.addr(), 0 | CONTEXT) {
                return Err(Code::InvalidContext);
            }
            device::set_current(context.addr());
            Ok(())
        })
    }

    /// `cuCtxGetCurrent`.
    fn cuCtxGetCurrent(context: *mut *mut c_void) {
        with_device(|_| put(context, handle_of(device::current() as u64)))
    }

    /// `cuCtxPushCurrent`.
    fn cuCtxPushCurrent_v2(context: *mut c_void) {
        with_device(|_| {
            if context.addr() != CONTEXT {
                return Err(Code::InvalidContext);
            }
            device::push_current(CONTEXT);
            Ok(())
        })
    }

    /// `cuCtxPopCurrent`.
    fn cuCtxPopCurrent_v2(context: *mut *mut c_void) {
        with_device(|_| {
            let popped = device::pop_current().ok_or(Code::InvalidContext)?;
            put_if_wanted(context, handle_of(popped as u64));
            Ok(())
        })
    }

    /// `cuCtxGetDevice`.
    fn cuCtxGetDevice(device: *mut c_int) {
        with_context(|_| put(device, 0))
    }

    /// `cuCtxSynchronize`.
    fn cuCtxSynchronize() {
        with_context(|device| {
            let device::Device { streams, engine, .. } = device;
            streams.synchronize_all(engine)
        })
    }

    /// `cuCtxGetStreamPriorityRange`.
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        with_context(|_| {
            put_if_wanted(least, 0);
            put_if_wanted(greatest, -5);
            Ok(())
        })
    }

    /// `cuMemGetInfo`.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        with_context(|device| {
            let memory = &device.engine.memory;
            put(free, (memory.capacity() - memory.used()) as usize)?;
            put(total, memory.capacity() as usize)
        })
    }

    /// `cuMemAlloc`.
    fn cuMemAlloc_v2(pointer: *mut u64, size: usize) {
        with_context(|device| {
            not_while_capturing(device)?;
            if pointer.is_null() {
                return Err(Code::InvalidValue);
            }
            put(pointer, device.engine.memory.allocate(size as u64)?)
        })
    }

    /// `cuMemFree`: waits for the device, as the driver's does.
    fn cuMemFree_v2(pointer: u64) {
        with_context(|device| {
            if pointer == 0 {
                return Ok(());
            }
            not_while_capturing(device)?;
            let device::Device { streams, engine, .. } = device;
            streams.synchronize_all(engine)?;
            engine.free(pointer)
        })
    }

    /// `cuMemGetAddressRange`.
    fn cuMemGetAddressRange_v2(start: *mut u64, size: *mut usize, pointer: u64) {
        with_context(|device| {
            let (first, bytes) = device.engine.memory.range(pointer)?;
            put_if_wanted(start, first);
            put_if_wanted(size, bytes as usize);
            Ok(())
        })
    }

    /// `cuMemGetAllocationGranularity`: minimum and recommended are the same.
    fn cuMemGetAllocationGranularity(
        granularity: *mut usize,
        about: *const Properties,
        option: c_int,
    ) {
        with_device(|_| {
            properties(about)?;
            match option {
                0 | 1 => put(granularity, GRANULARITY as usize),
                _ => Err(Code::InvalidValue),
            }
        })
    }

    /// `cuMemAddressReserve`.
    fn cuMemAddressReserve(
        pointer: *mut u64,
        size: usize,
        alignment: usize,
        hint: u64,
        flags: c_ulonglong,
    ) {
        with_device(|device| {
            zero(flags)?;
            if pointer.is_null() {
                return Err(Code::InvalidValue);
            }
            let memory = &mut device.engine.memory;
            put(pointer, memory.reserve(size as u64, alignment as u64, hint)?)
        })
    }

    /// `cuMemAddressFree`.
    fn cuMemAddressFree(pointer: u64, size: usize) {
        with_device(|device| device.engine.memory.unreserve(pointer, size as u64))
    }

    /// `cuMemCreate`.
    fn cuMemCreate(
        handle: *mut u64,
        size: usize,
        about: *const Properties,
        flags: c_ulonglong,
    ) {
        with_device(|device| {
            zero(flags)?;
            properties(about)?;
            if handle.is_null() {
                return Err(Code::InvalidValue);
            }
            put(handle, device.engine.memory.create(size as u64)?)
        })
    }

    /// `cuMemRelease`.
    fn cuMemRelease(handle: u64) {
        with_device(|device| device.engine.memory.release(handle))
    }

    /// `cuMemMap`.
    fn cuMemMap(pointer: u64, size: usize, offset: usize, handle: u64, flags: c_ulonglong) {
        with_device(|device| {
            zero(flags)?;
            device.engine.memory.map(pointer, size as u64, offset as u64, handle)
        })
    }

    /// `cuMemUnmap`. Not in the order of any stream: work that still uses the range faults.
    fn cuMemUnmap(pointer: u64, size: usize) {
        with_device(|device| device.engine.unmap(pointer, size as u64))
    }

    /// `cuMemSetAccess`.
    fn cuMemSetAccess(
        pointer: u64,
        size: usize,
        descriptions: *const AccessDescription,
        count: usize,
    ) {
        with_device(|device| {
            // The device is the only place that there is.
            if count != 1 {
                return Err(Code::InvalidValue);
            }
            let description = get(descriptions)?;
            if description.location != HERE {
                return Err(Code::InvalidDevice);
            }
            let access = match description.flags {
                0 => Access::None,
                1 => Access::Read,
                3 => Access::ReadWrite,
                _ => return Err(Code::InvalidValue),
            };
            device.engine.memory.set_access(pointer, size as u64, access)
        })
    }

    /// `cuMemGetAccess`.
    fn cuMemGetAccess(flags: *mut c_ulonglong, location: *const Location, pointer: u64) {
        with_device(|device| {
            if get(location)? != HERE {
                return Err(Code::InvalidDevice);
            }
            let number = match device.engine.memory.access(pointer)? {
                Access::None => 0,
                Access::Read => 1,
                Access::ReadWrite => 3,
            };
            put(flags, number)
        })
    }

    /// `cuMemRetainAllocationHandle`.
    fn cuMemRetainAllocationHandle(handle: *mut u64, address: *mut c_void) {
        with_device(|device| {
            if handle.is_null() {
                return Err(Code::InvalidValue);
            }
            put(handle, device.engine.memory.retain(address.addr() as u64)?)
        })
    }

    /// `cuMemGetAllocationPropertiesFromHandle`.
    fn cuMemGetAllocationPropertiesFromHandle(about: *mut Properties, handle: u64) {
        with_device(|device| {
            device.engine.memory.size_of_handle(handle)?;
            put(about, Properties {
                kind: 1,
                handle_types: 0,
                location: HERE,
                metadata: std::ptr::null_mut(),
                flags: [0; 8],
            })
        })
    }

    /// `cuMemExportToShareableHandle`: not modelled.
    fn cuMemExportToShareableHandle(
        _shared: *mut c_void,
        _handle: u64,
        _kind: c_int,
        _flags: c_ulonglong,
    ) {
        Err(Code::NotSupported)
    }

    /// `cuMemImportFromShareableHandle`: not modelled.
    fn cuMemImportFromShareableHandle(_handle: *mut u64, _shared: *mut c_void, _kind: c_int) {
        Err(Code::NotSupported)
    }

    /// `cuMemcpyHtoD`.
    fn cuMemcpyHtoD_v2(destination: u64, source: *const c_void, size: usize) {
        complete(Task::CopyIn {
            destination,
            source: source.expose_provenance() as u64,
            size: size as u64,
        })
    }

    /// `cuMemcpyHtoDAsync`.
    fn cuMemcpyHtoDAsync_v2(
        destination: u64,
        source: *const c_void,
        size: usize,
        stream: *mut c_void,
    ) {
        submit(stream, Task::CopyIn {
            destination,
            source: source.expose_provenance() as u64,
            size: size as u64,
        })
    }

    /// `cuMemcpyDtoH`.
    fn cuMemcpyDtoH_v2(destination: *mut c_void, source: u64, size: usize) {
        complete(Task::CopyOut {
            destination: destination.expose_provenance() as u64,
            source,
            size: size as u64,
        })
    }

    /// `cuMemcpyDtoHAsync`.
    fn cuMemcpyDtoHAsync_v2(
        destination: *mut c_void,
        source: u64,
        size: usize,
        stream: *mut c_void,
    ) {
        submit(stream, Task::CopyOut {
            destination: destination.expose_provenance() as u64,
            source,
            size: size as u64,
        })
    }

    /// `cuMemcpyDtoD`.
    fn cuMemcpyDtoD_v2(destination: u64, source: u64, size: usize) {
        complete(Task::CopyWithin { destination, source, size: size as u64 })
    }

    /// `cuMemcpyDtoDAsync`.
    fn cuMemcpyDtoDAsync_v2(destination: u64, source: u64, size: usize, stream: *mut c_void) {
        submit(stream, Task::CopyWithin { destination, source, size: size as u64 })
    }

    /// `cuMemsetD8`.
    fn cuMemsetD8_v2(destination: u64, value: u8, count: usize) {
        complete(fill(destination, u32::from(value), 1, count)?)
    }

    /// `cuMemsetD16`.
    fn cuMemsetD16_v2(destination: u64, value: u16, count: usize) {
        complete(fill(destination, u32::from(value), 2, count)?)
    }

    /// `cuMemsetD32`.
    fn cuMemsetD32_v2(destination: u64, value: u32, count: usize) {
        complete(fill(destination, value, 4, count)?)
    }

    /// `cuMemsetD8Async`.
    fn cuMemsetD8Async(destination: u64, value: u8, count: usize, stream: *mut c_void) {
        submit(stream, fill(destination, u32::from(value), 1, count)?)
    }

    /// `cuMemsetD16Async`.
    fn cuMemsetD16Async(destination: u64, value: u16, count: usize, stream: *mut c_void) {
        submit(stream, fill(destination, u32::from(value), 2, count)?)
    }

    /// `cuMemsetD32Async`.
    fn cuMemsetD32Async(destination: u64, value: u32, count: usize, stream: *mut c_void) {
        submit(stream, fill(destination, value, 4, count)?)
    }

    /// `cuStreamCreate`.
    fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint) {
        with_context(|device| {
            if flags > 1 || stream.is_null() {
                return Err(Code::InvalidValue);
            }
            put(stream, handle_of(device.streams.create(flags == 0, 0)))
        })
    }

    /// `cuStreamCreateWithPriority`.
    fn cuStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, priority: c_int) {
        with_context(|device| {
            if flags > 1 || stream.is_null() {
                return Err(Code::InvalidValue);
            }
            let priority = priority.clamp(-5, 0);
            put(stream, handle_of(device.streams.create(flags == 0, priority)))
        })
    }

    /// `cuStreamDestroy`.
    fn cuStreamDestroy_v2(stream: *mut c_void) {
        with_context(|device| device.streams.destroy(stream_of(stream)))
    }

    /// `cuStreamGetPriority`.
    fn cuStreamGetPriority(stream: *mut c_void, priority: *mut c_int) {
        with_context(|device| put(priority, device.streams.priority(stream_of(stream))?))
    }

    /// `cuStreamGetFlags`.
    fn cuStreamGetFlags(stream: *mut c_void, flags: *mut c_uint) {
        with_context(|device| {
            let blocking = device.streams.is_blocking(stream_of(stream))?;
            put(flags, c_uint::from(!blocking))
        })
    }

    /// `cuStreamGetId`.
    fn cuStreamGetId(stream: *mut c_void, number: *mut c_ulonglong) {
        with_context(|device| {
            let stream = stream_of(stream);
            device.streams.priority(stream)?;
            put(number, stream)
        })
    }

    /// `cuStreamQuery`.
    fn cuStreamQuery(stream: *mut c_void) {
        with_context(|device| device.streams.query(stream_of(stream)))
    }

    /// `cuStreamSynchronize`.
    fn cuStreamSynchronize(stream: *mut c_void) {
        with_context(|device| {
            let device::Device { streams, engine, .. } = device;
            streams.synchronize(stream_of(stream), engine)
        })
    }

    /// `cuStreamWaitEvent`.
    fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: c_uint) {
        with_context(|device| {
            if flags > 1 {
                return Err(Code::InvalidValue);
            }
            let device::Device { streams, engine, .. } = device;
            streams.wait(stream_of(stream), event.addr() as u64, engine)
        })
    }

    /// `cuLaunchHostFunc`.
    fn cuLaunchHostFunc(
        stream: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        let function = function.ok_or(Code::InvalidValue)?;
        submit(stream, Task::Call(HostCall { function, data }))
    }

    /// `cuStreamIsCapturing`: 0 nothing, 1 a graph, 2 a graph that was invalidated.
    fn cuStreamIsCapturing(stream: *mut c_void, status: *mut c_int) {
        with_context(|device| {
            let number = match device.streams.capturing(stream_of(stream))? {
                Capturing::No => 0,
                Capturing::Active(_) => 1,
                Capturing::Invalid(_) => 2,
            };
            put(status, number)
        })
    }

    /// `cuStreamBeginCapture`.
    fn cuStreamBeginCapture_v2(stream: *mut c_void, mode: c_int) {
        with_context(|device| {
            device.streams.begin_capture(stream_of(stream), capture_mode_of(mode)?)
        })
    }

    /// `cuStreamEndCapture`. A graph is its number: what it holds is not kept.
    fn cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) {
        with_context(|device| {
            put(graph, std::ptr::null_mut())?;
            let number = match device.streams.capturing(stream_of(stream))? {
                Capturing::Active(number) | Capturing::Invalid(number) => number,
                Capturing::No => return Err(Code::CaptureUnmatched),
            };
            device.streams.end_capture(stream_of(stream))?;
            put(graph, handle_of(number))
        })
    }

    /// `cuThreadExchangeStreamCaptureMode`.
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        let wanted = capture_mode_of(get(mode)?)?;
        put(mode, device::exchange_capture_mode(wanted) as c_int)
    }

    /// `cuEventCreate`.
    fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) {
        with_context(|device| {
            // Blocking wait, no timing, between processes (which needs no timing).
            if event.is_null() || flags > 7 || flags & 6 == 4 {
                return Err(Code::InvalidValue);
            }
            put(event, handle_of(device.streams.create_event(flags & 2 == 0)))
        })
    }

    /// `cuEventDestroy`.
    fn cuEventDestroy_v2(event: *mut c_void) {
        with_context(|device| device.streams.destroy_event(event.addr() as u64))
    }

    /// `cuEventRecord`.
    fn cuEventRecord(event: *mut c_void, stream: *mut c_void) {
        with_context(|device| {
            let device::Device { streams, engine, .. } = device;
            streams.record(event.addr() as u64, stream_of(stream), engine)
        })
    }

    /// `cuEventRecordWithFlags`.
    fn cuEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, flags: c_uint) {
        with_context(|device| {
            if flags > 1 {
                return Err(Code::InvalidValue);
            }
            let device::Device { streams, engine, .. } = device;
            streams.record(event.addr() as u64, stream_of(stream), engine)
        })
    }

    /// `cuEventQuery`.
    fn cuEventQuery(event: *mut c_void) {
        with_context(|device| device.streams.query_event(event.addr() as u64))
    }

    /// `cuEventSynchronize`.
    fn cuEventSynchronize(event: *mut c_void) {
        with_context(|device| {
            let device::Device { streams, engine, .. } = device;
            streams.synchronize_event(event.addr() as u64, engine)
        })
    }

    /// `cuEventElapsedTime`: time of the host.
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) {
        with_context(|device| {
            let elapsed = device.streams.elapsed(from.addr() as u64, to.addr() as u64)?;
            put(milliseconds, elapsed)
        })
    }

    /// `cuGetProcAddress`: an entry point of this table by its name, with or without the suffix
    /// of its version.
    fn cuGetProcAddress_v2(
        symbol: *const c_char,
        function: *mut *mut c_void,
        _version: c_int,
        _flags: c_ulonglong,
        status: *mut c_int,
    ) {
        let found = find(text(symbol)?);
        put_if_wanted(status, c_int::from(found.is_none()));
        put(function, found.map_or(std::ptr::null_mut(), <*const c_void>::cast_mut))?;
        found.map(drop).ok_or(Code::NotFound)
    }
}

pub(crate) fn capture_mode_of(mode: c_int) -> Answer<CaptureMode> {
    match mode {
        0 => Ok(CaptureMode::Global),
        1 => Ok(CaptureMode::ThreadLocal),
        2 => Ok(CaptureMode::Relaxed),
        _ => Err(Code::InvalidValue),
    }
}

/// The entry point of that name; a name without a version stands for the one that there is.
pub(crate) fn find(name: &str) -> Option<*const c_void> {
    let versionless = |entry: &Entry| {
        let (stem, version) = entry.name.rsplit_once("_v").unwrap_or((entry.name, ""));
        stem == name && version.bytes().all(|byte| byte.is_ascii_digit())
    };
    let entries = || {
        let own = ENTRIES.iter().chain(crate::pools::ENTRIES);
        own.chain(crate::modules::ENTRIES)
    };
    entries()
        .find(|entry| entry.name == name)
        .or_else(|| entries().find(|entry| versionless(entry)))
        .map(|entry| entry.address)
}
