//! Numbers that look random and are the same on every machine.

use metes_random::mix;

/// The sequence that searches draw from.
#[derive(Clone, Debug)]
pub struct Random(metes_random::Random);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Random(metes_random::Random::new(seed))
    }

    /// The next number, any of 64 bits. O(1).
    #[allow(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `bound`, which is not zero, as a remainder: searches are repeated by it.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.remainder(bound as u64) as usize
    }

    /// Puts the items in a random order. Linear.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// A seeded permutation of the numbers below `size`: a Feistel network over the
/// next even number of bits, walked until it lands inside (Black, Rogaway 2002).
/// O(1) expected for each number, no memory.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    size: u64,
    half: u32,
    seed: u64,
}

impl Permutation {
    pub(crate) fn new(size: u64, seed: u64) -> Self {
        let bits = u64::BITS - size.max(2).leading_zeros();
        Permutation {
            size,
            half: bits.div_ceil(2),
            seed,
        }
    }

    /// The number at `position`, which is below the size.
    pub(crate) fn at(&self, position: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let mut value = position;
        loop {
            let (mut left, mut right) = (value >> self.half, value & mask);
            for round in 0..4 {
                let key = self.seed.wrapping_add(round);
                (left, right) = (right, left ^ mix(right ^ mix(key)) & mask);
            }
            value = left << self.half | right;
            if value < self.size {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_meets_every_number_once() {
        for size in [1, 2, 3, 17, 256, 1000] {
            for seed in 0..3 {
                let permutation = Permutation::new(size, seed);
                let mut met: Vec<u64> =
                    (0..size).map(|position| permutation.at(position)).collect();
                met.sort_unstable();
                assert_eq!(met, (0..size).collect::<Vec<_>>());
            }
        }
    }
}
