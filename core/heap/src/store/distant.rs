//! `Distant`: boundary tags in memory that is not at an address, but reached word by word: over a network, say.
//!
//! The layout of the one region is that of [`Tagged`](super::tagged) with offsets in the place of addresses, so both decide
//! the same, offset for offset. What of a heap over such memory does not lie in it ([`Carried`]) is carried from one who
//! works on it to the next.
//!
//! Invariant: all that a record says is read from the memory when it is asked for, and an offset in it means the same to
//! whoever reads it.

use super::{BadFree, DamagedRegion, Extent, Geometry, Header, Laid, Plan, RegionError, Store};
use crate::heap::Heap;
use crate::index::Index;
use crate::statistics::Counters;

const WORD: usize = size_of::<usize>();
const GEOMETRY: Geometry = Geometry::tagged(WORD);
/// Bits of the header that hold the slack, at its top; see [`Tagged`](super::tagged).
const SLACK_BITS: u32 = if WORD == 8 { 16 } else { 4 };
const SLACK_SHIFT: u32 = usize::BITS - SLACK_BITS;
const SLACK_ELSEWHERE: usize = (1 << SLACK_BITS) - 1;
const LARGEST: usize = (1 << SLACK_SHIFT) - 1;

/// Memory that is reached word by word. Offsets are in bytes, from its beginning, and multiples of a word.
///
/// An offset outside of it comes of a record that was overwritten: an implementor touches nothing then, and may panic.
pub trait Words {
    /// Reads a word.
    fn get(&self, at: usize) -> usize;
    /// Writes a word.
    fn put(&self, at: usize, word: usize);
}

/// The offset of a block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistantBlock(usize);

impl DistantBlock {
    #[inline]
    fn word(self, index: usize) -> usize {
        self.0.wrapping_add(index * WORD)
    }
}

/// Boundary tags in memory that is reached by words.
#[derive(Debug)]
pub struct Distant<W> {
    words: W,
    first_block: usize,
    /// Behind the sentinel; 0 before there is a region.
    end: usize,
}

impl<W> Distant<W> {
    /// A store without a region.
    pub const fn new(words: W) -> Self {
        Distant {
            words,
            first_block: 0,
            end: 0,
        }
    }

    /// How its memory is reached.
    pub fn words(&self) -> &W {
        &self.words
    }
}

impl<W: Words> Distant<W> {
    #[inline]
    fn get(&self, block: DistantBlock, index: usize) -> usize {
        self.words.get(block.word(index))
    }

    #[inline]
    fn put(&self, block: DistantBlock, index: usize, word: usize) {
        self.words.put(block.word(index), word);
    }

    #[inline]
    fn size_bits(word: usize) -> usize {
        word & (LARGEST & !(GEOMETRY.granule - 1))
    }
}

impl<W> super::sealed::Sealed for Distant<W> {}

impl<W: Words> Store for Distant<W> {
    type Block = DistantBlock;
    /// The offset of the payload.
    type Place = usize;
    /// Bytes of the region, which begins at offset zero; one region only.
    type Region = usize;
    const STATISTICS: bool = true;

    fn geometry(&self) -> Geometry {
        GEOMETRY
    }

    fn lay(&mut self, length: usize, plan: Plan) -> Result<Laid<DistantBlock>, RegionError> {
        if self.end != 0 {
            return Err(RegionError::OneRegionOnly);
        }
        let needed = GEOMETRY.control(plan) + GEOMETRY.minimum.max(plan.unit);
        if length < needed {
            return Err(RegionError::TooSmall(needed - length));
        }
        if length > LARGEST {
            return Err(RegionError::SpanExceeded);
        }
        let first = GEOMETRY.first_block(plan.heads, plan.align);
        let size = (length - GEOMETRY.control(plan)) & !(plan.unit - 1);
        self.first_block = first;
        self.end = first + size + GEOMETRY.sentinel;
        for number in 0..plan.heads {
            let head = self.head(number);
            self.set_next(head, head);
            self.set_previous(head, head);
        }
        self.set_header(DistantBlock(first + size), Header::new(0, 0));
        let block = DistantBlock(first);
        Ok(Laid { block, size })
    }

    unsafe fn extend(&mut self, _bytes: usize) -> Option<DistantBlock> {
        // There is no way to more of it.
        None
    }

    fn footprint(&self) -> usize {
        self.end
    }

    fn offset(&self, block: DistantBlock) -> usize {
        block.0
    }

    fn precedes(&self, first: DistantBlock, second: DistantBlock) -> bool {
        first.0 < second.0
    }

    fn distance(&self, first: DistantBlock, second: DistantBlock) -> usize {
        second.0.wrapping_sub(first.0)
    }

    fn sentinel(&self) -> DistantBlock {
        debug_assert!(self.end != 0, "there is a region");
        DistantBlock(self.end - WORD)
    }

    fn region(&self, number: usize) -> Option<Result<Extent<DistantBlock>, DamagedRegion>> {
        (number == 0 && self.end != 0).then(|| {
            Ok(Extent {
                first: DistantBlock(self.first_block),
                room: self.end - WORD - self.first_block,
            })
        })
    }

    fn can_be_listed(&self, block: DistantBlock) -> bool {
        let offset = block.0.wrapping_sub(self.first_block);
        let room = self.end - WORD - self.first_block;
        offset < room && offset.is_multiple_of(GEOMETRY.granule) && {
            let size = self.header(block).size;
            size >= GEOMETRY.minimum && size <= room - offset
        }
    }

    fn sound_request(&self, block: DistantBlock) -> Option<usize> {
        let word = self.get(block, 0);
        let capacity = Self::size_bits(word) - WORD;
        match word >> SLACK_SHIFT {
            SLACK_ELSEWHERE => {
                let requested = self.requested(block);
                (requested <= capacity).then_some(requested)
            }
            slack => capacity.checked_sub(slack),
        }
    }

    fn head(&self, number: usize) -> DistantBlock {
        // The forward link of a block is its word 1, so a head's pseudo-block begins a word before the head itself.
        DistantBlock(WORD + number * GEOMETRY.head)
    }

    fn head_number(&self, head: DistantBlock) -> usize {
        (head.0 - WORD) / GEOMETRY.head
    }

    fn header(&self, block: DistantBlock) -> Header {
        let word = self.get(block, 0);
        Header::new(Self::size_bits(word), word & Header::FLAGS)
    }

    fn set_header(&mut self, block: DistantBlock, header: Header) {
        self.put(block, 0, header.size | header.flags());
    }

    fn mark_previous_free(&mut self, block: DistantBlock) {
        self.put(block, 0, self.get(block, 0) | Header::PREVIOUS_FREE);
    }

    fn clear_previous_free(&mut self, block: DistantBlock) {
        self.put(block, 0, self.get(block, 0) & !Header::PREVIOUS_FREE);
    }

    fn set_footer(&mut self, block: DistantBlock, size: usize) {
        self.put(block, size / WORD - 1, block.0);
    }

    fn after(&self, block: DistantBlock, size: usize) -> DistantBlock {
        DistantBlock(block.0.wrapping_add(size))
    }

    fn before(&self, block: DistantBlock) -> DistantBlock {
        DistantBlock(self.words.get(block.0.wrapping_sub(WORD)))
    }

    fn next(&self, block: DistantBlock) -> DistantBlock {
        DistantBlock(self.get(block, 1))
    }

    fn set_next(&mut self, block: DistantBlock, next: DistantBlock) {
        self.put(block, 1, next.0);
    }

    fn previous(&self, block: DistantBlock) -> DistantBlock {
        DistantBlock(self.get(block, 2))
    }

    fn set_previous(&mut self, block: DistantBlock, previous: DistantBlock) {
        self.put(block, 2, previous.0);
    }

    fn carve(&mut self, block: DistantBlock, size: usize) -> Option<DistantBlock> {
        Some(self.after(block, size))
    }

    fn join(&mut self, _first: DistantBlock, _second: DistantBlock) {}

    fn occupy(&mut self, block: DistantBlock, header: Header, requested: usize) -> usize {
        let slack = header.size - WORD - requested;
        if slack >= SLACK_ELSEWHERE {
            // At least a word, so the last payload word lies outside of the requested bytes.
            self.put(block, header.size / WORD - 1, requested);
        }
        let slack = slack.min(SLACK_ELSEWHERE) << SLACK_SHIFT;
        self.put(block, 0, header.size | header.flags() | slack);
        block.word(1)
    }

    fn requested(&self, block: DistantBlock) -> usize {
        let word = self.get(block, 0);
        let size = Self::size_bits(word);
        match word >> SLACK_SHIFT {
            SLACK_ELSEWHERE => self.get(block, size / WORD - 1),
            slack => size - WORD - slack,
        }
    }

    fn usable(&self, block: DistantBlock) -> usize {
        let word = self.get(block, 0);
        let elsewhere = word >> SLACK_SHIFT == SLACK_ELSEWHERE;
        let kept = if elsewhere { WORD } else { 0 };
        Self::size_bits(word) - WORD - kept
    }

    fn resolve(&self, place: usize) -> Result<DistantBlock, BadFree> {
        Ok(DistantBlock(place.wrapping_sub(WORD)))
    }

    fn vacate(&mut self, _block: DistantBlock) {}

    fn place_offset(&self, place: usize) -> usize {
        place
    }

    fn misalignment(&self, block: DistantBlock, align: usize) -> usize {
        block.word(1).wrapping_neg() & (align - 1)
    }

    fn copy(&mut self, from: usize, to: usize, bytes: usize) {
        // By whole words: what is usable of a block is that.
        for at in (0..bytes).step_by(WORD) {
            self.words.put(to + at, self.words.get(from + at));
        }
    }

    fn zero(&mut self, place: usize, bytes: usize) {
        for at in (0..bytes).step_by(WORD) {
            self.words.put(place + at, 0);
        }
    }
}

/// What of a heap over distant memory does not lie there: the words of its index, and its counts.
#[derive(Clone, Debug)]
pub struct Carried<I> {
    index: I,
    counters: Counters,
}

impl<I: Index<Distant<W>> + Clone, W: Words> Heap<I, Distant<W>> {
    /// What the next one needs who works on the memory.
    pub fn carry(&self) -> Carried<I> {
        Carried {
            index: self.index.clone(),
            counters: self.counters.clone(),
        }
    }

    /// Goes on where another one has stopped, who had a heap of the same kind and size in the same memory.
    ///
    /// # Safety
    /// `carried` is what the last one carried who worked on the memory.
    pub unsafe fn resume(&mut self, carried: Carried<I>) {
        self.index = carried.index;
        self.counters = carried.counters;
    }
}

#[cfg(test)]
mod tests;
