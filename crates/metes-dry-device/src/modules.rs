//! The driver's modules and kernels: what is compiled at run time is loaded, found by name,
//! launched, and never run.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::attributes;
use crate::device::{Task, with_context};
use crate::driver;
use crate::entry::{entry_points, get, put, put_if_wanted};
use crate::error::{Answer, Code};

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
        _arguments: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        driver::submit(stream, Task::Kernel)
    }

    /// `cuLaunchKernelEx`.
    fn cuLaunchKernelEx(
        configuration: *const LaunchConfiguration,
        _function: *mut c_void,
        _arguments: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        driver::submit(get(configuration)?.stream, Task::Kernel)
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
        _arguments: *mut *mut c_void,
    ) {
        driver::submit(stream, Task::Kernel)
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
