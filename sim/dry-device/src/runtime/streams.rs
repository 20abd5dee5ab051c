//! The runtime's streams and events.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver;
use crate::engine::{HostCall, Task};
use crate::entry::entry_points;
use crate::error::Code;
use crate::runtime::answer_of;

/// `cudaStreamCallback_t`.
type Callback = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void);

/// A callback that waits for its turn.
struct Waiting {
    callback: Callback,
    stream: *mut c_void,
    data: *mut c_void,
}

unsafe extern "C" fn call_back(waiting: *mut c_void) {
    // SAFETY: made by `cudaStreamAddCallback`, and called once.
    let waiting = unsafe { Box::from_raw(waiting.cast::<Waiting>()) };
    // SAFETY: the program gave all three to be used together.
    unsafe { (waiting.callback)(waiting.stream, 0, waiting.data) };
}

entry_points! {
    via crate::runtime::remembered;

    /// `cudaStreamCreate`.
    fn cudaStreamCreate(stream: *mut *mut c_void) {
        // SAFETY: the caller's pointer, on the same terms; so throughout.
        answer_of(unsafe { driver::cuStreamCreate(stream, 0) })
    }

    /// `cudaStreamCreateWithFlags`.
    fn cudaStreamCreateWithFlags(stream: *mut *mut c_void, flags: c_uint) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamCreate(stream, flags) })
    }

    /// `cudaStreamCreateWithPriority`.
    fn cudaStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, priority: c_int) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamCreateWithPriority(stream, flags, priority) })
    }

    /// `cudaStreamDestroy`.
    fn cudaStreamDestroy(stream: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamDestroy_v2(stream) })
    }

    /// `cudaStreamGetPriority`.
    fn cudaStreamGetPriority(stream: *mut c_void, priority: *mut c_int) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamGetPriority(stream, priority) })
    }

    /// `cudaStreamQuery`.
    fn cudaStreamQuery(stream: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamQuery(stream) })
    }

    /// `cudaStreamSynchronize`.
    fn cudaStreamSynchronize(stream: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamSynchronize(stream) })
    }

    /// `cudaStreamWaitEvent`.
    fn cudaStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: c_uint) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuStreamWaitEvent(stream, event, flags) })
    }

    /// `cudaLaunchHostFunc`.
    fn cudaLaunchHostFunc(
        stream: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuLaunchHostFunc(stream, function, data) })
    }

    /// `cudaStreamAddCallback`.
    fn cudaStreamAddCallback(
        stream: *mut c_void,
        callback: Option<Callback>,
        data: *mut c_void,
        _flags: c_uint,
    ) {
        let callback = callback.ok_or(Code::InvalidValue)?;
        let waiting = Box::into_raw(Box::new(Waiting { callback, stream, data }));
        let call = HostCall { function: call_back, data: waiting.cast() };
        driver::submit(stream, Task::Call(call)).inspect_err(|_| {
            // SAFETY: refused, so nobody else will.
            drop(unsafe { Box::from_raw(waiting) });
        })
    }

    /// `cudaEventCreate`.
    fn cudaEventCreate(event: *mut *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventCreate(event, 0) })
    }

    /// `cudaEventCreateWithFlags`.
    fn cudaEventCreateWithFlags(event: *mut *mut c_void, flags: c_uint) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventCreate(event, flags) })
    }

    /// `cudaEventDestroy`.
    fn cudaEventDestroy(event: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventDestroy_v2(event) })
    }

    /// `cudaEventRecord`.
    fn cudaEventRecord(event: *mut c_void, stream: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventRecord(event, stream) })
    }

    /// `cudaEventRecordWithFlags`.
    fn cudaEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, flags: c_uint) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventRecordWithFlags(event, stream, flags) })
    }

    /// `cudaEventQuery`.
    fn cudaEventQuery(event: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventQuery(event) })
    }

    /// `cudaEventSynchronize`.
    fn cudaEventSynchronize(event: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventSynchronize(event) })
    }

    /// `cudaEventElapsedTime`: time of the host.
    fn cudaEventElapsedTime(milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) {
        // SAFETY: as above.
        answer_of(unsafe { driver::cuEventElapsedTime_v2(milliseconds, from, to) })
    }

    /// `cudaIpcGetEventHandle`: there is no device that another process could share.
    fn cudaIpcGetEventHandle(_handle: *mut c_void, _event: *mut c_void) {
        Err(Code::NotSupported)
    }

    /// `cudaIpcOpenEventHandle`: see [`cudaIpcGetEventHandle`].
    fn cudaIpcOpenEventHandle(_event: *mut *mut c_void, _handle: crate::runtime::SharedHandle) {
        Err(Code::NotSupported)
    }
}
