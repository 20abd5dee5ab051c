//! Verification: whether what an operation is about to rely on is as the heap wrote it.
//!
//! Only heaps over a store that [verifies](crate::store::Store::VERIFIES) come here.
//! Every function mirrors one that changes the heap, reads what that will read, and
//! changes nothing, so that a fault is found before the first write.

use super::Heap;
use crate::index::Index;
use crate::store::{BadFree, Header, Overwritten, Store};

impl<I: Index<S>, S: Store> Heap<I, S> {
    /// What the last operation found overwritten. An allocation that found something
    /// has refused, or served without cutting the block; a free or resize that found
    /// something before it changed the heap has returned it as an error.
    pub fn fault(&self) -> Option<Overwritten> {
        self.store.fault()
    }

    /// What the last operation found overwritten, told once: the next call finds nothing.
    #[inline(always)]
    pub fn take_fault(&mut self) -> Option<Overwritten> {
        let fault = self.store.fault();
        self.begin();
        fault
    }

    /// Begins an operation.
    #[inline(always)]
    pub(super) fn begin(&self) {
        if S::VERIFIES {
            self.store.forget_fault();
        }
    }

    /// Whether this operation has come upon something overwritten.
    #[inline(always)]
    pub(super) fn found_fault(&self) -> bool {
        S::VERIFIES && self.store.fault().is_some()
    }

    /// The fault that this operation has come upon, as an error.
    pub(super) fn verify_none_found(&self) -> Result<(), BadFree> {
        self.store
            .fault()
            .map_or(Ok(()), |what| Err(BadFree::Overwritten(what)))
    }

    /// Whether a block of `size` bytes may be handed to the index.
    #[inline(always)]
    pub(super) fn may_insert(&self, size: usize) -> bool {
        !S::VERIFIES || self.index.insert_is_sound(&self.store, size)
    }

    /// Verifies what `give_back` of a used block, just resolved, follows.
    #[inline(always)]
    pub(super) fn verify_give_back(&self, block: S::Block, header: Header) -> Result<(), BadFree> {
        let sound = self.index.retain_is_sound(&self.store, header.size)
            && self.release_is_sound(block, header);
        if sound {
            return Ok(());
        }
        let what = self.store.fault().unwrap_or(Overwritten::Links);
        Err(BadFree::Overwritten(what))
    }

    /// Verifies what `give_back` of a used block follows around which the heap has changed since it
    /// was resolved.
    pub(super) fn verify_again(&self, place: S::Place) -> Result<(), BadFree> {
        let used = self.store.resolve_used(place)?;
        self.verify_give_back(used.block, used.header)
    }

    /// Whether `release` of a block that the index kept aside follows sound records.
    pub(super) fn kept_is_sound(&self, block: S::Block, header: Header) -> bool {
        self.store.surroundings_are_sound(block) && self.release_is_sound(block, header)
    }

    /// Whether a free block, with a header that was verified, may be taken out of the
    /// index and merged.
    #[inline(always)]
    pub(super) fn neighbour_is_sound(&self, block: S::Block, header: Header) -> bool {
        self.store.free_end_is_sound(block, header)
            && self.index.remove_is_sound(&self.store, block)
    }

    /// Whether `release` follows sound records. What the headers around the block say of it
    /// is sound: it was resolved, or they were just written.
    #[inline(always)]
    pub(super) fn release_is_sound(&self, block: S::Block, header: Header) -> bool {
        if self.index.halves() {
            return self.release_buddy_is_sound(block, header);
        }
        let limit = self.index.limits().coalesce_up_to;
        let mut size = header.size;
        if header.previous_free() {
            let before = self.store.verified_before(block);
            let other = self.store.verified_header(before);
            if size + other.size <= limit {
                // It was found by its own end.
                if !self.index.remove_is_sound(&self.store, before) {
                    return false;
                }
                size += other.size;
            }
        }
        let after = self.store.after(block, header.size);
        let other = self.store.verified_header(after);
        if other.free() && size + other.size <= limit {
            if !self.neighbour_is_sound(after, other) {
                return false;
            }
            size += other.size;
        }
        self.index.insert_is_sound(&self.store, size)
    }

    fn release_buddy_is_sound(&self, block: S::Block, header: Header) -> bool {
        let Some(base) = self.base else { return true };
        let mut block = block;
        let mut size = header.size;
        let mut previous_free = header.previous_free();
        loop {
            let second_half = self.store.distance(base, block) & size != 0;
            let buddy = if second_half && previous_free {
                self.store.before(block)
            } else if !second_half {
                self.store.after(block, size)
            } else {
                break;
            };
            let other = self.store.header(buddy);
            if !other.free() || other.size != size {
                break;
            }
            if !self.neighbour_is_sound(buddy, other) {
                return false;
            }
            if second_half {
                block = buddy;
                previous_free = other.previous_free();
            }
            size *= 2;
        }
        // The header that is marked.
        self.store.header(self.store.after(block, size));
        !self.found_fault() && self.index.insert_is_sound(&self.store, size)
    }

    /// Whether the end of the last region may be moved.
    pub(super) fn end_is_sound(&self) -> bool {
        if !S::VERIFIES || self.base.is_none() {
            return true;
        }
        if !self.store.end_is_sound() {
            return false;
        }
        let end = self.store.sentinel();
        if !self.store.verified_header(end).previous_free() {
            return true;
        }
        let last = self.store.verified_before(end);
        self.neighbour_is_sound(last, self.store.verified_header(last))
    }
}
