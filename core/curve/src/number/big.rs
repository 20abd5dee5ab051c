//! Fractions of any length.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::{Number, Rational};

/// A fraction of numbers of any length, in lowest terms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Big(pub(super) BigRational);

impl Number for Big {
    fn whole(value: i64) -> Self {
        Big(BigRational::from_integer(BigInt::from(value)))
    }

    fn plus(&self, other: &Self) -> Self {
        Big(&self.0 + &other.0)
    }

    fn minus(&self, other: &Self) -> Self {
        Big(&self.0 - &other.0)
    }

    fn times(&self, other: &Self) -> Self {
        Big(&self.0 * &other.0)
    }

    fn over(&self, other: &Self) -> Self {
        Big(&self.0 / &other.0)
    }

    fn floor(&self) -> Self {
        Big(self.0.floor())
    }

    fn common_multiple(&self, other: &Self) -> Self {
        Big(BigRational::new(
            self.0.numer().lcm(other.0.numer()),
            self.0.denom().gcd(other.0.denom()),
        ))
    }

    fn parts(&self) -> Option<(i64, i64)> {
        Some((self.0.numer().to_i64()?, self.0.denom().to_i64()?))
    }

    fn approximate(&self) -> f64 {
        num_traits::ToPrimitive::to_f64(&self.0).unwrap_or(f64::NAN)
    }

    fn bits(&self) -> u64 {
        self.0.numer().bits() + self.0.denom().bits()
    }

    fn rational(&self) -> Rational {
        Rational::of_big(self.0.clone())
    }
}
