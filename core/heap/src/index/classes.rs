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

use core::num::NonZero;

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

/// An index of size classes. See the module. What is read first lies first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct SizeClasses<P> {
    top: usize,
    words: [u32; WORDS],
    parameters: P,
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
            top: 0,
            words: [0; WORDS],
            parameters,
        }
    }
}

/// The class of blocks of `granules`, rounding down. `log2` is the second level's.
#[inline(always)]
pub const fn class_floor(granules: usize, log2: u32) -> usize {
    raised_floor(granules, 0, log2)
}

/// The last class some of whose blocks are too small for `granules` (one or
/// more): the classes above it suffice.
#[inline(always)]
pub const fn class_below(granules: usize, log2: u32) -> usize {
    raised_below(granules, 0, log2)
}

/// How far bytes are shifted to the mantissa of their class.
#[inline(always)]
const fn shift_of(bytes: usize, granule_log2: u32, log2: u32) -> u32 {
    (bytes | 1 << (granule_log2 + log2)).ilog2() - log2
}

/// [`class_floor`] of the whole granules in `bytes`, raised by the classes of `granule_log2` words:
/// so much less is to be computed.
#[inline(always)]
const fn raised_floor(bytes: usize, granule_log2: u32, log2: u32) -> usize {
    let shift = shift_of(bytes, granule_log2, log2);
    ((shift as usize) << log2) + (bytes >> shift)
}

/// [`class_below`] of the whole granules in `bytes`, one or more, raised as in [`raised_floor`].
#[inline(always)]
const fn raised_below(bytes: usize, granule_log2: u32, log2: u32) -> usize {
    // One less than the ceiling, without its carry: what is rounded up is a granule less,
    // under the exponent of all of them.
    let shift = shift_of(bytes, granule_log2, log2);
    ((shift as usize) << log2) + ((bytes - (1 << granule_log2)) >> shift)
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
        let log2 = self.parameters.second_level_log2();
        match S::GEOMETRY {
            Some(geometry) => raised_floor(size - geometry.header, geometry.granule.ilog2(), log2),
            None => class_floor(store.geometry().payload_granules(size), log2),
        }
    }

    /// The last class some of whose blocks are too small for `need`.
    #[inline(always)]
    fn class_too_small<S: Store>(&self, store: &S, need: usize) -> usize {
        let log2 = self.parameters.second_level_log2();
        match S::GEOMETRY {
            Some(geometry) => raised_below(need - geometry.header, geometry.granule.ilog2(), log2),
            None => class_below(store.geometry().payload_granules(need), log2),
        }
    }

    /// Words of classes that are skipped in their numbers, so that those of a geometry known to the
    /// compiler are found from bytes (see [`raised_floor`]).
    #[inline(always)]
    fn skipped<S: Store>() -> usize {
        S::GEOMETRY.map_or(0, |geometry| geometry.granule.ilog2() as usize)
    }

    /// The bit of a class in the top word, and its bit in its own word.
    #[inline(always)]
    fn place<S: Store>(&self, class: usize) -> (usize, u32) {
        let log2 = self.parameters.second_level_log2();
        // The most bytes, 2^64 (2^32) and less, have class `((b - l) << l) + 2^(l + 1) - 1` for
        // b = 63 (31), shifted by `l` one too many where `l` is 0: there it is one less.
        let bit = (class >> log2) - usize::from(self.one_level() && Self::skipped::<S>() != 0);
        debug_assert!(bit < WORDS);
        // SAFETY: as computed, where bytes are classed. Else classes are those of fewer than 2^63
        // (2^31) granules, or of exactly that many less one: a need is at most half the addresses,
        // or all of them in granules of 8 and more (`Geometry::block_for`); a block is not larger
        // than a region; a head's number is that of a class. The class of the most granules,
        // `((b - l) << l) + 2^l` at the most for b = 62 (30), shifted by `l`, is 63 (31) or less.
        unsafe { core::hint::assert_unchecked(bit < WORDS) };
        (bit, (class as u32) & ((1 << log2) - 1))
    }

    /// Where the word is whose bit in the top word is this one.
    #[inline(always)]
    fn word<S: Store>(bit: usize) -> usize {
        let word = bit.wrapping_sub(Self::skipped::<S>());
        debug_assert!(word < WORDS);
        // SAFETY: a class has as many words below it as are skipped, and its bit is less than
        // `WORDS` (see `place`); in the top word, only bits of classes are set.
        unsafe { core::hint::assert_unchecked(word < WORDS) };
        word
    }

    /// A request of so many bytes, at the heap's own alignment, would be served now: by the lower end of the largest
    /// class that is not empty, so a part of `1 / SECOND_LEVEL` of the largest free block at most is not told. 0 if
    /// nothing is free. O(1).
    pub fn surely_served<S: Store>(&self, store: &S) -> usize {
        let Some(bit) = self.top.checked_ilog2() else {
            return 0;
        };
        let low = match self.one_level() {
            true => 0,
            false => self.words[Self::word::<S>(bit as usize)].ilog2(),
        };
        let class = self.class_at::<S>(bit as usize, low);
        let log2 = self.parameters.second_level_log2();
        let geometry = store.geometry();
        // Classes of a geometry that the compiler knows are those of bytes, others of granules.
        let bytes = match S::GEOMETRY {
            Some(geometry) => {
                let shift = (class >> log2).saturating_sub(1);
                let shift = shift.max(geometry.granule.ilog2() as usize);
                (class - (shift << log2)) << shift
            }
            None => class_base(class, log2) * geometry.granule,
        };
        let blocks = (bytes + geometry.header) / geometry.granule * geometry.granule;
        blocks.saturating_sub(geometry.header)
    }

    /// With one class a power of two, the top word alone is the bitmap.
    #[inline(always)]
    fn one_level(&self) -> bool {
        self.parameters.second_level_log2() == 0
    }

    /// The class of a bit in the top word and one in its own word.
    #[inline(always)]
    fn class_at<S: Store>(&self, bit: usize, low: u32) -> usize {
        let one_less = usize::from(self.one_level() && Self::skipped::<S>() != 0);
        ((bit + one_less) << self.parameters.second_level_log2()) + low as usize
    }

    /// The first non-empty class above `class`.
    #[inline(always)]
    fn first_above<S: Store>(&self, store: &S, class: usize) -> Option<usize> {
        let (mut bit, low) = self.place::<S>(class);
        let mut bits = 0;
        if !self.one_level() {
            store.touch(1, 0);
            bits = self.words[Self::word::<S>(bit)] & (u32::MAX - 1) << low;
            // Where calls are long, one jump less is worth the second copy of what follows.
            if S::GEOMETRY.is_none() && bits != 0 {
                return Some(self.class_at::<S>(bit, bits.trailing_zeros()));
            }
        }
        if bits == 0 {
            store.touch(1, 0);
            let later = self.top & (usize::MAX - 1) << bit;
            if later == 0 {
                return None;
            }
            bit = later.trailing_zeros() as usize % WORDS;
            if self.one_level() {
                return Some(self.class_at::<S>(bit, 0));
            }
            store.touch(1, 0);
            bits = self.words[Self::word::<S>(bit)];
        }
        debug_assert_ne!(bits, 0);
        // SAFETY: not zero, or its bit in the top word is set (the invariant).
        let bits = unsafe { NonZero::new_unchecked(bits) };
        Some(self.class_at::<S>(bit, bits.trailing_zeros()))
    }

    #[inline(always)]
    fn set<S: Store>(&mut self, class: usize) {
        let (bit, low) = self.place::<S>(class);
        if !self.one_level() {
            self.words[Self::word::<S>(bit)] |= 1 << low;
        }
        self.top |= 1 << bit;
    }

    /// Whether bits are set without asking whether the list was empty, which is nothing that a
    /// processor can foresee. With records outside of the memory, calls are long, and the
    /// instructions more are not made good.
    #[inline(always)]
    fn without_branch<S: Store>() -> bool {
        S::GEOMETRY.is_some()
    }

    /// Tells of the words that are written where the bit was not set.
    #[inline(always)]
    fn touch_set<S: Store>(&self, store: &S) {
        if !self.one_level() {
            store.touch(1, 1);
        }
        store.touch(1, 1);
    }

    /// Clears the bit of a class whose list is empty now.
    #[inline(always)]
    fn clear<S: Store>(&mut self, store: &S, class: usize) {
        let (bit, low) = self.place::<S>(class);
        if !self.one_level() {
            let word = Self::word::<S>(bit);
            self.words[word] &= !(1 << low);
            store.touch(1, 1);
            if self.words[word] != 0 {
                return;
            }
        }
        self.top &= !(1 << bit);
        store.touch(1, 1);
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
    fn first_head(&self) -> usize {
        Self::skipped::<S>() << self.parameters.second_level_log2()
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
        if first || Self::without_branch::<S>() {
            self.set::<S>(class);
        }
        if first {
            self.touch_set(store);
        }
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, _size: usize) {
        let (before, next) = store.unlink(block);
        if next == before {
            // Both are the head: the list is empty.
            self.clear(store, store.head_number(before));
        }
    }

    #[inline(always)]
    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        store.forward_is_sound(store.head(self.class(store, size)))
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        let probes = self.parameters.probes();
        if probes != 0 {
            let head = store.head(self.class(store, need));
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
        let class = self.first_above(store, self.class_too_small(store, need))?;
        let head = store.head(class);
        let block = store.sound_first(head)?;
        // Cut or not, a record there is written: it is on the way while this one's size is.
        store.fetch_at(block, need);
        let next = store.verified_next(block);
        store.set_next(head, next);
        store.set_previous(next, head);
        if next == head {
            self.clear(store, class);
        }
        // Where all is merged, what precedes a free block is in use.
        let size = match self.parameters.limits().coalesce_up_to {
            usize::MAX => store.lone_free_size(block),
            _ => store.verified_free_size(block),
        };
        Some((block, size))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.parameters.limits()
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        let skipped = if self.one_level() {
            0
        } else {
            Self::skipped::<S>()
        };
        let bits_of = |bit: usize| match self.one_level() {
            true => (self.top >> bit & 1) as u32,
            false => self.words[bit - skipped],
        };
        (0..WORDS).all(|bit| {
            if bit < skipped {
                return self.top >> bit & 1 == 0;
            }
            let bits = bits_of(bit);
            (bits != 0) == (self.top >> bit & 1 == 1)
                && (0..u32::BITS)
                    .filter(|low| bits >> low & 1 == 1)
                    .all(|low| {
                        let class = self.class_at::<S>(bit, low);
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
    use crate::{ByHandle, Heap, Ledger, Memory, Record, Tagged};
    use core::mem::MaybeUninit;
    use std::boxed::Box;
    use std::vec;
    use std::vec::Vec;

    /// Random requests of a heap; after each, what is told to be served is, and little less than the largest block.
    fn told_is_served<S: Store, const SECOND_LEVEL: usize, const PROBES: usize>(
        mut heap: Heap<SizeClasses<ConstantClasses<SECOND_LEVEL, PROBES>>, S>,
    ) {
        let mut live = Vec::new();
        let mut state = 1u32;
        for _ in 0..3000 {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let size = 1 + (state as usize >> 8) % (1 << (state % 10));
            if state & 1 << 7 == 0 || live.is_empty() {
                live.extend(heap.allocate(size, 1));
            } else {
                let place = live.swap_remove(size % live.len());
                // SAFETY: allocated above, and free once.
                unsafe { heap.free(place) }.unwrap();
            }
            let told = heap.index().surely_served(heap.store());
            let largest = heap.statistics().largest_free;
            assert!(told <= largest);
            let part = largest / SECOND_LEVEL + 2 * heap.store().geometry().minimum;
            assert!(told + part >= largest || SECOND_LEVEL == 1 && 2 * told + part >= largest);
            if told > 0 {
                let place = heap.allocate(told, 1).expect("so it was told");
                // SAFETY: as above.
                unsafe { heap.free(place) }.unwrap();
            }
        }
    }

    #[test]
    fn what_is_told_to_be_served_is() {
        fn tagged<const SECOND_LEVEL: usize, const PROBES: usize>() {
            let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(20_000));
            let index = SizeClasses::<ConstantClasses<SECOND_LEVEL, PROBES>>::new();
            let mut heap = Heap::new(index, <Tagged>::new());
            heap.add_region(Memory::from_static(memory)).unwrap();
            told_is_served(heap);
        }
        tagged::<32, 0>();
        tagged::<8, 0>();
        tagged::<1, 0>();
        tagged::<4, { usize::MAX }>();
        let mut records = vec![Record::SPARE; 2048];
        let ledger = Ledger::new(&mut records, ByHandle, Geometry::out_of_band(64));
        let mut heap = Heap::new(Tlsf::<8>::new(), ledger);
        heap.add_region(1 << 16).unwrap();
        told_is_served(heap);
    }

    #[test]
    fn bytes_and_their_whole_granules_have_one_class() {
        for log2 in 0..7 {
            for granule_log2 in 0..6 {
                for bytes in (1 << granule_log2..20_000).chain([usize::MAX >> 1, usize::MAX]) {
                    let granules = bytes >> granule_log2;
                    let raised = (granule_log2 as usize) << log2;
                    assert_eq!(
                        raised_floor(bytes, granule_log2, log2),
                        class_floor(granules, log2) + raised
                    );
                    assert_eq!(
                        raised_below(bytes, granule_log2, log2),
                        class_below(granules, log2) + raised
                    );
                }
            }
        }
    }

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
