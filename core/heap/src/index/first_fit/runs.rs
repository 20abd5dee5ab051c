//! Runs of ones in a word: where the first one of a length begins, and how long the longest is.
//!
//! Invariant: the number of steps depends on the width of the word alone, not on how many runs there are.

/// Bits of a word.
const BITS: u32 = usize::BITS;

/// Where the lowest run of at least `length` ones (one to the width of a word) begins. At most
/// `log2(BITS)` doublings.
#[inline(always)]
pub(super) fn first_of(word: usize, length: u32) -> Option<u32> {
    debug_assert!((1..=BITS).contains(&length));
    // Bit `i` of `starts` says that `known` ones begin there.
    let mut starts = word;
    let mut known = 1;
    while known < length {
        let step = known.min(length - known);
        starts &= starts >> step;
        known += step;
    }
    (starts != 0).then(|| starts.trailing_zeros())
}

/// The length of the longest run. At most `log2(BITS)` doublings, and as many steps back.
#[inline(always)]
pub(super) fn longest(word: usize) -> u32 {
    if word == 0 {
        return 0;
    }
    // `starts[d]` has the bits where 2^d ones begin.
    let mut starts = [0; BITS.ilog2() as usize + 1];
    starts[0] = word;
    let mut doublings = 0;
    while doublings < BITS.ilog2() as usize {
        let next = starts[doublings] & starts[doublings] >> (1u32 << doublings);
        if next == 0 {
            break;
        }
        doublings += 1;
        starts[doublings] = next;
    }
    let mut found = starts[doublings];
    let mut length = 1 << doublings;
    for step in (0..doublings).rev() {
        // A run of a whole word has no place for a further one.
        let longer = found & starts[step].checked_shr(length).unwrap_or(0);
        if longer != 0 {
            found = longer;
            length += 1 << step;
        }
    }
    length
}

/// The bits from `low` to `high`, both included.
#[inline(always)]
pub(super) fn between(low: u32, high: u32) -> usize {
    debug_assert!(low <= high && high < BITS);
    (usize::MAX >> (BITS - 1 - (high - low))) << low
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    /// The runs of a word: where they begin and how long they are.
    fn runs(word: usize) -> std::vec::Vec<(u32, u32)> {
        let mut found = std::vec::Vec::new();
        let mut bit = 0;
        while bit < BITS {
            let length = (bit..BITS).take_while(|&at| word >> at & 1 == 1).count() as u32;
            if length > 0 {
                found.push((bit, length));
            }
            bit += length + 1;
        }
        found
    }

    /// Words with long runs as well as short ones.
    fn word() -> impl Strategy<Value = usize> {
        let any = any::<usize>();
        prop_oneof![
            any,
            (any, any).prop_map(|(one, other)| one | other | one << 1),
            (0..BITS, 0..BITS).prop_map(|(a, b)| between(a.min(b), a.max(b))),
            (any, 0..BITS, 0..BITS).prop_map(|(with, a, b)| with | between(a.min(b), a.max(b))),
            Just(0),
            Just(usize::MAX),
        ]
    }

    proptest! {
        #[test]
        fn runs_are_those_that_counting_finds(word in word(), length in 1..=BITS) {
            let runs = runs(word);
            let first = runs.iter().find(|&&(_, ones)| ones >= length).map(|&(at, _)| at);
            prop_assert_eq!(first_of(word, length), first);
            prop_assert_eq!(longest(word), runs.iter().map(|&(_, ones)| ones).max().unwrap_or(0));
        }

        #[test]
        fn bits_between_are_one_run(a in 0..BITS, b in 0..BITS) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert_eq!(runs(between(low, high)), [(low, high - low + 1)]);
        }
    }
}
