//! Size classes with a two-level bitmap: TLSF, half-fit and segregated fit.
//!
//! Block sizes, in granules, map to classes as small floating-point numbers:
//! an exponent and `log2(second_level)` bits of mantissa (Masmano et al., TLSF,
//! ECRTS 2004; half-fit, Ogasawara 1995, has one class a power of two). The map
//! is continuous, `class = (shift << l) + (size >> shift)`, so that rounding a
//! size up to the next class carries into the exponent by itself, and no case
//! distinction is needed for small sizes.
//!
//! Invariant: bit `c` of the bitmap is set exactly when list `c` is not empty,
//! and bit `w` of the top word exactly when word `w` is not zero.

use super::{Index, Limits, link_after, unlink, walk_list};
use crate::store::{Geometry, Store};

const BITS: usize = usize::BITS as usize;
/// Words of the bitmap: enough for the classes of every span that fits a header.
const WORDS: usize = 32;

/// What distinguishes the members of the family.
pub trait ClassParameters: Copy {
    /// log2 of the classes per power of two (0 for half-fit).
    fn second_level_log2(&self) -> u32;
    /// How many blocks of the class that `need` itself falls into are tried
    /// before the classes in which every block fits. Zero in TLSF and half-fit;
    /// `usize::MAX` is segregated fit.
    fn probes(&self) -> usize;
    /// How far blocks may merge and split.
    fn limits(&self) -> Limits {
        Limits::NONE
    }
}

/// Parameters fixed at compile time: the code is specialised to them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantClasses<const SECOND_LEVEL: usize, const PROBES: usize>;

impl<const SECOND_LEVEL: usize, const PROBES: usize> ClassParameters
    for ConstantClasses<SECOND_LEVEL, PROBES>
{
    #[inline(always)]
    fn second_level_log2(&self) -> u32 {
        const { assert!(SECOND_LEVEL.is_power_of_two(), "classes per power of two") };
        SECOND_LEVEL.trailing_zeros()
    }

    #[inline(always)]
    fn probes(&self) -> usize {
        PROBES
    }
}

/// Parameters chosen at run time, for exploration.
#[derive(Clone, Copy, Debug)]
pub struct ChosenClasses {
    /// See [`ClassParameters::second_level_log2`].
    pub second_level_log2: u32,
    /// See [`ClassParameters::probes`].
    pub probes: usize,
    /// See [`ClassParameters::limits`].
    pub limits: Limits,
}

impl ClassParameters for ChosenClasses {
    #[inline(always)]
    fn second_level_log2(&self) -> u32 {
        self.second_level_log2
    }

    #[inline(always)]
    fn probes(&self) -> usize {
        self.probes
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.limits
    }
}

/// An index of size classes. See the module.
#[derive(Clone, Debug)]
pub struct SizeClasses<P> {
    parameters: P,
    top: usize,
    words: [usize; WORDS],
}

/// Two-level segregated fit: O(1), never searches a list.
pub type Tlsf<const SECOND_LEVEL: usize = 32> = SizeClasses<ConstantClasses<SECOND_LEVEL, 0>>;
/// Half-fit: O(1), one class a power of two.
pub type HalfFit = SizeClasses<ConstantClasses<1, 0>>;
/// Segregated fit: first fit within the class, then the next larger class.
pub type SegregatedFit<const SECOND_LEVEL: usize = 1, const PROBES: usize = { usize::MAX }> =
    SizeClasses<ConstantClasses<SECOND_LEVEL, PROBES>>;

impl<const SECOND_LEVEL: usize, const PROBES: usize>
    SizeClasses<ConstantClasses<SECOND_LEVEL, PROBES>>
{
    /// An empty index.
    pub const fn new() -> Self {
        Self::with(ConstantClasses)
    }
}

impl<const SECOND_LEVEL: usize, const PROBES: usize> Default
    for SizeClasses<ConstantClasses<SECOND_LEVEL, PROBES>>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<P> SizeClasses<P> {
    /// An empty index with the given parameters.
    pub const fn with(parameters: P) -> Self {
        SizeClasses {
            parameters,
            top: 0,
            words: [0; WORDS],
        }
    }
}

/// The class of blocks of `granules`, rounding down. `log2` is the second level's.
#[inline(always)]
pub(crate) const fn class_floor(granules: usize, log2: u32) -> usize {
    // The `|` only lifts the exponent of sizes below the second level to its own.
    let shift = (granules | 1 << log2).ilog2() - log2;
    ((shift as usize) << log2) + (granules >> shift)
}

/// The first class all of whose blocks have at least `granules`.
#[inline(always)]
pub(crate) const fn class_ceiling(granules: usize, log2: u32) -> usize {
    let shift = (granules | 1 << log2).ilog2() - log2;
    ((shift as usize) << log2) + ((granules + (1 << shift) - 1) >> shift)
}

/// The smallest size, in granules, of a class.
pub(crate) const fn class_base(class: usize, log2: u32) -> usize {
    let second = 1 << log2;
    if class < 2 * second {
        return class;
    }
    let shift = (class >> log2) - 1;
    (class - (shift << log2)) << shift
}

impl<P: ClassParameters> SizeClasses<P> {
    #[inline(always)]
    fn class<S: Store>(&self, store: &S, size: usize) -> usize {
        let granules = size / store.geometry().granule;
        class_floor(granules, self.parameters.second_level_log2())
    }

    /// The bitmap word of a class. Classes never exceed the words: `heads` says so.
    #[inline(always)]
    fn word(&mut self, class: usize) -> &mut usize {
        &mut self.words[(class / BITS) & (WORDS - 1)]
    }

    /// The first non-empty class from `class` on.
    #[inline(always)]
    fn first_from<S: Store>(&self, store: &S, class: usize) -> Option<usize> {
        let word = class / BITS;
        if word >= WORDS {
            return None;
        }
        store.touch(1, 0);
        let bits = self.words[word] & usize::MAX << (class % BITS);
        if bits != 0 {
            return Some(word * BITS + bits.trailing_zeros() as usize);
        }
        // `word` is below WORDS, so the shift by word + 1 is at most WORDS.
        let later = self.top & (usize::MAX - 1) << word;
        store.touch(1, 0);
        if later == 0 {
            return None;
        }
        let word = later.trailing_zeros() as usize & (WORDS - 1);
        store.touch(1, 0);
        Some(word * BITS + self.words[word].trailing_zeros() as usize)
    }

    #[inline(always)]
    fn clear<S: Store>(&mut self, store: &S, class: usize) {
        let word = self.word(class);
        *word &= !(1 << (class % BITS));
        let empty = *word == 0;
        store.touch(1, 1);
        if empty {
            self.top &= !(1 << (class / BITS));
            store.touch(1, 1);
        }
    }
}

// SAFETY: lists are changed by `link_after` and `unlink` only, with the block
// that the heap passed or the first of a list that the bitmap says is not empty.
unsafe impl<S: Store, P: ClassParameters> Index<S> for SizeClasses<P> {
    fn heads(&mut self, span: usize, geometry: Geometry) -> usize {
        let log2 = self.parameters.second_level_log2();
        let heads = class_floor(span / geometry.granule, log2) + 1;
        heads.min(WORDS * BITS)
    }

    fn ceiling(&self, need: usize) -> usize {
        // In bytes, and right for every granule: rounding the class up in
        // granules of one byte gives at least the size that granules give.
        let log2 = self.parameters.second_level_log2();
        class_base(class_ceiling(need, log2), log2)
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        let class = self.class(store, size);
        let head = store.head(class);
        link_after(store, head, block);
        *self.word(class) |= 1 << (class % BITS);
        self.top |= 1 << (class / BITS);
        store.touch(2, 2);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, _size: usize) {
        let (before, next) = unlink(store, block);
        if next == store.nil() {
            // The last of its list; the only one if a head came before it.
            if let Some(class) = store.head_number(before) {
                self.clear(store, class);
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        let log2 = self.parameters.second_level_log2();
        let granules = need / store.geometry().granule;
        let probes = self.parameters.probes();
        if probes != 0 {
            let class = class_floor(granules, log2);
            let mut block = store.next(store.head(class));
            let mut tried = 0;
            while tried < probes && block != store.nil() {
                let size = store.header(block).size;
                if size >= need {
                    self.remove(store, block, size);
                    return Some((block, size));
                }
                block = store.next(block);
                tried += 1;
            }
        }
        let class = self.first_from(store, class_ceiling(granules, log2))?;
        let head = store.head(class);
        let block = store.next(head);
        let next = store.next(block);
        store.set_next(head, next);
        store.set_previous(next, head);
        if next == store.nil() {
            self.clear(store, class);
        }
        Some((block, store.header(block).size))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.parameters.limits()
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        for class in 0..WORDS * BITS {
            let word = self.words[class / BITS];
            if (word != 0) != (self.top >> (class / BITS) & 1 == 1) {
                return false;
            }
            if word >> (class % BITS) & 1 == 0 {
                continue;
            }
            let mut any = false;
            let right = walk_list(store, class, &mut |block| {
                any = true;
                self.class(store, store.header(block).size) == class && visit(block)
            });
            if !right || !any {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_monotone_and_ceilings_suffice() {
        for log2 in 0..7 {
            let mut last = 0;
            for granules in 1..10_000 {
                let floor = class_floor(granules, log2);
                assert!(floor == last || floor == last + 1, "classes have no gaps");
                last = floor;
                assert!(class_base(floor, log2) <= granules);
                assert!(class_base(floor + 1, log2) > granules);
                let ceiling = class_ceiling(granules, log2);
                assert!(class_base(ceiling, log2) >= granules);
                assert!(ceiling == 0 || class_base(ceiling - 1, log2) < granules);
                // The search overshoots by less than one part in the second level.
                let waste = class_base(ceiling, log2) - granules;
                assert!(waste << log2 < granules.max(1 << log2));
            }
        }
    }
}
