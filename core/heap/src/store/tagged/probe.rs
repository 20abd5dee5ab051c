//! What can be told of a place before it is freed.
//!
//! `Tagged` obeys: it does not verify. But where memory is, and that a header has the flags
//! and the size of a block in use, costs little to look at, and keeps most wrong frees from
//! damage. Whoever stands between a program and a heap asks here first.

use core::ptr::NonNull;

use super::{GEOMETRY, Tagged, WORD};
use crate::store::{BadFree, Header};

impl<const STATISTICS: bool> Tagged<STATISTICS> {
    /// Whether a block in use can begin at `place`: inside a region, aligned, behind a header
    /// that says so, of a size that is left there. Linear in the number of regions.
    ///
    /// # Errors
    /// [`BadFree`], where there is none for sure.
    pub fn probe(&self, place: NonNull<u8>) -> Result<(), BadFree> {
        let record = place.as_ptr().wrapping_sub(WORD);
        let region = self.region_of(record).ok_or(BadFree::Foreign)?;
        // SAFETY: a region that `lay` laid.
        let end = unsafe { Self::end_of(region) };
        if record.addr() < self.first_of(region).address() {
            return Err(BadFree::Foreign);
        }
        let room = end.addr() - WORD - record.addr();
        // SAFETY: behind the first header and in front of the region's end.
        unsafe { Self::probe_in(place, room) }
    }

    /// Looks whether a block in use may lie at a place of a region, with `room` bytes from the
    /// block's header to the region's end (or less far). O(1).
    ///
    /// # Errors
    /// As [`probe`](Self::probe).
    ///
    /// # Safety
    /// The word in front of `place` can be read if it is aligned.
    #[inline(always)]
    pub unsafe fn probe_in(place: NonNull<u8>, room: usize) -> Result<(), BadFree> {
        if !place.addr().get().is_multiple_of(GEOMETRY.granule) {
            return Err(BadFree::Foreign);
        }
        // SAFETY: the caller's contract.
        let header = unsafe { *place.as_ptr().wrapping_sub(WORD).cast::<usize>() };
        if header & (Header::FREE | Header::RETAINED) != 0 {
            return Err(BadFree::NotInUse);
        }
        let size = Self::size_bits(header);
        if size < GEOMETRY.minimum || size > room {
            return Err(BadFree::Foreign);
        }
        Ok(())
    }
}
