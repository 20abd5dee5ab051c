//! Growth: moving the end of the last region outwards when nothing serves.
//!
//! What the last block lacks is taken from the source in whole increments. A block of an
//! increment or more gets no more of them than it lacks; the rest stays behind the end, in
//! *reserve*, where no other block lies in its way when it is to grow. Smaller blocks leave
//! the rest to the index, so that the heap need not grow for each of them.
//!
//! Invariants: the room gained is granted by the source before it is touched; the source is
//! asked only where no block serves and the reserve is too small, for the fewest increments
//! with which the memory at the end serves; the reserve is less than an increment.

use super::{Heap, Source};
use crate::index::Index;
use crate::store::{Header, Store};

impl<I: Index<S>, S: Store> Heap<I, S> {
    /// Takes a block for `need` out of what the index kept aside, or of more memory.
    #[inline(always)]
    pub(super) fn take_grown<M: Source>(
        &mut self,
        need: usize,
        source: &mut M,
    ) -> Option<(S::Block, usize)> {
        if !S::VERIFIES && !M::GROWS && !self.index.relinquishes() {
            return None;
        }
        self.gather_or_grow(need, source)
    }

    #[cold]
    fn gather_or_grow<M: Source>(
        &mut self,
        need: usize,
        source: &mut M,
    ) -> Option<(S::Block, usize)> {
        if need > self.span || self.found_fault() {
            return None;
        }
        if self.gather()
            && let Some(taken) = self.take(need)
        {
            return Some(taken);
        }
        if self.found_fault() || !self.end_is_sound() || !M::GROWS {
            return None;
        }
        if self.index.halves() {
            let growth = self.growth(need, self.lacking_of_halves(need)?, source)?;
            self.ask(growth, source)?;
            let room = self.extend(growth.bytes)?;
            self.release_room(room, growth.bytes);
            return self.take(need);
        }
        self.take_at_end(need, source)
    }

    /// Moves the end outwards by what the last block lacks, and takes that block whatever
    /// the index would find: a search may begin above what suffices.
    fn take_at_end(&mut self, need: usize, source: &mut impl Source) -> Option<(S::Block, usize)> {
        self.base?;
        let mut last = self.last_free();
        let mut growth = None;
        if let Some((block, size)) = last {
            let joined = self.growth(need, need.saturating_sub(size), source)?;
            if self.may_lengthen(block, size.saturating_add(joined.bytes)) {
                growth = Some(joined);
            } else {
                last = None;
            }
        }
        let growth = match growth {
            Some(growth) => growth,
            None => self.growth(need, need, source)?,
        };
        self.ask(growth, source)?;
        self.lengthen(last, growth.bytes)
    }

    /// What a block in use needs for `size` bytes, if it is the last one and can grow where it
    /// is.
    pub(super) fn grows_at_end(&self, block: S::Block, size: usize, align: usize) -> Option<usize> {
        let need = self.need(size)?;
        let aligned = self.store.alignment(align).max(1);
        let fits = align.is_power_of_two()
            && self.store.misalignment(block, aligned) == 0
            && need <= self.span.min(self.index.limits().coalesce_up_to);
        if !fits {
            return None;
        }
        let mut behind = self.store.after(block, self.store.header(block).size);
        let header = self.store.header(behind);
        if header.free() {
            behind = self.store.after(behind, header.size);
        }
        (behind == self.store.sentinel()).then_some(need)
    }

    /// Grows the last block in use, with what is free behind it, so that it has `need` bytes:
    /// takes that from the index and moves the end. Returns what it has then; the end is
    /// marked as if all of it were free.
    #[cold]
    pub(super) fn grow_in_place(
        &mut self,
        block: S::Block,
        header: Header,
        need: usize,
        source: &mut impl Source,
    ) -> Option<usize> {
        if !self.end_is_sound() {
            return None;
        }
        let last = self.last_free();
        let room = header.size + last.map_or(0, |(_, size)| size);
        let growth = self.growth(need, need.saturating_sub(room), source)?;
        if room.saturating_add(growth.bytes) > self.index.limits().coalesce_up_to {
            return None;
        }
        self.ask(growth, source)?;
        let (behind, more) = self.lengthen(last, growth.bytes)?;
        self.store.join(block, behind);
        let size = header.size + more;
        let flags = header.flags() & Header::PREVIOUS_FREE;
        self.store.set_header(block, Header::new(size, flags));
        Some(size)
    }

    /// The block in front of the end, if it is free, and its size.
    fn last_free(&self) -> Option<(S::Block, usize)> {
        if !self.store.header(self.store.sentinel()).previous_free() {
            return None;
        }
        let last = self.store.before(self.store.sentinel());
        Some((last, self.store.header(last).size))
    }

    /// Whether the free block in front of the end may grow to `size` bytes: the wilderness
    /// does whatever the coalescing limit.
    fn may_lengthen(&self, last: S::Block, size: usize) -> bool {
        self.index.wilderness() == Some(last) || size <= self.index.limits().coalesce_up_to
    }

    /// Moves the end by bytes that the heap has, and joins what is gained to the last block,
    /// if that is given. Returns the whole as if the index had given it out.
    fn lengthen(
        &mut self,
        last: Option<(S::Block, usize)>,
        bytes: usize,
    ) -> Option<(S::Block, usize)> {
        let room = self.extend(bytes)?;
        let header = self.store.header(room);
        let (block, size, flags) = match last {
            Some((block, size)) => {
                let flags = self.store.header(block).flags();
                self.index.remove(&mut self.store, block, size);
                self.store.taken(block, size);
                self.store.join(block, room);
                (block, size + bytes, flags)
            }
            None => (room, bytes, header.flags()),
        };
        let end = self.store.sentinel();
        self.store.mark_previous_free(end);
        let flags = flags & Header::PREVIOUS_FREE;
        self.store.set_header(block, Header::new(size, flags));
        Some((block, size))
    }

    /// Gives what is in reserve to the index.
    pub(super) fn release_reserve(&mut self) {
        let bytes = self.reserve;
        if bytes == 0 || !self.end_is_sound() {
            return;
        }
        let last = self.last_free();
        let last = last.filter(|&(block, size)| self.may_lengthen(block, size + bytes));
        if let Some((block, size)) = self.lengthen(last, bytes) {
            let flags = self.store.header(block).flags();
            self.make_free(block, size, flags);
        }
    }

    /// Bytes behind the end with which a block of `need`, a power of two, is surely found:
    /// up to the next multiple of `need` where all is free from the one before on, else a
    /// whole block more. O(log need).
    fn lacking_of_halves(&self, need: usize) -> Option<usize> {
        let base = self.base?;
        let mut block = self.store.sentinel();
        let beyond = self.store.distance(base, block) & (need - 1);
        if beyond == 0 {
            return Some(need);
        }
        let mut used = beyond;
        // Smaller blocks than `need` do not cross its multiples, and larger ones are not free.
        while used != 0 && self.store.header(block).previous_free() {
            block = self.store.before(block);
            used = used.saturating_sub(self.store.header(block).size);
            if self.found_fault() {
                return None;
            }
        }
        let lacking = need - beyond;
        match used {
            0 => Some(lacking),
            _ => lacking.checked_add(need),
        }
    }

    /// By what the end moves and what that takes from the source, where a block of `need`
    /// bytes lacks so many.
    fn growth(&self, need: usize, lacking: usize, source: &impl Source) -> Option<Growth> {
        let increment = source.increment();
        let lacking = lacking.max(self.store.geometry().granule);
        let asked = lacking
            .saturating_sub(self.reserve)
            .checked_next_multiple_of(increment)?;
        let asked = self.in_units(asked, increment)?;
        let bytes = match need >= increment && !self.index.halves() {
            true => lacking,
            false => self.reserve + asked,
        };
        Some(Growth { asked, bytes })
    }

    /// Asks the source for what the growth takes; it is in reserve then.
    fn ask(&mut self, growth: Growth, source: &mut impl Source) -> Option<()> {
        let Growth { asked, .. } = growth;
        if asked != 0 {
            if self.footprint().checked_add(asked)? > self.span
                || !self.may_extend(asked)
                || !source.grow(asked)
            {
                return None;
            }
            self.reserve += asked;
        }
        Some(())
    }

    /// Whether the index can take the last region with its reserve and so many bytes more.
    fn may_extend(&self, bytes: usize) -> bool {
        let mut number = 0;
        let mut room = 0;
        while let Some(region) = self.store.region(number) {
            room = region.map_or(usize::MAX, |region| region.room);
            number += 1;
        }
        let all = room.saturating_add(self.reserve).saturating_add(bytes);
        self.index.may_extend(&self.store, all)
    }

    /// Moves the end by bytes in reserve; returns the room, with a header.
    fn extend(&mut self, bytes: usize) -> Option<S::Block> {
        debug_assert!(bytes <= self.reserve);
        // SAFETY: the source has granted the reserve, which lies behind the end, and the
        // caller of `allocate_from` vouches for the source.
        let room = unsafe { self.store.extend(bytes) }?;
        self.reserve -= bytes;
        Some(room)
    }

    /// `bytes`, a multiple of the increment, up to one that ends the memory at a whole unit:
    /// half a block is no block, and no buddy of one.
    fn in_units(&self, bytes: usize, increment: usize) -> Option<usize> {
        let mut bytes = bytes;
        // An increment is a multiple of the granule, a unit few granules.
        while bytes & (self.plan.unit - 1) != 0 {
            bytes = bytes.checked_add(increment)?;
        }
        Some(bytes)
    }

    /// Gives fresh room, whose header is written, to the index.
    pub(super) fn release_room(&mut self, room: S::Block, size: usize) {
        if !self.index.halves() {
            let header = self.store.header(room);
            if !S::VERIFIES || self.release_is_sound(room, header) {
                self.release(room, header);
            }
            return;
        }
        // Tile it with the largest aligned powers of two, then let them merge.
        let Some(base) = self.base else { return };
        let mut block = room;
        let mut left = size;
        loop {
            let distance = self.store.distance(base, block);
            let widest = 1 << left.ilog2();
            let aligned = if distance == 0 {
                widest
            } else {
                distance & distance.wrapping_neg()
            };
            let piece = aligned.min(widest);
            let flags = self.store.header(block).flags() & Header::PREVIOUS_FREE;
            let rest = if piece < left {
                self.store.carve(block, piece)
            } else {
                None
            };
            if let Some(rest) = rest {
                self.store.set_header(rest, Header::new(left - piece, 0));
            }
            let header = Header::new(piece, flags);
            if !S::VERIFIES || self.release_is_sound(block, header) {
                self.release(block, header);
            }
            left -= piece;
            match rest {
                Some(rest) if left >= self.store.geometry().minimum => block = rest,
                _ => return,
            }
        }
    }
}

/// How a heap grows.
#[derive(Clone, Copy)]
struct Growth {
    /// What the source is asked for, in whole increments.
    asked: usize,
    /// By what the end moves.
    bytes: usize,
}
