//! OpenCL: buffers of a device, and sub-buffers of them as blocks.
//!
//! OpenCL has no addresses that a host could map memory to: a memory is one buffer, a range is
//! offsets into it, and a block becomes a *sub-buffer*, which kernels take as they take buffers.
//! The library is loaded when a device is opened.
//!
//! Invariant: every memory is one buffer of the context, referenced once by the backend; what
//! sub-buffers a program holds keep their buffer alive beyond its release.

mod queues;

use core::ffi::c_void;
use core::fmt::{self, Debug};
use core::ptr;
use std::collections::BTreeMap;

use cl3::error_codes::{
    CL_DEVICE_NOT_FOUND, CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE,
    CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, CL_PLATFORM_NOT_FOUND_KHR,
    DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED, error_text,
};
use cl3::memory::{
    CL_BUFFER_CREATE_TYPE_REGION, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY,
    CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, cl_buffer_region,
};
use cl3::{command_queue, context, device, event, memory, platform};

use super::books::Books;
use super::process::Opened;
use super::{Backend, Capacity, Error, Memory, Range};

pub use cl3::types::{cl_command_queue, cl_context, cl_device_id, cl_mem};
pub use queues::Queues;

/// A device of OpenCL.
pub struct OpenCl {
    opened: Opened,
    device: cl_device_id,
    context: cl_context,
    /// Places new buffers on the device.
    queue: cl_command_queue,
    /// Bytes of the longest buffer.
    largest: u64,
    books: Books,
    buffers: BTreeMap<u64, cl_mem>,
}

// SAFETY: objects of OpenCL belong to no thread, and all calls but that which sets a kernel's
// arguments may be made from any (OpenCL 3.0, section 2.1); nothing else here is shared.
unsafe impl Send for OpenCl {}

/// What a kernel may do with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Access {
    /// Read and write it.
    #[default]
    ReadWrite,
    /// Only read it.
    Read,
    /// Only write it.
    Write,
}

/// A device as [`OpenCl::devices`] lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Who implements OpenCL for it.
    pub platform: String,
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub bytes: u64,
}

impl OpenCl {
    /// The devices of all platforms, in the order in which [`open`](Self::open) numbers them.
    ///
    /// # Errors
    /// [`Error::Absent`] without the OpenCL library or a platform, [`Error::Device`].
    pub fn devices() -> Result<Vec<Description>, Error> {
        let described = |(platform, device)| {
            Ok(Description {
                platform: platform_name(platform)?,
                name: device_text(device)?,
                bytes: device_number(device, device::CL_DEVICE_GLOBAL_MEM_SIZE)?,
            })
        };
        all_devices()?.into_iter().map(described).collect()
    }

    /// Opens a device, with a context of its own, in which the program makes its queues.
    ///
    /// # Errors
    /// [`Error::Absent`] without the OpenCL library, a platform, or that device;
    /// [`Error::Device`].
    pub fn open(index: usize) -> Result<Self, Error> {
        let all = all_devices()?;
        let Some(&(_, device)) = all.get(index) else {
            return Err(Error::Absent {
                what: format!("OpenCL device {index}"),
                remedy: format!(
                    "there are {}, numbered from 0: choose one of them",
                    all.len()
                ),
            });
        };
        let context = context::create_context(&[device], ptr::null(), None, ptr::null_mut())
            .map_err(failed("clCreateContext"))?;
        // SAFETY: the context was made here, for that device; `new` takes it over.
        unsafe { Self::new(context, device) }
    }

    /// Manages memory in a context that a program has made.
    ///
    /// # Safety
    /// `context` must be a context of OpenCL, and `device` one of its devices.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub unsafe fn within(context: cl_context, device: cl_device_id) -> Result<Self, Error> {
        // SAFETY: it is a context, as the caller promises.
        unsafe { context::retain_context(context) }.map_err(failed("clRetainContext"))?;
        // SAFETY: the device is the context's, as the caller promises; `new` takes the reference
        // over that was just added.
        unsafe { Self::new(context, device) }
    }

    /// # Safety
    /// `device` is one of the context's; the caller's reference to the context goes over.
    unsafe fn new(context: cl_context, device: cl_device_id) -> Result<Self, Error> {
        // SAFETY: the device is one of the context's; nothing is asked of the queue.
        let queue = unsafe { command_queue::create_command_queue(context, device, 0) };
        let queue = match queue {
            Ok(queue) => queue,
            Err(code) => {
                // SAFETY: the reference that the caller gave over.
                unsafe { context::release_context(context) }.ok();
                return Err(failed("clCreateCommandQueue")(code));
            }
        };
        // From here on, dropping it gives context and queue back.
        let mut opened = OpenCl {
            opened: Opened::here(),
            device,
            context,
            queue,
            largest: 0,
            books: Books::whole("opencl", 0, 1)?,
            buffers: BTreeMap::new(),
        };
        let bits = device_number(device, device::CL_DEVICE_MEM_BASE_ADDR_ALIGN)?;
        let alignment = (bits / 8).max(1).next_power_of_two();
        let total = device_number(device, device::CL_DEVICE_GLOBAL_MEM_SIZE)?;
        opened.largest = device_number(device, device::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?;
        opened.books = Books::whole("opencl", total, alignment)?;
        Ok(opened)
    }

    /// The context of the device's buffers.
    pub fn context(&self) -> cl_context {
        self.context
    }

    /// The device.
    pub fn device(&self) -> cl_device_id {
        self.device
    }

    /// Bytes that one memory has at most (`CL_DEVICE_MAX_MEM_ALLOC_SIZE`).
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The buffer that a memory is.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn buffer(&self, memory: Memory) -> Result<cl_mem, Error> {
        let buffer = self.buffers.get(&memory.0);
        buffer.copied().ok_or(Error::NoMemory(memory))
    }

    /// Makes a block a sub-buffer.
    ///
    /// # Errors
    /// [`Error::NotMapped`] unless memory is mapped to all of it, [`Error::Granularity`] unless
    /// it begins at a multiple of the [alignment](Backend::alignment), [`Error::Empty`],
    /// [`Error::Process`], [`Error::Device`].
    pub fn block(&self, address: u64, bytes: u64, access: Access) -> Result<SubBuffer, Error> {
        self.opened.check()?;
        if bytes == 0 {
            return Err(Error::Empty("a block"));
        }
        let (memory, offset) = self.books.at(address, bytes)?;
        let alignment = self.alignment();
        if offset & (alignment - 1) != 0 {
            return Err(Error::Granularity {
                what: "the block's address",
                value: address,
                granularity: alignment,
            });
        }
        let flags = match access {
            Access::ReadWrite => CL_MEM_READ_WRITE,
            Access::Read => CL_MEM_READ_ONLY,
            Access::Write => CL_MEM_WRITE_ONLY,
        };
        let region = cl_buffer_region {
            origin: offset as usize,
            size: bytes as usize,
        };
        // SAFETY: the buffer is alive, the region lies in it and outlives the call, and the
        // buffer was made for reading and writing, of which the flags are a part.
        let buffer = unsafe {
            memory::create_sub_buffer(
                self.buffer(memory)?,
                flags,
                CL_BUFFER_CREATE_TYPE_REGION,
                (&raw const region).cast::<c_void>(),
            )
        }
        .map_err(failed("clCreateSubBuffer"))?;
        Ok(SubBuffer {
            opened: self.opened,
            buffer,
        })
    }

    /// Makes a buffer and has the device give it memory now: drivers put that off to the first
    /// use otherwise, and a kernel's launch would be what fails.
    fn place(&self, bytes: u64) -> Result<cl_mem, (&'static str, i32)> {
        // SAFETY: the context is alive, and no host memory is given.
        let buffer = unsafe {
            memory::create_buffer(
                self.context,
                CL_MEM_READ_WRITE,
                bytes as usize,
                ptr::null_mut(),
            )
        }
        .map_err(|code| ("clCreateBuffer", code))?;
        // SAFETY: queue and buffer are of one context, and there is no event to wait for; the
        // event that is returned belongs to us.
        let placed = unsafe {
            command_queue::enqueue_migrate_mem_object(
                self.queue,
                1,
                &raw const buffer,
                CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED,
                0,
                ptr::null(),
            )
            .and_then(|placed| {
                let waited = event::wait_for_events(&[placed]);
                event::release_event(placed).and(waited)
            })
        };
        if let Err(code) = placed {
            // SAFETY: nobody else knows the buffer.
            unsafe { memory::release_mem_object(buffer) }.ok();
            return Err(("clEnqueueMigrateMemObjects", code));
        }
        Ok(buffer)
    }
}

impl Backend for OpenCl {
    fn name(&self) -> &'static str {
        "opencl"
    }

    /// What sub-buffers must be aligned to.
    fn granularity(&self) -> u64 {
        self.books.granularity
    }

    fn paged(&self) -> bool {
        false
    }

    fn alignment(&self) -> u64 {
        self.books.granularity
    }

    /// What this backend has taken is not free; OpenCL does not tell what others have taken.
    fn capacity(&self) -> Result<Capacity, Error> {
        self.opened.check()?;
        Ok(self.books.capacity())
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
        self.opened.check()?;
        self.books.reserve_behind_all(bytes)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.opened.check()?;
        self.books.unreserve(range)
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.opened.check()?;
        self.books.check_length("memory", bytes)?;
        if bytes > self.largest {
            return Err(Error::TooLarge {
                wanted: bytes,
                most: self.largest,
            });
        }
        let Capacity { free, total } = self.books.capacity();
        let memory = self.books.create(bytes)?;
        match self.place(bytes) {
            Ok(buffer) => {
                self.buffers.insert(memory.0, buffer);
                Ok(memory)
            }
            Err((call, code)) => {
                self.books.release(memory)?;
                Err(match code {
                    CL_MEM_OBJECT_ALLOCATION_FAILURE
                    | CL_OUT_OF_RESOURCES
                    | CL_OUT_OF_HOST_MEMORY
                    | CL_INVALID_BUFFER_SIZE => Error::OutOfMemory {
                        wanted: bytes,
                        free,
                        total,
                    },
                    _ => failed(call)(code),
                })
            }
        }
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
        self.opened.check()?;
        self.books.map(address, memory).map(drop)
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        self.opened.check()?;
        self.books.unmap(address, bytes)
    }

    fn release(&mut self, memory: Memory) -> Result<(), Error> {
        self.opened.check()?;
        self.books.check_release(memory)?;
        let buffer = self.buffer(memory)?;
        // SAFETY: the one reference to it that the backend has.
        unsafe { memory::release_mem_object(buffer) }.map_err(failed("clReleaseMemObject"))?;
        self.buffers.remove(&memory.0);
        self.books.release(memory).map(drop)
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        if self.opened.check().is_err() {
            return;
        }
        // A driver that refuses to give something back leaves nothing to be done.
        for buffer in self.buffers.values() {
            // SAFETY: the one reference to it that the backend has.
            unsafe { memory::release_mem_object(*buffer) }.ok();
        }
        // SAFETY: the one reference to each that the backend has.
        unsafe {
            command_queue::release_command_queue(self.queue).ok();
            context::release_context(self.context).ok();
        }
    }
}

impl Debug for OpenCl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenCl")
            .field("largest", &self.largest)
            .field("books", &self.books)
            .finish_non_exhaustive()
    }
}

/// A block as a buffer of OpenCL, until it is dropped.
///
/// It keeps the memory alive that it lies in, even after the backend has released that.
#[derive(Debug)]
pub struct SubBuffer {
    opened: Opened,
    buffer: cl_mem,
}

// SAFETY: as of `OpenCl`.
unsafe impl Send for SubBuffer {}

impl SubBuffer {
    /// The buffer, for a kernel's argument or a copy; to be used no longer than `self` lives.
    pub fn get(&self) -> cl_mem {
        self.buffer
    }
}

impl Drop for SubBuffer {
    fn drop(&mut self) {
        if self.opened.check().is_ok() {
            // SAFETY: the one reference that came with the making.
            unsafe { memory::release_mem_object(self.buffer) }.ok();
        }
    }
}

type PlatformDevice = (*mut c_void, cl_device_id);

fn all_devices() -> Result<Vec<PlatformDevice>, Error> {
    let platforms = platform::get_platform_ids().map_err(failed("clGetPlatformIDs"))?;
    let mut all = Vec::new();
    for platform in platforms {
        let devices = device::get_device_ids(platform, device::CL_DEVICE_TYPE_ALL);
        let devices = devices.map_err(failed("clGetDeviceIDs"))?;
        all.extend(devices.into_iter().map(|device| (platform, device)));
    }
    if all.is_empty() {
        return Err(failed("clGetDeviceIDs")(CL_DEVICE_NOT_FOUND));
    }
    Ok(all)
}

fn platform_name(platform: *mut c_void) -> Result<String, Error> {
    let name = platform::get_platform_info(platform, platform::CL_PLATFORM_NAME);
    name.map(String::from).map_err(failed("clGetPlatformInfo"))
}

fn device_text(device: cl_device_id) -> Result<String, Error> {
    let name = device::get_device_info(device, device::CL_DEVICE_NAME);
    name.map(String::from).map_err(failed("clGetDeviceInfo"))
}

/// A number of the device, of 4 or 8 bytes.
fn device_number(device: cl_device_id, what: device::cl_device_info) -> Result<u64, Error> {
    let bytes = device::get_device_data(device, what).map_err(failed("clGetDeviceInfo"))?;
    match (
        <[u8; 8]>::try_from(&bytes[..]),
        <[u8; 4]>::try_from(&bytes[..]),
    ) {
        (Ok(long), _) => Ok(u64::from_ne_bytes(long)),
        (_, Ok(short)) => Ok(u32::from_ne_bytes(short).into()),
        _ => Err(Error::Device {
            call: "clGetDeviceInfo",
            code: 0,
            text: format!("a number of {} bytes", bytes.len()),
        }),
    }
}

/// What a call's failure means.
fn failed(call: &'static str) -> impl Fn(i32) -> Error {
    move |code| match code {
        DLOPEN_RUNTIME_LOAD_FAILED => Error::Absent {
            what: "the OpenCL library (libOpenCL.so.1)".into(),
            remedy: "install an OpenCL loader (Debian: ocl-icd-libopencl1), or use another backend"
                .into(),
        },
        DLOPEN_FUNCTION_NOT_AVAILABLE => Error::Absent {
            what: format!("the function behind {call}"),
            remedy: "install an OpenCL library of version 1.2 or later".into(),
        },
        CL_PLATFORM_NOT_FOUND_KHR | CL_DEVICE_NOT_FOUND => Error::Absent {
            what: "a device of OpenCL".into(),
            remedy:
                "install a driver (without a GPU, Debian: pocl-opencl-icd), or use another backend"
                    .into(),
        },
        _ => Error::Device {
            call,
            code: code.into(),
            text: error_text(code).into(),
        },
    }
}
