//! The driver's error codes that the model gives, by their names in `cuda.h`.
//!
//! The runtime (`cudaError_t`) has the same numbers for the same causes, so one type serves both.

use std::ffi::{CStr, c_int};

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Code {
    /// An argument that the documentation of the call excludes.
    InvalidValue = 1,
    /// Memory or addresses are used up.
    OutOfMemory = 2,
    /// `cuInit` was not called.
    NotInitialized = 3,
    /// The environment says that there is no device.
    NoDevice = 100,
    /// No device has this number.
    InvalidDevice = 101,
    /// No context is current, or it was destroyed.
    InvalidContext = 201,
    /// A stream, event or graph that does not exist (any more).
    InvalidHandle = 400,
    /// What was asked for by name does not exist.
    NotFound = 500,
    /// Not an error: the work is not done yet.
    NotReady = 600,
    /// Work touched memory that is not mapped with access. The context is lost from here on.
    IllegalAddress = 700,
    /// The call is not modelled.
    NotSupported = 801,
    /// The call is not allowed while a stream records a graph; the recording is invalid now.
    CaptureUnsupported = 900,
    /// The recording was invalidated before.
    CaptureInvalidated = 901,
    /// The stream does not record.
    CaptureUnmatched = 903,
    /// The event was recorded into a graph, so it has no state.
    CapturedEvent = 907,
}

/// What a call of the model gives.
pub type Answer<T = ()> = Result<T, Code>;

impl Code {
    /// All codes.
    pub const ALL: [Code; 15] = [
        Code::InvalidValue,
        Code::OutOfMemory,
        Code::NotInitialized,
        Code::NoDevice,
        Code::InvalidDevice,
        Code::InvalidContext,
        Code::InvalidHandle,
        Code::NotFound,
        Code::NotReady,
        Code::IllegalAddress,
        Code::NotSupported,
        Code::CaptureUnsupported,
        Code::CaptureInvalidated,
        Code::CaptureUnmatched,
        Code::CapturedEvent,
    ];

    /// The code of that number.
    #[must_use]
    pub fn from_number(number: c_int) -> Option<Code> {
        Self::ALL.into_iter().find(|code| *code as c_int == number)
    }

    /// The name of the driver's code.
    #[must_use]
    pub const fn driver_name(self) -> &'static CStr {
        match self {
            Code::InvalidValue => c"CUDA_ERROR_INVALID_VALUE",
            Code::OutOfMemory => c"CUDA_ERROR_OUT_OF_MEMORY",
            Code::NotInitialized => c"CUDA_ERROR_NOT_INITIALIZED",
            Code::NoDevice => c"CUDA_ERROR_NO_DEVICE",
            Code::InvalidDevice => c"CUDA_ERROR_INVALID_DEVICE",
            Code::InvalidContext => c"CUDA_ERROR_INVALID_CONTEXT",
            Code::InvalidHandle => c"CUDA_ERROR_INVALID_HANDLE",
            Code::NotFound => c"CUDA_ERROR_NOT_FOUND",
            Code::NotReady => c"CUDA_ERROR_NOT_READY",
            Code::IllegalAddress => c"CUDA_ERROR_ILLEGAL_ADDRESS",
            Code::NotSupported => c"CUDA_ERROR_NOT_SUPPORTED",
            Code::CaptureUnsupported => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
            Code::CaptureInvalidated => c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
            Code::CaptureUnmatched => c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
            Code::CapturedEvent => c"CUDA_ERROR_CAPTURED_EVENT",
        }
    }

    /// The name of the runtime's code.
    #[must_use]
    pub const fn runtime_name(self) -> &'static CStr {
        match self {
            Code::InvalidValue => c"cudaErrorInvalidValue",
            Code::OutOfMemory => c"cudaErrorMemoryAllocation",
            Code::NotInitialized => c"cudaErrorInitializationError",
            Code::NoDevice => c"cudaErrorNoDevice",
            Code::InvalidDevice => c"cudaErrorInvalidDevice",
            Code::InvalidContext => c"cudaErrorDeviceUninitialized",
            Code::InvalidHandle => c"cudaErrorInvalidResourceHandle",
            Code::NotFound => c"cudaErrorSymbolNotFound",
            Code::NotReady => c"cudaErrorNotReady",
            Code::IllegalAddress => c"cudaErrorIllegalAddress",
            Code::NotSupported => c"cudaErrorNotSupported",
            Code::CaptureUnsupported => c"cudaErrorStreamCaptureUnsupported",
            Code::CaptureInvalidated => c"cudaErrorStreamCaptureInvalidated",
            Code::CaptureUnmatched => c"cudaErrorStreamCaptureUnmatched",
            Code::CapturedEvent => c"cudaErrorCapturedEvent",
        }
    }

    /// One sentence for people.
    #[must_use]
    pub const fn text(self) -> &'static CStr {
        match self {
            Code::InvalidValue => c"invalid argument (dry device)",
            // Programs look for these words.
            Code::OutOfMemory => c"out of memory",
            Code::NotInitialized => c"not initialised: call cuInit first (dry device)",
            Code::NoDevice => c"no CUDA-capable device is detected (dry device)",
            Code::InvalidDevice => c"no device has this number (dry device)",
            Code::InvalidContext => c"no context is current (dry device)",
            Code::InvalidHandle => c"no such stream, event or graph (dry device)",
            Code::NotFound => c"no such symbol (dry device)",
            Code::NotReady => c"not ready (dry device)",
            Code::IllegalAddress => c"access to memory that is not mapped with access (dry device)",
            Code::NotSupported => c"not modelled by the dry device",
            Code::CaptureUnsupported => c"not allowed while a stream records a graph (dry device)",
            Code::CaptureInvalidated => c"the recording of a graph was invalidated (dry device)",
            Code::CaptureUnmatched => c"the stream does not record a graph (dry device)",
            Code::CapturedEvent => c"the event was recorded into a graph (dry device)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_their_codes() {
        for code in Code::ALL {
            assert_eq!(Code::from_number(code as c_int), Some(code));
        }
        assert_eq!(Code::from_number(0), None);
    }
}
