//! What the summaries say of a free block: its size, or its size class.
//!
//! Invariant: `of` never falls with the size, and a block whose summary is at least `wanted(n)` has at least `served(n)`
//! granules, which are at least `n`; a block with as many has a summary of at least `wanted(n)`.

use crate::index::classes::{class_base, class_ceiling, class_floor};

/// log2 of the size classes a power of two that [`Classes`] has.
const CLASSES_LOG2: u32 = 3;

/// How free blocks are summed up.
///
/// # Safety
/// `BYTES` is the width of what `get` and `set` access.
pub unsafe trait Summary: Copy + Send {
    /// Bytes of one summary in a table.
    const BYTES: usize;
    /// Granules of the largest block that has a summary.
    const LARGEST: usize;

    /// The summary of a free block of so many granules; 0 for none.
    fn of(granules: usize) -> u32;
    /// The least summary with which a block serves surely.
    fn wanted(granules: usize) -> u32;
    /// What a block must have to be chosen for so many granules.
    fn served(granules: usize) -> usize;
    /// Reads a summary.
    ///
    /// # Safety
    /// `table` holds one there, aligned to `BYTES`.
    unsafe fn get(table: *const u8, at: usize) -> u32;
    /// Writes a summary.
    ///
    /// # Safety
    /// As `get`.
    unsafe fn set(table: *mut u8, at: usize, summary: u32);
}

macro_rules! exact {
    ($(#[$about:meta])* $name:ident, $width:ty) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        // SAFETY: the width that is accessed.
        unsafe impl Summary for $name {
            const BYTES: usize = size_of::<$width>();
            // The last value stands above the root.
            const LARGEST: usize = <$width>::MAX as usize - 1;

            #[inline(always)]
            fn of(granules: usize) -> u32 {
                granules as u32
            }

            #[inline(always)]
            fn wanted(granules: usize) -> u32 {
                granules as u32
            }

            #[inline(always)]
            fn served(granules: usize) -> usize {
                granules
            }

            #[inline(always)]
            unsafe fn get(table: *const u8, at: usize) -> u32 {
                // SAFETY: the caller's contract.
                unsafe { u32::from(*table.cast::<$width>().add(at)) }
            }

            #[inline(always)]
            unsafe fn set(table: *mut u8, at: usize, summary: u32) {
                // SAFETY: the caller's contract.
                unsafe { *table.cast::<$width>().add(at) = summary as $width }
            }
        }
    };
}

exact!(
    /// The size itself, in four bytes.
    Exact,
    u32
);
exact!(
    /// The size itself, in two bytes: for memory of up to 65534 granules.
    Short,
    u16
);

/// A size class of one byte: eight a power of two, and every size below 16 granules its own. Requests are rounded up to
/// the next class, so that less than an eighth of a block is passed over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Classes;

// SAFETY: a byte is accessed.
unsafe impl Summary for Classes {
    const BYTES: usize = 1;
    // The last class stands above the root; where words are narrow, there are fewer.
    const LARGEST: usize = match usize::BITS {
        64 => class_base(u8::MAX as usize, CLASSES_LOG2) - 1,
        _ => usize::MAX >> 3,
    };

    #[inline(always)]
    fn of(granules: usize) -> u32 {
        class_floor(granules, CLASSES_LOG2) as u32
    }

    #[inline(always)]
    fn wanted(granules: usize) -> u32 {
        class_ceiling(granules, CLASSES_LOG2) as u32
    }

    #[inline(always)]
    fn served(granules: usize) -> usize {
        class_base(class_ceiling(granules, CLASSES_LOG2), CLASSES_LOG2)
    }

    #[inline(always)]
    unsafe fn get(table: *const u8, at: usize) -> u32 {
        // SAFETY: the caller's contract.
        unsafe { u32::from(*table.add(at)) }
    }

    #[inline(always)]
    unsafe fn set(table: *mut u8, at: usize, summary: u32) {
        // SAFETY: the caller's contract.
        unsafe { *table.add(at) = summary as u8 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keeps<E: Summary>(block: usize, need: usize) -> Result<(), TestCaseError> {
        let (block, need) = (block % E::LARGEST + 1, need % E::LARGEST + 1);
        prop_assert!(E::of(block) > 0);
        prop_assert!(E::of(block) < 1 << (8 * E::BYTES as u64).min(31));
        prop_assert!(E::of(block) <= E::of((block + 1).min(E::LARGEST)));
        prop_assert!(E::served(need) >= need);
        prop_assert!(E::served(need) - need <= need / 8);
        prop_assert_eq!(E::of(block) >= E::wanted(need), block >= E::served(need));
        Ok(())
    }

    proptest! {
        #[test]
        fn a_summary_tells_which_blocks_serve(shift in 0..64u32, block: usize, need: usize) {
            let shift = shift % usize::BITS;
            keeps::<Exact>(block >> shift & u32::MAX as usize >> 1, need >> shift & u32::MAX as usize >> 1)?;
            keeps::<Short>(block >> shift, need >> shift)?;
            keeps::<Classes>(block >> shift, need >> shift)?;
            keeps::<Classes>(block >> shift, block >> shift)?;
        }
    }
}
