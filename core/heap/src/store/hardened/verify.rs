//! What [`Hardened`] verifies of a block before an operation may rely on it.
//!
//! Invariant: nothing here writes a record but `set_guard`, and nothing reads
//! outside the regions, whatever their memory holds.

use core::ptr::NonNull;

use super::{
    BadFree, GEOMETRY, Hardened, Header, Linked, NEXT, NO_ZERO, Overwritten, PREVIOUS, Region,
    SIZE_BITS, SLACK_ELSEWHERE, TaggedBlock, Used, WORD,
};

/// Flags of a block that the program does not hold.
const NOT_IN_USE: usize = Header::FREE | Header::RETAINED;

impl Hardened {
    /// The block at a place, if it is in use and its neighbours agree. O(1) for a
    /// block in use; a place that is refused for its header is looked for from the
    /// beginning of its region, so as to tell a foreign place from an overwritten header.
    #[inline(always)]
    pub(super) fn verify_used(&self, place: NonNull<u8>) -> Result<Used<TaggedBlock>, BadFree> {
        let address = place.addr().get().wrapping_sub(GEOMETRY.header);
        let Some((block, region)) = self.block_at(address) else {
            return Err(self.no_block());
        };
        let Some(body) = self.read(block) else {
            return Err(self.diagnose(block, region));
        };
        if body & NOT_IN_USE != 0 {
            return Err(BadFree::NotInUse);
        }
        let overwritten = |what| {
            self.doubt();
            Err(BadFree::Overwritten(what))
        };
        let size = Self::size_of(body);
        if !Self::fits(block, size, region) {
            return overwritten(Overwritten::Header);
        }
        if !self.verify_behind(block, size) {
            return overwritten(Overwritten::Next);
        }
        let Some(requested) = self.verify_guard(block, body) else {
            return overwritten(Overwritten::Slack);
        };
        if body & Header::PREVIOUS_FREE != 0 && !self.verify_before(block, region) {
            return overwritten(Overwritten::Free);
        }
        Ok(Used {
            block,
            header: Header::new(size, body & Header::FLAGS),
            requested,
        })
    }

    /// Whether the block behind a used one has a header, and takes this one for used.
    #[inline(always)]
    fn verify_behind(&self, block: TaggedBlock, size: usize) -> bool {
        self.read(TaggedBlock(block.0.wrapping_add(size)))
            .is_some_and(|next| next & Header::PREVIOUS_FREE == 0)
    }

    /// What [`verify_used`](Self::verify_used) verifies, but for the guard, of a block that
    /// the program does not hold and its neighbours take for used.
    pub(super) fn verify_surroundings(&self, block: TaggedBlock) -> bool {
        let around = |(block, region): (TaggedBlock, &Region)| {
            let body = self.read(block)?;
            let size = Self::size_of(body);
            let sound = Self::fits(block, size, region)
                && self.verify_behind(block, size)
                && (body & Header::PREVIOUS_FREE == 0 || self.verify_before(block, region));
            sound.then_some(())
        };
        let sound = self.block_at(block.address()).and_then(around).is_some();
        if !sound {
            self.note(Overwritten::Header);
        }
        sound
    }

    /// Whether the sentinel of a region, and the free block in front of it if it says that
    /// there is one, are sound.
    pub(super) fn verify_end(&self, region: &Region) -> bool {
        if self.closed() {
            self.note(Overwritten::Header);
            return false;
        }
        let end = TaggedBlock(region.sentinel);
        let Some(body) = self.read(end) else {
            self.note(Overwritten::Header);
            return false;
        };
        let sound = body & Header::PREVIOUS_FREE == 0 || self.verify_before(end, region);
        if !sound {
            self.note(Overwritten::Free);
        }
        sound
    }

    /// Why a place that lies in no region is none: of a closed store nothing is believed.
    #[cold]
    fn no_block(&self) -> BadFree {
        match self.closed() {
            true => BadFree::Overwritten(Overwritten::Header),
            false => BadFree::Foreign,
        }
    }

    /// Why a place whose header does not pass its check is no block in use.
    #[cold]
    fn diagnose(&self, block: TaggedBlock, region: &Region) -> BadFree {
        self.doubt();
        let mut at = TaggedBlock(region.first);
        let mut body = 0;
        while at.address() < block.address() {
            match self.read(at) {
                Some(found) if Self::fits(at, Self::size_of(found), region) => {
                    body = found;
                    at = TaggedBlock(at.0.wrapping_add(Self::size_of(found)));
                }
                _ => break,
            }
        }
        match at.address() > block.address() {
            // It was merged into the free block that it lies in, or never was a block.
            true if body & Header::FREE != 0 => BadFree::NotInUse,
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
        let at = self.block_at(block.address());
        let sound = at.is_some_and(|(_, region)| {
            self.read(block)
                .is_some_and(|body| self.ends_free(block, body, region))
        });
        if !sound {
            self.note(Overwritten::Free);
        }
        sound
    }

    /// Whether a free block whose header was verified is as large as it says, and known as free to
    /// the one behind it.
    #[inline(always)]
    pub(super) fn verify_free_end(&self, block: TaggedBlock, header: Header) -> bool {
        let body = header.size | header.flags();
        let at = self.block_at(block.address());
        let sound = at.is_some_and(|(_, region)| self.ends_free(block, body, region));
        if !sound {
            self.note(Overwritten::Free);
        }
        sound
    }

    #[inline(always)]
    fn ends_free(&self, block: TaggedBlock, body: usize, region: &Region) -> bool {
        let size = Self::size_of(body);
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
            Some(other) => other.block,
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
        let sound = self.neighbour_leads_back(block, word, || self.is_head(block));
        if !sound {
            self.note(Overwritten::Links);
        }
        sound
    }

    /// Whether both neighbours of a block, which is no head, lead back to it by their links.
    #[inline(always)]
    pub(super) fn lead_back(&self, block: TaggedBlock) -> bool {
        // SAFETY: as in `follow`.
        let (next, previous) = unsafe { (*block.word(NEXT), *block.word(PREVIOUS)) };
        let sound = if next == previous {
            // A ring of two, of which one is the head.
            self.linked(next).is_some_and(|other| {
                // SAFETY: as in `follow`.
                let back = unsafe { [*other.block.word(NEXT), *other.block.word(PREVIOUS)] };
                other.is_head && back == [block.address(); 2]
            })
        } else {
            self.neighbour_leads_back(block, NEXT, || false)
                && self.neighbour_leads_back(block, PREVIOUS, || false)
        };
        if !sound {
            self.note(Overwritten::Links);
        }
        sound
    }

    #[inline(always)]
    fn neighbour_leads_back(
        &self,
        block: TaggedBlock,
        word: usize,
        is_head: impl FnOnce() -> bool,
    ) -> bool {
        // SAFETY: as in `follow`.
        let address = unsafe { *block.word(word) };
        self.linked(address).is_some_and(|other| {
            // SAFETY: as in `follow`.
            let back = unsafe { *other.block.word(NEXT + PREVIOUS - word) };
            if back != block.address() {
                return false;
            }
            if other.is_head {
                // Two heads are never in one list.
                return address == block.address() || !is_head();
            }
            address != block.address()
                && self
                    .read(other.block)
                    .is_some_and(|body| body & NOT_IN_USE != 0)
        })
    }

    /// The block that the forward link of a head names, if it is the first of that list,
    /// free, and may be taken out.
    #[inline(always)]
    pub(super) fn verify_first(&self, head: TaggedBlock) -> Option<TaggedBlock> {
        // SAFETY: a head has that word.
        let first = self.linked(unsafe { *head.word(NEXT) });
        let first = first.filter(|first| {
            // SAFETY: as in `follow`.
            let back = unsafe { *first.block.word(PREVIOUS) };
            back == head.address() && !first.is_head
        });
        let Some(Linked { block, region, .. }) = first else {
            self.note(Overwritten::Links);
            return None;
        };
        let body = self.read(block);
        if !body.is_some_and(|body| self.ends_free(block, body, region)) {
            self.note(Overwritten::Free);
            return None;
        }
        if !self.neighbour_leads_back(block, NEXT, || false) {
            self.note(Overwritten::Links);
            return None;
        }
        Some(block)
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

    /// Writes the guard behind the requested bytes, and their number where the
    /// header does not hold it.
    #[inline(always)]
    pub(super) fn set_guard(&mut self, block: TaggedBlock, size: usize, requested: usize) {
        let slack = size - GEOMETRY.header - requested;
        let guard = self.guard(block);
        // SAFETY: the words lie in the payload behind the requested bytes, but for
        // those bytes of the next header, which is written, that a slack of less than a
        // word leaves to the guard: they are written back as they were.
        unsafe {
            let next = block.0.wrapping_add(size).cast::<usize>();
            let kept = *next;
            Self::behind(block, requested).write_unaligned(guard);
            *next = kept;
            if slack >= SLACK_ELSEWHERE {
                *Self::last_word(block, size) = requested ^ guard;
            }
        }
    }

    /// The requested bytes of a used block, if what is behind them is as it was written.
    #[inline(always)]
    pub(super) fn verify_guard(&self, block: TaggedBlock, body: usize) -> Option<usize> {
        let requested = self.requested_of(block, body)?;
        // The requested size may lie over the end of the guard.
        let guarded = match body >> SIZE_BITS {
            SLACK_ELSEWHERE => Self::size_of(body) - GEOMETRY.header - requested - WORD,
            slack => slack,
        };
        // SAFETY: a word of the payload and of the next header.
        let found = unsafe { Self::behind(block, requested).read_unaligned() };
        let difference = found ^ self.guard(block);
        // The first bytes in memory are those of the guard.
        let equal = match cfg!(target_endian = "little") {
            true => difference.trailing_zeros(),
            false => difference.leading_zeros(),
        };
        (difference == 0 || equal as usize >= 8 * guarded).then_some(requested)
    }

    /// The word directly behind the requested bytes.
    #[inline(always)]
    fn behind(block: TaggedBlock, requested: usize) -> *mut usize {
        Self::payload(block).wrapping_add(requested).cast()
    }
}
