//! What a hardened store answers about blocks, one record word at a time.
//!
//! Invariant: a block's header is written together with its check, and read through it; the
//! functions `verified_…` alone read what the same operation has verified.

use core::ptr::{self, NonNull};

use super::{
    GEOMETRY, GRANULE_LOG2, Hardened, LARGEST, NEXT, NO_HEADER, PREVIOUS, REGIONS, Region,
    SIZE_BITS, SLACK_ELSEWHERE, WORD, granules_from,
};
use crate::store::tagged::{Memory, TaggedBlock};
use crate::store::{
    BadFree, DamagedRegion, Extent, Geometry, Header, Laid, Overwritten, Plan, RegionError, Store,
    Used,
};

impl crate::store::sealed::Sealed for Hardened {}

impl Store for Hardened {
    type Block = TaggedBlock;
    type Place = NonNull<u8>;
    type Region = Memory;
    const STATISTICS: bool = true;
    const VERIFIES: bool = true;
    const ADDRESSED: bool = true;

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
        let needed = skip + GEOMETRY.control(plan) + GEOMETRY.minimum.max(plan.unit);
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
        let _ = raw.expose_provenance();
        self.regions[self.count] = Region { first, sentinel };
        if self.count == 0 {
            self.heads = heads;
            self.align = plan.align;
            // A pseudo-block has its links where a block has them.
            self.head = start.wrapping_add(GEOMETRY.prologue - NEXT * WORD);
            self.linkable.set(granules_from(self.head, sentinel.addr()));
            self.granules.set(size >> GRANULE_LOG2);
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
        let Region { sentinel, .. } = self.regions[last];
        let start = self.start_of(&self.regions[last]);
        let end = sentinel.addr() + GEOMETRY.sentinel - start.addr();
        if bytes == 0 || end + bytes > LARGEST || self.closed() {
            return None;
        }
        let room = TaggedBlock(sentinel);
        let Some(body) = self.read(room) else {
            self.note(Overwritten::Header);
            return None;
        };
        self.regions[last].sentinel = sentinel.wrapping_add(bytes);
        if last == 0 {
            for room in [&self.linkable, &self.granules] {
                room.set(room.get() + (bytes >> GRANULE_LOG2));
            }
        }
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
        block.address().wrapping_sub(self.start_of(region).addr())
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

    fn region(&self, number: usize) -> Option<Result<Extent<TaggedBlock>, DamagedRegion>> {
        let region = self.regions[..self.count].get(number)?;
        let first = TaggedBlock(region.first);
        let room = self.distance(first, TaggedBlock(region.sentinel));
        Some(Ok(Extent { first, room }))
    }

    fn can_be_listed(&self, block: TaggedBlock) -> bool {
        self.block_at(block.address()).is_some() && self.read(block).is_some()
    }

    fn sound_request(&self, block: TaggedBlock) -> Option<usize> {
        self.verify_guard(block, self.read(block)?)
    }

    #[inline(always)]
    fn head(&self, number: usize) -> TaggedBlock {
        TaggedBlock(self.head.wrapping_add(number * 2 * WORD))
    }

    #[inline(always)]
    fn table(&self) -> *mut u8 {
        self.head.wrapping_add(NEXT * WORD)
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
        let body = self.read_verified(block);
        self.write(block, body | Header::PREVIOUS_FREE);
    }

    #[inline(always)]
    fn clear_previous_free(&mut self, block: TaggedBlock) {
        let body = self.read_verified(block);
        self.write(block, body & !Header::PREVIOUS_FREE);
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
        // Whoever frees it again finds no header there.
        // SAFETY: the first word of a block that is no longer one.
        unsafe { *second.word(0) = 0 };
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
        // Of a used block, whose header was verified when it was found.
        self.requested_of(block, self.read_verified(block))
            .unwrap_or(0)
    }

    #[inline(always)]
    fn usable(&self, block: TaggedBlock) -> usize {
        // What is behind the requested bytes is guarded.
        self.requested(block)
    }

    #[inline(always)]
    fn resolve(&self, place: NonNull<u8>) -> Result<TaggedBlock, BadFree> {
        Ok(self.verify_used(place)?.block)
    }

    #[inline(always)]
    fn resolve_used(&self, place: NonNull<u8>) -> Result<Used<TaggedBlock>, BadFree> {
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
    fn verified_header(&self, block: TaggedBlock) -> Header {
        let body = self.read_verified(block);
        Header::new(Self::size_of(body), body & Header::FLAGS)
    }

    #[inline(always)]
    fn verified_before(&self, block: TaggedBlock) -> TaggedBlock {
        // SAFETY: as in `before`.
        self.verified(unsafe { *block.0.wrapping_sub(WORD).cast::<usize>() })
    }

    #[inline(always)]
    fn verified_next(&self, block: TaggedBlock) -> TaggedBlock {
        // SAFETY: the link words of a free block and of a head are the store's.
        self.verified(unsafe { *block.word(NEXT) })
    }

    #[inline(always)]
    fn verified_previous(&self, block: TaggedBlock) -> TaggedBlock {
        // SAFETY: as above.
        self.verified(unsafe { *block.word(PREVIOUS) })
    }

    #[inline(always)]
    fn surroundings_are_sound(&self, block: TaggedBlock) -> bool {
        self.verify_surroundings(block)
    }

    fn end_is_sound(&self) -> bool {
        let region = &self.regions[self.count.saturating_sub(1)];
        self.verify_end(region)
    }

    #[inline(always)]
    fn free_is_sound(&self, block: TaggedBlock) -> bool {
        self.verify_free(block)
    }

    #[inline(always)]
    fn free_end_is_sound(&self, block: TaggedBlock, header: Header) -> bool {
        self.verify_free_end(block, header)
    }

    #[inline(always)]
    fn forward_is_sound(&self, block: TaggedBlock) -> bool {
        self.leads_back(block, NEXT)
    }

    #[inline(always)]
    fn backward_is_sound(&self, block: TaggedBlock) -> bool {
        self.leads_back(block, PREVIOUS)
    }

    #[inline(always)]
    fn list_is_sound(&self, block: TaggedBlock) -> bool {
        self.lead_back(block)
    }

    #[inline(always)]
    fn sound_first(&self, head: TaggedBlock) -> Option<TaggedBlock> {
        self.verify_first(head)
    }
}
