//! Numbers that look random and are the same on every machine: SplitMix64 (Steele, Lea and Flood,
//! "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
//!
//! ```
//! let mut random = metes_random::Random::new(1);
//! let drawn = [(); 3].map(|()| random.below(6));
//! assert!(drawn.iter().all(|number| *number < 6));
//! ```
//!
//! *Invariant:* a seed gives the same numbers for ever: explorations, workloads and their published
//! figures come of them. Hence two ways to a smaller number, of which neither may take the other's place.

#![no_std]

/// What the state grows by: 2⁶⁴ divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator: its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The sequence of a number, of seeds that are counted up: that of the next number is the same without its first
    /// draw. For sequences that have nothing in common, take [`mix`] of the number as the seed.
    #[must_use]
    pub const fn nth(number: u64) -> Self {
        Random(number.wrapping_mul(STEP))
    }

    /// The next number, any of 64 bits. O(1).
    #[allow(clippy::should_implement_trait, reason = "it has no end")]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `end`, which is not 0, by a product. O(1). Its bias is below `end` / 2⁶⁴.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included. O(1).
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// The next number modulo `divisor`, which is not 0. O(1). Its bias is below `divisor` / 2⁶⁴.
    pub const fn remainder(&mut self, divisor: u64) -> u64 {
        self.next() % divisor
    }

    /// Puts items in an order of which each is equally likely, by [`below`](Self::below). Linear.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// A word of which every bit depends on every bit of another; distinct words stay distinct. O(1).
#[must_use]
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // The first outputs of Vigna's splitmix64.c of seed 1234567.
        let mut random = Random::new(1_234_567);
        for number in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ] {
            assert_eq!(random.next(), number);
        }
    }

    #[test]
    fn every_order_is_met() {
        let mut random = Random::nth(3);
        let mut met = [0; 6];
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            met[items[0] * 2 + usize::from(items[1] > items[2])] += 1;
        }
        assert!(
            met.iter().all(|count| (850..1150).contains(count)),
            "{met:?}"
        );
    }
}
