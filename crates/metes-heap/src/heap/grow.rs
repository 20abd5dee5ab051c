//! Growth: moving the end of the last region outwards when nothing serves.
//!
//! Invariant: the room gained is granted by the source before it is touched, and
//! is as large as the index needs to serve the request that asked for it.

use super::{Heap, Source};
use crate::index::Index;
use crate::store::{Geometry, Header, Store};

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
    fn gather_or_grow(
        &mut self,
        need: usize,
        source: &mut impl Source,
    ) -> Option<(S::Block, usize)> {
        if need > self.span || self.found_fault() {
            return None;
        }
        if self.gather()
            && let Some(taken) = self.take(need)
        {
            return Some(taken);
        }
        if self.found_fault() || !self.end_is_sound() {
            return None;
        }
        let increment = source.increment();
        let bytes = self.growth_for(need)?.checked_next_multiple_of(increment)?;
        if self.footprint().checked_add(bytes)? > self.span || !source.grow(bytes) {
            return None;
        }
        self.extend(bytes)?;
        self.take(need)
    }

    /// Bytes behind the end with which a block of `need` is surely found.
    fn growth_for(&self, need: usize) -> Option<usize> {
        let base = self.base?;
        let Geometry {
            granule, minimum, ..
        } = self.store.geometry();
        let sentinel = self.store.sentinel();
        if self.index.halves() {
            let end = self.store.distance(base, sentinel);
            let new_end = end.checked_next_multiple_of(need)?.checked_add(need)?;
            return Some(new_end - end);
        }
        let ceiling = self.index.ceiling(need).checked_next_multiple_of(granule)?;
        let mut tail = 0;
        if self.store.header(sentinel).previous_free() {
            let last = self.store.before(sentinel);
            let size = self.store.header(last).size;
            if self.index.wilderness() == Some(last)
                || self.index.limits().coalesce_up_to == usize::MAX
            {
                tail = size;
            }
        }
        Some(ceiling.saturating_sub(tail).max(minimum))
    }

    /// Extends the last region by `bytes` that its source has granted.
    fn extend(&mut self, bytes: usize) -> Option<()> {
        // SAFETY: the caller of `allocate_from` vouches for the source, which
        // has just granted these bytes.
        let room = unsafe { self.store.extend(bytes) }?;
        let header = self.store.header(room);
        if header.previous_free() {
            let last = self.store.before(room);
            if self.index.wilderness() == Some(last) {
                // The wilderness grows whatever the coalescing limit.
                let before = self.store.header(last);
                self.index.remove(&mut self.store, last, before.size);
                self.store.join(last, room);
                let end = self.store.sentinel();
                self.store.mark_previous_free(end);
                self.make_free(
                    last,
                    before.size + bytes,
                    before.flags() & Header::PREVIOUS_FREE,
                );
                return Some(());
            }
        }
        self.release_room(room, bytes);
        Some(())
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
