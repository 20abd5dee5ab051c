//! Lists by size class over a range of device memory: the constant-time heap.
//!
//! The index is TLSF's two levels of classes, 32 a power of two, and before it goes to the
//! next class it probes the first [`PROBES`] blocks of the request's own class: so it finds
//! what best fit would find, in most cases, and never searches. The paper's own segregated
//! fit (one class a power of two, no probe) is [`PaperHeap`].
//!
//! **Time.** Allocate and free are O(1), whatever happened before; a refusal takes no longer
//! than a success.
//!
//! **What is refused.** A request is served whenever a free block of a larger class exists.
//! So of a request of r granules that is refused every free block has fewer than
//! r + max(1, r/32) granules, and unless more than [`PROBES`] blocks have the request's own
//! class no free block has r: [`refusable`] gives the figure.
//!
//! Invariant: records, one of 24 bytes for every block in use or free, stand in host memory
//! that was taken when the heap was made; nothing else is allocated, and nothing of the
//! device is read.

use core::fmt::Debug;
use core::mem::ManuallyDrop;

use metes_heap::index::Index;
use metes_heap::index::classes::{HalfFit, SegregatedFit};
use metes_heap::store::Store;
use metes_heap::store::ledger::{ByHandle, Direct, Hashed, Ledger, Lookup};
use metes_heap::{
    BadFree, BlockInfo, Corruption, Geometry, Heap, RegionError, State, Statistics, UnitRecord,
};

use crate::owned::{Owned, has_room};

/// Blocks of a request's own class that are tried.
pub const PROBES: usize = 4;

/// The index: 32 classes a power of two, [`PROBES`] probes.
pub type Classes = SegregatedFit<32, PROBES>;

/// The heap whose blocks are named by handles: a stale handle never resolves.
pub type HandleHeap<I = Classes> = ListHeap<ByHandle, I>;
/// The heap whose blocks are named by offsets, found in a table with an entry a granule:
/// strictly O(1), 4 bytes a granule.
pub type DirectHeap<I = Classes> = ListHeap<Direct<'static>, I>;
/// The heap whose blocks are named by offsets, found by hashing: expected O(1), 32 to 64
/// bytes a block in use.
pub type HashedHeap<I = Classes> = ListHeap<Hashed<'static>, I>;
/// The paper's segregated fit (algorithms 1 and 2, corrected): one class a power of two, a
/// hash table keyed by address. Expected O(1).
pub type PaperHeap = HashedHeap<HalfFit>;

/// What a heap manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Bytes of the range, a multiple of the granule.
    pub bytes: u64,
    /// Blocks are multiples of this power of two, and begin at multiples of it.
    pub granule: u64,
    /// Most blocks in use at a time.
    pub blocks: usize,
}

/// Why a heap was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmade {
    /// The granule is no power of two.
    #[error("the granule is {0} bytes, which is no power of two: take {next}", next = .0.next_power_of_two())]
    Granule(u64),
    /// The range has no whole granules, or none.
    #[error(
        "a range of {bytes} bytes is no multiple of the granule of {granule} bytes: round it down"
    )]
    Length {
        /// Bytes of the range.
        bytes: u64,
        /// Bytes of a granule.
        granule: u64,
    },
    /// The range has too many granules to number.
    #[error(
        "a range of {bytes} bytes has more than 2^32 - 1 granules of {granule} bytes: take larger granules"
    )]
    Granules {
        /// Bytes of the range.
        bytes: u64,
        /// Bytes of a granule.
        granule: u64,
    },
    /// No block may be in use, or more than records can be numbered.
    #[error("{0} blocks in use at most: ask for 1 to 2^30")]
    Blocks(usize),
    /// The host has no memory for the records.
    #[error(
        "the host has no memory for the records of {blocks} blocks in {bytes} bytes: ask for fewer blocks, larger granules or a smaller range"
    )]
    Memory {
        /// Bytes of the range.
        bytes: u64,
        /// Blocks in use at most.
        blocks: usize,
    },
}

/// Why a request was refused. The heap is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing was asked for: no block has no bytes.
    #[error("a block of no bytes was asked for")]
    Empty,
    /// More was asked for than the heap has.
    #[error("{wanted} bytes were asked for, the heap has {bytes}: ask for less, or make it larger")]
    TooLarge {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes of the heap.
        bytes: u64,
    },
    /// The alignment is no power of two.
    #[error("an alignment of {0} bytes was asked for, which is no power of two")]
    Alignment(u64),
    /// No free block is large enough.
    #[error("no free block has {wanted} bytes: {free} are free in all")]
    NoBlock {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes of the heap beyond those requested; what rounding takes is among them.
        free: u64,
    },
    /// As many blocks are in use as the heap has records for.
    #[error(
        "{0} blocks are in use, as many as the heap was made for: free some, or make it for more"
    )]
    Blocks(usize),
}

/// A block that the program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<P> {
    /// What names it.
    pub place: P,
    /// Bytes from the beginning of the range to the block.
    pub offset: u64,
}

/// A heap over a range of offsets: [`ListHeap`] and
/// [`HybridHeap`](crate::hybrid::HybridHeap).
pub trait OffsetHeap: Debug {
    /// What names a block.
    type Place: Copy + Eq + Debug;
    /// What the heap manages.
    fn extent(&self) -> Extent;
    /// Blocks in use.
    fn used(&self) -> usize;
    /// Allocates `bytes` bytes at a multiple of `align` (a power of two). O(1).
    ///
    /// # Errors
    /// [`Refusal`]; the heap is unchanged.
    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<Self::Place>, Refusal>;
    /// Frees a block; any place may be tried. O(1).
    ///
    /// # Errors
    /// [`BadFree`]; the heap is unchanged.
    fn free(&mut self, place: Self::Place) -> Result<(), BadFree>;
    /// Where a block in use is, and what was requested. O(1).
    ///
    /// # Errors
    /// [`BadFree`] as [`free`](Self::free).
    fn span(&self, place: Self::Place) -> Result<Span, BadFree>;
    /// Calls `visit` with every block in use, in no order. Linear.
    fn each_used(&self, visit: &mut dyn FnMut(Span));
    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&self) -> Result<(), Corruption>;
}

/// A block in use, as a free or a report sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Bytes from the beginning of the range to the block.
    pub offset: u64,
    /// Bytes that were requested.
    pub requested: u64,
}

/// The most bytes of a free block while a request of `bytes` bytes is refused: one granule less
/// than the least block that surely serves it. O(1).
pub fn refusable(bytes: u64, granule: u64) -> u64 {
    let granules = bytes.div_ceil(granule).max(1);
    // Classes of an exponent are 2^(exponent - 5) granules wide, 1 below 32 granules.
    let width = 1 << (granules | 32).ilog2().saturating_sub(5);
    let next = (granules / width + 1) * width;
    (next - 1) * granule
}

/// A heap of lists over records that are found by `L`.
#[derive(Debug)]
pub struct ListHeap<L: Lookup, I = Classes> {
    /// Dropped before the memory that it refers to.
    heap: ManuallyDrop<Heap<I, Ledger<'static, L, UnitRecord>>>,
    extent: Extent,
    /// log2 of the granule.
    shift: u32,
    _records: Owned<UnitRecord>,
    _direct: Option<Owned<u32>>,
    _hashed: Option<Owned<(usize, u32)>>,
}

impl<L: Lookup, I> Drop for ListHeap<L, I> {
    fn drop(&mut self) {
        // SAFETY: dropped once, here, before the memory that it refers to.
        unsafe { ManuallyDrop::drop(&mut self.heap) };
    }
}

/// The index of a device heap.
pub trait Lists<L: Lookup>: Index<Ledger<'static, L, UnitRecord>> + Debug {}

impl<L: Lookup, I: Index<Ledger<'static, L, UnitRecord>> + Debug> Lists<L> for I {}

impl<I: Lists<ByHandle> + Default> HandleHeap<I> {
    /// A heap by handle. O(blocks).
    ///
    /// # Errors
    /// [`Unmade`].
    pub fn by_handle(extent: Extent) -> Result<Self, Unmade> {
        check(extent)?;
        ListHeap::new(extent, I::default(), ByHandle, None, None)
    }
}

impl<I: Lists<Direct<'static>> + Default> DirectHeap<I> {
    /// A heap by address, through a table. O(blocks + granules).
    ///
    /// # Errors
    /// [`Unmade`].
    pub fn direct(extent: Extent) -> Result<Self, Unmade> {
        check(extent)?;
        let granules = (extent.bytes / extent.granule) as usize;
        check_room::<u32>(extent, granules)?;
        // SAFETY: the heap, which holds the reference, is dropped before its memory.
        let (owner, table) = unsafe { Owned::new(vec![0; granules].into_boxed_slice()) };
        let lookup = Direct::new(table, extent.granule as usize);
        ListHeap::new(extent, I::default(), lookup, Some(owner), None)
    }
}

impl<I: Lists<Hashed<'static>> + Default> HashedHeap<I> {
    /// A heap by address, through a hash table. O(blocks).
    ///
    /// # Errors
    /// [`Unmade`].
    pub fn hashed(extent: Extent) -> Result<Self, Unmade> {
        check(extent)?;
        let slots = (2 * extent.blocks).next_power_of_two();
        check_room::<(usize, u32)>(extent, slots)?;
        // SAFETY: the heap, which holds the reference, is dropped before its memory.
        let (owner, table) = unsafe { Owned::new(vec![(0, 0); slots].into_boxed_slice()) };
        ListHeap::new(extent, I::default(), Hashed::new(table), None, Some(owner))
    }
}

fn check(extent: Extent) -> Result<(), Unmade> {
    let Extent {
        bytes,
        granule,
        blocks,
    } = extent;
    if !granule.is_power_of_two() {
        return Err(Unmade::Granule(granule));
    }
    if bytes == 0 || bytes & (granule - 1) != 0 {
        return Err(Unmade::Length { bytes, granule });
    }
    if bytes / granule > u64::from(u32::MAX) {
        return Err(Unmade::Granules { bytes, granule });
    }
    if blocks == 0 || blocks > 1 << 30 {
        return Err(Unmade::Blocks(blocks));
    }
    Ok(())
}

impl<I: Lists<ByHandle>> ListHeap<ByHandle, I> {
    /// A heap by handle with the index that `index` makes for so many records beside its
    /// heads.
    pub(crate) fn with_index(
        extent: Extent,
        index: impl FnOnce(usize) -> I,
    ) -> Result<Self, Unmade> {
        check(extent)?;
        // The lists of streams take up to 24 bytes a record.
        check_room::<[u64; 3]>(extent, records(extent))?;
        ListHeap::new(extent, index(records(extent)), ByHandle, None, None)
    }
}

/// That the host has room for so many records.
fn check_room<T>(extent: Extent, records: usize) -> Result<(), Unmade> {
    let Extent { bytes, blocks, .. } = extent;
    match has_room::<T>(records) {
        true => Ok(()),
        false => Err(Unmade::Memory { bytes, blocks }),
    }
}

/// Between and beside the blocks in use there are at most as many free ones and one more; and
/// a range has a sentinel.
fn records(extent: Extent) -> usize {
    2 * extent.blocks + 2
}

impl<L: Lookup, I: Lists<L>> ListHeap<L, I> {
    fn new(
        extent: Extent,
        mut index: I,
        lookup: L,
        direct: Option<Owned<u32>>,
        hashed: Option<Owned<(usize, u32)>>,
    ) -> Result<Self, Unmade> {
        let Extent {
            bytes,
            granule,
            blocks,
        } = extent;
        let geometry = Geometry::out_of_band(granule as usize);
        // The heap counts in granules.
        let granules = (bytes / granule) as usize;
        let heads = index
            .heads(granules, Geometry::out_of_band(1))
            .ok_or(Unmade::Granules { bytes, granule })?;
        let records = heads + records(extent);
        check_room::<UnitRecord>(extent, records)?;
        // SAFETY: the heap, which holds the reference, is dropped before its memory.
        let (owner, records) =
            unsafe { Owned::new(vec![UnitRecord::SPARE; records].into_boxed_slice()) };
        let mut heap = Heap::new(index, Ledger::new(records, lookup, geometry));
        heap.add_region(granules).map_err(|error| match error {
            RegionError::TooSmall(_) => Unmade::Length { bytes, granule },
            RegionError::SpanExceeded | RegionError::OneRegionOnly | RegionError::Unmerged => {
                Unmade::Granules { bytes, granule }
            }
            RegionError::OutOfRecords => Unmade::Blocks(blocks),
        })?;
        Ok(ListHeap {
            heap: ManuallyDrop::new(heap),
            extent,
            shift: granule.trailing_zeros(),
            _records: owner,
            _direct: direct,
            _hashed: hashed,
        })
    }

    /// Allocates `bytes` bytes at a multiple of `align` (a power of two). O(1).
    ///
    /// # Errors
    /// [`Refusal`]; the heap is unchanged, and it took no longer than a success.
    #[inline(always)]
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<L::Place>, Refusal> {
        if bytes == 0 || self.used() == self.extent.blocks || !align.is_power_of_two() {
            return Err(self.refusal(bytes, align));
        }
        let Some(place) = self.heap.allocate(bytes as usize, align as usize) else {
            return Err(self.refusal(bytes, align));
        };
        Ok(Block {
            place,
            offset: self.offset_of(place),
        })
    }

    /// Where the block begins whose place was just made or resolved.
    #[inline(always)]
    fn offset_of(&self, place: L::Place) -> u64 {
        match self.heap.store().lookup().offset(place) {
            Some(offset) => offset as u64,
            None => self.bytes(self.heap.place_offset(place)),
        }
    }

    /// What the heap counts, in bytes.
    #[inline(always)]
    fn bytes(&self, granules: usize) -> u64 {
        (granules as u64) << self.shift
    }

    /// Why a request is refused.
    #[cold]
    fn refusal(&self, wanted: u64, align: u64) -> Refusal {
        let Extent { bytes, blocks, .. } = self.extent;
        if wanted == 0 {
            return Refusal::Empty;
        }
        if !align.is_power_of_two() {
            return Refusal::Alignment(align);
        }
        if wanted > bytes {
            return Refusal::TooLarge { wanted, bytes };
        }
        if self.used() == blocks {
            return Refusal::Blocks(blocks);
        }
        Refusal::NoBlock {
            wanted,
            free: bytes - self.heap.live() as u64,
        }
    }

    /// Frees a block; any place may be tried. Returns where it was. O(1).
    ///
    /// # Errors
    /// [`BadFree`] for a place that names no block in use: foreign, freed, and by handle also
    /// stale. The heap is unchanged.
    #[inline(always)]
    pub fn free(&mut self, place: L::Place) -> Result<(), BadFree> {
        self.heap.release_place(place)
    }

    /// Where a block in use is, and what was requested. O(1).
    ///
    /// # Errors
    /// [`BadFree`] as [`free`](Self::free).
    #[inline(always)]
    pub fn span(&self, place: L::Place) -> Result<Span, BadFree> {
        // SAFETY: a ledger resolves blocks in use only, and touches no memory.
        let requested = unsafe { self.heap.requested(place) }?;
        Ok(Span {
            offset: self.offset_of(place),
            requested: requested as u64,
        })
    }

    /// The record of a block in use. O(1).
    pub(crate) fn record(&self, place: L::Place) -> Result<usize, BadFree> {
        Ok(self.heap.store().resolve(place)?.record())
    }

    /// Lets `file` tell the index of what it files free blocks by.
    ///
    /// # Safety
    /// As [`Heap::refile`].
    pub(crate) unsafe fn refile<T>(
        &mut self,
        file: impl FnOnce(&mut I, &mut Ledger<'static, L, UnitRecord>) -> T,
    ) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.heap.refile(file) }
    }

    /// The index, to be looked at.
    pub(crate) fn index(&self) -> &I {
        self.heap.index()
    }

    /// What the heap manages.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Blocks in use.
    #[inline(always)]
    pub fn used(&self) -> usize {
        self.heap.blocks()
    }

    /// Statistics; linear in the free blocks.
    pub fn statistics(&self) -> Statistics {
        let counted = self.heap.statistics();
        let bytes = |granules| self.bytes(granules) as usize;
        Statistics {
            largest_free: bytes(counted.largest_free),
            free_bytes: bytes(counted.free_bytes),
            footprint: bytes(counted.footprint),
            ..counted
        }
    }

    /// Every block in address order; `None` in place of the requested bytes of a free one.
    /// Linear.
    pub fn walk(&self, mut visit: impl FnMut(u64, u64, Option<u64>)) -> Result<(), Corruption> {
        self.heap.walk(
            |BlockInfo {
                 offset,
                 size,
                 state,
                 ..
             }| {
                let requested = match state {
                    State::Used(requested) => Some(requested as u64),
                    State::Free | State::Retained => None,
                };
                visit(self.bytes(offset), self.bytes(size), requested);
            },
        )
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), Corruption> {
        self.heap.check()
    }
}

impl<L: Lookup + Debug, I: Lists<L>> OffsetHeap for ListHeap<L, I> {
    type Place = L::Place;

    fn extent(&self) -> Extent {
        self.extent
    }

    fn used(&self) -> usize {
        ListHeap::used(self)
    }

    #[inline]
    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<L::Place>, Refusal> {
        ListHeap::allocate(self, bytes, align)
    }

    #[inline]
    fn free(&mut self, place: L::Place) -> Result<(), BadFree> {
        ListHeap::free(self, place)
    }

    #[inline]
    fn span(&self, place: L::Place) -> Result<Span, BadFree> {
        ListHeap::span(self, place)
    }

    fn each_used(&self, visit: &mut dyn FnMut(Span)) {
        // What a fault ends is as far as the blocks are known.
        let _ = self.walk(|offset, _, requested| {
            if let Some(requested) = requested {
                visit(Span { offset, requested });
            }
        });
    }

    fn check(&self) -> Result<(), Corruption> {
        ListHeap::check(self)
    }
}
