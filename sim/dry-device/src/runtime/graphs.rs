//! Recordings of graphs. A graph is a number: what it holds is not kept, and launching it does
//! nothing. Building graphs by hand is not modelled.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use crate::device::with_context;
use crate::driver::{self, stream_of};
use crate::entry::{entry_points, put, put_if_wanted};
use crate::error::Code;
use crate::launched;
use crate::runtime::answer_of;
use crate::streams::Capturing;

/// What graphs that are ready to launch, and objects of the program, are handed out as.
const EXECUTABLE: usize = 0x6d65_0000_0000_0030;
const OBJECT: usize = 0x6d65_0000_0000_0040;

fn handle(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

entry_points! {
    via crate::runtime::remembered;

    /// `cudaStreamBeginCapture`.
    fn cudaStreamBeginCapture(stream: *mut c_void, mode: c_int) {
        // SAFETY: the caller's arguments, on the same terms; so throughout.
        answer_of(unsafe { driver::cuStreamBeginCapture_v2(stream, mode) })
    }

    /// `cudaStreamBeginCaptureToGraph`: not modelled.
    fn cudaStreamBeginCaptureToGraph(
        _stream: *mut c_void,
        _graph: *mut c_void,
        _dependencies: *const c_void,
        _data: *const c_void,
        _count: usize,
        _mode: c_int,
    ) {
        Err(Code::NotSupported)
    }

    /// `cudaStreamEndCapture`.
    fn cudaStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamEndCapture(stream, graph) })
    }

    /// `cudaStreamIsCapturing`.
    fn cudaStreamIsCapturing(stream: *mut c_void, status: *mut c_int) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamIsCapturing(stream, status) })
    }

    /// `cudaStreamGetCaptureInfo`.
    fn cudaStreamGetCaptureInfo(
        stream: *mut c_void,
        status: *mut c_int,
        number: *mut c_ulonglong,
        graph: *mut *mut c_void,
        dependencies: *mut *const c_void,
        data: *mut *const c_void,
        count: *mut usize,
    ) {
        let capturing = with_context(|device| device.streams.capturing(stream_of(stream)))?;
        let (state, found) = match capturing {
            Capturing::No => (0, 0),
            Capturing::Active(found) => (1, found),
            Capturing::Invalid(found) => (2, found),
        };
        put(status, state)?;
        put_if_wanted(number, found);
        put_if_wanted(graph, handle(found as usize));
        put_if_wanted(dependencies, std::ptr::null());
        put_if_wanted(data, std::ptr::null());
        put_if_wanted(count, 0);
        Ok(())
    }

    /// `cudaStreamUpdateCaptureDependencies`: not modelled.
    fn cudaStreamUpdateCaptureDependencies(
        _stream: *mut c_void,
        _dependencies: *mut c_void,
        _data: *const c_void,
        _count: usize,
        _flags: c_uint,
    ) {
        Err(Code::NotSupported)
    }

    /// `cudaThreadExchangeStreamCaptureMode`.
    fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuThreadExchangeStreamCaptureMode(mode) })
    }

    /// `cudaGraphInstantiate`.
    fn cudaGraphInstantiate(
        executable: *mut *mut c_void,
        _graph: *mut c_void,
        _flags: c_ulonglong,
    ) {
        put(executable, handle(EXECUTABLE))
    }

    /// `cudaGraphInstantiateWithFlags`.
    fn cudaGraphInstantiateWithFlags(
        executable: *mut *mut c_void,
        _graph: *mut c_void,
        _flags: c_ulonglong,
    ) {
        put(executable, handle(EXECUTABLE))
    }

    /// `cudaGraphLaunch`.
    fn cudaGraphLaunch(executable: *mut c_void, stream: *mut c_void) {
        match executable.addr() {
            EXECUTABLE => driver::submit(stream, launched::anything()),
            _ => Err(Code::InvalidHandle),
        }
    }

    /// `cudaGraphDestroy`.
    fn cudaGraphDestroy(_graph: *mut c_void) { Ok(()) }

    /// `cudaGraphExecDestroy`.
    fn cudaGraphExecDestroy(_executable: *mut c_void) { Ok(()) }

    /// `cudaGraphGetNodes`: what a graph holds is not kept, but it holds something.
    fn cudaGraphGetNodes(_graph: *mut c_void, _nodes: *mut c_void, count: *mut usize) {
        put(count, 1)
    }

    /// `cudaGraphDebugDotPrint`: there is nothing to print.
    fn cudaGraphDebugDotPrint(
        _graph: *mut c_void,
        _path: *const std::ffi::c_char,
        _flags: c_uint,
    ) {
        Err(Code::NotSupported)
    }

    /// `cudaGraphNodeGetDependencies`: not modelled.
    fn cudaGraphNodeGetDependencies(
        _node: *mut c_void,
        _dependencies: *mut c_void,
        _data: *mut c_void,
        count: *mut usize,
    ) {
        put_if_wanted(count, 0);
        Err(Code::NotSupported)
    }

    /// `cudaGraphAddNode`: not modelled.
    fn cudaGraphAddNode(
        _node: *mut c_void,
        _graph: *mut c_void,
        _dependencies: *const c_void,
        _data: *const c_void,
        _count: usize,
        _about: *mut c_void,
    ) {
        Err(Code::NotSupported)
    }

    /// `cudaGraphConditionalHandleCreate`: not modelled.
    fn cudaGraphConditionalHandleCreate(
        _handle: *mut c_void,
        _graph: *mut c_void,
        _value: c_uint,
        _flags: c_uint,
    ) {
        Err(Code::NotSupported)
    }

    /// `cudaUserObjectCreate`: the object lives as long as the process.
    fn cudaUserObjectCreate(
        object: *mut *mut c_void,
        _pointer: *mut c_void,
        _destroy: *const c_void,
        _references: c_uint,
        _flags: c_uint,
    ) {
        put(object, handle(OBJECT))
    }

    /// `cudaUserObjectRelease`.
    fn cudaUserObjectRelease(_object: *mut c_void, _count: c_uint) { Ok(()) }

    /// `cudaGraphRetainUserObject`.
    fn cudaGraphRetainUserObject(
        _graph: *mut c_void,
        _object: *mut c_void,
        _count: c_uint,
        _flags: c_uint,
    ) {
        Ok(())
    }

    /// `cudaDeviceGetGraphMemAttribute`: graphs hold no memory.
    fn cudaDeviceGetGraphMemAttribute(_device: c_int, _attribute: c_int, value: *mut u64) {
        put(value, 0)
    }

    /// `cudaDeviceSetGraphMemAttribute`.
    fn cudaDeviceSetGraphMemAttribute(_device: c_int, _attribute: c_int, _value: *mut u64) {
        Ok(())
    }
}
