//! The driver's functions, found in its library when they are first asked for.
//!
//! Types are those of `cudarc`. Its functions are not used: they panic where a library or a
//! function is missing, look for `libcuda.so` before the name by which the driver is installed,
//! and give errors an enumeration of Rust, which a newer driver's numbers would leave.

#![allow(
    non_snake_case,
    reason = "the functions have the names of the driver's interface"
)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use core::mem;
use core::ptr;
use std::error::Error as _;
use std::sync::OnceLock;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUmemAccessDesc,
    CUmemAllocationGranularity_flags, CUmemAllocationProp, CUmemGenericAllocationHandle, CUresult,
    CUstream, CUstreamCaptureMode,
};
use libloading::Library;

use crate::backend::Error;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The functions that are used, and the library that keeps them loaded.
        pub(super) struct Driver {
            $(pub(super) $name: unsafe extern "C" fn($($argument: $type),*) -> c_int,)*
            _library: Library,
        }

        impl Driver {
            fn find(library: Library) -> Result<Self, Error> {
                Ok(Driver {
                    $($name: function(&library, stringify!($name))?,)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    cuInit(flags: c_uint);
    cuGetErrorName(error: c_int, name: *mut *const c_char);
    cuGetErrorString(error: c_int, text: *mut *const c_char);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxSynchronize();
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemGetAllocationGranularity(
        granularity: *mut usize,
        properties: *const CUmemAllocationProp,
        option: CUmemAllocationGranularity_flags
    );
    cuMemAddressReserve(
        address: *mut CUdeviceptr,
        size: usize,
        alignment: usize,
        hint: CUdeviceptr,
        flags: c_ulonglong
    );
    cuMemAddressFree(address: CUdeviceptr, size: usize);
    cuMemCreate(
        handle: *mut CUmemGenericAllocationHandle,
        size: usize,
        properties: *const CUmemAllocationProp,
        flags: c_ulonglong
    );
    cuMemRelease(handle: CUmemGenericAllocationHandle);
    cuMemMap(
        address: CUdeviceptr,
        size: usize,
        offset: usize,
        handle: CUmemGenericAllocationHandle,
        flags: c_ulonglong
    );
    cuMemUnmap(address: CUdeviceptr, size: usize);
    cuMemSetAccess(
        address: CUdeviceptr,
        size: usize,
        access: *const CUmemAccessDesc,
        count: usize
    );
    cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize);
    cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventQuery(event: CUevent);
    cuEventSynchronize(event: CUevent);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuStreamIsCapturing(stream: CUstream, status: *mut c_int);
    cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);
}

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

impl Driver {
    /// The driver, initialised.
    pub(super) fn get() -> Result<&'static Driver, Error> {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        // SAFETY: what runs when the driver is loaded is the driver's; every program that uses
        // CUDA runs it.
        let library = unsafe { Library::new(LIBRARY) }.map_err(|error| {
            let cause = error
                .source()
                .map_or_else(String::new, |cause| format!(": {cause}"));
            Error::Absent {
                what: format!("the CUDA driver ({LIBRARY}: {error}{cause})"),
                remedy: "install NVIDIA's driver on a machine with a GPU, or use another backend"
                    .into(),
            }
        })?;
        let driver = Driver::find(library)?;
        // SAFETY: no flags are defined.
        let code = unsafe { (driver.cuInit)(0) };
        driver.check("cuInit", code)?;
        Ok(DRIVER.get_or_init(|| driver))
    }

    /// What a call's answer means.
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), Error> {
        if code == CUresult::CUDA_SUCCESS as c_int {
            return Ok(());
        }
        if code == CUresult::CUDA_ERROR_NO_DEVICE as c_int {
            return Err(Error::Absent {
                what: "a GPU that CUDA can use".into(),
                remedy: "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use another backend"
                    .into(),
            });
        }
        if code == CUresult::CUDA_ERROR_STUB_LIBRARY as c_int {
            return Err(Error::Absent {
                what: format!("the CUDA driver ({LIBRARY} is the toolkit's stub)"),
                remedy: "take the toolkit's stubs out of LD_LIBRARY_PATH, or install the driver"
                    .into(),
            });
        }
        let name = self.text(self.cuGetErrorName, code);
        let meaning = self.text(self.cuGetErrorString, code);
        Err(Error::Device {
            call,
            code: code.into(),
            text: format!("{name}, {meaning}"),
        })
    }

    fn text(
        &self,
        function: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
        code: c_int,
    ) -> String {
        let mut text = ptr::null();
        // SAFETY: a place for one pointer; the driver sets it to a string of its own that is
        // never freed, or to null.
        unsafe {
            function(code, &raw mut text);
            if text.is_null() {
                return "an error unknown to the driver".into();
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// A function of the library.
fn function<F: Copy>(library: &Library, name: &str) -> Result<F, Error> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: only the address is taken here.
    let address = unsafe { library.get::<*mut c_void>(name) }.map_err(|_| Error::Absent {
        what: format!("{name} in the CUDA driver"),
        remedy: "update the driver: virtual memory came with CUDA 10.2".into(),
    })?;
    let address: *mut c_void = *address;
    // SAFETY: `F` is a pointer to a function, of which `functions` declares what the driver's
    // header of that name does.
    Ok(unsafe { mem::transmute_copy::<*mut c_void, F>(&address) })
}
