//! Marks of sizes: one of 128 bits for each, given out as sizes appear.
//!
//! A node of a sorted list carries the marks of the sizes below it, so that a search for a
//! range of sizes passes nodes that have none of them. The first sizes of a run, mostly its
//! most frequent ones, have a bit for themselves; later ones share what is left. Sizes from
//! 4096 granules on are one with others in a sixteenth of their power of two.
//!
//! Invariant: a group has a mark once a block of it was counted, and keeps it; the counts
//! are those of the blocks entered and not left.

/// A set of marks.
pub(super) type Mark = u128;

/// Sizes below are groups of their own.
const EXACT: u32 = 4096;
/// Groups of a power of two above, as a logarithm.
const SHARE_LOG2: u32 = 4;
/// Groups that there can be.
const GROUPS: usize =
    EXACT as usize + (((u32::BITS - EXACT.trailing_zeros()) as usize) << SHARE_LOG2);

/// Bits that only one group has; the others are given out in turns.
const OWN: u8 = 96;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    counts: Vec<u32>,
    /// A bit for each group that has blocks.
    present: Vec<u64>,
    /// The bit of each group that ever had one.
    bits: Vec<u8>,
    /// Whether a group has a bit; those without get the next.
    known: Vec<bool>,
    next: u8,
}

/// The group of a size in granules.
#[inline(always)]
fn group(size: u32) -> usize {
    if size < EXACT {
        return size as usize;
    }
    let log2 = size.ilog2();
    let share = size >> (log2 - SHARE_LOG2) & ((1 << SHARE_LOG2) - 1);
    EXACT as usize + (((log2 - EXACT.ilog2()) << SHARE_LOG2) + share) as usize
}

impl Marks {
    /// Counts a block; returns the mark of its size. O(1).
    #[inline(always)]
    pub(super) fn enter(&mut self, size: u32) -> Mark {
        if self.counts.is_empty() {
            self.begin();
        }
        let group = group(size);
        if !self.known[group] {
            self.known[group] = true;
            self.bits[group] = self.next;
            self.next += 1;
            if u32::from(self.next) == Mark::BITS {
                self.next = OWN;
            }
        }
        self.counts[group] += 1;
        self.present[group / 64] |= 1 << (group % 64);
        1 << self.bits[group]
    }

    #[cold]
    fn begin(&mut self) {
        self.counts = vec![0; GROUPS];
        self.present = vec![0; GROUPS.div_ceil(64)];
        self.bits = vec![0; GROUPS];
        self.known = vec![false; GROUPS];
    }

    /// Counts a block no more. O(1).
    #[inline(always)]
    pub(super) fn leave(&mut self, size: u32) {
        let group = group(size);
        self.counts[group] -= 1;
        if self.counts[group] == 0 {
            self.present[group / 64] &= !(1 << (group % 64));
        }
    }

    /// The mark of a size of which a block has been counted. O(1).
    #[inline(always)]
    pub(super) fn of(&self, size: u32) -> Mark {
        1 << self.bits[group(size)]
    }

    /// The marks of the sizes in `least..=most` of which there are blocks, and perhaps
    /// more; none only if no such block exists. O(sizes present).
    #[inline(always)]
    pub(super) fn between(&self, least: u32, most: u32) -> Mark {
        if self.counts.is_empty() {
            return 0;
        }
        let (first, last) = (group(least), group(most));
        let mut marks = 0;
        for word in first / 64..=last / 64 {
            let mut present = self.present[word];
            if word == first / 64 {
                present &= u64::MAX << (first % 64);
            }
            if word == last / 64 {
                present &= u64::MAX >> (63 - last % 64);
            }
            while present != 0 {
                let group = word * 64 + present.trailing_zeros() as usize;
                marks |= 1 << self.bits[group];
                present &= present - 1;
            }
            if marks == Mark::MAX {
                break;
            }
        }
        marks
    }
}
