//! Runs of ones in a word: where the first one of a length begins, and how long the longest is.
//!
//! Invariant: the number of steps depends on the width of the word alone, not on how many runs there are.

/// Bits of a word.
const BITS: u32 = usize::BITS;

/// Where the lowest run of at least `length` ones (one to the width of a word) begins. At most
/// `log2(BITS)` halvings.
#[inline(always)]
pub(super) fn first_of(word: usize, length: u32) -> Option<u32> {
    debug_assert!((1..=BITS).contains(&length));
    // A bit of `starts` with `left - 1` further ones above it is where a run of `length` begins.
    let mut starts = word;
    let mut left = length;
    while left > 1 {
        let half = left / 2;
        starts &= starts >> half;
        left -= half;
    }
    (starts != 0).then(|| starts.trailing_zeros())
}

/// Where runs of `$length` ones begin, and this length: of the longest runs, by doubling it as long as there are such
/// runs, and by adding on the way back what of each doubling still fits.
macro_rules! longest {
    ($starts:expr, $length:expr $(,)?) => {
        ($starts, $length)
    };
    ($starts:expr, $length:expr, $double:expr $(, $more:expr)* $(,)?) => {{
        let starts = $starts;
        let doubled = starts & starts >> $length;
        if doubled == 0 {
            (starts, $length)
        } else {
            let (found, length) = longest!(doubled, $double $(, $more)*);
            // As long as a run may be that is no whole word: less than the width.
            let longer = found & starts >> length;
            if longer == 0 { (found, length) } else { (longer, length + $length) }
        }
    }};
}

/// The length of the longest run. At most `log2(BITS)` doublings, and as many steps back.
#[inline(always)]
pub(super) fn longest(word: usize) -> u32 {
    match word {
        0 => return 0,
        usize::MAX => return BITS,
        _ => (),
    }
    #[cfg(target_pointer_width = "64")]
    let (_, length): (usize, u32) = longest!(word, 1u32, 2u32, 4u32, 8u32, 16u32, 32u32);
    #[cfg(not(target_pointer_width = "64"))]
    let (_, length): (usize, u32) = longest!(word, 1u32, 2u32, 4u32, 8u32, 16u32);
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
