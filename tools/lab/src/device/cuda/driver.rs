//! The driver of a CUDA device as the measurements call it: its own functions, directly.
//!
//! Types are those of `cudarc`; functions are found in the driver's library by name, so that
//! nothing is linked and an old driver lacks only what is measured of it. The device's primary
//! context is current in the thread that opened it, as long as the [`Device`] lives.
//!
//! Invariant: whether the library is the strict model of the driver is known before anything is
//! measured, from a function that only the model has.

#![allow(
    non_snake_case,
    reason = "the functions have the names of the driver's interface"
)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use core::{mem, ptr};
use std::error::Error as _;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUfunction, CUmemAccess_flags,
    CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, CUmemPool_attribute,
    CUmemPoolProps, CUmemoryPool, CUmodule, CUresult, CUstream,
};
use libloading::Library;
use metes_device::backend::Error;

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

macro_rules! functions {
    ($(#[$about:meta])* $group:ident: $($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[$about])*
        pub(super) struct $group {
            $(pub(super) $name: unsafe extern "C" fn($($argument: $type),*) -> c_int,)*
        }

        impl $group {
            fn find(library: &Library) -> Result<Self, Error> {
                Ok($group { $($name: function(library, stringify!($name))?,)* })
            }
        }
    };
}

functions! {
    /// What every driver has.
    Base:
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(error: c_int, name: *mut *const c_char);
    cuGetErrorString(error: c_int, text: *mut *const c_char);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxSynchronize();
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, size: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemsetD8Async(address: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize);
    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamQuery(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void
    );
}

functions! {
    /// Virtual memory, since CUDA 10.2.
    Paging:
    cuMemGetAllocationGranularity(
        granularity: *mut usize,
        about: *const CUmemAllocationProp,
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
        about: *const CUmemAllocationProp,
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
    cuMemSetAccess(address: CUdeviceptr, size: usize, about: *const CUmemAccessDesc, count: usize);
}

functions! {
    /// Stream-ordered blocks from pools, since CUDA 11.2.
    Pools:
    cuMemAllocAsync(address: *mut CUdeviceptr, size: usize, stream: CUstream);
    cuMemAllocFromPoolAsync(
        address: *mut CUdeviceptr,
        size: usize,
        pool: CUmemoryPool,
        stream: CUstream
    );
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    cuMemPoolCreate(pool: *mut CUmemoryPool, about: *const CUmemPoolProps);
    cuMemPoolDestroy(pool: CUmemoryPool);
    cuMemPoolSetAttribute(
        pool: CUmemoryPool,
        attribute: CUmemPool_attribute,
        value: *mut c_void
    );
    cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
    cuDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: CUdevice);
}

/// Calls back with an entry point's name and how often it was called.
type Note = unsafe extern "C" fn(*const c_char, u64);

/// What only the model of the driver has.
#[derive(Clone, Copy)]
pub(super) struct Model {
    each_call: unsafe extern "C" fn(Option<Note>),
    hold: unsafe extern "C" fn(CUstream) -> c_int,
    release: unsafe extern "C" fn(CUstream) -> c_int,
}

thread_local! {
    static CALLS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

unsafe extern "C" fn add(_name: *const c_char, count: u64) {
    CALLS.set(CALLS.get() + count);
}

impl Model {
    /// `None` in the library of a real driver.
    fn find(library: &Library) -> Option<Self> {
        Some(Model {
            each_call: function(library, "metes_dry_each_call").ok()?,
            hold: function(library, "metes_dry_hold_stream").ok()?,
            release: function(library, "metes_dry_release_stream").ok()?,
        })
    }

    /// Calls of the driver so far.
    pub(super) fn calls(&self) -> u64 {
        CALLS.set(0);
        // SAFETY: the function is one of ours, and called before this returns.
        unsafe { (self.each_call)(Some(add)) };
        CALLS.get()
    }

    /// Keeps a stream from doing work.
    pub(super) fn hold(&self, stream: CUstream) {
        // SAFETY: the model refuses what is no stream.
        unsafe { (self.hold)(stream) };
    }

    /// Lets it do its work.
    pub(super) fn release(&self, stream: CUstream) {
        // SAFETY: as for `hold`.
        unsafe { (self.release)(stream) };
    }
}

/// A device, opened.
pub(super) struct Device {
    base: Base,
    paging: Result<Paging, Error>,
    pools: Result<Pools, Error>,
    model: Option<Model>,
    device: CUdevice,
    /// Null until it is retained.
    context: CUcontext,
    pub(super) ordinal: u32,
}

impl Device {
    /// Opens a device, and makes its primary context current in this thread.
    ///
    /// # Errors
    /// [`Error::Absent`] without a driver or that device; [`Error::Device`].
    pub(super) fn open(ordinal: u32) -> Result<Self, Error> {
        // SAFETY: what runs when the driver is loaded is the driver's; every program that uses
        // CUDA runs it.
        let library = unsafe { Library::new(LIBRARY) }.map_err(|error| {
            let cause = error.source().map(|cause| format!(": {cause}"));
            Error::Absent {
                what: format!(
                    "the CUDA driver ({LIBRARY}: {error}{})",
                    cause.unwrap_or_default()
                ),
                remedy: "install NVIDIA's driver on a machine with a GPU, or leave out --cuda"
                    .into(),
            }
        })?;
        let mut device = Device {
            base: Base::find(&library)?,
            paging: Paging::find(&library),
            pools: Pools::find(&library),
            model: Model::find(&library),
            device: 0,
            context: ptr::null_mut(),
            ordinal,
        };
        // Drivers do not bear being unloaded.
        mem::forget(library);
        device.begin()?;
        Ok(device)
    }

    fn begin(&mut self) -> Result<(), Error> {
        let base = &self.base;
        // SAFETY: no flags are defined.
        self.check("cuInit", unsafe { (base.cuInit)(0) })?;
        let mut count = 0;
        // SAFETY: a place for one number.
        let code = unsafe { (base.cuDeviceGetCount)(&raw mut count) };
        self.check("cuDeviceGetCount", code)?;
        let number = c_int::try_from(self.ordinal).unwrap_or(c_int::MAX);
        if number >= count {
            return Err(Error::Absent {
                what: format!("CUDA device {}", self.ordinal),
                remedy: format!(
                    "there are {count}, numbered from 0: choose one of them, or look at CUDA_VISIBLE_DEVICES"
                ),
            });
        }
        let mut device = 0;
        let mut context = ptr::null_mut();
        // SAFETY: places for a device, of which there are more than `number`, and its context.
        unsafe {
            self.check("cuDeviceGet", (base.cuDeviceGet)(&raw mut device, number))?;
            let code = (base.cuDevicePrimaryCtxRetain)(&raw mut context, device);
            self.check("cuDevicePrimaryCtxRetain", code)?;
        }
        (self.device, self.context) = (device, context);
        // SAFETY: a context that is retained until this is dropped.
        let code = unsafe { (self.base.cuCtxSetCurrent)(context) };
        self.check("cuCtxSetCurrent", code)?;
        if self.paging.is_ok()
            && self.attribute(
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
            )? == 0
        {
            self.paging = Err(lacks("virtual memory management"));
        }
        if self.pools.is_ok()
            && self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0
        {
            self.pools = Err(lacks("stream-ordered allocation (memory pools)"));
        }
        Ok(())
    }

    /// What a call's answer means.
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), Error> {
        if code == CUresult::CUDA_SUCCESS as c_int {
            return Ok(());
        }
        if code == CUresult::CUDA_ERROR_NO_DEVICE as c_int {
            return Err(Error::Absent {
                what: "a GPU that CUDA can use".into(),
                remedy: "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or leave out --cuda".into(),
            });
        }
        let text = |function: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text = ptr::null();
            // SAFETY: a place for one pointer, which the driver sets to a string of its own that
            // is never freed, or to null.
            unsafe {
                function(code, &raw mut text);
                match text.is_null() {
                    true => "an error unknown to the driver".into(),
                    false => CStr::from_ptr(text).to_string_lossy().into_owned(),
                }
            }
        };
        Err(Error::Device {
            call,
            code: code.into(),
            text: format!(
                "{}, {}",
                text(self.base.cuGetErrorName),
                text(self.base.cuGetErrorString)
            ),
        })
    }

    pub(super) fn base(&self) -> &Base {
        &self.base
    }

    /// Virtual memory, or why there is none.
    pub(super) fn paging(&self) -> Result<&Paging, Error> {
        self.paging.as_ref().map_err(Clone::clone)
    }

    /// Pools, or why there are none.
    pub(super) fn pools(&self) -> Result<&Pools, Error> {
        self.pools.as_ref().map_err(Clone::clone)
    }

    /// The model, if this is not a device.
    pub(super) fn model(&self) -> Option<Model> {
        self.model
    }

    fn attribute(&self, attribute: CUdevice_attribute) -> Result<c_int, Error> {
        let mut value = 0;
        // SAFETY: a place for one number.
        let code =
            unsafe { (self.base.cuDeviceGetAttribute)(&raw mut value, attribute, self.device) };
        self.check("cuDeviceGetAttribute", code)?;
        Ok(value)
    }

    pub(super) fn name(&self) -> Result<String, Error> {
        let mut name = [0_u8; 256];
        let length = name.len() as c_int;
        // SAFETY: a place for so many bytes.
        let code =
            unsafe { (self.base.cuDeviceGetName)(name.as_mut_ptr().cast(), length, self.device) };
        self.check("cuDeviceGetName", code)?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// The version of CUDA that the driver has, as `13.0`.
    pub(super) fn version(&self) -> Result<String, Error> {
        let mut version = 0;
        // SAFETY: a place for one number.
        let code = unsafe { (self.base.cuDriverGetVersion)(&raw mut version) };
        self.check("cuDriverGetVersion", code)?;
        Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
    }

    /// The compute capability, as `9.0`.
    pub(super) fn capability(&self) -> Result<String, Error> {
        let [major, minor] = [
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        ];
        Ok(format!(
            "{}.{}",
            self.attribute(major)?,
            self.attribute(minor)?
        ))
    }

    /// Bytes free, and bytes in all.
    pub(super) fn memory(&self) -> Result<(u64, u64), Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: places for two numbers.
        let code = unsafe { (self.base.cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", code)?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all work.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: no arguments.
        let code = unsafe { (self.base.cuCtxSynchronize)() };
        self.check("cuCtxSynchronize", code)
    }

    pub(super) fn allocate(&self, bytes: u64) -> Result<CUdeviceptr, Error> {
        let mut address = 0;
        // SAFETY: a place for one address.
        let code = unsafe { (self.base.cuMemAlloc_v2)(&raw mut address, bytes as usize) };
        self.check("cuMemAlloc", code)?;
        Ok(address)
    }

    pub(super) fn free(&self, address: CUdeviceptr) -> Result<(), Error> {
        // SAFETY: the driver refuses what is no block; no work uses this one any more.
        let code = unsafe { (self.base.cuMemFree_v2)(address) };
        self.check("cuMemFree", code)
    }

    fn location(&self) -> CUmemLocation {
        CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.device,
        }
    }

    /// What pages are made of: this device's memory, no handle to share.
    pub(super) fn properties(&self) -> CUmemAllocationProp {
        // SAFETY: zero is a value of every field: numbers, null, and enumerations' "invalid".
        let mut properties: CUmemAllocationProp = unsafe { mem::zeroed() };
        properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = self.location();
        properties
    }

    /// Reading and writing by this device.
    pub(super) fn access(&self) -> CUmemAccessDesc {
        CUmemAccessDesc {
            location: self.location(),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        }
    }

    /// Bytes of the smallest page.
    pub(super) fn granularity(&self) -> Result<u64, Error> {
        let properties = self.properties();
        let mut bytes = 0;
        let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: a place for one number, and properties that outlive the call.
        let code = unsafe {
            (self.paging()?.cuMemGetAllocationGranularity)(
                &raw mut bytes,
                &raw const properties,
                option,
            )
        };
        self.check("cuMemGetAllocationGranularity", code)?;
        Ok(bytes as u64)
    }

    /// The device's own pool.
    pub(super) fn default_pool(&self) -> Result<CUmemoryPool, Error> {
        let mut pool = ptr::null_mut();
        // SAFETY: a place for one pool.
        let code = unsafe { (self.pools()?.cuDeviceGetDefaultMemPool)(&raw mut pool, self.device) };
        self.check("cuDeviceGetDefaultMemPool", code)?;
        Ok(pool)
    }

    /// A pool that keeps what is freed until it is destroyed.
    pub(super) fn keeping_pool(&self) -> Result<CUmemoryPool, Error> {
        let pools = self.pools()?;
        // SAFETY: zero is a value of every field.
        let mut about: CUmemPoolProps = unsafe { mem::zeroed() };
        about.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        about.location = self.location();
        let mut pool = ptr::null_mut();
        // SAFETY: a place for one pool, and properties that outlive the call.
        let code = unsafe { (pools.cuMemPoolCreate)(&raw mut pool, &raw const about) };
        self.check("cuMemPoolCreate", code)?;
        let mut threshold = u64::MAX;
        // SAFETY: a pool, and the number that this attribute has.
        let code = unsafe {
            (pools.cuMemPoolSetAttribute)(
                pool,
                CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut threshold).cast(),
            )
        };
        self.check("cuMemPoolSetAttribute", code)?;
        Ok(pool)
    }

    /// A stream that waits for no other.
    pub(super) fn stream(&self) -> Result<Stream<'_>, Error> {
        const NON_BLOCKING: c_uint = 1;
        let mut raw = ptr::null_mut();
        // SAFETY: a place for one stream.
        let code = unsafe { (self.base.cuStreamCreate)(&raw mut raw, NON_BLOCKING) };
        self.check("cuStreamCreate", code)?;
        Ok(Stream { device: self, raw })
    }

    /// A kernel of a text in PTX, compiled by the driver.
    pub(super) fn kernel(&self, text: &CStr, name: &CStr) -> Result<Kernel<'_>, Error> {
        let mut module = ptr::null_mut();
        // SAFETY: a place for one module, and a text that ends.
        let code = unsafe { (self.base.cuModuleLoadData)(&raw mut module, text.as_ptr().cast()) };
        self.check("cuModuleLoadData", code)?;
        let mut kernel = Kernel {
            device: self,
            module,
            function: ptr::null_mut(),
        };
        // SAFETY: a place for one function, and a name that ends.
        let code = unsafe {
            (self.base.cuModuleGetFunction)(&raw mut kernel.function, module, name.as_ptr())
        };
        self.check("cuModuleGetFunction", code)?;
        Ok(kernel)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.context.is_null() {
            return;
        }
        // SAFETY: retained once, released once; no call follows. What a driver refuses here
        // leaves nothing to be done.
        unsafe {
            (self.base.cuCtxSetCurrent)(ptr::null_mut());
            (self.base.cuDevicePrimaryCtxRelease_v2)(self.device);
        }
    }
}

/// A stream.
pub(super) struct Stream<'a> {
    device: &'a Device,
    pub(super) raw: CUstream,
}

impl Stream<'_> {
    /// Waits for its work.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: a stream of ours.
        let code = unsafe { (self.device.base.cuStreamSynchronize)(self.raw) };
        self.device.check("cuStreamSynchronize", code)
    }

    /// Whether it has work left.
    pub(super) fn busy(&self) -> Result<bool, Error> {
        // SAFETY: a stream of ours.
        let code = unsafe { (self.device.base.cuStreamQuery)(self.raw) };
        if code == CUresult::CUDA_ERROR_NOT_READY as c_int {
            return Ok(true);
        }
        self.device.check("cuStreamQuery", code)?;
        Ok(false)
    }

    /// Writes zeros, behind its work.
    pub(super) fn clear(&self, address: CUdeviceptr, bytes: u64) -> Result<(), Error> {
        // SAFETY: the driver refuses addresses without memory; ours have some.
        let code =
            unsafe { (self.device.base.cuMemsetD8Async)(address, 0, bytes as usize, self.raw) };
        self.device.check("cuMemsetD8Async", code)
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        // SAFETY: a stream of ours, destroyed once.
        unsafe { (self.device.base.cuStreamDestroy_v2)(self.raw) };
    }
}

/// A kernel and its module.
pub(super) struct Kernel<'a> {
    device: &'a Device,
    module: CUmodule,
    function: CUfunction,
}

impl Kernel<'_> {
    /// Launches one thread of it.
    ///
    /// # Safety
    /// `arguments` are what the kernel takes, and the addresses among them have memory until it
    /// has run.
    pub(super) unsafe fn launch<const N: usize>(
        &self,
        stream: &Stream<'_>,
        mut arguments: [u64; N],
    ) -> Result<(), Error> {
        let mut places: [*mut c_void; N] =
            core::array::from_fn(|at| (&raw mut arguments[at]).cast());
        // SAFETY: arguments as the caller promises, which are copied before the call returns.
        let code = unsafe {
            (self.device.base.cuLaunchKernel)(
                self.function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream.raw,
                places.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.device.check("cuLaunchKernel", code)
    }
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        // SAFETY: a module of ours, none of whose kernels run any more.
        unsafe { (self.device.base.cuModuleUnload)(self.module) };
    }
}

fn lacks(what: &str) -> Error {
    Error::Absent {
        what: format!("{what} of this device"),
        remedy: "these rows stay open; take a GPU and a driver that have it".into(),
    }
}

/// A function of the library.
fn function<F: Copy>(library: &Library, name: &str) -> Result<F, Error> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: only the address is taken here.
    let address = unsafe { library.get::<*mut c_void>(name) }.map_err(|_| Error::Absent {
        what: format!("{name} in the CUDA driver"),
        remedy: "update the driver".into(),
    })?;
    let address: *mut c_void = *address;
    // SAFETY: `F` is a pointer to a function, declared as the header of the driver, or of the
    // model, does.
    Ok(unsafe { mem::transmute_copy::<*mut c_void, F>(&address) })
}
