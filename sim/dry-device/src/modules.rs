//! The driver's modules and kernels: what is compiled at run time is loaded, found by name,
//! launched, and never run.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::attributes;
use crate::device::with_context;
use crate::driver::{self, Location};
use crate::engine::Task;
use crate::entry::{entry_points, get, put, put_if_wanted};
use crate::error::{Answer, Code};
use crate::launched;
use crate::runtime::host;

/// A module or kernel: no address.
const HANDLE: usize = 0x6d65_0000_0000_0080;

fn handle(place: *mut *mut c_void) -> Answer {
    put(place, std::ptr::without_provenance_mut(HANDLE))
}

/// `CUlaunchConfig`: nine numbers, of which only the stream matters.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LaunchConfiguration {
    extents: [c_uint; 6],
    shared: c_uint,
    stream: *mut c_void,
    attributes: *mut c_void,
    count: c_uint,
}

/// What a kernel says of itself, by `CUfunction_attribute`.
fn of_kernel(attribute: c_int) -> c_int {
    match attribute {
        0 => attributes::THREADS_PER_BLOCK,
        4 => 32,     // registers
        5 | 6 => 90, // versions
        8 => attributes::SHARED_OPT_IN,
        _ => 0,
    }
}

/// The place that a device's number stands for.
fn of_number(device: c_int) -> Location {
    Location {
        kind: if device == -1 { 2 } else { 1 },
        id: device.max(0),
    }
}

entry_points! {
    via crate::entry::answered;

    /// `cuModuleLoad`.
    fn cuModuleLoad(module: *mut *mut c_void, _file: *const c_char) { handle(module) }

    /// `cuModuleLoadData`.
    fn cuModuleLoadData(module: *mut *mut c_void, _image: *const c_void) { handle(module) }

    /// `cuModuleLoadDataEx`.
    fn cuModuleLoadDataEx(
        module: *mut *mut c_void,
        _image: *const c_void,
        _count: c_uint,
        _options: *mut c_void,
        _values: *mut c_void,
    ) {
        handle(module)
    }

    /// `cuModuleUnload`.
    fn cuModuleUnload(_module: *mut c_void) { Ok(()) }

    /// `cuModuleGetFunction`: whatever its name, there is one.
    fn cuModuleGetFunction(
        function: *mut *mut c_void,
        _module: *mut c_void,
        _name: *const c_char,
    ) {
        handle(function)
    }

    /// `cuModuleGetGlobal`: variables of modules are not modelled.
    fn cuModuleGetGlobal_v2(
        _pointer: *mut u64,
        _size: *mut usize,
        _module: *mut c_void,
        _name: *const c_char,
    ) {
        Err(Code::NotFound)
    }

    /// `cuFuncGetAttribute`.
    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, _function: *mut c_void) {
        put(value, of_kernel(attribute))
    }

    /// `cuKernelGetAttribute`.
    fn cuKernelGetAttribute(
        value: *mut c_int,
        attribute: c_int,
        _kernel: *mut c_void,
        _device: c_int,
    ) {
        put(value, of_kernel(attribute))
    }

    /// `cuFuncSetAttribute`.
    fn cuFuncSetAttribute(_function: *mut c_void, _attribute: c_int, _value: c_int) { Ok(()) }

    /// `cuFuncSetCacheConfig`.
    fn cuFuncSetCacheConfig(_function: *mut c_void, _preference: c_int) { Ok(()) }

    /// `cuOccupancyMaxActiveBlocksPerMultiprocessor`: as if threads alone limited it.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        _function: *mut c_void,
        threads: c_int,
        _shared: usize,
    ) {
        if threads <= 0 {
            return Err(Code::InvalidValue);
        }
        let found = attributes::THREADS_PER_PROCESSOR / threads;
        put(blocks, found.clamp(1, attributes::BLOCKS_PER_PROCESSOR))
    }

    /// `cuOccupancyMaxActiveClusters`: one.
    fn cuOccupancyMaxActiveClusters(
        clusters: *mut c_int,
        _function: *mut c_void,
        _configuration: *const c_void,
    ) {
        put(clusters, 1)
    }

    /// `cuLaunchKernel`.
    fn cuLaunchKernel(
        _function: *mut c_void,
        _grid_x: c_uint,
        _grid_y: c_uint,
        _grid_z: c_uint,
        _block_x: c_uint,
        _block_y: c_uint,
        _block_z: c_uint,
        _shared: c_uint,
        stream: *mut c_void,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        driver::submit(stream, launched::kernel(arguments, extra))
    }

    /// `cuLaunchKernelEx`.
    fn cuLaunchKernelEx(
        configuration: *const LaunchConfiguration,
        _function: *mut c_void,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        driver::submit(get(configuration)?.stream, launched::kernel(arguments, extra))
    }

    /// `cuLaunchCooperativeKernel`.
    fn cuLaunchCooperativeKernel(
        _function: *mut c_void,
        _grid_x: c_uint,
        _grid_y: c_uint,
        _grid_z: c_uint,
        _block_x: c_uint,
        _block_y: c_uint,
        _block_z: c_uint,
        _shared: c_uint,
        stream: *mut c_void,
        arguments: *mut *mut c_void,
    ) {
        driver::submit(stream, launched::kernel(arguments, std::ptr::null_mut()))
    }

    /// `cuLinkCreate`.
    fn cuLinkCreate_v2(
        _count: c_uint,
        _options: *mut c_void,
        _values: *mut c_void,
        state: *mut *mut c_void,
    ) {
        handle(state)
    }

    /// `cuLinkAddData`.
    fn cuLinkAddData_v2(
        _state: *mut c_void,
        _kind: c_int,
        _data: *mut c_void,
        _size: usize,
        _name: *const c_char,
        _count: c_uint,
        _options: *mut c_void,
        _values: *mut c_void,
    ) {
        Ok(())
    }

    /// `cuLinkComplete`: an image of one byte.
    fn cuLinkComplete(_state: *mut c_void, image: *mut *const c_void, size: *mut usize) {
        static IMAGE: u8 = 0;
        put(image, (&raw const IMAGE).cast())?;
        put_if_wanted(size, 1);
        Ok(())
    }

    /// `cuLinkDestroy`.
    fn cuLinkDestroy(_state: *mut c_void) { Ok(()) }

    /// `cuPointerGetAttribute`: 1 the context, 2 the kind of memory, 3 and 4 the pointers, 9 the
    /// device, 11 and 12 the range around it.
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, pointer: u64) {
        with_context(|device| {
            let memory = &device.engine.memory;
            if !memory.is_known(pointer) {
                return Err(Code::InvalidValue);
            }
            match attribute {
                1 => put(value.cast(), crate::device::CONTEXT),
                2 => put(value.cast(), 2_u32),
                3 => put(value.cast(), pointer),
                7 => put(value.cast(), memory.range(pointer)?.0),
                8 | 9 => put(value.cast(), 0_i32),
                11 => put(value.cast(), memory.range(pointer)?.0),
                12 => put(value.cast(), memory.range(pointer)?.1),
                _ => Err(Code::NotSupported),
            }
        })
    }

    /// `cuMemAllocManaged`.
    fn cuMemAllocManaged(pointer: *mut u64, size: usize, flags: c_uint) {
        with_context(|_| match flags {
            1 | 2 => host::allocate_managed(pointer, size),
            _ => Err(Code::InvalidValue),
        })
    }

    /// `cuMemPrefetchAsync`: to a device by its number, -1 is the host.
    fn cuMemPrefetchAsync(pointer: u64, size: usize, device: c_int, stream: *mut c_void) {
        host::prefetch(pointer, size, of_number(device), stream)
    }

    /// `cuMemPrefetchAsync`, with a place.
    fn cuMemPrefetchAsync_v2(
        pointer: u64,
        size: usize,
        location: Location,
        _flags: c_uint,
        stream: *mut c_void,
    ) {
        host::prefetch(pointer, size, location, stream)
    }

    /// `cuMemAdvise`: see [`cuMemPrefetchAsync`].
    fn cuMemAdvise(pointer: u64, size: usize, what: c_int, device: c_int) {
        host::advise(pointer, size, what, of_number(device))
    }

    /// `cuMemAdvise`, with a place.
    fn cuMemAdvise_v2(pointer: u64, size: usize, what: c_int, location: Location) {
        host::advise(pointer, size, what, location)
    }

    /// `cuMemRangeGetAttribute`.
    fn cuMemRangeGetAttribute(
        place: *mut c_void,
        room: usize,
        wanted: c_int,
        pointer: u64,
        size: usize,
    ) {
        host::attribute(place.cast(), room, wanted, pointer, size)
    }

    /// `cuMemRangeGetAttributes`.
    fn cuMemRangeGetAttributes(
        places: *mut *mut c_void,
        rooms: *mut usize,
        wanted: *mut c_int,
        count: usize,
        pointer: u64,
        size: usize,
    ) {
        host::attributes(places, rooms, wanted, count, pointer, size)
    }

    /// `cuStreamGetCtx`.
    fn cuStreamGetCtx(stream: *mut c_void, context: *mut *mut c_void) {
        with_context(|device| {
            device.streams.is_idle(driver::stream_of(stream))?;
            put(context, std::ptr::without_provenance_mut(crate::device::CONTEXT))
        })
    }

    /// `cuStreamWriteValue32`.
    fn cuStreamWriteValue32_v2(
        stream: *mut c_void,
        destination: u64,
        value: u32,
        _flags: c_uint,
    ) {
        driver::submit(stream, Task::Fill {
            destination,
            pattern: value.to_le_bytes(),
            unit: 4,
            size: 4,
        })
    }

    /// `cuTensorMapEncodeTiled`: a description that no kernel reads.
    fn cuTensorMapEncodeTiled(map: *mut [u64; 16]) {
        put(map, [0; 16])
    }

    /// `cuCtxGetLimit`: 1 MiB of whatever it is.
    fn cuCtxGetLimit(value: *mut usize, _limit: c_int) {
        with_context(|_| put(value, 1 << 20))
    }

    /// `cuCtxSetLimit`: accepted, without effect.
    fn cuCtxSetLimit(_limit: c_int, _value: usize) {
        with_context(|_| Ok(()))
    }
}
