//! Numbers that kernels count in: fractions of 64 bits, or of any length.
//!
//! A kernel is written once, for every [`Number`]. It runs on [`Small`] first, whose arithmetic
//! notes that a result did not fit and goes on with any number; if that was noted, what came out
//! is thrown away and the kernel runs again on [`Big`]. So results are exact and nothing is
//! saturated, while fractions that fit cost no allocation.
//!
//! Invariant: a fraction is in lowest terms and its denominator is positive.

mod big;
mod rational;
mod small;

use std::fmt::Debug;
use std::hash::Hash;

pub(crate) use big::Big;
pub(crate) use rational::BITS;
pub use rational::{NotANumber, Rational};
pub(crate) use small::{Small, exactly};

/// An ordered field with a floor. Equal numbers are equal structs.
pub(crate) trait Number: Clone + Ord + Hash + Debug {
    /// A whole number.
    fn whole(value: i64) -> Self;
    /// Their sum.
    fn plus(&self, other: &Self) -> Self;
    /// Their difference.
    fn minus(&self, other: &Self) -> Self;
    /// Their product.
    fn times(&self, other: &Self) -> Self;
    /// Their quotient; the other is not zero.
    fn over(&self, other: &Self) -> Self;
    /// The largest whole number that is not larger.
    fn floor(&self) -> Self;
    /// The least positive number of which both are multiples by whole numbers; both are positive.
    fn common_multiple(&self, other: &Self) -> Self;
    /// Numerator and denominator, if they fit 64 bits.
    fn parts(&self) -> Option<(i64, i64)>;
    /// About the number, in floating point: to choose by, never to compute with.
    fn approximate(&self) -> f64;
    /// As a number of the interface.
    fn rational(&self) -> Rational;
    /// How many bits numerator and denominator take, as far as they may be more than [`BITS`].
    fn bits(&self) -> u64;
    /// Zero.
    fn zero() -> Self {
        Self::whole(0)
    }

    /// Whether it is zero.
    fn is_zero(&self) -> bool {
        *self == Self::zero()
    }

    /// Whether it is above zero.
    fn is_positive(&self) -> bool {
        *self > Self::zero()
    }

    /// Its negation.
    fn negated(&self) -> Self {
        Self::zero().minus(self)
    }
}
