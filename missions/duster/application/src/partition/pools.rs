//! The pools of others in the place of the mission's heap, for comparison: as large as declared, with slots for what is
//! declared to be asked of the partition.
//!
//! *Invariant:* as `metes-duster-pools` has them.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use metes_duster_pools::{MOST_SIZES, Pool, Region, Slots};

#[cfg(feature = "cfe-pools")]
type Chosen = metes_duster_pools::BucketPool;
#[cfg(all(feature = "satrs-pools", not(feature = "cfe-pools")))]
type Chosen = metes_duster_pools::SlotPool;
#[cfg(all(
    feature = "fprime-bins",
    not(any(feature = "cfe-pools", feature = "satrs-pools"))
))]
type Chosen = metes_duster_pools::BinPool;

/// The memory of a partition.
pub(super) struct Memory(Chosen);

// SAFETY: the pool points into its own memory alone, which it was given for good.
unsafe impl Send for Memory {}

impl Memory {
    /// # Panics
    /// The slots that are declared do not fit: the build of a comparison is wrong.
    pub(super) fn new(
        memory: &'static mut [MaybeUninit<u8>],
        demands: &[(usize, usize)],
    ) -> Memory {
        let region = Region::from_static(memory);
        let mut slots = [Slots::default(); MOST_SIZES];
        for (slots, &(size, live)) in slots.iter_mut().zip(demands) {
            (slots.size, slots.count) = (size as u32, live as u32);
        }
        let slots = &mut slots[..demands.len().min(MOST_SIZES)];
        slots.sort_unstable_by_key(|slots| slots.size);
        #[cfg(feature = "cfe-pools")]
        let pool = {
            let mut sizes = [0; MOST_SIZES];
            for (size, slots) in sizes.iter_mut().zip(slots.iter()) {
                *size = slots.size;
            }
            Chosen::new(region, &sizes[..slots.len()])
        };
        #[cfg(all(feature = "satrs-pools", not(feature = "cfe-pools")))]
        let pool = Chosen::new(region, slots, true);
        #[cfg(all(
            feature = "fprime-bins",
            not(any(feature = "cfe-pools", feature = "satrs-pools"))
        ))]
        let pool = Chosen::new(region, slots);
        Memory(pool.expect("slots for what is declared"))
    }

    pub(super) fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.0.allocate(size)
    }

    /// # Safety
    /// `block` is live here.
    pub(super) unsafe fn free(&mut self, block: NonNull<u8>) -> bool {
        self.0.free(block).is_ok()
    }

    pub(super) fn largest_free(&self) -> usize {
        self.0.largest_free()
    }
}
