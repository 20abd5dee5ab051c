//! What [`Hardened`] verifies of a block before an operation may rely on it.
//!
//! Invariant: nothing here writes a record but `set_guard`, and nothing reads
//! outside the regions, whatever their memory holds.

use core::ptr::NonNull;

use super::{
    BadFree, GEOMETRY, Hardened, Header, NEXT, NO_ZERO, Overwritten, PREVIOUS, Region, SIZE_BITS,
    SLACK_ELSEWHERE, TaggedBlock, WORD,
};

/// Flags of a block that the program does not hold.
const NOT_IN_USE: usize = Header::FREE | Header::RETAINED;

impl Hardened {
    /// The block at a place, if it is in use and its neighbours agree. O(1) for a
    /// block in use; a place that is refused for its header is looked for from the
    /// beginning of its region, so as to tell a foreign place from an overwritten header.
    #[inline(always)]
    pub(super) fn verify_used(&self, place: NonNull<u8>) -> Result<TaggedBlock, BadFree> {
        let address = place.addr().get().wrapping_sub(GEOMETRY.header);
        let Some((block, region)) = self.block_at(address) else {
            return Err(BadFree::Foreign);
        };
        let Some(body) = self.read(block) else {
            return Err(self.diagnose(block, region));
        };
        if body & NOT_IN_USE != 0 {
            return Err(BadFree::NotInUse);
        }
        let overwritten = |what| Err(BadFree::Overwritten(what));
        let size = Self::size_of(body);
        if !Self::fits(block, size, region) {
            return overwritten(Overwritten::Header);
        }
        let next = TaggedBlock(block.0.wrapping_add(size));
        match self.read(next) {
            Some(next) if next & Header::PREVIOUS_FREE == 0 => {}
            _ => return overwritten(Overwritten::Next),
        }
        let guarded = self.requested_of(block, body);
        if !guarded.is_some_and(|requested| self.guard_is_sound(block, size, requested)) {
            return overwritten(Overwritten::Slack);
        }
        if body & Header::PREVIOUS_FREE != 0 && !self.verify_before(block, region) {
            return overwritten(Overwritten::Free);
        }
        Ok(block)
    }

    /// Why a place whose header does not pass its check is no block in use.
    #[cold]
    fn diagnose(&self, block: TaggedBlock, region: &Region) -> BadFree {
        let mut at = TaggedBlock(region.first);
        while at.address() < block.address() {
            match self.read(at).map(Self::size_of) {
                Some(size) if Self::fits(at, size, region) => {
                    at = TaggedBlock(at.0.wrapping_add(size));
                }
                _ => break,
            }
        }
        match at.address() > block.address() {
            true => BadFree::Foreign,
            false => BadFree::Overwritten(Overwritten::Header),
        }
    }

    /// Whether a block of that size ends inside its region.
    #[inline(always)]
    fn fits(block: TaggedBlock, size: usize, region: &Region) -> bool {
        size >= GEOMETRY.minimum && size <= region.sentinel.addr() - block.address()
    }

    /// Whether a free block ends where this one, marked so, begins.
    #[inline(always)]
    fn verify_before(&self, block: TaggedBlock, region: &Region) -> bool {
        // SAFETY: the word in front of a header lies in the region.
        let address = unsafe { *block.0.wrapping_sub(WORD).cast::<usize>() };
        if address >= block.address() || !region.holds(address) {
            return false;
        }
        self.read(TaggedBlock(region.pointer(address)))
            .is_some_and(|body| {
                body & Header::FREE != 0 && Self::size_of(body) == block.address() - address
            })
    }

    /// Whether a block is free, as large as it says, and known as free to the one behind it.
    #[inline(always)]
    pub(super) fn verify_free(&self, block: TaggedBlock) -> bool {
        let sound = self.free_agrees(block);
        if !sound {
            self.note(Overwritten::Free);
        }
        sound
    }

    #[inline(always)]
    fn free_agrees(&self, block: TaggedBlock) -> bool {
        let Some(body) = self.read(block) else {
            return false;
        };
        let size = Self::size_of(body);
        let Some((_, region)) = self.block_at(block.address()) else {
            return false;
        };
        if body & NOT_IN_USE != Header::FREE || !Self::fits(block, size, region) {
            return false;
        }
        // SAFETY: the block lies in its region.
        let footer = unsafe { *Self::last_word(block, size) };
        footer == block.address()
            && self
                .read(TaggedBlock(block.0.wrapping_add(size)))
                .is_some_and(|next| next & Header::PREVIOUS_FREE != 0)
    }

    /// The block or head behind a link word; the block itself where the link is none.
    #[inline(always)]
    pub(super) fn follow(&self, block: TaggedBlock, word: usize) -> TaggedBlock {
        // SAFETY: `block` is a block of a region or a head, and has that word.
        let address = unsafe { *block.word(word) };
        match self.linked(address) {
            Some(other) => other,
            None => {
                self.note(Overwritten::Links);
                block
            }
        }
    }

    /// Whether the neighbour behind a link word leads back by its other link, and is a
    /// block that is not in use or the head of the list.
    #[inline(always)]
    pub(super) fn leads_back(&self, block: TaggedBlock, word: usize) -> bool {
        // SAFETY: as in `follow`.
        let address = unsafe { *block.word(word) };
        let sound = self.linked(address).is_some_and(|other| {
            // SAFETY: as in `follow`.
            let back = unsafe { *other.word(NEXT + PREVIOUS - word) };
            let member = if self.is_head(other) {
                // Two heads are never in one list.
                other == block || !self.is_head(block)
            } else {
                self.read(other).is_some_and(|body| body & NOT_IN_USE != 0)
            };
            back == block.address() && member
        });
        if !sound {
            self.note(Overwritten::Links);
        }
        sound
    }

    /// The bytes that the program requested of a used block with this header; `None`
    /// where they are kept in the block and are more than it holds.
    #[inline(always)]
    pub(super) fn requested_of(&self, block: TaggedBlock, body: usize) -> Option<usize> {
        let size = Self::size_of(body);
        let capacity = size - GEOMETRY.header;
        let slack = body >> SIZE_BITS;
        if slack < SLACK_ELSEWHERE {
            return capacity.checked_sub(slack);
        }
        // SAFETY: `occupy` put the requested size there.
        let requested = unsafe { *Self::last_word(block, size) } ^ self.guard(block);
        (requested <= capacity - SLACK_ELSEWHERE).then_some(requested)
    }

    /// The guard word of a block.
    #[inline(always)]
    fn guard(&self, block: TaggedBlock) -> usize {
        let product = (block.address() as u64).wrapping_mul(self.keys[1]) ^ self.keys[0];
        (product >> (u64::BITS - usize::BITS)) as usize | NO_ZERO
    }

    /// The bytes of the last payload word that belong to a slack of less than a word.
    #[inline(always)]
    fn guard_mask(slack: usize) -> usize {
        // The last bytes in memory.
        match cfg!(target_endian = "little") {
            true => !(usize::MAX >> (8 * slack)),
            false => !(usize::MAX << (8 * slack)),
        }
    }

    /// Writes the guard behind the requested bytes, and their number where the
    /// header does not hold it.
    #[inline(always)]
    pub(super) fn set_guard(&mut self, block: TaggedBlock, size: usize, requested: usize) {
        let slack = size - GEOMETRY.header - requested;
        let guard = self.guard(block);
        let last = Self::last_word(block, size);
        // SAFETY: the words lie in the payload behind the requested bytes, but for
        // those bytes of the last word that are written back as they were.
        unsafe {
            if slack < WORD {
                let mask = Self::guard_mask(slack);
                *last = *last & !mask | guard & mask;
                return;
            }
            Self::behind(block, requested).write_unaligned(guard);
            if slack >= SLACK_ELSEWHERE {
                *last = requested ^ guard;
            }
        }
    }

    #[inline(always)]
    fn guard_is_sound(&self, block: TaggedBlock, size: usize, requested: usize) -> bool {
        let slack = size - GEOMETRY.header - requested;
        let guard = self.guard(block);
        // SAFETY: words of the payload.
        unsafe {
            if slack < WORD {
                let mask = Self::guard_mask(slack);
                return (*Self::last_word(block, size) ^ guard) & mask == 0;
            }
            let found = Self::behind(block, requested).read_unaligned() ^ guard;
            // The requested size may lie over the end of the guard.
            let over = match slack >= SLACK_ELSEWHERE {
                true => (2 * WORD).saturating_sub(slack),
                false => 0,
            };
            found & !Self::guard_mask(over) == 0
        }
    }

    /// The word directly behind the requested bytes.
    #[inline(always)]
    fn behind(block: TaggedBlock, requested: usize) -> *mut usize {
        Self::payload(block).wrapping_add(requested).cast()
    }
}
