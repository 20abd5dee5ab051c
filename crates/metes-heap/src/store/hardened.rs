//! `Hardened`: boundary tags that carry a keyed check, for heaps that must not
//! obey a bad free.
//!
//! The layout is that of [`Tagged`](super::tagged::Tagged), in words of the target:
//!
//! ```text
//! | (2 words unused) | head 0 next | head 0 previous | head 1 next | … | pad |
//! | header | payload …… guard | header | payload …………… | … | header (sentinel, size 0) |
//! ```
//!
//! With words of 64 bits the header is one word and no block takes a byte more than
//! with `Tagged`: flags (3 bits), size (36), slack (4) and, above them, 24 bits of
//! check. With words of 32 bits the check is a second word, of 32 bits. The check is
//! `body · k₁ + address · k₂` in 64 bits, of which the highest bits are kept, with two
//! odd keys that depend on the heap's secret: multiply-shift hashing (Dietzfelbinger
//! et al., J. Algorithms 25, 1997), under which two given (body, address) collide with
//! probability at most 2⁻²³ (2⁻³¹ with words of 32 bits).
//!
//! The bytes between the requested end of a block and its real end hold a *guard*,
//! up to a word of them, none zero, that depends on the address and the keys.
//!
//! Records are verified before anything is changed: the header of a freed block and
//! of the block behind it, its guard, the footer and header of a free block in front,
//! and the links of every free block that an operation takes out or inserts next to,
//! in both directions (*safe unlinking*). Links and footers are read as addresses and
//! made pointers again only if they lie in a region of this heap.
//!
//! Invariants:
//! - no word is written or read behind an address that does not lie in a region;
//! - the header word of every block not in use says so, that of a merged block as
//!   well, so that a second free of it is seen.

use core::cell::Cell;
use core::ptr::{self, NonNull};

mod verify;

use super::tagged::{Memory, TaggedBlock};
use super::{BadFree, Geometry, Header, Laid, Overwritten, Plan, RegionError, Store};

const WORD: usize = size_of::<usize>();
const GEOMETRY: Geometry = Geometry::hardened(WORD);
const HEADER_WORDS: usize = GEOMETRY.header / WORD;
/// Words of a free block and of a head: the forward and the backward link.
const NEXT: usize = HEADER_WORDS;
const PREVIOUS: usize = HEADER_WORDS + 1;
/// Most regions of one heap: where they lie must not stand in their own memory.
pub const REGIONS: usize = 16;

/// The check is in the header word itself.
const ONE_WORD: bool = HEADER_WORDS == 1;
const SIZE_BITS: u32 = if ONE_WORD { 36 } else { 28 };
/// Bits of the header that hold the slack, above the size.
const SLACK_BITS: u32 = 4;
const BODY: usize = usize::MAX >> (usize::BITS - SIZE_BITS - SLACK_BITS);
/// The slack that says: the requested size is in the last payload word.
const SLACK_ELSEWHERE: usize = (1 << SLACK_BITS) - 1;
/// Larger blocks would run into the slack bits.
const LARGEST: usize = (1 << SIZE_BITS) - 1;
/// Bits of the product that are no check.
const UNKEPT: u32 = if ONE_WORD { SIZE_BITS + SLACK_BITS } else { 32 };
/// Every byte of a guard differs from zero, which ends strings.
const NO_ZERO: usize = usize::MAX / 255;
/// What a header that does not pass its check is read as: not free, no valid size.
const NO_HEADER: Header = Header::new(1, 0);

const _: () = assert!(
    Header::FLAGS < GEOMETRY.granule,
    "flags fit below the granule"
);
const _: () = assert!(
    GEOMETRY.minimum >= GEOMETRY.header + 3 * WORD,
    "header, two links and a footer fit"
);
const _: () = assert!(SLACK_ELSEWHERE > WORD, "a guard lies in front of that word");

/// A region: where offsets count from, its first block and its sentinel.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: *mut u8,
    first: *mut u8,
    sentinel: *mut u8,
}

impl Region {
    const NONE: Region = Region {
        start: ptr::null_mut(),
        first: ptr::null_mut(),
        sentinel: ptr::null_mut(),
    };

    /// Whether a block of this region can begin at the address.
    #[inline(always)]
    fn holds(&self, address: usize) -> bool {
        let first = self.first.addr();
        let offset = address.wrapping_sub(first);
        offset < self.sentinel.addr() - first && offset & (GEOMETRY.granule - 1) == 0
    }

    /// The pointer to an address of this region.
    #[inline(always)]
    fn pointer(&self, address: usize) -> *mut u8 {
        self.first
            .wrapping_add(address.wrapping_sub(self.first.addr()))
    }
}

/// Boundary tags with a keyed check. Requested sizes are always kept.
///
/// Its memory must be initialised when it is given (zeroed, mapped, static): the
/// words in front of a place that is no block are read to find that out.
pub struct Hardened {
    regions: [Region; REGIONS],
    count: usize,
    /// Pseudo-block of head 0.
    head: *mut u8,
    heads: usize,
    align: usize,
    footprint: usize,
    keys: [u64; 2],
    fault: Cell<Option<Overwritten>>,
}

// SAFETY: the store owns the memory of its regions (contract of `Memory`), and
// all access goes through `&self` or `&mut self`.
unsafe impl Send for Hardened {}

impl core::fmt::Debug for Hardened {
    /// Without the keys.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hardened")
            .field("regions", &&self.regions[..self.count])
            .field("footprint", &self.footprint)
            .finish_non_exhaustive()
    }
}

/// Steps of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), odd.
const fn key(secret: u64, step: u64) -> u64 {
    let mut word = secret.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ (word >> 31)) | 1
}

impl Hardened {
    /// A store without a region. `secret` should be random and another for every
    /// heap: who knows it can forge records.
    pub const fn new(secret: u64) -> Self {
        Hardened {
            regions: [Region::NONE; REGIONS],
            count: 0,
            head: ptr::null_mut(),
            heads: 0,
            align: 0,
            footprint: 0,
            keys: [key(secret, 1), key(secret, 2)],
            fault: Cell::new(None),
        }
    }

    /// Whether the address lies in one of the regions. Linear in their number.
    pub fn contains(&self, address: *const u8) -> bool {
        self.regions[..self.count].iter().any(|region| {
            let end = region.sentinel.addr() + GEOMETRY.sentinel;
            (region.start.addr()..end).contains(&address.addr())
        })
    }

    #[inline(always)]
    fn mix(&self, body: usize, address: usize) -> u64 {
        (body as u64)
            .wrapping_mul(self.keys[0])
            .wrapping_add((address as u64).wrapping_mul(self.keys[1]))
    }

    /// The header of a block: flags, size and slack; `None` where the check fails.
    #[inline(always)]
    fn read(&self, block: TaggedBlock) -> Option<usize> {
        // SAFETY: `block` lies in a region (module invariant), whose memory is
        // initialised; with two words, the second lies in the smallest block and in
        // the sentinel.
        let word = unsafe { *block.word(0) };
        let body = word & BODY;
        let check = self.mix(body, block.address());
        let right = if ONE_WORD {
            (word as u64 ^ check) >> UNKEPT == 0
        } else {
            // SAFETY: as above.
            word == body && unsafe { *block.word(1) } == (check >> UNKEPT) as usize
        };
        right.then_some(body)
    }

    /// Writes the header of a block with its check.
    #[inline(always)]
    fn write(&mut self, block: TaggedBlock, body: usize) {
        let check = self.mix(body, block.address());
        // SAFETY: as in `read`; the words belong to the record of the block.
        unsafe {
            if ONE_WORD {
                *block.word(0) = body | (check >> UNKEPT << UNKEPT) as usize;
            } else {
                *block.word(0) = body;
                *block.word(1) = (check >> UNKEPT) as usize;
            }
        }
    }

    #[inline(always)]
    const fn size_of(body: usize) -> usize {
        body & (LARGEST & !(GEOMETRY.granule - 1))
    }

    /// Remembers the first fault of an operation.
    #[cold]
    fn note(&self, what: Overwritten) {
        if self.fault.get().is_none() {
            self.fault.set(Some(what));
        }
    }

    /// The block at an address, if one can begin there.
    #[inline(always)]
    fn block_at(&self, address: usize) -> Option<(TaggedBlock, &Region)> {
        let first = &self.regions[0];
        if first.holds(address) {
            return Some((TaggedBlock(first.pointer(address)), first));
        }
        self.block_elsewhere(address)
    }

    #[cold]
    fn block_elsewhere(&self, address: usize) -> Option<(TaggedBlock, &Region)> {
        let regions = self.regions[..self.count].iter();
        let region = regions.skip(1).find(|region| region.holds(address))?;
        Some((TaggedBlock(region.pointer(address)), region))
    }

    /// The block or head that a link names.
    #[inline(always)]
    fn linked(&self, address: usize) -> Option<TaggedBlock> {
        if let Some((block, _)) = self.block_at(address) {
            return Some(block);
        }
        let offset = address.wrapping_sub(self.head.addr());
        let is_head = offset < self.heads * 2 * WORD && offset.is_multiple_of(2 * WORD);
        is_head.then(|| TaggedBlock(self.head.wrapping_add(offset)))
    }

    #[inline(always)]
    fn is_head(&self, block: TaggedBlock) -> bool {
        block.address().wrapping_sub(self.head.addr()) < self.heads * 2 * WORD
    }

    #[inline(always)]
    fn payload(block: TaggedBlock) -> *mut u8 {
        block.0.wrapping_add(GEOMETRY.header)
    }

    #[inline(always)]
    fn last_word(block: TaggedBlock, size: usize) -> *mut usize {
        block.word(size / WORD - 1)
    }
}

impl super::sealed::Sealed for Hardened {}

impl Store for Hardened {
    type Block = TaggedBlock;
    type Place = NonNull<u8>;
    type Region = Memory;
    const STATISTICS: bool = true;
    const VERIFIES: bool = true;

    #[inline(always)]
    fn geometry(&self) -> Geometry {
        GEOMETRY
    }

    fn lay(&mut self, region: Memory, plan: Plan) -> Result<Laid<TaggedBlock>, RegionError> {
        if self.count == REGIONS {
            return Err(RegionError::OutOfRecords);
        }
        let heads = if self.count == 0 { plan.heads } else { 0 };
        let plan = Plan { heads, ..plan };
        let raw = region.start().as_ptr();
        let skip = raw.align_offset(plan.align);
        let needed = skip + GEOMETRY.control(plan) + GEOMETRY.minimum;
        if region.bytes() < needed {
            return Err(RegionError::TooSmall(needed - region.bytes()));
        }
        if region.bytes() > LARGEST {
            return Err(RegionError::SpanExceeded);
        }
        let start = raw.wrapping_add(skip);
        let first = start.wrapping_add(GEOMETRY.first_block(heads, plan.align));
        let room = region.bytes() - skip - GEOMETRY.control(plan);
        let size = room & !(plan.unit - 1);
        let sentinel = first.wrapping_add(size);
        self.regions[self.count] = Region {
            start,
            first,
            sentinel,
        };
        if self.count == 0 {
            self.heads = heads;
            self.align = plan.align;
            // A pseudo-block has its links where a block has them.
            self.head = start.wrapping_add(GEOMETRY.prologue - NEXT * WORD);
            for number in 0..heads {
                let head = self.head(number);
                self.set_next(head, head);
                self.set_previous(head, head);
            }
        }
        self.count += 1;
        self.footprint += sentinel.addr() + GEOMETRY.sentinel - raw.addr();
        self.write(TaggedBlock(sentinel), 0);
        Ok(Laid {
            block: TaggedBlock(first),
            size,
        })
    }

    unsafe fn extend(&mut self, bytes: usize) -> Option<TaggedBlock> {
        let last = self.count.checked_sub(1)?;
        let Region {
            start, sentinel, ..
        } = self.regions[last];
        let end = sentinel.addr() + GEOMETRY.sentinel - start.addr();
        if bytes == 0 || end + bytes > LARGEST {
            return None;
        }
        let room = TaggedBlock(sentinel);
        let Some(body) = self.read(room) else {
            self.note(Overwritten::Header);
            return None;
        };
        self.regions[last].sentinel = sentinel.wrapping_add(bytes);
        self.write(TaggedBlock(sentinel.wrapping_add(bytes)), 0);
        self.write(room, bytes | body & Header::FLAGS);
        self.footprint += bytes;
        Some(room)
    }

    fn footprint(&self) -> usize {
        self.footprint
    }

    fn offset(&self, block: TaggedBlock) -> usize {
        let found = self.block_at(block.address());
        let region = found.map_or(&self.regions[0], |(_, region)| region);
        block.address().wrapping_sub(region.start.addr())
    }

    #[inline(always)]
    fn precedes(&self, first: TaggedBlock, second: TaggedBlock) -> bool {
        first.0 < second.0
    }

    #[inline(always)]
    fn distance(&self, first: TaggedBlock, second: TaggedBlock) -> usize {
        second.address() - first.address()
    }

    fn sentinel(&self) -> TaggedBlock {
        debug_assert!(self.count > 0);
        TaggedBlock(self.regions[self.count.saturating_sub(1)].sentinel)
    }

    fn first(&self, number: usize) -> Option<TaggedBlock> {
        let region = self.regions[..self.count].get(number)?;
        Some(TaggedBlock(region.first))
    }

    #[inline(always)]
    fn head(&self, number: usize) -> TaggedBlock {
        TaggedBlock(self.head.wrapping_add(number * 2 * WORD))
    }

    #[inline(always)]
    fn head_number(&self, head: TaggedBlock) -> usize {
        (head.address() - self.head.addr()) / (2 * WORD)
    }

    #[inline(always)]
    fn header(&self, block: TaggedBlock) -> Header {
        match self.read(block) {
            Some(body) => Header::new(Self::size_of(body), body & Header::FLAGS),
            None => {
                self.note(Overwritten::Header);
                NO_HEADER
            }
        }
    }

    #[inline(always)]
    fn set_header(&mut self, block: TaggedBlock, header: Header) {
        self.write(block, header.size | header.flags());
    }

    #[inline(always)]
    fn mark_previous_free(&mut self, block: TaggedBlock) {
        match self.read(block) {
            Some(body) => self.write(block, body | Header::PREVIOUS_FREE),
            None => self.note(Overwritten::Header),
        }
    }

    #[inline(always)]
    fn clear_previous_free(&mut self, block: TaggedBlock) {
        match self.read(block) {
            Some(body) => self.write(block, body & !Header::PREVIOUS_FREE),
            None => self.note(Overwritten::Header),
        }
    }

    #[inline(always)]
    fn set_footer(&mut self, block: TaggedBlock, size: usize) {
        // SAFETY: the last word of a free block lies inside it and belongs to
        // nobody else while it is free.
        unsafe { *Self::last_word(block, size) = block.address() };
    }

    #[inline(always)]
    fn after(&self, block: TaggedBlock, size: usize) -> TaggedBlock {
        TaggedBlock(block.0.wrapping_add(size))
    }

    #[inline(always)]
    fn before(&self, block: TaggedBlock) -> TaggedBlock {
        // SAFETY: the word in front of a header lies in the region: it is the
        // last word of a block or belongs to the control structure.
        let address = unsafe { *block.0.wrapping_sub(WORD).cast::<usize>() };
        match self.block_at(address) {
            Some((before, _)) => before,
            None => {
                self.note(Overwritten::Free);
                block
            }
        }
    }

    #[inline(always)]
    fn next(&self, block: TaggedBlock) -> TaggedBlock {
        self.follow(block, NEXT)
    }

    #[inline(always)]
    fn set_next(&mut self, block: TaggedBlock, next: TaggedBlock) {
        // SAFETY: the link words of a free block and of a head are the store's.
        unsafe { *block.word(NEXT) = next.address() };
    }

    #[inline(always)]
    fn previous(&self, block: TaggedBlock) -> TaggedBlock {
        self.follow(block, PREVIOUS)
    }

    #[inline(always)]
    fn set_previous(&mut self, block: TaggedBlock, previous: TaggedBlock) {
        // SAFETY: as `set_next`.
        unsafe { *block.word(PREVIOUS) = previous.address() };
    }

    #[inline(always)]
    fn carve(&mut self, block: TaggedBlock, size: usize) -> Option<TaggedBlock> {
        Some(TaggedBlock(block.0.wrapping_add(size)))
    }

    #[inline(always)]
    fn join(&mut self, _first: TaggedBlock, second: TaggedBlock) {
        // Whoever frees it again is told that it is not in use.
        self.write(second, Header::FREE);
    }

    #[inline(always)]
    fn occupy(&mut self, block: TaggedBlock, header: Header, requested: usize) -> NonNull<u8> {
        let slack = header.size - GEOMETRY.header - requested;
        let kept = slack.min(SLACK_ELSEWHERE);
        self.write(block, header.size | header.flags() | kept << SIZE_BITS);
        self.set_guard(block, header.size, requested);
        // SAFETY: the payload address of a block inside a region is never null.
        unsafe { NonNull::new_unchecked(Self::payload(block)) }
    }

    #[inline(always)]
    fn requested(&self, block: TaggedBlock) -> usize {
        match self.read(block) {
            Some(body) => self.requested_of(block, body).unwrap_or(0),
            None => 0,
        }
    }

    #[inline(always)]
    fn resolve(&self, place: NonNull<u8>) -> Result<TaggedBlock, BadFree> {
        self.verify_used(place)
    }

    #[inline(always)]
    fn vacate(&mut self, _block: TaggedBlock) {}

    fn place_offset(&self, place: NonNull<u8>) -> usize {
        let record = place.as_ptr().wrapping_sub(GEOMETRY.header);
        self.offset(TaggedBlock(record)) + GEOMETRY.header
    }

    #[inline(always)]
    fn misalignment(&self, block: TaggedBlock, align: usize) -> usize {
        Self::payload(block).addr().wrapping_neg() & (align - 1)
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

    #[inline(always)]
    fn fault(&self) -> Option<Overwritten> {
        self.fault.get()
    }

    #[inline(always)]
    fn forget_fault(&self) {
        self.fault.set(None);
    }

    #[inline(always)]
    fn free_is_sound(&self, block: TaggedBlock) -> bool {
        self.verify_free(block)
    }

    #[inline(always)]
    fn forward_is_sound(&self, block: TaggedBlock) -> bool {
        self.leads_back(block, NEXT)
    }

    #[inline(always)]
    fn backward_is_sound(&self, block: TaggedBlock) -> bool {
        self.leads_back(block, PREVIOUS)
    }
}
