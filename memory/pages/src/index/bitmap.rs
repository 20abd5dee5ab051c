//! A hierarchy of bitmaps: a bit a page, above it a bit a word that is not zero, and so on up to
//! one word.
//!
//! Four levels, unrolled, so that no path through any operation has a loop: 64-ary for machines
//! whose words have 64 bits, 32-ary for those with 32. At 2^20 pages the 64-ary hierarchy takes
//! 133,160 bytes, the paper's layered tree 143,756 (RTCSA 2014, IV-A5).
//!
//! Invariant: a bit of a level above the lowest is set exactly if the word that it stands for is
//! not zero.

use super::Index;

macro_rules! bitmap {
    ($(#[$about:meta])* $name:ident, $word:ty, $nonzero:ty, $log:literal) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Debug)]
        pub struct $name<const A: usize, const B: usize, const C: usize> {
            leaf: [$word; A],
            second: [$word; B],
            third: [$word; C],
            top: $word,
        }

        impl<const A: usize, const B: usize, const C: usize> $name<A, B, C> {
            /// The levels fit each other; a mismatch does not compile.
            const FITS: () = assert!(
                A.is_power_of_two()
                    && B == A.div_ceil(1 << $log)
                    && C == B.div_ceil(1 << $log)
                    && C <= 1 << $log
            );

            /// One region over all pages.
            pub const fn new() -> Self {
                const { Self::FITS };
                Self { leaf: [0; A], second: [0; B], third: [0; C], top: 0 }
            }
        }

        impl<const A: usize, const B: usize, const C: usize> Default for $name<A, B, C> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<const A: usize, const B: usize, const C: usize> Index for $name<A, B, C> {
            const PAGES: usize = A << $log;

            #[inline]
            fn insert(&mut self, page: u32) {
                let page = page as usize & (Self::PAGES - 1);
                let (word, bit) = (page >> $log, 1 << (page & LOW));
                let before = self.leaf[word];
                self.leaf[word] = before | bit;
                if before == 0 {
                    let (at, bit) = (word >> $log & (B - 1), 1 << (word & LOW));
                    let before = self.second[at];
                    self.second[at] = before | bit;
                    if before == 0 {
                        let (up, bit) = (at >> $log & (C - 1), 1 << (at & LOW));
                        let before = self.third[up];
                        self.third[up] = before | bit;
                        if before == 0 {
                            self.top |= 1 << up;
                        }
                    }
                }
            }

            #[inline]
            fn remove(&mut self, page: u32) {
                let page = page as usize & (Self::PAGES - 1);
                let (word, bit): (usize, $word) = (page >> $log, 1 << (page & LOW));
                let left = self.leaf[word] & !bit;
                self.leaf[word] = left;
                if left == 0 {
                    let (at, bit): (usize, $word) = (word >> $log & (B - 1), 1 << (word & LOW));
                    let left = self.second[at] & !bit;
                    self.second[at] = left;
                    if left == 0 {
                        let (up, bit): (usize, $word) = (at >> $log & (C - 1), 1 << (at & LOW));
                        let left = self.third[up] & !bit;
                        self.third[up] = left;
                        if left == 0 {
                            self.top &= !(1 << up);
                        }
                    }
                }
            }

            #[inline]
            fn contains(&self, page: u32) -> bool {
                let page = page as usize & (Self::PAGES - 1);
                page == 0 || self.leaf[page >> $log] >> (page & LOW) & 1 != 0
            }

            #[inline]
            fn find(&self, page: u32) -> u32 {
                let page = page as usize & (Self::PAGES - 1);
                let mut word = page >> $log;
                let mut bits = self.leaf[word] & (<$word>::MAX >> (LOW - (page & LOW)));
                if bits == 0 {
                    let mut at = word >> $log & (B - 1);
                    let mut words = self.second[at] & below(word);
                    if words == 0 {
                        let mut up = at >> $log & (C - 1);
                        let mut ats = self.third[up] & below(at);
                        if ats == 0 {
                            let Some(ups) = <$nonzero>::new(self.top & below(up)) else {
                                return 0;
                            };
                            up = ups.ilog2() as usize & (C - 1);
                            ats = self.third[up];
                        }
                        at = (up << $log | highest(ats)) & (B - 1);
                        words = self.second[at];
                    }
                    word = (at << $log | highest(words)) & (A - 1);
                    bits = self.leaf[word];
                }
                (word << $log | highest(bits)) as u32
            }

            #[inline]
            fn next(&self, page: u32) -> Option<u32> {
                let page = page as usize & (Self::PAGES - 1);
                let mut word = page >> $log;
                let mut bits = self.leaf[word] & above(page);
                if bits == 0 {
                    let mut at = word >> $log & (B - 1);
                    let mut words = self.second[at] & above(word);
                    if words == 0 {
                        let mut up = at >> $log & (C - 1);
                        let mut ats = self.third[up] & above(at);
                        if ats == 0 {
                            let ups = <$nonzero>::new(self.top & above(up))?;
                            up = ups.trailing_zeros() as usize & (C - 1);
                            ats = self.third[up];
                        }
                        at = (up << $log | lowest(ats)) & (B - 1);
                        words = self.second[at];
                    }
                    word = (at << $log | lowest(words)) & (A - 1);
                    bits = self.leaf[word];
                }
                Some((word << $log | lowest(bits)) as u32)
            }
        }
    };
}

/// 64-ary: `A`, `B` and `C` are the words of the lower three levels; the fourth is one word. See
/// [`Pages20`](crate::Pages20) and its like for sizes that fit.
pub use wide::Bitmap64;

/// 32-ary, for machines of 32 bits: as [`Bitmap64`].
pub use narrow::Bitmap32;

mod wide {
    use super::Index;
    use core::num::NonZeroU64;

    const LOW: usize = 63;

    bitmap! {
        /// Starts of regions, a bit each, under three levels of summaries, by words of 64 bits.
        Bitmap64, u64, NonZeroU64, 6
    }

    /// The bits below that of `position` in its word.
    #[inline(always)]
    fn below(position: usize) -> u64 {
        (1 << (position & LOW)) - 1
    }

    /// The bits above that of `position` in its word.
    #[inline(always)]
    fn above(position: usize) -> u64 {
        (u64::MAX - 1) << (position & LOW)
    }

    /// The highest bit of a word that has one.
    #[inline(always)]
    fn highest(word: u64) -> usize {
        // A word found through the level above is not zero: the invariant. `| 1` says so to the
        // compiler, and changes nothing.
        (word | 1).ilog2() as usize
    }

    /// The lowest bit of a word that has one.
    #[inline(always)]
    fn lowest(word: u64) -> usize {
        word.trailing_zeros() as usize & LOW
    }
}

mod narrow {
    use super::Index;
    use core::num::NonZeroU32;

    const LOW: usize = 31;

    bitmap! {
        /// Starts of regions, a bit each, under three levels of summaries, by words of 32 bits.
        Bitmap32, u32, NonZeroU32, 5
    }

    /// The bits below that of `position` in its word.
    #[inline(always)]
    fn below(position: usize) -> u32 {
        (1 << (position & LOW)) - 1
    }

    /// The bits above that of `position` in its word.
    #[inline(always)]
    fn above(position: usize) -> u32 {
        (u32::MAX - 1) << (position & LOW)
    }

    /// The highest bit of a word that has one.
    #[inline(always)]
    fn highest(word: u32) -> usize {
        // As for 64 bits.
        (word | 1).ilog2() as usize
    }

    /// The lowest bit of a word that has one.
    #[inline(always)]
    fn lowest(word: u32) -> usize {
        word.trailing_zeros() as usize & LOW
    }
}
