//! CUDA: virtual memory of a GPU's driver.
//!
//! Ranges are reserved addresses, memories are physical pages, and both are ordinary addresses
//! to kernels once mapped. The driver's library is loaded when a device is opened; no toolkit is
//! needed, neither here nor when building.
//!
//! Invariant: what the books say is reserved, created and mapped the driver has been told to
//! reserve, create and map, with access for this device. When a call of the driver fails, the
//! books are as before.

mod driver;
mod streams;

use core::ffi::c_int;
use core::fmt::{self, Debug};
use core::mem;
use core::ptr;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUmemAccess_flags, CUmemAccessDesc,
    CUmemAllocationGranularity_flags, CUmemAllocationProp, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUresult, CUstreamCaptureMode,
};

use super::books::Books;
use super::process::Opened;
use super::{Backend, Capacity, Error, Memory, Range};
use driver::Driver;

pub use cudarc::driver::sys::CUstream;
pub use streams::Streams;

/// A GPU's memory through CUDA's driver.
#[derive(Debug)]
pub struct Cuda {
    context: Arc<Context>,
    books: Books,
    /// The driver's handles of memories.
    handles: BTreeMap<u64, u64>,
}

impl Cuda {
    /// Opens a device: its primary context, which all libraries of the process share.
    ///
    /// # Errors
    /// [`Error::Absent`] without a driver, without that device, or if the device has no virtual
    /// memory management; [`Error::Device`].
    pub fn open(ordinal: u32) -> Result<Self, Error> {
        let context = Context::retain(ordinal)?;
        let granularity = context.granularity()?;
        let Capacity { total, .. } = context.capacity()?;
        Ok(Cuda {
            context: Arc::new(context),
            // How much of it is free, the driver knows: other programs use it, too.
            books: Books::new(total, granularity)?,
            handles: BTreeMap::new(),
        })
    }

    /// The device's name.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn device_name(&self) -> Result<String, Error> {
        self.context.name()
    }

    /// A timeline over at most `streams` streams of this device.
    ///
    /// Takes its events now: eight for each stream, and one.
    ///
    /// # Errors
    /// [`Error::Process`], [`Error::Device`].
    pub fn streams(&self, streams: usize) -> Result<Streams, Error> {
        Streams::new(Arc::clone(&self.context), streams)
    }

    /// Waits for all work of the device's primary context, of streams that nobody named, too.
    ///
    /// # Errors
    /// [`Error::Process`], [`Error::Device`], among others while a stream is being captured.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.context.call("cuCtxSynchronize", |driver| {
            // SAFETY: no arguments; the context is current.
            unsafe { (driver.cuCtxSynchronize)() }
        })
    }

    /// Copies bytes of the host to the device, after all work of the device's default stream.
    ///
    /// # Errors
    /// [`Error::NotReserved`] outside of the ranges of this backend, [`Error::Device`] where no
    /// memory is mapped.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check_reserved(address, bytes.len() as u64)?;
        // SAFETY: the driver checks the addresses of the device, which are this backend's own;
        // the host's are those of a slice.
        self.context.call("cuMemcpyHtoD", |driver| unsafe {
            (driver.cuMemcpyHtoD_v2)(address, bytes.as_ptr().cast(), bytes.len())
        })
    }

    /// Copies bytes of the device to the host, after all work of the device's default stream.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_reserved(address, bytes.len() as u64)?;
        // SAFETY: as for `write`.
        self.context.call("cuMemcpyDtoH", |driver| unsafe {
            (driver.cuMemcpyDtoH_v2)(bytes.as_mut_ptr().cast(), address, bytes.len())
        })
    }

    fn check_reserved(&self, address: u64, bytes: u64) -> Result<(), Error> {
        let mut ranges = self.books.ranges();
        if ranges.any(|range| range.holds(address, bytes)) {
            return Ok(());
        }
        Err(Error::NotReserved { address, bytes })
    }

    fn handle(&self, memory: Memory) -> Result<u64, Error> {
        let handle = self.handles.get(&memory.0);
        handle.copied().ok_or(Error::NoMemory(memory))
    }
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn granularity(&self) -> u64 {
        self.books.granularity
    }

    fn paged(&self) -> bool {
        true
    }

    /// What `cudaMalloc` aligns to: libraries rely on it.
    fn alignment(&self) -> u64 {
        256
    }

    /// Of the whole device: other programs and contexts use it, too.
    fn capacity(&self) -> Result<Capacity, Error> {
        self.context.capacity()
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
        self.context.opened.check()?;
        self.books.check_length("a range", bytes)?;
        let alignment = self.books.granularity as usize;
        let mut start = 0;
        // SAFETY: a place for one address.
        let reserved = self.context.call("cuMemAddressReserve", |driver| unsafe {
            (driver.cuMemAddressReserve)(&raw mut start, bytes as usize, alignment, 0, 0)
        });
        reserved.map_err(|error| match code(&error) {
            Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY | CUresult::CUDA_ERROR_INVALID_VALUE) => {
                Error::Addresses { wanted: bytes }
            }
            _ => error,
        })?;
        let range = Range { start, bytes };
        self.books.reserved(range);
        Ok(range)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.context.opened.check()?;
        self.books.unreserve(range)?;
        // SAFETY: a range that was reserved, and in which nothing is mapped.
        let freed = self.context.call("cuMemAddressFree", |driver| unsafe {
            (driver.cuMemAddressFree)(range.start, range.bytes as usize)
        });
        if freed.is_err() {
            self.books.reserved(range);
        }
        freed
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.context.opened.check()?;
        // Sizes beyond the device some drivers call invalid, others out of memory.
        let memory = self.books.create(bytes)?;
        let properties = self.context.properties();
        let mut handle = 0;
        // SAFETY: a place for one handle, and properties that outlive the call.
        let created = self.context.call("cuMemCreate", |driver| unsafe {
            (driver.cuMemCreate)(&raw mut handle, bytes as usize, &raw const properties, 0)
        });
        if let Err(error) = created {
            self.books.release(memory)?;
            if code(&error) != Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY) {
                return Err(error);
            }
            let Capacity { free, total } = self.capacity()?;
            return Err(Error::OutOfMemory {
                wanted: bytes,
                free,
                total,
            });
        }
        self.handles.insert(memory.0, handle);
        Ok(memory)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
        self.context.opened.check()?;
        let bytes = self.books.map(address, memory)?;
        let handle = self.handle(memory)?;
        // SAFETY: addresses that are reserved and free, and a handle of just that length.
        let mapped = self.context.call("cuMemMap", |driver| unsafe {
            (driver.cuMemMap)(address, bytes as usize, 0, handle, 0)
        });
        if let Err(error) = mapped {
            self.books.unmap(address, bytes)?;
            return Err(error);
        }
        let access = CUmemAccessDesc {
            location: self.context.location(),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: addresses that were mapped just now, and one description.
        let allowed = self.context.call("cuMemSetAccess", |driver| unsafe {
            (driver.cuMemSetAccess)(address, bytes as usize, &raw const access, 1)
        });
        if let Err(error) = allowed {
            self.unmap(address, bytes)?;
            return Err(error);
        }
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        self.context.opened.check()?;
        let memory = self.books.unmap(address, bytes)?;
        // SAFETY: a mapping, whole; that no work uses it the caller promises.
        let unmapped = self.context.call("cuMemUnmap", |driver| unsafe {
            (driver.cuMemUnmap)(address, bytes as usize)
        });
        if let Err(error) = unmapped {
            self.books.map(address, memory)?;
            return Err(error);
        }
        Ok(memory)
    }

    fn release(&mut self, memory: Memory) -> Result<(), Error> {
        self.context.opened.check()?;
        self.books.check_release(memory)?;
        let handle = self.handle(memory)?;
        // SAFETY: a handle that was created here, and is released once.
        self.context.call("cuMemRelease", |driver| unsafe {
            (driver.cuMemRelease)(handle)
        })?;
        self.handles.remove(&memory.0);
        self.books.release(memory).map(drop)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // A driver that refuses, or is gone as the process ends, leaves nothing to be done.
        for (address, bytes) in self.books.mapped() {
            // SAFETY: a mapping, whole; a program drops the backend after its work.
            drop(self.context.call("cuMemUnmap", |driver| unsafe {
                (driver.cuMemUnmap)(address, bytes as usize)
            }));
        }
        for handle in self.handles.values() {
            // SAFETY: a handle that was created here and not released.
            drop(self.context.call("cuMemRelease", |driver| unsafe {
                (driver.cuMemRelease)(*handle)
            }));
        }
        for range in self.books.ranges() {
            // SAFETY: a range that was reserved, in which nothing is mapped any more.
            drop(self.context.call("cuMemAddressFree", |driver| unsafe {
                (driver.cuMemAddressFree)(range.start, range.bytes as usize)
            }));
        }
    }
}

/// The primary context of a device, retained.
struct Context {
    driver: &'static Driver,
    opened: Opened,
    device: CUdevice,
    context: CUcontext,
}

// SAFETY: a context belongs to no thread: it is made current for a call and only for it, and the
// driver's calls may be made from any thread at a time.
unsafe impl Send for Context {}
// SAFETY: as before; nothing of it changes after it was made.
unsafe impl Sync for Context {}

impl Context {
    fn retain(ordinal: u32) -> Result<Self, Error> {
        let driver = Driver::get()?;
        let mut count = 0;
        // SAFETY: a place for one number.
        let code = unsafe { (driver.cuDeviceGetCount)(&raw mut count) };
        driver.check("cuDeviceGetCount", code)?;
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        if ordinal >= count {
            return Err(Error::Absent {
                what: format!("CUDA device {ordinal}"),
                remedy: format!(
                    "there are {count}, numbered from 0: choose one of them, or look at CUDA_VISIBLE_DEVICES"
                ),
            });
        }
        let mut device = 0;
        // SAFETY: a place for one device, of which there are more than `ordinal`.
        let code = unsafe { (driver.cuDeviceGet)(&raw mut device, ordinal) };
        driver.check("cuDeviceGet", code)?;
        let mut supported = 0;
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        // SAFETY: a place for one number, and a device.
        let code = unsafe { (driver.cuDeviceGetAttribute)(&raw mut supported, attribute, device) };
        driver.check("cuDeviceGetAttribute", code)?;
        if supported == 0 {
            return Err(Error::Absent {
                what: format!("virtual memory management of CUDA device {ordinal}"),
                remedy: "use a GPU and an operating mode that has it, or manage offsets into one allocation".into(),
            });
        }
        let mut context = ptr::null_mut();
        // SAFETY: a place for one context, and a device.
        let code = unsafe { (driver.cuDevicePrimaryCtxRetain)(&raw mut context, device) };
        driver.check("cuDevicePrimaryCtxRetain", code)?;
        Ok(Context {
            driver,
            opened: Opened::here(),
            device,
            context,
        })
    }

    /// Makes a call with the context current and, should another thread be capturing a graph,
    /// without disturbing that; then leaves the thread as it was.
    fn call(&self, name: &'static str, call: impl FnOnce(&Driver) -> c_int) -> Result<(), Error> {
        self.opened.check()?;
        let driver = self.driver;
        // SAFETY: the context is retained.
        let code = unsafe { (driver.cuCtxPushCurrent_v2)(self.context) };
        driver.check("cuCtxPushCurrent", code)?;
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a place for a mode, which is exchanged; the second call puts back what the
        // first found. What is popped is the context that was pushed.
        let code = unsafe {
            let exchanged = (driver.cuThreadExchangeStreamCaptureMode)(&raw mut mode);
            let code = call(driver);
            if exchanged == CUresult::CUDA_SUCCESS as c_int {
                (driver.cuThreadExchangeStreamCaptureMode)(&raw mut mode);
            }
            let mut popped = ptr::null_mut();
            (driver.cuCtxPopCurrent_v2)(&raw mut popped);
            code
        };
        driver.check(name, code)
    }

    fn name(&self) -> Result<String, Error> {
        let mut name = [0_u8; 256];
        // SAFETY: a place for so many bytes.
        self.call("cuDeviceGetName", |driver| unsafe {
            (driver.cuDeviceGetName)(name.as_mut_ptr().cast(), name.len() as c_int, self.device)
        })?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: places for two numbers.
        self.call("cuMemGetInfo", |driver| unsafe {
            (driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total)
        })?;
        Ok(Capacity {
            free: free as u64,
            total: total as u64,
        })
    }

    fn location(&self) -> CUmemLocation {
        CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.device,
        }
    }

    /// What memory is made of: this device's, no handle to share.
    fn properties(&self) -> CUmemAllocationProp {
        // SAFETY: zero is a value of every field: numbers, null, and the enumerations' "invalid".
        let mut properties: CUmemAllocationProp = unsafe { mem::zeroed() };
        properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = self.location();
        properties
    }

    fn granularity(&self) -> Result<u64, Error> {
        let properties = self.properties();
        let mut bytes = 0;
        // SAFETY: a place for one number, and properties that outlive the call.
        self.call("cuMemGetAllocationGranularity", |driver| unsafe {
            (driver.cuMemGetAllocationGranularity)(
                &raw mut bytes,
                &raw const properties,
                CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM,
            )
        })?;
        Ok(bytes as u64)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.opened.check().is_ok() {
            // SAFETY: retained once, released once.
            unsafe { (self.driver.cuDevicePrimaryCtxRelease_v2)(self.device) };
        }
    }
}

impl Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("device", &self.device)
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}

/// The driver's error, if it is one of those that mean something here.
fn code(error: &Error) -> Option<CUresult> {
    let Error::Device { code, .. } = error else {
        return None;
    };
    let known = [
        CUresult::CUDA_ERROR_INVALID_VALUE,
        CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUresult::CUDA_ERROR_INVALID_HANDLE,
        CUresult::CUDA_ERROR_NOT_READY,
        CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    ];
    known.into_iter().find(|known| *known as i64 == *code)
}
