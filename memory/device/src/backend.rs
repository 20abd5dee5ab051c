//! Backends: who has the memory that a device heap manages.
//!
//! A heap asks a backend for a range of *addresses* and for *memory* to map into it, and never
//! for a byte of that memory. What can map memory a page at a time (a GPU's driver, the host's
//! kernel) is [paged](Backend::paged); what cannot (a buffer of OpenCL, device memory of
//! Vulkan) gets one memory for a whole range.
//!
//! Invariant kept by every backend: memory is in one state of *created*, *mapped*, *released*;
//! what would leave that order is refused by an [`Error`] and changes nothing.

mod books;
pub mod conformance;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(target_os = "linux")]
pub mod guarded;
pub mod offsets;
#[cfg(feature = "opencl")]
pub mod opencl;
#[cfg(any(feature = "cuda", feature = "opencl", feature = "vulkan"))]
mod process;
pub mod timeline;
#[cfg(feature = "vulkan")]
pub mod vulkan;

use core::fmt::Debug;

/// Memory of a device, as its backend numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Memory(pub u64);

/// A range of a device's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first address. Of a backend without addresses 0, and addresses are offsets.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Range {
    /// The first address behind it.
    pub const fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Whether `bytes` bytes from `address` on lie in it.
    pub const fn holds(&self, address: u64, bytes: u64) -> bool {
        address >= self.start && bytes <= self.bytes && address - self.start <= self.bytes - bytes
    }
}

/// How much memory a device has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capacity {
    /// Not given out to anyone.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// Why a backend refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What the backend needs of the machine is not there.
    #[error("{what} is not there: {remedy}")]
    Absent {
        /// A library, a driver or a device.
        what: String,
        /// How to get it, or do without.
        remedy: String,
    },
    /// The device has too little memory left.
    #[error(
        "the device has no {wanted} bytes of memory left ({free} of {total} are free): free some, or ask for less"
    )]
    OutOfMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free.
        free: u64,
        /// Bytes of the device.
        total: u64,
    },
    /// No range of addresses is left that is long enough.
    #[error("no range of {wanted} addresses can be reserved: reserve less")]
    Addresses {
        /// Bytes asked for.
        wanted: u64,
    },
    /// An address or a length is not a multiple of the granularity.
    #[error("{what} {value} is no multiple of the granularity, {granularity} bytes: round it")]
    Granularity {
        /// Which of the arguments.
        what: &'static str,
        /// Its value.
        value: u64,
        /// [`Backend::granularity`].
        granularity: u64,
    },
    /// A length is zero.
    #[error("{0} of no bytes: ask for one page at least")]
    Empty(&'static str),
    /// A range is not, or not wholly, one that was reserved here.
    #[error("{bytes} bytes at {address:#x} are not reserved: reserve before mapping")]
    NotReserved {
        /// Where the range begins.
        address: u64,
        /// Its length.
        bytes: u64,
    },
    /// Something is mapped in the range.
    #[error("something is mapped in the {bytes} bytes at {address:#x}: unmap it first")]
    Mapped {
        /// Where the range begins.
        address: u64,
        /// Its length.
        bytes: u64,
    },
    /// Nothing is mapped at the range, or another range.
    #[error("no memory is mapped at {address:#x} in {bytes} bytes: unmap what was mapped, whole")]
    NotMapped {
        /// Where the range begins.
        address: u64,
        /// Its length.
        bytes: u64,
    },
    /// No such memory: never created, or released.
    #[error("no memory has number {}: it was released, or never created", .0.0)]
    NoMemory(Memory),
    /// The memory is mapped.
    #[error("memory {} is mapped: unmap it before releasing or mapping it again", .0.0)]
    InUse(Memory),
    /// The device gives less than that as one memory.
    #[error("{wanted} bytes are more than the device gives as one memory, {most}: ask for several")]
    TooLarge {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that one memory has at most.
        most: u64,
    },
    /// The device was opened by another process, of which this one is a fork.
    #[error(
        "the device was opened by process {opened} and does not follow into its fork {here}: open it again here"
    )]
    Process {
        /// Who opened it.
        opened: u32,
        /// Who asks.
        here: u32,
    },
    /// The backend cannot map a part of a range.
    #[error("{0} has no pages: one memory is mapped to a whole range")]
    NotPaged(&'static str),
    /// The device or its driver reported an error.
    #[error("{call} failed: {text} ({code})")]
    Device {
        /// The call.
        call: &'static str,
        /// The error's number.
        code: i64,
        /// The error's name, or what it means.
        text: String,
    },
}

/// Memory that a device heap manages.
pub trait Backend: Debug {
    /// The backend's name, as the command line has it.
    fn name(&self) -> &'static str;

    /// Addresses and lengths of ranges, memory and maps are multiples of this power of two.
    fn granularity(&self) -> u64;

    /// Whether memory can be mapped to parts of a range.
    fn paged(&self) -> bool;

    /// Blocks must begin at multiples of this power of two for the device to use them.
    fn alignment(&self) -> u64;

    /// How much memory the device has.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn capacity(&self) -> Result<Capacity, Error>;

    /// Reserves `bytes` addresses, which have no memory yet.
    ///
    /// # Errors
    /// [`Error::Addresses`], [`Error::Granularity`], [`Error::Empty`], [`Error::Device`].
    fn reserve(&mut self, bytes: u64) -> Result<Range, Error>;

    /// Gives a range back in which nothing is mapped.
    ///
    /// # Errors
    /// [`Error::NotReserved`] unless the range is one that was reserved, [`Error::Mapped`].
    fn unreserve(&mut self, range: Range) -> Result<(), Error>;

    /// Takes `bytes` bytes of the device's memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::TooLarge`], [`Error::Granularity`], [`Error::Empty`],
    /// [`Error::Device`].
    fn create(&mut self, bytes: u64) -> Result<Memory, Error>;

    /// Maps a memory, whole, to addresses that are reserved and have none.
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::InUse`], [`Error::NotReserved`], [`Error::Mapped`],
    /// [`Error::Granularity`], [`Error::NotPaged`], [`Error::Device`].
    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error>;

    /// Takes the memory that was mapped at `address` from there; it keeps existing.
    ///
    /// The device must have no work left that uses the addresses: unmapping waits for nobody.
    ///
    /// # Errors
    /// [`Error::NotMapped`] unless `bytes` is what was mapped there, [`Error::Device`].
    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error>;

    /// Gives memory that is not mapped back to the device.
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::InUse`], [`Error::Device`].
    fn release(&mut self, memory: Memory) -> Result<(), Error>;
}
