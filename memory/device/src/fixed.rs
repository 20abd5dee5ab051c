//! A heap over one memory that a backend gives once: for devices without pages, and where the
//! memory is ours alone. Every backend gives such memory, and every heap over a range may lie on
//! it.
//!
//! Invariant: the memory is mapped to the whole range from the heap's making to its end.

use metes_heap::{BadFree, Corruption};

use crate::backend::{self, Backend, Memory, Range};
use crate::heap::{Block, Extent, OffsetHeap, Refusal, Span, Unmade};
use crate::hybrid::NoHybrid;
use crate::shared::NoParts;
use crate::streams::NoStreams;

/// Why a fixed heap was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FixedError {
    /// The heap over the range was not made.
    #[error(transparent)]
    Heap(#[from] Unmade),
    /// The hybrid heap over the range was not made.
    #[error(transparent)]
    Hybrid(#[from] NoHybrid),
    /// The heap that threads share was not made.
    #[error(transparent)]
    Shared(#[from] NoParts<Unmade>),
    /// The heap of hybrid parts that threads share was not made.
    #[error(transparent)]
    SharedHybrid(#[from] NoParts<NoHybrid>),
    /// The heap ordered by streams was not made.
    #[error(transparent)]
    Streams(#[from] NoStreams),
    /// The backend gave no memory.
    #[error(transparent)]
    Backend(#[from] backend::Error),
}

/// A heap over one memory of a backend; `H` places its blocks.
///
/// An [`OffsetHeap`] is used through this heap's own methods. Other heaps over a range are used
/// as they are, and their blocks lie at an offset from the [`range`](Self::range)'s start: threads
/// share a [`SharedHeap`](crate::shared::SharedHeap) through [`places`](Self::places), and a
/// [`StreamHeap`](crate::streams::StreamHeap) with the device's timeline is reached through
/// [`places_mut`](Self::places_mut).
#[derive(Debug)]
pub struct FixedHeap<B: Backend, H> {
    places: H,
    backend: B,
    range: Range,
    memory: Memory,
}

impl<B: Backend, H> FixedHeap<B, H> {
    /// A heap over `extent.bytes` bytes of `backend`, a multiple of its granularity; `places`
    /// makes its records, for instance
    /// [`<DirectHeap>::direct`](crate::heap::ListHeap::direct): in angle brackets the heap has its
    /// usual index, which without them could not be inferred.
    ///
    /// ```
    /// use metes_device::backend::guarded::Guarded;
    /// use metes_device::fixed::FixedHeap;
    /// use metes_device::heap::{DirectHeap, Extent};
    ///
    /// let extent = Extent { bytes: 64 << 20, granule: 256, blocks: 4096 };
    /// let mut heap = FixedHeap::new(Guarded::new(64 << 20, 64 << 10)?, extent, <DirectHeap>::direct)?;
    /// let block = heap.allocate(1 << 20, 256)?;
    /// let address = heap.address(block.place).expect("it is in use");
    /// assert_eq!(address, heap.range().start + block.offset);
    /// heap.free(block.place).expect("it is in use");
    /// assert!(heap.in_use().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`FixedError`]; nothing stays reserved or created.
    pub fn new<E: Into<FixedError>>(
        mut backend: B,
        extent: Extent,
        places: impl FnOnce(Extent) -> Result<H, E>,
    ) -> Result<Self, FixedError> {
        let places = places(extent).map_err(Into::into)?;
        let range = backend.reserve(extent.bytes)?;
        let memory = match backend.create(extent.bytes) {
            Ok(memory) => memory,
            Err(error) => {
                let _ = backend.unreserve(range);
                return Err(error.into());
            }
        };
        if let Err(error) = backend.map(range.start, memory) {
            let _ = backend.release(memory);
            let _ = backend.unreserve(range);
            return Err(error.into());
        }
        Ok(FixedHeap {
            places,
            backend,
            range,
            memory,
        })
    }

    /// The addresses of the heap.
    pub fn range(&self) -> Range {
        self.range
    }

    /// The memory under it.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// The heap over the range.
    pub fn places(&self) -> &H {
        &self.places
    }

    /// The heap over the range, to be used.
    pub fn places_mut(&mut self) -> &mut H {
        &mut self.places
    }

    /// Whose memory it is.
    pub fn backend(&self) -> &B {
        &self.backend
    }
}

impl<B: Backend, H: OffsetHeap> FixedHeap<B, H> {
    /// Allocates `bytes` bytes at a multiple of `align` (a power of two) from the beginning of
    /// the range. O(1).
    ///
    /// # Errors
    /// [`Refusal`]; the heap is unchanged.
    #[inline]
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<H::Place>, Refusal> {
        self.places.allocate(bytes, align)
    }

    /// Frees a block; any place may be tried. O(1).
    ///
    /// # Errors
    /// [`BadFree`]; the heap is unchanged.
    #[inline]
    pub fn free(&mut self, place: H::Place) -> Result<(), BadFree> {
        self.places.free(place)
    }

    /// The address of a block in use. O(1).
    ///
    /// # Errors
    /// [`BadFree`] as [`free`](Self::free).
    pub fn address(&self, place: H::Place) -> Result<u64, BadFree> {
        Ok(self.range.start + self.places.span(place)?.offset)
    }

    /// The blocks that are still in use, in no order: what was leaked, when nothing should be.
    pub fn in_use(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        self.places.each_used(&mut |span| spans.push(span));
        spans
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), Corruption> {
        self.places.check()
    }
}

impl<B: Backend, H> Drop for FixedHeap<B, H> {
    /// Gives memory and addresses back. The device must have no work left that uses them.
    fn drop(&mut self) {
        // What a device does not take back now it takes back with the process.
        let _ = self.backend.unmap(self.range.start, self.range.bytes);
        let _ = self.backend.release(self.memory);
        let _ = self.backend.unreserve(self.range);
    }
}
