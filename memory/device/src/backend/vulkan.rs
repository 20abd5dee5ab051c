//! Vulkan: device memory, with buffers bound to it at the offsets of blocks.
//!
//! Where a device can bind sparsely, a range is one large buffer and memory is bound to its
//! pages; where it cannot, a memory serves a whole range and each block becomes a buffer of its
//! own, bound where the block lies. The loader is loaded when a device is opened.
//!
//! Invariant: every memory is one `VkDeviceMemory` of the chosen type; of a paged backend every
//! range is one sparse buffer, whose pages are bound as the books say.

mod device;

use core::fmt::{self, Debug};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use ash::vk;

use super::books::Books;
use super::{Backend, Capacity, Error, Memory, Range};
use device::{Shared, failed};

pub use device::Description;

/// Which of a device's memory is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// That which is fastest for the device: `DEVICE_LOCAL`.
    #[default]
    Device,
    /// That which the host can map, and sees without further calls: `HOST_VISIBLE` and
    /// `HOST_COHERENT`.
    Host,
}

/// What blocks may be used for: as any buffer but those of extensions.
pub const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw()
        | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_BUFFER.as_raw()
        | vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::INDEX_BUFFER.as_raw()
        | vk::BufferUsageFlags::VERTEX_BUFFER.as_raw()
        | vk::BufferUsageFlags::INDIRECT_BUFFER.as_raw(),
);

/// A device of Vulkan.
pub struct Vulkan {
    shared: Arc<Shared>,
    memory_type: u32,
    heap: u32,
    alignment: u64,
    /// Bytes of the longest memory.
    largest: u64,
    books: Books,
    memories: BTreeMap<u64, vk::DeviceMemory>,
    /// Of a paged backend, the buffers that ranges are, by their start.
    ranges: Option<BTreeMap<u64, vk::Buffer>>,
}

impl Vulkan {
    /// The devices, in the order in which [`open`](Self::open) numbers them.
    ///
    /// # Errors
    /// [`Error::Absent`] without Vulkan's loader, [`Error::Device`].
    pub fn devices() -> Result<Vec<Description>, Error> {
        device::devices()
    }

    /// Opens a device; paged where it can bind sparsely.
    ///
    /// # Errors
    /// [`Error::Absent`] without Vulkan's loader, that device, or memory of that kind;
    /// [`Error::Device`].
    pub fn open(index: usize, kind: Kind) -> Result<Self, Error> {
        Self::over(Shared::open(index, true)?, kind)
    }

    /// Opens a device to map memory to whole ranges, even if it could do otherwise: binding
    /// sparsely costs time, and blocks can be buffers of their own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_whole(index: usize, kind: Kind) -> Result<Self, Error> {
        Self::over(Shared::open(index, false)?, kind)
    }

    /// Manages memory of a device that a program has made; not paged.
    ///
    /// # Safety
    /// Instance and device must be alive as long as the backend and its blocks, and the physical
    /// device must be that of the device, with Vulkan 1.1 or later. The queue must be one of the
    /// device's; whoever uses it must hold [`queue`](Self::queue).
    ///
    /// # Errors
    /// [`Error::Absent`] without memory of that kind, [`Error::Device`].
    pub unsafe fn within(
        instance: ash::Instance,
        physical: vk::PhysicalDevice,
        device: ash::Device,
        queue: vk::Queue,
        family: u32,
        kind: Kind,
    ) -> Result<Self, Error> {
        // SAFETY: as the caller promises.
        let shared = unsafe { Shared::within(instance, physical, device, queue, family) }?;
        Self::over(shared, kind)
    }

    fn over(shared: Shared, kind: Kind) -> Result<Self, Error> {
        let requirements = shared.requirements(1 << 20)?;
        let (memory_type, heap) = shared.memory_type(kind, requirements.memory_type_bits)?;
        let alignment = shared.alignment().max(requirements.alignment);
        let alignment = alignment.next_power_of_two();
        let total = shared.heap_bytes(heap);
        let (books, ranges) = if shared.sparse {
            // Of a sparse buffer, the requirements' alignment is the length of a page.
            let books = Books::new(total, alignment)?;
            (books, Some(BTreeMap::new()))
        } else {
            (Books::whole("vulkan", total, alignment)?, None)
        };
        Ok(Vulkan {
            largest: shared.largest_memory(),
            alignment: match ranges {
                Some(_) => shared.alignment().next_power_of_two(),
                None => alignment,
            },
            memory_type,
            heap,
            books,
            memories: BTreeMap::new(),
            ranges,
            shared: Arc::new(shared),
        })
    }

    /// The device.
    pub fn device(&self) -> &ash::Device {
        &self.shared.device
    }

    /// The device's queue, which one may use at a time, the backend too; of the queue family
    /// [`queue_family`](Self::queue_family), which can compute and transfer.
    pub fn queue(&self) -> MutexGuard<'_, vk::Queue> {
        self.shared.queue()
    }

    /// The family of the queue.
    pub fn queue_family(&self) -> u32 {
        self.shared.family
    }

    /// Bytes that one memory has at most (`maxMemoryAllocationSize`).
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// How many memories there may be at a time (`maxMemoryAllocationCount`), of all users of the
    /// device: 4096 on many. It limits how small pages can be.
    pub fn most_memories(&self) -> u32 {
        self.shared.most_memories()
    }

    /// Where in device memory a block lies that one memory holds: the memory, and the offset.
    ///
    /// # Errors
    /// [`Error::NotMapped`] unless one memory is mapped to all of it.
    pub fn place(&self, address: u64, bytes: u64) -> Result<(vk::DeviceMemory, u64), Error> {
        let (memory, offset) = self.books.at(address, bytes)?;
        Ok((self.memory(memory)?, offset))
    }

    /// A block as (a part of) a buffer, for the uses in [`USAGE`].
    ///
    /// # Errors
    /// [`Error::NotMapped`] unless memory is mapped to all of it, [`Error::Granularity`] unless
    /// it begins at a multiple of the [alignment](Backend::alignment), [`Error::Empty`],
    /// [`Error::Process`], [`Error::Device`].
    pub fn block(&self, address: u64, bytes: u64) -> Result<Block, Error> {
        self.shared.opened.check()?;
        if bytes == 0 {
            return Err(Error::Empty("a block"));
        }
        if address & (self.alignment - 1) != 0 {
            return Err(Error::Granularity {
                what: "the block's address",
                value: address,
                granularity: self.alignment,
            });
        }
        if self.ranges.is_some() {
            self.books.check_covered(address, bytes)?;
            let (buffer, start) = self.range_of(address, bytes)?;
            return Ok(Block {
                shared: Arc::clone(&self.shared),
                buffer,
                offset: address - start,
                own: false,
            });
        }
        let (memory, offset) = self.place(address, bytes)?;
        let buffer = self.shared.buffer(bytes)?;
        let block = Block {
            shared: Arc::clone(&self.shared),
            buffer,
            offset: 0,
            own: true,
        };
        // SAFETY: a new buffer of the device and memory of a type that its requirements allow:
        // they are the same for all buffers of one usage. The offset is aligned as they are, and
        // what the buffer needs beyond its length is checked.
        unsafe {
            let needs = self.shared.device.get_buffer_memory_requirements(buffer);
            self.books.at(address, needs.size)?;
            self.shared
                .device
                .bind_buffer_memory(buffer, memory, offset)
                .map_err(failed("vkBindBufferMemory"))?;
        }
        Ok(block)
    }

    fn memory(&self, memory: Memory) -> Result<vk::DeviceMemory, Error> {
        let found = self.memories.get(&memory.0);
        found.copied().ok_or(Error::NoMemory(memory))
    }

    /// The sparse buffer of the range in which addresses lie, and where it begins.
    fn range_of(&self, address: u64, bytes: u64) -> Result<(vk::Buffer, u64), Error> {
        let before = self.ranges.iter().flatten();
        let before = before.take_while(|(start, _)| **start <= address).last();
        let (start, buffer) = before.ok_or(Error::NotReserved { address, bytes })?;
        Ok((*buffer, *start))
    }

    /// Binds memory to pages, or none.
    fn bind(&self, address: u64, bytes: u64, memory: vk::DeviceMemory) -> Result<(), Error> {
        if self.ranges.is_none() {
            return Ok(());
        }
        let (buffer, start) = self.range_of(address, bytes)?;
        // SAFETY: a sparse buffer, pages of it, and memory of that length or none.
        unsafe { self.shared.bind(buffer, address - start, bytes, memory) }
    }
}

impl Backend for Vulkan {
    fn name(&self) -> &'static str {
        "vulkan"
    }

    /// Of a paged backend the device's page, else the alignment.
    fn granularity(&self) -> u64 {
        self.books.granularity
    }

    fn paged(&self) -> bool {
        self.ranges.is_some()
    }

    /// For every use in [`USAGE`], and beside images.
    fn alignment(&self) -> u64 {
        self.alignment
    }

    /// What the driver has budgeted for this process and is not used yet, where it says
    /// (`VK_EXT_memory_budget`); else what this backend has not taken.
    fn capacity(&self) -> Result<Capacity, Error> {
        self.shared.opened.check()?;
        let own = self.books.capacity();
        let free = self.shared.budget(self.heap).unwrap_or(own.free);
        Ok(Capacity {
            free: free.min(own.free),
            total: own.total,
        })
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
        self.shared.opened.check()?;
        let range = self.books.reserve_behind_all(bytes)?;
        if let Some(ranges) = &mut self.ranges {
            let wanted = Error::Addresses { wanted: bytes };
            let most = self.shared.sparse_addresses();
            let taken: u64 = self.books.ranges().map(|range| range.bytes).sum();
            let buffer = (taken <= most).then(|| self.shared.buffer(bytes));
            match buffer {
                Some(Ok(buffer)) => drop(ranges.insert(range.start, buffer)),
                refused => {
                    self.books.unreserve(range)?;
                    return Err(match refused {
                        Some(Err(error)) if !is_out_of_memory(&error) => error,
                        _ => wanted,
                    });
                }
            }
        }
        Ok(range)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.shared.opened.check()?;
        self.books.unreserve(range)?;
        let ranges = self.ranges.as_mut();
        if let Some(buffer) = ranges.and_then(|ranges| ranges.remove(&range.start)) {
            // SAFETY: a buffer of ours; nothing is bound to it, so no work uses it.
            unsafe { self.shared.device.destroy_buffer(buffer, None) };
        }
        Ok(())
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.shared.opened.check()?;
        self.books.check_length("memory", bytes)?;
        let memory = self.books.create(bytes)?;
        let refused = if bytes > self.largest {
            Error::TooLarge {
                wanted: bytes,
                most: self.largest,
            }
        } else {
            let wanted = vk::MemoryAllocateInfo::default()
                .allocation_size(bytes)
                .memory_type_index(self.memory_type);
            // SAFETY: a type of the device's and a length that is not 0.
            match unsafe { self.shared.device.allocate_memory(&wanted, None) } {
                Ok(allocated) => {
                    self.memories.insert(memory.0, allocated);
                    return Ok(memory);
                }
                Err(vk::Result::ERROR_TOO_MANY_OBJECTS) => Error::Device {
                    call: "vkAllocateMemory",
                    code: vk::Result::ERROR_TOO_MANY_OBJECTS.as_raw().into(),
                    text: format!(
                        "no more memories than the {} there are: take fewer, larger ones",
                        self.memories.len()
                    ),
                },
                Err(code) => failed("vkAllocateMemory")(code),
            }
        };
        self.books.release(memory)?;
        if is_out_of_memory(&refused) {
            let Capacity { free, total } = self.capacity()?;
            return Err(Error::OutOfMemory {
                wanted: bytes,
                free,
                total,
            });
        }
        Err(refused)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
        self.shared.opened.check()?;
        let bytes = self.books.map(address, memory)?;
        let bound = self
            .memory(memory)
            .and_then(|allocated| self.bind(address, bytes, allocated));
        if bound.is_err() {
            self.books.unmap(address, bytes)?;
        }
        bound
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        self.shared.opened.check()?;
        let memory = self.books.unmap(address, bytes)?;
        if let Err(error) = self.bind(address, bytes, vk::DeviceMemory::null()) {
            self.books.map(address, memory)?;
            return Err(error);
        }
        Ok(memory)
    }

    fn release(&mut self, memory: Memory) -> Result<(), Error> {
        self.shared.opened.check()?;
        self.books.release(memory)?;
        let allocated = self.memories.remove(&memory.0);
        let allocated = allocated.ok_or(Error::NoMemory(memory))?;
        // SAFETY: memory of ours that is bound to no page; that no work uses buffers bound to it
        // the caller of `unmap` promised.
        unsafe { self.shared.device.free_memory(allocated, None) };
        Ok(())
    }
}

impl Drop for Vulkan {
    fn drop(&mut self) {
        if self.shared.opened.check().is_err() {
            return;
        }
        // SAFETY: buffers and memory of ours; a program drops the backend after its work.
        unsafe {
            for buffer in self.ranges.iter().flat_map(BTreeMap::values) {
                self.shared.device.destroy_buffer(*buffer, None);
            }
            for memory in self.memories.values() {
                self.shared.device.free_memory(*memory, None);
            }
        }
    }
}

impl Debug for Vulkan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Vulkan")
            .field("memory_type", &self.memory_type)
            .field("largest", &self.largest)
            .field("paged", &self.paged())
            .field("books", &self.books)
            .finish_non_exhaustive()
    }
}

/// A block as a buffer of Vulkan, or as a part of one.
///
/// To be used no longer than memory is mapped there, and dropped only after the work that uses
/// it has run.
pub struct Block {
    shared: Arc<Shared>,
    buffer: vk::Buffer,
    offset: u64,
    /// Whether the buffer is the block's alone.
    own: bool,
}

impl Block {
    /// The buffer.
    pub fn buffer(&self) -> vk::Buffer {
        self.buffer
    }

    /// Where in the buffer the block begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.own && self.shared.opened.check().is_ok() {
            // SAFETY: a buffer of ours; that no work uses it any more is the program's duty.
            unsafe { self.shared.device.destroy_buffer(self.buffer, None) };
        }
    }
}

impl Debug for Block {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Block")
            .field("buffer", &self.buffer)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

fn is_out_of_memory(error: &Error) -> bool {
    let codes = [
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    ];
    matches!(error, Error::Device { code, .. }
        if codes.iter().any(|known| i64::from(known.as_raw()) == *code))
}
