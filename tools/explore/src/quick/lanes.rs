//! Comparisons over nodes of 64 words, as many at once as the machine has lanes.
//!
//! Invariant: every form of a function, vector or scalar, gives the same result.

/// Words of a node.
pub(super) const WIDTH: usize = 64;

/// Bit `n` says whether `words[n] - base`, modulo 2³², is at most `span`: whether the
/// word lies in `base..=base + span`. Only words before `length` are asked for; bits
/// behind may be anything.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn within(words: &[u32; WIDTH], length: usize, base: u32, span: u32) -> u64 {
    use core::arch::x86_64::{
        __m128i, _mm_cmpgt_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_packs_epi32, _mm_set1_epi32, _mm_sub_epi32,
    };
    let mut mask = 0;
    let mut from = 0;
    while from < length {
        let sixteen = &words[from..from + 16];
        // SAFETY: SSE2 is part of x86-64, and the slice has the 16 words read.
        let outside = unsafe {
            // Signed comparison after moving the least value to the least number.
            let least = _mm_set1_epi32((base.wrapping_add(1 << 31)) as i32);
            let most = _mm_set1_epi32((span ^ (1 << 31)) as i32);
            let four = |lane: usize| {
                let at = sixteen.as_ptr().add(4 * lane).cast::<__m128i>();
                _mm_cmpgt_epi32(_mm_sub_epi32(_mm_loadu_si128(at), least), most)
            };
            let low = _mm_packs_epi32(four(0), four(1));
            let high = _mm_packs_epi32(four(2), four(3));
            _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
        };
        mask |= u64::from(!outside & 0xffff) << from;
        from += 16;
    }
    mask
}

/// Bit `n` says whether `words[n]` lies in `base..=base + span`, word by word.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn within(words: &[u32; WIDTH], length: usize, base: u32, span: u32) -> u64 {
    within_scalar(words, length, base, span)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn within_scalar(words: &[u32; WIDTH], length: usize, base: u32, span: u32) -> u64 {
    let mut mask = 0;
    for (index, word) in words[..length].iter().enumerate() {
        mask |= u64::from(word.wrapping_sub(base) <= span) << index;
    }
    mask
}

/// The smallest `word - base`, modulo 2³²; all ones for no words. A word below `base`
/// counts as larger than all others.
#[inline(always)]
pub(super) fn least_over(words: &[u32], base: u32) -> u32 {
    let over = words.iter().map(|word| word.wrapping_sub(base));
    over.fold(u32::MAX, u32::min)
}

/// The smallest `top - word`, modulo 2³²; all ones for no words.
#[inline(always)]
pub(super) fn least_under(words: &[u32], top: u32) -> u32 {
    let under = words.iter().map(|word| top.wrapping_sub(*word));
    under.fold(u32::MAX, u32::min)
}

/// The largest word; 0 for none.
#[inline(always)]
pub(super) fn largest(words: &[u32]) -> u32 {
    words.iter().copied().fold(0, u32::max)
}

/// The sum of words that does not overflow.
#[inline(always)]
pub(super) fn sum(words: &[u32]) -> u32 {
    words.iter().sum()
}

/// What a list is sorted by.
pub(super) trait Key: Copy + Ord {
    /// Above every key.
    const END: Self;
    /// How many of the first `length` keys, sorted and padded with [`END`](Key::END),
    /// lie below `key`.
    fn below(keys: &[Self; WIDTH], length: usize, key: Self) -> usize;
    /// The last of the first `length` entries after entry 0 that is not above `key`;
    /// entry 0 when there is none.
    fn child(firsts: &[Self; WIDTH], length: usize, key: Self) -> usize;
}

impl Key for u32 {
    const END: u32 = u32::MAX;

    #[inline(always)]
    fn below(keys: &[u32; WIDTH], length: usize, key: u32) -> usize {
        let not_below = within(keys, length, key, u32::MAX - key);
        (not_below.trailing_zeros() as usize).min(length)
    }

    #[inline(always)]
    fn child(firsts: &[u32; WIDTH], length: usize, key: u32) -> usize {
        if length == 1 {
            return 0;
        }
        let above = within(firsts, length, key + 1, u32::MAX - (key + 1));
        ((above & !1).trailing_zeros() as usize).min(length) - 1
    }
}

impl Key for u64 {
    const END: u64 = u64::MAX;

    #[inline(always)]
    fn below(keys: &[u64; WIDTH], length: usize, key: u64) -> usize {
        // Eight comparisons that do not wait for one another, twice: quicker than six
        // that do.
        let mut low = 0;
        if length > 8 {
            for group in 0..WIDTH / 8 {
                low += 8 * usize::from(keys[8 * group + 7] < key);
            }
            if low == WIDTH {
                return WIDTH;
            }
        }
        let group = &keys[low % WIDTH..][..8];
        low + group
            .iter()
            .map(|&own| usize::from(own < key))
            .sum::<usize>()
    }

    #[inline(always)]
    fn child(firsts: &[u64; WIDTH], length: usize, key: u64) -> usize {
        if length == 1 || firsts[1] > key {
            return 0;
        }
        Self::below(firsts, length, key + 1) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_and_scalars_agree(
            words in prop::collection::vec(prop_oneof![0_u32..8, any::<u32>(), u32::MAX - 8..=u32::MAX], WIDTH),
            length in 0..=WIDTH,
            base in prop_oneof![0_u32..8, any::<u32>(), u32::MAX - 8..=u32::MAX],
            span in prop_oneof![0_u32..8, any::<u32>(), u32::MAX - 8..=u32::MAX],
        ) {
            let words: [u32; WIDTH] = words.try_into().unwrap();
            let asked = 1_u64.checked_shl(length as u32).map_or(u64::MAX, |bit| bit - 1);
            let mask = within(&words, length, base, span) & asked;
            prop_assert_eq!(mask, within_scalar(&words, length, base, span));
        }

        #[test]
        fn keys_are_found_alike(
            keys in prop::collection::btree_set(1_u32..200, 1..=WIDTH),
            key in 0_u32..202,
        ) {
            let keys: Vec<u32> = keys.into_iter().collect();
            let length = keys.len();
            let below = keys.iter().filter(|&&own| own < key).count();
            let child = keys[1..].iter().filter(|&&own| own <= key).count();
            let mut narrow = [u32::END; WIDTH];
            narrow[..length].copy_from_slice(&keys);
            prop_assert_eq!(u32::below(&narrow, length, key), below);
            prop_assert_eq!(u32::child(&narrow, length, key), child);
            let wide = narrow.map(|key| if key == u32::END { u64::END } else { u64::from(key) << 32 });
            prop_assert_eq!(u64::below(&wide, length, u64::from(key) << 32), below);
            prop_assert_eq!(u64::child(&wide, length, u64::from(key) << 32), child);
        }
    }
}
