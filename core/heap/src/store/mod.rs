//! Stores: where the record of a block lives and who its neighbours are.
//!
//! A heap's memory is one or more *regions*, each tiled without gaps by blocks
//! and closed by a sentinel block of size zero that is always in use. A store
//! answers questions about blocks one record word at a time, so that
//! [`Counted`](counted::Counted) can count every read and write, and so that
//! the same index decides the same whether the records lie inside the managed
//! memory ([`Tagged`](tagged::Tagged)) or outside ([`Ledger`](ledger::Ledger)).
//!
//! Invariant kept by every store: `after(b)` of the last block of a region is
//! its sentinel, and `before(b)` is defined whenever `b` has
//! [`Header::previous_free`] set.

use core::fmt::Debug;

pub mod counted;
pub mod distant;
pub mod hardened;
pub mod ledger;
pub mod tagged;

/// Why a freed or resized place was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFree {
    /// No block of this heap begins there: a foreign or misaligned pointer.
    Foreign,
    /// The block is already free: a double free, or a stale handle.
    NotInUse,
    /// A record that the operation relies on is not as the heap wrote it.
    Overwritten(Overwritten),
}

/// Which record a [`Hardened`](hardened::Hardened) store found overwritten, and so
/// what the program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overwritten {
    /// The header of the block: something wrote in front of the block, or beyond the
    /// end of one in front of it.
    Header,
    /// The header behind the block: something wrote beyond the block's end.
    Next,
    /// The bytes between the requested end of the block and its real end: something
    /// wrote beyond the requested bytes.
    Slack,
    /// The record of a free block beside it, or of the one to be given out: something
    /// wrote to memory that is free.
    Free,
    /// A link of a list of free blocks: something wrote to memory that is free.
    Links,
}

impl Overwritten {
    /// What was overwritten, and by what kind of write, of a block called "it".
    pub const fn words(self) -> &'static str {
        match self {
            Overwritten::Header => "its header was overwritten (a write in front of it)",
            Overwritten::Next => "the header behind it was overwritten (a write beyond its end)",
            Overwritten::Slack => "the bytes behind it were overwritten (a write beyond its end)",
            Overwritten::Free => "a free block beside it was overwritten (a write to freed memory)",
            Overwritten::Links => "a list of free blocks was overwritten (a write to freed memory)",
        }
    }
}

impl core::fmt::Display for Overwritten {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.words())
    }
}

impl core::fmt::Display for BadFree {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            BadFree::Foreign => "no block of this heap begins there",
            BadFree::NotInUse => "the block is not in use (freed twice, or a stale handle)",
            BadFree::Overwritten(what) => what.words(),
        })
    }
}

impl core::error::Error for BadFree {}

/// Why a region was not added to a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionError {
    /// The region cannot hold the control structure and one block; it would
    /// need at least this many bytes more.
    TooSmall(usize),
    /// The region is larger than the largest block that the index was set up
    /// for; reserve a larger span before the first region.
    SpanExceeded,
    /// This index manages one contiguous region only (binary buddy).
    OneRegionOnly,
    /// The store has no record left to describe the region.
    OutOfRecords,
    /// This store's records suit indexes alone that always merge free neighbours.
    Unmerged,
}

impl core::fmt::Display for RegionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RegionError::TooSmall(n) => {
                write!(f, "the region is too small by {n} bytes")
            }
            RegionError::SpanExceeded => {
                f.write_str("the region exceeds the span that was reserved for the index")
            }
            RegionError::OneRegionOnly => f.write_str("this index manages one region only"),
            RegionError::OutOfRecords => f.write_str("no record is left to describe the region"),
            RegionError::Unmerged => {
                f.write_str("these records suit indexes alone that always merge free blocks")
            }
        }
    }
}

impl core::error::Error for RegionError {}

/// The first word of a record, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes from this block to the next one, record included.
    pub size: usize,
    flags: usize,
}

impl Header {
    pub(crate) const FREE: usize = 1;
    pub(crate) const PREVIOUS_FREE: usize = 2;
    pub(crate) const RETAINED: usize = 4;
    pub(crate) const FLAGS: usize = 7;

    #[inline(always)]
    pub(crate) const fn new(size: usize, flags: usize) -> Self {
        Header { size, flags }
    }

    /// The block is free and known to the index.
    #[inline(always)]
    pub const fn free(self) -> bool {
        self.flags & Self::FREE != 0
    }

    /// The block before this one in memory is free.
    #[inline(always)]
    pub const fn previous_free(self) -> bool {
        self.flags & Self::PREVIOUS_FREE != 0
    }

    /// The block was freed by the program and is kept by a dedicated pool.
    #[inline(always)]
    pub const fn retained(self) -> bool {
        self.flags & Self::RETAINED != 0
    }

    #[inline(always)]
    pub(crate) const fn flags(self) -> usize {
        self.flags
    }

    #[inline(always)]
    pub(crate) const fn with(self, flag: usize) -> Self {
        Header {
            size: self.size,
            flags: self.flags | flag,
        }
    }

    #[inline(always)]
    pub(crate) const fn without(self, flag: usize) -> Self {
        Header {
            size: self.size,
            flags: self.flags & !flag,
        }
    }
}

/// A block that the program holds, with what an operation on it needs.
#[derive(Clone, Copy, Debug)]
pub struct Used<B> {
    /// The block.
    pub block: B,
    /// Its header.
    pub header: Header,
    /// Bytes requested (its capacity where they are not kept).
    pub requested: usize,
}

/// Sizes and offsets, in bytes, that decide where blocks can lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Block sizes are multiples of this power of two.
    pub granule: usize,
    /// Bytes of each block's own record inside the managed memory.
    pub header: usize,
    /// The smallest block.
    pub minimum: usize,
    /// Control bytes before the first block of the first region, per list head.
    pub head: usize,
    /// Further control bytes before the first block of every region.
    pub prologue: usize,
    /// Bytes of the sentinel that ends a region.
    pub sentinel: usize,
}

impl Geometry {
    /// The geometry of [`Tagged`](tagged::Tagged) on a target whose word has `word` bytes.
    pub const fn tagged(word: usize) -> Self {
        Geometry {
            granule: 2 * word,
            header: word,
            minimum: 4 * word,
            head: 2 * word,
            prologue: 2 * word,
            sentinel: word,
        }
    }

    /// The geometry of [`Hardened`](hardened::Hardened): that of `tagged` where a word
    /// has room for a check, else a word more a block.
    pub const fn hardened(word: usize) -> Self {
        let tagged = Geometry::tagged(word);
        if word >= 8 {
            return tagged;
        }
        Geometry {
            header: 2 * word,
            minimum: 6 * word,
            sentinel: 2 * word,
            ..tagged
        }
    }

    /// Records outside the managed memory: blocks are bare multiples of `granule`.
    pub const fn out_of_band(granule: usize) -> Self {
        Geometry {
            granule,
            header: 0,
            minimum: granule,
            head: 0,
            prologue: 0,
            sentinel: 0,
        }
    }

    /// The block that a request of `size` bytes needs, or `None` when it would
    /// overflow the address space. Constant time.
    #[inline(always)]
    pub const fn block_for(&self, size: usize) -> Option<usize> {
        // Where granules are small, no object is larger than half the addresses,
        // so that classes stay within their bitmap.
        if self.granule < 8 && size > isize::MAX as usize {
            return None;
        }
        let Some(raised) = size.checked_add(self.header + self.granule - 1) else {
            return None;
        };
        let rounded = raised & !(self.granule - 1);
        Some(if rounded < self.minimum {
            self.minimum
        } else {
            rounded
        })
    }

    /// Whole granules in `size` bytes.
    #[inline(always)]
    pub const fn granules(&self, size: usize) -> usize {
        size >> self.granule.trailing_zeros()
    }

    /// Whole granules of payload in a block of `size` bytes: what size classes file it by, so that a
    /// block that held a request of a class's smallest size serves the next one.
    #[inline(always)]
    pub const fn payload_granules(&self, size: usize) -> usize {
        self.granules(size - self.header)
    }

    /// Offset of the first block in a region that also carries `heads` list
    /// heads and whose first payload is aligned to `align` (a power of two).
    pub const fn first_block(&self, heads: usize, align: usize) -> usize {
        let align = if align > self.granule {
            align
        } else {
            self.granule
        };
        let control = self.prologue + heads * self.head + self.header;
        // It is the payload, one header after the block, that is aligned.
        ((control + align - 1) & !(align - 1)) - self.header
    }

    /// Control bytes of a region beside its blocks.
    pub const fn control(&self, plan: Plan) -> usize {
        self.first_block(plan.heads, plan.align) + self.sentinel
    }
}

/// How a region is to be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// List heads in the control structure; the first region only.
    pub heads: usize,
    /// Alignment of the first payload, at least the granule.
    pub align: usize,
    /// The room for blocks is a multiple of this power of two.
    pub unit: usize,
}

/// A region's extent as the store laid it out.
#[derive(Clone, Copy, Debug)]
pub struct Laid<B> {
    /// The first block, not yet described by a header.
    pub block: B,
    /// Its size: all the room between control structure and sentinel.
    pub size: usize,
}

/// Where the blocks of a region lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent<B> {
    /// The first block.
    pub first: B,
    /// Bytes from it to the sentinel.
    pub room: usize,
}

/// What the memory says of its regions was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRegion;

/// What an index and a heap may ask of blocks. Sealed: the stores of this
/// crate are all there are, and only a [`Heap`](crate::Heap) can reach a
/// store's blocks, so a block is always one of this store and current.
pub trait Store: sealed::Sealed {
    /// A block, or the pseudo-block [`head`](Store::head) of a list.
    type Block: Copy + Eq + Debug;
    /// What the program holds: a pointer, an offset or a handle.
    type Place: Copy + Eq + Debug;
    /// What describes a region when it is added.
    type Region;
    /// Whether requested sizes are kept, so that statistics can be exact.
    const STATISTICS: bool;
    /// Whether records may have been overwritten and are to be verified before they
    /// are relied on. What is asked for this alone costs other stores nothing.
    const VERIFIES: bool = false;

    /// Whether records suit indexes alone that always merge free neighbours.
    const MERGED: bool = false;

    /// Whether the block that begins so many bytes [after](Store::after) another one is found by adding
    /// them to its address.
    const ADDRESSED: bool = false;

    /// Whether two [numbers](Store::number) are kept beside each list.
    const NUMBERED: bool = false;

    /// The geometry, where all heaps over such a store have one: a class is then found without
    /// dividing into granules first.
    const GEOMETRY: Option<Geometry> = None;

    /// The sizes that this store imposes.
    fn geometry(&self) -> Geometry;

    /// The block that a request of `size` bytes needs.
    #[inline(always)]
    fn block_for(&self, size: usize) -> Option<usize> {
        self.geometry().block_for(size)
    }

    /// An alignment in what this store counts in: bytes, or granules; 0 below one.
    #[inline(always)]
    fn alignment(&self, align: usize) -> usize {
        align
    }

    /// Lays control structure and sentinel into a new region. Only the first
    /// region gets list heads, all empty.
    ///
    /// # Errors
    /// [`RegionError`] when the region cannot serve.
    fn lay(&mut self, region: Self::Region, plan: Plan) -> Result<Laid<Self::Block>, RegionError>;

    /// Moves the sentinel of the last region outwards by `bytes` (a multiple of
    /// the granule) and returns the room gained as a block that begins where the
    /// sentinel was, with the flags that the sentinel had. `None` when no record
    /// is left.
    ///
    /// # Safety
    /// The memory behind the last region's end must belong to the heap.
    unsafe fn extend(&mut self, bytes: usize) -> Option<Self::Block>;

    /// Bytes of all regions.
    fn footprint(&self) -> usize;
    /// Bytes from the beginning of the region to the block.
    fn offset(&self, block: Self::Block) -> usize;
    /// Whether `first` lies at a lower address than `second`.
    fn precedes(&self, first: Self::Block, second: Self::Block) -> bool;
    /// Bytes from `first` to `second`, which lies behind it in the same region.
    fn distance(&self, first: Self::Block, second: Self::Block) -> usize;
    /// The sentinel of the last region; there must be one.
    fn sentinel(&self) -> Self::Block;
    /// Region `number`, counted from zero; `None` behind the last. Linear in `number`.
    ///
    /// # Errors
    /// [`DamagedRegion`]: what the memory says of its regions was overwritten, and
    /// nothing behind it is followed.
    fn region(&self, number: usize) -> Option<Result<Extent<Self::Block>, DamagedRegion>>;

    /// Whether a link of a list may name this block: it begins where one can, and is no
    /// larger than what is left of its region. For a [`check`](crate::Heap::check), which
    /// follows no other link. Linear in the number of regions.
    fn can_be_listed(&self, block: Self::Block) -> bool {
        let _ = block;
        true
    }
    /// Requested bytes of a used block of valid size; `None` where what is kept of them
    /// cannot be. For a [`check`](crate::Heap::check).
    fn sound_request(&self, block: Self::Block) -> Option<usize> {
        Some(self.requested(block))
    }

    /// The pseudo-block that list `number` begins and ends with: its `next` is
    /// the first block, its `previous` the last, both itself when there is none.
    fn head(&self, number: usize) -> Self::Block;
    /// Where the room of the list heads begins, aligned to a word: an index that needs numbers in the place of lists
    /// keeps them there, and does not ask for these heads. Null where blocks have no
    /// [addresses](Store::ADDRESSED).
    #[inline(always)]
    fn table(&self) -> *mut u8 {
        core::ptr::null_mut()
    }
    /// Number `at` beside the lists, two for each head; where they are [kept](Store::NUMBERED).
    #[inline(always)]
    fn number(&self, at: usize) -> u32 {
        let _ = at;
        debug_assert!(Self::NUMBERED);
        0
    }
    /// Writes such a number.
    #[inline(always)]
    fn set_number(&mut self, at: usize, number: u32) {
        let _ = (at, number);
        debug_assert!(Self::NUMBERED);
    }
    /// Numbers the heads from `first` on; right after the first region was laid. Only where the
    /// [geometry](Store::GEOMETRY) is known do indexes ask for another number than 0.
    fn number_heads_from(&mut self, first: usize) {
        debug_assert_eq!(first, 0);
    }
    /// The number of the list that `head` is the pseudo-block of.
    fn head_number(&self, head: Self::Block) -> usize;

    /// Reads the header word.
    fn header(&self, block: Self::Block) -> Header;
    /// Writes the header word of a block that is not in use.
    fn set_header(&mut self, block: Self::Block, header: Header);
    /// Marks a block, free or used, as preceded by a free one.
    fn mark_previous_free(&mut self, block: Self::Block);
    /// Takes that mark away.
    fn clear_previous_free(&mut self, block: Self::Block);
    /// The size in a header whose flags are known: where both share a word, a difference, which
    /// is often an instruction less than to mask them out.
    #[inline(always)]
    fn size_beside(&self, header: Header, flags: usize) -> usize {
        let _ = flags;
        header.size
    }
    /// The size of a block that is known to be free.
    #[inline(always)]
    fn free_size(&self, block: Self::Block) -> usize {
        self.header(block).size
    }
    /// Tells of a block of `size` bytes that the index gave out: it is not in use yet, and not
    /// free any more.
    #[inline(always)]
    fn taken(&mut self, block: Self::Block, size: usize) {
        let _ = (block, size);
    }
    /// Writes the footer of a free block: how the block after it finds it.
    fn set_footer(&mut self, block: Self::Block, size: usize);
    /// The block after one of `size` bytes.
    fn after(&self, block: Self::Block, size: usize) -> Self::Block;
    /// The free block before this one, by its footer.
    fn before(&self, block: Self::Block) -> Self::Block;
    /// Reads the forward link of a free block or head.
    fn next(&self, block: Self::Block) -> Self::Block;
    /// Writes the forward link.
    fn set_next(&mut self, block: Self::Block, next: Self::Block);
    /// Reads the backward link of a free block or head.
    fn previous(&self, block: Self::Block) -> Self::Block;
    /// Writes the backward link.
    fn set_previous(&mut self, block: Self::Block, previous: Self::Block);

    /// Describes the second part of a block that is cut `size` bytes from its
    /// beginning. `None` when no record is left; neither part has a header yet.
    fn carve(&mut self, block: Self::Block, size: usize) -> Option<Self::Block>;
    /// Forgets `second`, which `first` (directly before it) has absorbed.
    fn join(&mut self, first: Self::Block, second: Self::Block);

    /// Marks the block used by the program: writes the header, keeps the
    /// requested size where the store keeps it, and gives out the place.
    fn occupy(&mut self, block: Self::Block, header: Header, requested: usize) -> Self::Place;
    /// Whether one more block can be given out, whatever the free memory.
    #[inline(always)]
    fn has_room(&self) -> bool {
        true
    }
    /// Requested bytes of a used block (its capacity where they are not kept).
    fn requested(&self, block: Self::Block) -> usize;
    /// Bytes of a used block that hold no record: at least those requested.
    #[inline(always)]
    fn usable(&self, block: Self::Block) -> usize {
        self.header(block).size - self.geometry().header
    }
    /// The used block at a place.
    ///
    /// # Errors
    /// [`BadFree`] where the store can tell that there is none.
    fn resolve(&self, place: Self::Place) -> Result<Self::Block, BadFree>;
    /// The used block at a place, with its header and requested bytes.
    ///
    /// # Errors
    /// As [`resolve`](Store::resolve).
    #[inline(always)]
    fn resolve_used(&self, place: Self::Place) -> Result<Used<Self::Block>, BadFree> {
        let block = self.resolve(place)?;
        Ok(Used {
            block,
            header: self.header(block),
            requested: self.requested(block),
        })
    }
    /// Tells the processor that the record so many bytes behind the beginning of a block is wanted
    /// soon.
    #[inline(always)]
    fn fetch_at(&self, block: Self::Block, bytes: usize) {
        let _ = (block, bytes);
    }
    /// Tells the processor that the record behind the block at a place, for which so many bytes
    /// were requested, is wanted soon.
    #[inline(always)]
    fn fetch_behind(&self, place: Self::Place, size: usize) {
        let _ = (place, size);
    }
    /// Takes the place back: from now on it does not resolve.
    fn vacate(&mut self, block: Self::Block);
    /// A vacated block that was not joined to the one before it, on its way to being given
    /// out again: what the block is from now on.
    #[inline(always)]
    fn renew(&mut self, block: Self::Block) -> Self::Block {
        block
    }
    /// Links a block directly behind `before`, which may be a head, and whose forward link was
    /// verified; returns what follows the block.
    #[inline(always)]
    fn link_after(&mut self, before: Self::Block, block: Self::Block) -> Self::Block {
        let next = self.verified_next(before);
        self.set_next(block, next);
        self.set_previous(block, before);
        // `next` may be the head, whose links take the write: no branch is needed.
        self.set_previous(next, block);
        self.set_next(before, block);
        next
    }
    /// Unlinks a block whose links were verified; returns what came before and after it.
    #[inline(always)]
    fn unlink(&mut self, block: Self::Block) -> (Self::Block, Self::Block) {
        let next = self.verified_next(block);
        let before = self.verified_previous(block);
        self.set_previous(next, before);
        self.set_next(before, next);
        (before, next)
    }
    /// Offset of the place inside its region.
    fn place_offset(&self, place: Self::Place) -> usize;
    /// Bytes by which the first payload byte of `block` misses the next multiple of `align`.
    fn misalignment(&self, block: Self::Block, align: usize) -> usize;
    /// Copies payload bytes between two places; nothing where no memory is touched.
    fn copy(&mut self, from: Self::Place, to: Self::Place, bytes: usize);
    /// Fills payload with zero; nothing where no memory is touched.
    fn zero(&mut self, place: Self::Place, bytes: usize);

    /// Tells of reads and writes of the index's own words (bitmaps, counters).
    #[inline(always)]
    fn touch(&self, reads: u32, writes: u32) {
        let _ = (reads, writes);
    }

    /// What was found overwritten since [`forget_fault`](Store::forget_fault).
    #[inline(always)]
    fn fault(&self) -> Option<Overwritten> {
        None
    }

    /// Begins an operation.
    #[inline(always)]
    fn forget_fault(&self) {}

    /// The header of a block that this operation has verified.
    #[inline(always)]
    fn verified_header(&self, block: Self::Block) -> Header {
        self.header(block)
    }

    /// The size of a free block that this operation has verified.
    #[inline(always)]
    fn verified_free_size(&self, block: Self::Block) -> usize {
        if Self::VERIFIES {
            self.verified_header(block).size
        } else {
            self.free_size(block)
        }
    }

    /// The size of a verified free block behind one in use, which so has no flag but that it is free.
    #[inline(always)]
    fn lone_free_size(&self, block: Self::Block) -> usize {
        self.verified_free_size(block)
    }

    /// The free block before one, where this operation has verified that it is.
    #[inline(always)]
    fn verified_before(&self, block: Self::Block) -> Self::Block {
        self.before(block)
    }

    /// The forward link of a block or head, where this operation has verified it.
    #[inline(always)]
    fn verified_next(&self, block: Self::Block) -> Self::Block {
        self.next(block)
    }

    /// The backward link of a block or head, where this operation has verified it.
    #[inline(always)]
    fn verified_previous(&self, block: Self::Block) -> Self::Block {
        self.previous(block)
    }

    /// Whether the header of a block that its neighbours take for used, and what these say
    /// of it, are sound; what [`resolve`](Store::resolve) has found is. Always, for stores
    /// that do not verify; else a fault is kept.
    #[inline(always)]
    fn surroundings_are_sound(&self, block: Self::Block) -> bool {
        let _ = block;
        true
    }

    /// Whether the sentinel of the last region is sound, and the block in front of it
    /// free if it says so. Always, for stores that do not verify; else a fault is kept.
    #[inline(always)]
    fn end_is_sound(&self) -> bool {
        true
    }

    /// Whether a free block is as large as it says and the block behind it knows it
    /// to be free. Always, for stores that do not verify; else a fault is kept.
    #[inline(always)]
    fn free_is_sound(&self, block: Self::Block) -> bool {
        let _ = block;
        true
    }

    /// Whether a free block whose header was verified to be this one is as large as it says and the
    /// block behind it knows it to be free. Always, for stores that do not verify; else a fault is
    /// kept.
    #[inline(always)]
    fn free_end_is_sound(&self, block: Self::Block, header: Header) -> bool {
        let _ = (block, header);
        true
    }

    /// Whether what the forward link of a listed block or a head names leads back to it.
    /// Always, for stores that do not verify; else a fault is kept.
    #[inline(always)]
    fn forward_is_sound(&self, block: Self::Block) -> bool {
        let _ = block;
        true
    }

    /// Whether what the backward link of a listed block or a head names leads back to it. Always,
    /// for stores that do not verify; else a fault is kept.
    #[inline(always)]
    fn backward_is_sound(&self, block: Self::Block) -> bool {
        let _ = block;
        true
    }

    /// Whether what both links of a listed block or a head name leads back to it. Always, for
    /// stores that do not verify; else a fault is kept.
    #[inline(always)]
    fn list_is_sound(&self, block: Self::Block) -> bool {
        self.forward_is_sound(block) && self.backward_is_sound(block)
    }

    /// The first block of a list that is not empty, if it may be taken out: always, for
    /// stores that do not verify; else a fault is kept.
    #[inline(always)]
    fn sound_first(&self, head: Self::Block) -> Option<Self::Block> {
        Some(self.next(head))
    }

    /// Record bytes beside the managed memory (none for boundary tags).
    fn outside_bytes(&self) -> usize {
        0
    }
}

pub(crate) mod sealed {
    /// Only the stores of this crate implement [`Store`](super::Store).
    pub trait Sealed {}
}
