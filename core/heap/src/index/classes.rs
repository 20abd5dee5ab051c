//! Size classes with a two-level bitmap: TLSF, half-fit and segregated fit.
//!
//! What blocks can hold, in granules, maps to classes as small floating-point numbers:
//! an exponent and `log2(second_level)` bits of mantissa (Masmano et al., TLSF,
//! ECRTS 2004; half-fit, Ogasawara 1995, has one class a power of two). The map
//! is continuous, `class = (shift << l) + (size >> shift)`, so that rounding a
//! size up to the next class carries into the exponent by itself, and no case
//! distinction is needed for small sizes.
//!
//! Invariant: bit `b` of word `w` is set exactly when list `(w << l) + b` is not
//! empty, and bit `w` of the top word exactly when word `w` is not zero. With one
//! class a power of two (`l` = 0) the top word stands alone.

use super::{Index, Limits, step_is_sound, take_is_sound, walk_list};
use crate::store::{Geometry, Store};

/// Words of the bitmap, one a power of two, as many as the top word has bits.
const WORDS: usize = usize::BITS as usize;

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
    words: [u32; WORDS],
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
pub const fn class_floor(granules: usize, log2: u32) -> usize {
    let shift = (granules | 1 << log2).ilog2() - log2;
    ((shift as usize) << log2) + (granules >> shift)
}

/// The last class some of whose blocks are too small for `granules` (one or
/// more): the classes above it suffice.
#[inline(always)]
pub const fn class_below(granules: usize, log2: u32) -> usize {
    // One less than the ceiling, without its carry: what is rounded up is
    // `granules - 1`, under the exponent of `granules`.
    let shift = (granules | 1 << log2).ilog2() - log2;
    ((shift as usize) << log2) + ((granules - 1) >> shift)
}

/// The first class all of whose blocks have at least `granules`.
#[inline(always)]
pub const fn class_ceiling(granules: usize, log2: u32) -> usize {
    class_below(granules, log2) + 1
}

/// The smallest size, in granules, of a class.
pub const fn class_base(class: usize, log2: u32) -> usize {
    let second = 1 << log2;
    if class < 2 * second {
        return class;
    }
    let shift = (class >> log2) - 1;
    (class - (shift << log2)) << shift
}

impl<P: ClassParameters> SizeClasses<P> {
    /// The class of blocks of `size` bytes: that of what they can hold. By size with its record, a
    /// power of two, the commonest of large requests, would lie a granule above a class boundary, and
    /// no block that held one would serve the next.
    #[inline(always)]
    fn class<S: Store>(&self, store: &S, size: usize) -> usize {
        let granules = store.geometry().payload_granules(size);
        class_floor(granules, self.parameters.second_level_log2())
    }

    /// The word of a class in the bitmap, and its bit in the word.
    #[inline(always)]
    fn place(&self, class: usize) -> (usize, u32) {
        let log2 = self.parameters.second_level_log2();
        let word = class >> log2;
        debug_assert!(word < WORDS);
        // SAFETY: classes are those of fewer than 2^63 (2^31) granules, or of
        // exactly that many less one: a need is at most half the addresses, or
        // all of them in granules of 8 and more (`Geometry::block_for`); a block
        // is not larger than a region; a head's number is below the number of
        // heads. The class of the most granules, `((b - l) << l) + 2^l` at the
        // most for b = 62 (30), shifted by `l`, is 63 (31) or less.
        unsafe { core::hint::assert_unchecked(word < WORDS) };
        (word, (class as u32) & ((1 << log2) - 1))
    }

    /// With one class a power of two, the top word alone is the bitmap.
    #[inline(always)]
    fn one_level(&self) -> bool {
        self.parameters.second_level_log2() == 0
    }

    /// The first non-empty class above `class`.
    #[inline(always)]
    fn first_above<S: Store>(&self, store: &S, class: usize) -> Option<usize> {
        let log2 = self.parameters.second_level_log2();
        let (word, bit) = self.place(class);
        if !self.one_level() {
            store.touch(1, 0);
            let bits = self.words[word] & (u32::MAX - 1) << bit;
            if bits != 0 {
                return Some((word << log2) + bits.trailing_zeros() as usize);
            }
        }
        store.touch(1, 0);
        let later = self.top & (usize::MAX - 1) << word;
        if later == 0 {
            return None;
        }
        let word = later.trailing_zeros() as usize % WORDS;
        if self.one_level() {
            return Some(word);
        }
        store.touch(1, 0);
        Some((word << log2) + self.words[word].trailing_zeros() as usize)
    }

    #[inline(always)]
    fn set(&mut self, class: usize) {
        let (word, bit) = self.place(class);
        if !self.one_level() {
            self.words[word] |= 1 << bit;
        }
        self.top |= 1 << word;
    }

    /// Tells of the words that are written where the bit was not set.
    #[inline(always)]
    fn touch_set<S: Store>(&self, store: &S) {
        if !self.one_level() {
            store.touch(1, 1);
        }
        store.touch(1, 1);
    }

    /// Clears the bit of a class if its list is empty now, without a branch on it.
    #[inline(always)]
    fn clear_if<S: Store>(&mut self, store: &S, class: usize, empty: bool) {
        let (word, bit) = self.place(class);
        let mut last = empty;
        if !self.one_level() {
            let bits = self.words[word] & !(u32::from(empty) << bit);
            self.words[word] = bits;
            last = bits == 0;
        }
        self.top &= !(usize::from(last) << word);
        if empty && !self.one_level() {
            store.touch(1, 1);
        }
        if empty && last {
            store.touch(1, 1);
        }
    }
}

// SAFETY: lists are changed in `insert`, `remove` and `take` only, with the block
// that the heap passed or the first of a list that the bitmap says is not empty.
unsafe impl<S: Store, P: ClassParameters> Index<S> for SizeClasses<P> {
    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        let log2 = self.parameters.second_level_log2();
        let span = span.max(geometry.minimum);
        let last = class_floor(geometry.payload_granules(span), log2);
        // The classes of an exponent are the bits of a word.
        (log2 <= u32::BITS.ilog2() && last >> log2 < WORDS).then_some(last + 1)
    }

    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        self.parameters.probes() != 0
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        let class = self.class(store, size);
        let head = store.head(class);
        let first = store.link_after(head, block) == head;
        // Set whatever it was: whether the list was empty is nothing that a processor can foresee.
        self.set(class);
        if first {
            self.touch_set(store);
        }
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, _size: usize) {
        let (before, next) = store.unlink(block);
        if next == before {
            // Both are the head: the list is empty.
            self.clear_if(store, store.head_number(before), true);
        }
    }

    #[inline(always)]
    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        store.forward_is_sound(store.head(self.class(store, size)))
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        let log2 = self.parameters.second_level_log2();
        let granules = store.geometry().payload_granules(need);
        let probes = self.parameters.probes();
        if probes != 0 {
            let head = store.head(class_floor(granules, log2));
            if !step_is_sound(store, head) {
                return None;
            }
            let mut block = store.next(head);
            let mut tried = 0;
            while tried < probes && block != head {
                if !step_is_sound(store, block) {
                    return None;
                }
                let size = store.free_size(block);
                if size >= need {
                    if !take_is_sound(store, block) {
                        return None;
                    }
                    self.remove(store, block, size);
                    return Some((block, size));
                }
                block = store.next(block);
                tried += 1;
            }
        }
        let class = self.first_above(store, class_below(granules, log2))?;
        let head = store.head(class);
        let block = store.sound_first(head)?;
        let next = store.verified_next(block);
        store.set_next(head, next);
        store.set_previous(next, head);
        self.clear_if(store, class, next == head);
        Some((block, store.verified_free_size(block)))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.parameters.limits()
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        let log2 = self.parameters.second_level_log2();
        let bits_of = |word: usize| match self.one_level() {
            true => (self.top >> word & 1) as u32,
            false => self.words[word],
        };
        (0..WORDS).all(|word| {
            let bits = bits_of(word);
            (bits != 0) == (self.top >> word & 1 == 1)
                && (0..u32::BITS)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .all(|bit| {
                        let class = (word << log2) + bit as usize;
                        let mut any = false;
                        let right = walk_list(store, class, &mut |block| {
                            any = true;
                            self.class(store, store.header(block).size) == class && visit(block)
                        });
                        right && any
                    })
        })
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
