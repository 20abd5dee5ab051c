//! Resizing: in place when the block's capacity, a free neighbour or new memory behind
//! the last block allows, else by moving.

use super::{Heap, NoSource, Source};
use crate::index::Index;
use crate::store::{BadFree, Header, Store};

/// Where a larger block is.
enum Larger<P> {
    /// Where the block was.
    Here(P),
    Elsewhere(P),
}

impl<I: Index<S>, S: Store> Heap<I, S> {
    /// Resizes a block: in place when its own capacity or a free neighbour
    /// allows, else by moving it. `None` leaves the block as it was.
    ///
    /// # Errors
    /// [`BadFree`] where the store can tell; the block is as it was.
    ///
    /// # Safety
    /// As [`free`](Self::free); on success by moving, the old place is freed.
    pub unsafe fn resize(
        &mut self,
        place: S::Place,
        size: usize,
        align: usize,
    ) -> Result<Option<S::Place>, BadFree> {
        // SAFETY: the caller's contract; `NoSource` never grows.
        unsafe { self.resize_from(place, size, align, &mut NoSource) }
    }

    /// Resizes, and takes memory from `source` when the heap has none left.
    ///
    /// # Errors
    /// [`BadFree`] where the store can tell.
    ///
    /// # Safety
    /// As [`free`](Self::free) and [`allocate_from`](Self::allocate_from).
    pub unsafe fn resize_from(
        &mut self,
        place: S::Place,
        size: usize,
        align: usize,
        source: &mut impl Source,
    ) -> Result<Option<S::Place>, BadFree> {
        self.begin();
        let block = self.store.resolve(place)?;
        let requested = self.store.requested(block);
        let moved = match self.resize_in_place(block, size, align) {
            Some(place) => Some(place),
            None => {
                if S::VERIFIES {
                    self.verify_none_found()?;
                    self.verify_give_back(block, self.store.verified_header(block))?;
                }
                match self.find_larger(block, size, align, source) {
                    Some(Larger::Here(place)) => Some(place),
                    Some(Larger::Elsewhere(new)) => {
                        self.store.copy(place, new, requested.min(size));
                        // The search may have come upon what is overwritten: then the
                        // old block is lost, which the fault tells.
                        if !S::VERIFIES || self.verify_again(place).is_ok() {
                            self.give_back(block, self.store.verified_header(block));
                        }
                        Some(new)
                    }
                    None => None,
                }
            }
        };
        if S::VERIFIES && moved.is_none() {
            self.verify_none_found()?;
        }
        if S::STATISTICS {
            match moved {
                Some(_) => self.counters.resized(requested, size),
                None => self.counters.failed(),
            }
        }
        Ok(moved)
    }

    /// Resizes a block where it is, or leaves it as it was: whether it could be. O(1).
    ///
    /// # Errors
    /// [`BadFree`] where the store can tell.
    ///
    /// # Safety
    /// As [`resize`](Self::resize).
    pub unsafe fn resize_where_it_is(
        &mut self,
        place: S::Place,
        size: usize,
        align: usize,
    ) -> Result<bool, BadFree> {
        self.begin();
        let block = self.store.resolve(place)?;
        let requested = self.store.requested(block);
        let resized = self.resize_in_place(block, size, align).is_some();
        if S::VERIFIES && !resized {
            self.verify_none_found()?;
        }
        if S::STATISTICS && resized {
            self.counters.resized(requested, size);
        }
        Ok(resized)
    }

    /// A larger block for the one to be resized, or that one, made larger at the end of the
    /// memory: as the memory may grow only where no hole serves, they are looked for first.
    #[inline(always)]
    fn find_larger<M: Source>(
        &mut self,
        block: S::Block,
        size: usize,
        align: usize,
        source: &mut M,
    ) -> Option<Larger<S::Place>> {
        if M::GROWS
            && !self.index.halves()
            && let Some(need) = self.grows_at_end(block, size, align)
        {
            if let Some(new) = self.find(size, align, &mut NoSource) {
                return Some(Larger::Elsewhere(new));
            }
            if self.found_fault() {
                return None;
            }
            let header = self.store.header(block);
            if let Some(room) = self.grow_in_place(block, header, need, source) {
                let flags = header.flags() & Header::PREVIOUS_FREE;
                return Some(Larger::Here(self.cut(block, room, need, size, flags)));
            }
        }
        self.find(size, align, source).map(Larger::Elsewhere)
    }

    fn resize_in_place(&mut self, block: S::Block, size: usize, align: usize) -> Option<S::Place> {
        let need = self.need(size)?;
        let aligned = self.store.alignment(align).max(1);
        if !align.is_power_of_two() || self.store.misalignment(block, aligned) != 0 {
            return None;
        }
        let header = self.store.header(block);
        let mut room = header.size;
        if need > room {
            if self.index.halves() {
                return None;
            }
            let after = self.store.after(block, room);
            let other = self.store.header(after);
            let limit = self.index.limits().coalesce_up_to;
            if !other.free() || room + other.size < need || room + other.size > limit {
                return None;
            }
            if S::VERIFIES && !self.neighbour_is_sound(after, other) {
                return None;
            }
            self.index.remove(&mut self.store, after, other.size);
            self.store.join(block, after);
            room += other.size;
            // As if the whole had been free: the cut below sets the marks.
            let after = self.store.after(block, room);
            self.store.mark_previous_free(after);
            let flags = header.flags() & Header::PREVIOUS_FREE;
            self.store.set_header(block, Header::new(room, flags));
            return Some(self.cut(block, room, need, size, flags));
        }
        if self.index.halves() {
            while room / 2 >= need {
                let Some(second) = self.store.carve(block, room / 2) else {
                    break;
                };
                if S::VERIFIES && !self.release_is_sound(second, Header::new(room / 2, 0)) {
                    break;
                }
                room /= 2;
                self.store.set_header(second, Header::new(room, 0));
                self.release(second, Header::new(room, 0));
            }
        } else {
            let limits = self.index.limits();
            let least = self.store.geometry().minimum.max(limits.split_down_to);
            if room - need >= least
                && let Some(rest) = self.store.carve(block, need)
            {
                if S::VERIFIES && !self.release_is_sound(rest, Header::new(room - need, 0)) {
                    return None;
                }
                self.release(rest, Header::new(room - need, 0));
                room = need;
            }
        }
        let flags = header.flags() & Header::PREVIOUS_FREE;
        Some(self.store.occupy(block, Header::new(room, flags), size))
    }
}
