//! `Tagged`: boundary tags inside the managed memory (Knuth, TAOCP 1, 2.5).
//!
//! Layout of a region, in words `w` of the target:
//!
//! ```text
//! | next region | length | head 0 next | head 0 previous | head 1 next | … | pad |
//! | header | payload …………… | header | payload …………… | … | header (sentinel, size 0) |
//!          ^ aligned to 2w           a free payload is | next | previous | … | footer |
//! ```
//!
//! The header holds the block's size, three flags and, where statistics are
//! kept, the *slack*: capacity minus requested bytes. A slack too large for
//! its bits puts the requested size into the last payload word, which is then
//! free to hold it. The footer of a free block is the address of its header;
//! it lies in the last word before the next header, so that a used block gives
//! that word to the program: the record of a used block is one word.
//!
//! A region's length, from its first word to behind its sentinel, has a check of both
//! its words in the bits above it: [`Heap::check`](crate::Heap::check) goes on to a region
//! only over words that were not overwritten.
//!
//! Invariant: every pointer stored in a record was derived from the pointer of
//! the region it points into, or is a pseudo-block of the first region.

mod probe;

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::{BadFree, DamagedRegion, Extent, Geometry, Header, Laid, Plan, RegionError, Store};

const WORD: usize = size_of::<usize>();
const GEOMETRY: Geometry = Geometry::tagged(WORD);
/// Bits of the header that hold the slack, at its top.
const SLACK_BITS: u32 = if WORD == 8 { 16 } else { 4 };
const SLACK_SHIFT: u32 = usize::BITS - SLACK_BITS;
/// The slack that says: the requested size is in the last payload word.
const SLACK_ELSEWHERE: usize = (1 << SLACK_BITS) - 1;
/// Larger blocks would run into the slack bits, larger regions into their check.
const LARGEST: usize = (1 << SLACK_SHIFT) - 1;

const _: () = assert!(
    Header::FLAGS < GEOMETRY.granule,
    "flags fit below the granule"
);
const _: () = assert!(
    GEOMETRY.minimum >= 4 * WORD,
    "header, two links and a footer fit"
);
// A slack that does not fit its bits is at least a word, so the word is there.
const _: () = assert!(SLACK_ELSEWHERE >= WORD);

/// A region of memory handed to a heap: `length` bytes from `start`.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    start: NonNull<u8>,
    length: usize,
}

impl Memory {
    /// Memory that lives as long as the program.
    pub fn from_static(memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let length = memory.len();
        Memory {
            start: NonNull::from(memory).cast(),
            length,
        }
    }

    /// Memory by address.
    ///
    /// # Safety
    /// `length` bytes from `start` must be valid for reads and writes and be
    /// used by nothing else as long as the heap or any block of it lives.
    pub const unsafe fn from_raw(start: NonNull<u8>, length: usize) -> Self {
        Memory { start, length }
    }

    /// The first `length` bytes of it (all of it, if it is shorter). The rest can
    /// be granted later by a [`Source`](crate::Source).
    pub const fn shortened(self, length: usize) -> Self {
        let length = if length < self.length {
            length
        } else {
            self.length
        };
        Memory {
            start: self.start,
            length,
        }
    }

    /// Where it begins.
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length in bytes.
    pub const fn bytes(&self) -> usize {
        self.length
    }
}

/// The address of a block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedBlock(pub(super) *mut u8);

// SAFETY: an address; only a store, which is `Send`, reads or writes behind it.
unsafe impl Send for TaggedBlock {}

impl TaggedBlock {
    #[inline(always)]
    pub(super) fn word(self, index: usize) -> *mut usize {
        self.0.wrapping_add(index * WORD).cast()
    }

    #[inline(always)]
    pub(super) fn address(self) -> usize {
        self.0.addr()
    }

    /// A link of a free block or a head.
    ///
    /// # Safety
    /// The block is one of these, so that the link lies in a region.
    #[inline(always)]
    unsafe fn link(self, index: usize) -> *mut TaggedBlock {
        // Where addresses are told not to wrap, WebAssembly adds the constant within the access: two
        // operators less for each link.
        #[cfg(target_family = "wasm")]
        // SAFETY: the link lies in the same region as the block (the caller's contract).
        return unsafe { self.0.add(index * WORD) }.cast();
        #[cfg(not(target_family = "wasm"))]
        self.0.wrapping_add(index * WORD).cast()
    }

    #[inline(always)]
    fn payload(self) -> *mut u8 {
        self.0.wrapping_add(WORD)
    }
}

/// Boundary tags inside the managed memory. `STATISTICS` keeps the requested
/// size of every block (no memory, a few instructions an operation).
///
/// What every call needs is the last field: beside it lies the index (see [`Heap`](crate::Heap)).
#[derive(Debug)]
#[repr(C)]
pub struct Tagged<const STATISTICS: bool = true> {
    /// First region, whose prologue holds the heads; null before it.
    first: *mut u8,
    last: *mut u8,
    /// Where the first block of the first region is, from the region's beginning.
    first_block: usize,
    footprint: usize,
    /// Pseudo-block of head 0, which there need not be.
    head: *mut u8,
}

// SAFETY: the store owns the memory of its regions (contract of `Memory`), and
// all access goes through `&self` or `&mut self`.
unsafe impl<const STATISTICS: bool> Send for Tagged<STATISTICS> {}

impl<const STATISTICS: bool> Tagged<STATISTICS> {
    /// Bytes of the largest region: 256 TiB less one, or 256 MiB less one where words have 32 bits.
    pub const LARGEST_REGION: usize = LARGEST;

    /// A store without a region.
    pub const fn new() -> Self {
        Tagged {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            first_block: 0,
            footprint: 0,
            head: ptr::null_mut(),
        }
    }

    /// Where a region's prologue names the next region.
    #[inline(always)]
    fn next_region(region: *mut u8) -> *mut *mut u8 {
        region.cast()
    }

    /// Where a region's prologue holds its length, with the check of both words.
    #[inline(always)]
    fn length_word(region: *mut u8) -> *mut usize {
        region.wrapping_add(WORD).cast()
    }

    /// The check of a prologue, in place: any odd number of bits changed shows.
    const fn check_of(next: usize, length: usize) -> usize {
        let mut sum = 5;
        let mut shift = 0;
        while shift < usize::BITS {
            sum ^= (next ^ length) >> shift;
            shift += SLACK_BITS;
        }
        sum << SLACK_SHIFT
    }

    /// Writes the prologue of a region.
    ///
    /// # Safety
    /// The region's first two words are this store's.
    // Once in the code of a module, which pays for every byte.
    #[cfg_attr(target_family = "wasm", inline(never))]
    unsafe fn write_prologue(region: *mut u8, next: *mut u8, length: usize) {
        // SAFETY: the caller's contract; a region is aligned to a granule.
        unsafe {
            *Self::next_region(region) = next;
            *Self::length_word(region) = length | Self::check_of(next.addr(), length);
        }
    }

    /// Where a region ends: behind its sentinel.
    ///
    /// # Safety
    /// A region laid by `lay`.
    unsafe fn end_of(region: *mut u8) -> *mut u8 {
        // SAFETY: the prologue of a laid region is written.
        region.wrapping_add(unsafe { *Self::length_word(region) } & LARGEST)
    }

    /// The region behind one whose prologue is as it was written, and where that one ends.
    ///
    /// # Safety
    /// A region laid by `lay`.
    unsafe fn verified(region: *mut u8) -> Option<(*mut u8, *mut u8)> {
        // SAFETY: the prologue of a laid region is written.
        let (next, word) = unsafe { (*Self::next_region(region), *Self::length_word(region)) };
        let length = word & LARGEST;
        let sound = word & !LARGEST == Self::check_of(next.addr(), length);
        sound.then(|| (next, region.wrapping_add(length)))
    }

    #[inline(always)]
    fn size_bits(word: usize) -> usize {
        if STATISTICS {
            word & (LARGEST & !(GEOMETRY.granule - 1))
        } else {
            word & !(GEOMETRY.granule - 1)
        }
    }

    fn first_of(&self, region: *mut u8) -> TaggedBlock {
        let offset = if ptr::eq(region, self.first) {
            self.first_block
        } else {
            // Buddies, whose blocks are aligned further, have one region only.
            GEOMETRY.first_block(0, GEOMETRY.granule)
        };
        TaggedBlock(region.wrapping_add(offset))
    }

    /// The region that holds `address`. Linear in the number of regions.
    fn region_of(&self, address: *mut u8) -> Option<*mut u8> {
        let mut region = self.first;
        while !region.is_null() {
            // SAFETY: `region` is a region laid by `lay`.
            let (next, end) = unsafe { (*Self::next_region(region), Self::end_of(region)) };
            if address >= region && address < end {
                return Some(region);
            }
            region = next;
        }
        None
    }

    /// The regions, from the first on, up to one whose prologue was overwritten.
    fn extents(&self) -> impl Iterator<Item = Result<Extent<TaggedBlock>, DamagedRegion>> + '_ {
        let mut region = self.first;
        core::iter::from_fn(move || {
            if region.is_null() {
                return None;
            }
            let first = self.first_of(region);
            // SAFETY: the first region, or one that a sound prologue names: a laid one.
            let verified = unsafe { Self::verified(region) };
            // Behind the last one there is none.
            let linked = verified.filter(|(next, _)| next.is_null() == ptr::eq(region, self.last));
            region = linked.map_or(ptr::null_mut(), |(next, _)| next);
            Some(match linked {
                Some((_, end)) => Ok(Extent {
                    first,
                    room: end.addr() - WORD - first.address(),
                }),
                None => Err(DamagedRegion),
            })
        })
    }

    /// Whether the address lies in one of the regions. Linear in their number.
    pub fn contains(&self, address: *const u8) -> bool {
        self.region_of(address.cast_mut()).is_some()
    }
}

/// The address itself, computed once: it is read, written, compared and stored, and to compute it
/// for each of these anew, in their addressing modes, takes two registers more and so pushes.
#[inline(always)]
fn computed(address: *mut u8) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let same;
        #[expect(
            clippy::pointers_in_nomem_asm_block,
            reason = "nothing is done with it there"
        )]
        // SAFETY: no instruction.
        unsafe {
            core::arch::asm!(
                "/* {0} */",
                inlateout(reg) address => same,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        same
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    address
}

/// Asks for the cache line of an address, which need not be one of memory.
#[inline(always)]
fn fetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    // SAFETY: the processor has the instruction, which reads nothing that a program could see.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse", not(miri))))]
    let _ = address;
}

impl<const STATISTICS: bool> Default for Tagged<STATISTICS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const STATISTICS: bool> super::sealed::Sealed for Tagged<STATISTICS> {}

impl<const STATISTICS: bool> Store for Tagged<STATISTICS> {
    type Block = TaggedBlock;
    type Place = NonNull<u8>;
    type Region = Memory;
    const STATISTICS: bool = STATISTICS;
    const GEOMETRY: Option<Geometry> = Some(GEOMETRY);
    const ADDRESSED: bool = true;

    #[inline(always)]
    fn geometry(&self) -> Geometry {
        GEOMETRY
    }

    fn lay(&mut self, region: Memory, plan: Plan) -> Result<Laid<TaggedBlock>, RegionError> {
        let plan = if self.first.is_null() {
            plan
        } else {
            Plan { heads: 0, ..plan }
        };
        let heads = plan.heads;
        let raw = region.start.as_ptr();
        let skip = raw.align_offset(plan.align);
        let needed = skip + GEOMETRY.control(plan) + GEOMETRY.minimum.max(plan.unit);
        if region.length < needed {
            return Err(RegionError::TooSmall(needed - region.length));
        }
        if region.length > LARGEST {
            return Err(RegionError::SpanExceeded);
        }
        let start = raw.wrapping_add(skip);
        let first = start.wrapping_add(GEOMETRY.first_block(heads, plan.align));
        let room = region.length - skip - GEOMETRY.control(plan);
        let size = room & !(plan.unit - 1);
        let end = first.wrapping_add(size + GEOMETRY.sentinel);
        // SAFETY: `start..end` lies inside the region, which is ours to write by
        // the contract of `Memory`; `start` is aligned to two words.
        unsafe { Self::write_prologue(start, ptr::null_mut(), end.addr() - start.addr()) };
        if self.first.is_null() {
            self.first = start;
            self.first_block = GEOMETRY.first_block(heads, plan.align);
            // The forward link of a block is its word 1, so the pseudo-block of a
            // head begins a word before the head itself.
            self.head = start.wrapping_add(WORD);
            for number in 0..heads {
                let head = self.head(number);
                self.set_next(head, head);
                self.set_previous(head, head);
            }
        } else {
            // SAFETY: `last` is a laid region.
            unsafe {
                let length = Self::end_of(self.last).addr() - self.last.addr();
                Self::write_prologue(self.last, start, length);
            }
        }
        self.last = start;
        self.footprint += end.addr() - raw.addr();
        self.set_header(TaggedBlock(first.wrapping_add(size)), Header::new(0, 0));
        Ok(Laid {
            block: TaggedBlock(first),
            size,
        })
    }

    unsafe fn extend(&mut self, bytes: usize) -> Option<TaggedBlock> {
        if self.last.is_null() || bytes == 0 {
            return None;
        }
        // SAFETY: `last` is a laid region.
        let end = unsafe { Self::end_of(self.last) };
        let sentinel = TaggedBlock(end.wrapping_sub(WORD));
        let header = self.header(sentinel);
        let length = end.addr() + bytes - self.last.addr();
        if length > LARGEST {
            return None;
        }
        let new_end = end.wrapping_add(bytes);
        // SAFETY: as above, and the caller gives the memory up to `new_end`; the last
        // region has none behind it.
        unsafe { Self::write_prologue(self.last, ptr::null_mut(), length) };
        self.set_header(TaggedBlock(new_end.wrapping_sub(WORD)), Header::new(0, 0));
        self.set_header(sentinel, Header::new(bytes, header.flags()));
        self.footprint += bytes;
        Some(sentinel)
    }

    fn footprint(&self) -> usize {
        self.footprint
    }

    fn offset(&self, block: TaggedBlock) -> usize {
        let region = self.region_of(block.0).unwrap_or(self.first);
        block.0.addr().wrapping_sub(region.addr())
    }

    #[inline(always)]
    fn precedes(&self, first: TaggedBlock, second: TaggedBlock) -> bool {
        first.0 < second.0
    }

    #[inline(always)]
    fn distance(&self, first: TaggedBlock, second: TaggedBlock) -> usize {
        second.0.addr() - first.0.addr()
    }

    fn sentinel(&self) -> TaggedBlock {
        debug_assert!(!self.last.is_null());
        // SAFETY: the caller knows that there is a region, laid by `lay`.
        TaggedBlock(unsafe { Self::end_of(self.last) }.wrapping_sub(WORD))
    }

    fn region(&self, number: usize) -> Option<Result<Extent<TaggedBlock>, DamagedRegion>> {
        self.extents().nth(number)
    }

    fn can_be_listed(&self, block: TaggedBlock) -> bool {
        self.extents().any(|extent| {
            extent.is_ok_and(|Extent { first, room }| {
                // In front of the first block this is more than any room.
                let offset = block.address().wrapping_sub(first.address());
                let place = offset < room && offset.is_multiple_of(GEOMETRY.granule);
                place && {
                    let size = self.header(block).size;
                    size >= GEOMETRY.minimum && size <= room - offset
                }
            })
        })
    }

    fn sound_request(&self, block: TaggedBlock) -> Option<usize> {
        // SAFETY: a block of this store, whose header is written.
        let word = unsafe { *block.word(0) };
        let capacity = Self::size_bits(word) - WORD;
        if STATISTICS && word >> SLACK_SHIFT < SLACK_ELSEWHERE {
            return capacity.checked_sub(word >> SLACK_SHIFT);
        }
        let requested = self.requested(block);
        (requested <= capacity).then_some(requested)
    }

    #[inline(always)]
    fn head(&self, number: usize) -> TaggedBlock {
        TaggedBlock(computed(self.head.wrapping_add(number * 2 * WORD)))
    }

    #[inline(always)]
    fn table(&self) -> *mut u8 {
        // A head's links are its words 1 and 2.
        self.head.wrapping_add(WORD)
    }

    fn number_heads_from(&mut self, first: usize) {
        self.head = self.head.wrapping_sub(first * GEOMETRY.head);
    }

    #[inline(always)]
    fn head_number(&self, head: TaggedBlock) -> usize {
        (head.0.addr() - self.head.addr()) / (2 * WORD)
    }

    #[inline(always)]
    fn header(&self, block: TaggedBlock) -> Header {
        // SAFETY: a block of this store has its header written (by `lay`'s
        // caller, `carve`'s caller or `occupy`) before anything reads it.
        let word = unsafe { *block.word(0) };
        // With all bits below the size, so that size and flags together are the word.
        Header::new(Self::size_bits(word), word & (GEOMETRY.granule - 1))
    }

    #[inline(always)]
    fn size_beside(&self, header: Header, flags: usize) -> usize {
        debug_assert_eq!(header.flags(), flags);
        header.size + header.flags() - flags
    }

    #[inline(always)]
    fn lone_free_size(&self, block: TaggedBlock) -> usize {
        self.size_beside(self.header(block), Header::FREE)
    }

    #[inline(always)]
    fn set_header(&mut self, block: TaggedBlock, header: Header) {
        // SAFETY: the block's header word lies inside a region of this store.
        // Flags lie below the size: a sum is one instruction less than a union.
        unsafe { *block.word(0) = header.size + header.flags() };
    }

    #[inline(always)]
    fn mark_previous_free(&mut self, block: TaggedBlock) {
        // SAFETY: a header of this store; the bits above the flags stay.
        unsafe { *block.word(0) |= Header::PREVIOUS_FREE };
    }

    #[inline(always)]
    fn clear_previous_free(&mut self, block: TaggedBlock) {
        // SAFETY: as above.
        unsafe { *block.word(0) &= !Header::PREVIOUS_FREE };
    }

    #[inline(always)]
    fn set_footer(&mut self, block: TaggedBlock, size: usize) {
        let footer: *mut TaggedBlock = block.0.wrapping_add(size - WORD).cast();
        // SAFETY: the last word of a free block lies inside it (minimum block
        // of four words) and belongs to nobody else while it is free.
        unsafe { *footer = block };
    }

    #[inline(always)]
    fn after(&self, block: TaggedBlock, size: usize) -> TaggedBlock {
        TaggedBlock(block.0.wrapping_add(size))
    }

    #[inline(always)]
    fn before(&self, block: TaggedBlock) -> TaggedBlock {
        // SAFETY: the caller saw PREVIOUS_FREE, so the word before this header
        // is the footer of a free block.
        unsafe { *block.0.wrapping_sub(WORD).cast() }
    }

    #[inline(always)]
    fn next(&self, block: TaggedBlock) -> TaggedBlock {
        // SAFETY: `block` is free (links written by `insert`) or a head.
        unsafe { *block.link(1) }
    }

    #[inline(always)]
    fn set_next(&mut self, block: TaggedBlock, next: TaggedBlock) {
        // SAFETY: word 1 of a free block and of a head is a link.
        unsafe { *block.link(1) = next };
    }

    #[inline(always)]
    fn previous(&self, block: TaggedBlock) -> TaggedBlock {
        // SAFETY: as `next`.
        unsafe { *block.link(2) }
    }

    #[inline(always)]
    fn set_previous(&mut self, block: TaggedBlock, previous: TaggedBlock) {
        // SAFETY: word 2 of a free block and of a head is a link.
        unsafe { *block.link(2) = previous };
    }

    #[inline(always)]
    fn carve(&mut self, block: TaggedBlock, size: usize) -> Option<TaggedBlock> {
        Some(TaggedBlock(block.0.wrapping_add(size)))
    }

    #[inline(always)]
    fn join(&mut self, _first: TaggedBlock, _second: TaggedBlock) {}

    #[inline(always)]
    fn occupy(&mut self, block: TaggedBlock, header: Header, requested: usize) -> NonNull<u8> {
        let mut word = header.size + header.flags();
        if STATISTICS {
            let slack = header.size - WORD - requested;
            if slack < SLACK_ELSEWHERE {
                word |= slack << SLACK_SHIFT;
            } else {
                word |= SLACK_ELSEWHERE << SLACK_SHIFT;
                // SAFETY: the slack is at least a word, so the last payload
                // word lies inside the block and outside the requested bytes.
                unsafe { *block.word(header.size / WORD - 1) = requested };
            }
        }
        // SAFETY: the header word of a block of this store; the payload address
        // of a block inside a region is never null.
        unsafe {
            *block.word(0) = word;
            NonNull::new_unchecked(block.payload())
        }
    }

    #[inline(always)]
    fn requested(&self, block: TaggedBlock) -> usize {
        // SAFETY: a used block's header is written.
        let word = unsafe { *block.word(0) };
        let size = Self::size_bits(word);
        if !STATISTICS {
            return size - WORD;
        }
        let slack = word >> SLACK_SHIFT;
        if slack < SLACK_ELSEWHERE {
            size - WORD - slack
        } else {
            // SAFETY: `occupy` put the requested size there.
            unsafe { *block.word(size / WORD - 1) }
        }
    }

    #[inline(always)]
    fn usable(&self, block: TaggedBlock) -> usize {
        // SAFETY: a used block's header is written.
        let word = unsafe { *block.word(0) };
        // Without statistics those bits belong to the size.
        let elsewhere = STATISTICS && word >> SLACK_SHIFT == SLACK_ELSEWHERE;
        let kept = if elsewhere { WORD } else { 0 };
        Self::size_bits(word) - WORD - kept
    }

    #[inline(always)]
    fn resolve(&self, place: NonNull<u8>) -> Result<TaggedBlock, BadFree> {
        Ok(TaggedBlock(place.as_ptr().wrapping_sub(WORD)))
    }

    #[inline(always)]
    fn fetch_at(&self, block: TaggedBlock, bytes: usize) {
        fetch(block.0.wrapping_add(bytes));
    }

    #[inline(always)]
    fn fetch_behind(&self, place: NonNull<u8>, size: usize) {
        // The header behind lies in the last word of the granule in which the block's bytes and a
        // word more end, and a granule on one cache line.
        fetch(place.as_ptr().wrapping_add(size).wrapping_add(WORD - 1));
    }

    #[inline(always)]
    fn vacate(&mut self, _block: TaggedBlock) {}

    fn place_offset(&self, place: NonNull<u8>) -> usize {
        self.offset(TaggedBlock(place.as_ptr()))
    }

    #[inline(always)]
    fn misalignment(&self, block: TaggedBlock, align: usize) -> usize {
        block.payload().addr().wrapping_neg() & (align - 1)
    }

    fn copy(&mut self, from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
        // SAFETY: both are payloads of distinct used blocks of this heap with
        // at least `bytes` of capacity (the caller, `Heap::resize`, took the minimum).
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), bytes) };
    }

    fn zero(&mut self, place: NonNull<u8>, bytes: usize) {
        // SAFETY: the payload of a used block with at least `bytes` of capacity.
        unsafe { ptr::write_bytes(place.as_ptr(), 0, bytes) };
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::{Heap, Tlsf};

    #[test]
    fn what_is_fetched_is_the_line_of_the_header_behind() {
        for size in 0..5000 {
            let block = GEOMETRY.block_for(size).unwrap();
            // From a place, which is aligned to a granule.
            let behind = block - WORD;
            let fetched = size + WORD - 1;
            let (fetched, behind) = (GEOMETRY.granules(fetched), GEOMETRY.granules(behind));
            if block > GEOMETRY.minimum {
                assert_eq!(fetched, behind);
            } else {
                assert!(fetched <= behind, "no further than that");
            }
        }
    }

    #[test]
    fn a_wrong_size_frees_the_block_all_the_same() {
        let memory = std::boxed::Box::leak(std::vec![MaybeUninit::uninit(); 1 << 16].into());
        let mut heap = Heap::new(Tlsf::<32>::new(), Tagged::<true>::new());
        heap.add_region(Memory::from_static(memory)).unwrap();
        for hint in [0, 1, 99, 1 << 30, usize::MAX] {
            let place = heap.allocate(99, 1).unwrap();
            // SAFETY: allocated just now.
            unsafe { heap.free_sized(place, hint) }.unwrap();
            heap.check().unwrap();
            assert_eq!(heap.statistics().blocks, 0);
        }
    }
}
