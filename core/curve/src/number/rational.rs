//! The fractions of the interface.
//!
//! Invariant: a fraction that fits 64 bits is kept so, and thus equal fractions are equal structs.

use std::fmt;
use std::str::FromStr;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};

use super::{Big, Number, Small, exactly};

/// An exact fraction, of any length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rational(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Form {
    Small(Small),
    Big(Box<BigRational>),
}

/// Most bits of a number that an operation may give, numerator and denominator together: what
/// fractions of two thousand digits take, and a little more. Arithmetic on longer ones takes the
/// square of that.
pub(crate) const BITS: u64 = 1 << 13;

/// Most characters of a number that is read: more than any number of twice [`BITS`] has.
const CHARACTERS: usize = 5_000;

/// Most characters of what is no number that are shown.
const SHOWN: usize = 40;

/// What is written is no fraction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotANumber {
    /// It is none.
    #[error("`{0}` is no fraction: write it as 3, -3 or 22/7")]
    Text(String),
    /// It is longer than any number that is computed with.
    #[error("a number has {0} digits: numbers of {CHARACTERS} at most are read, so round it")]
    TooLong(usize),
}

impl Rational {
    /// `numerator / denominator`; `None` of a denominator of zero.
    #[must_use]
    pub fn new(numerator: i64, denominator: i64) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        // 1 / -2^63 does not fit with a positive denominator.
        Some(
            Small::new(numerator.into(), denominator.into()).map_or_else(
                || Rational::of_big(BigRational::new(numerator.into(), denominator.into())),
                Rational::of_small,
            ),
        )
    }

    /// The number that a float is, exactly; `None` of infinities and of what is no number.
    #[must_use]
    pub fn from_f64(float: f64) -> Option<Self> {
        BigRational::from_float(float).map(Rational::of_big)
    }

    /// The quotient; `None` of a division by zero.
    #[must_use]
    pub fn divided_by(&self, other: &Self) -> Option<Self> {
        let zero = Rational::from(0);
        (*other != zero).then(|| Big(self.big()).over(&Big(other.big())).rational())
    }

    /// The largest whole number that is not larger.
    #[must_use]
    pub fn floor(&self) -> Self {
        Big(self.big()).floor().rational()
    }

    /// How many bits numerator and denominator take; 0 if both fit 64.
    pub(crate) fn bits(&self) -> u64 {
        match &self.0 {
            Form::Small(_) => 0,
            Form::Big(big) => big.numer().bits() + big.denom().bits(),
        }
    }

    /// The number, if it is whole, not below zero, and fits.
    pub(crate) fn whole(&self) -> Option<u64> {
        let big = self.big();
        big.is_integer().then(|| big.numer().to_u64()).flatten()
    }

    /// The nearest number of 64 bits in floating point.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        self.big().to_f64().unwrap_or(f64::NAN)
    }

    pub(super) fn of_small(small: Small) -> Self {
        Rational(Form::Small(small))
    }

    pub(super) fn of_big(big: BigRational) -> Self {
        let parts = (big.numer().to_i64(), big.denom().to_i64());
        match parts {
            (Some(numerator), Some(denominator)) => {
                let small = Small::new(numerator.into(), denominator.into());
                small.map_or_else(|| Rational(Form::Big(Box::new(big))), Rational::of_small)
            }
            _ => Rational(Form::Big(Box::new(big))),
        }
    }

    /// The fraction of 64 bits; `None` where it is none.
    pub(crate) fn small(&self) -> Option<Small> {
        match &self.0 {
            Form::Small(small) => Some(*small),
            Form::Big(_) => None,
        }
    }

    pub(super) fn big(&self) -> BigRational {
        match &self.0 {
            Form::Small(small) => {
                let (numerator, denominator) = small.terms();
                BigRational::new_raw(numerator.into(), denominator.into())
            }
            Form::Big(big) => (**big).clone(),
        }
    }
}

impl From<&Rational> for Big {
    fn from(rational: &Rational) -> Self {
        Big(rational.big())
    }
}

impl From<i64> for Rational {
    fn from(value: i64) -> Self {
        Rational::of_small(Small::whole(value))
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (&self.0, &other.0) {
            (Form::Small(left), Form::Small(right)) => left.cmp(right),
            _ => self.big().cmp(&other.big()),
        }
    }
}

macro_rules! operation {
    ($($trait:ident $method:ident $through:ident;)*) => {$(
        impl std::ops::$trait for &Rational {
            type Output = Rational;

            fn $method(self, other: &Rational) -> Rational {
                let small = self.small().zip(other.small());
                small
                    .and_then(|(left, right)| exactly(|| left.$through(&right)))
                    .map_or_else(
                        || Big(self.big()).$through(&Big(other.big())).rational(),
                        Rational::of_small,
                    )
            }
        }
    )*};
}

operation! {
    Add add plus;
    Sub sub minus;
    Mul mul times;
}

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.big().fmt(f)
    }
}

impl FromStr for Rational {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        if text.len() > CHARACTERS {
            return Err(NotANumber::TooLong(text.len()));
        }
        let wrong = || NotANumber::Text(text.chars().take(SHOWN).collect());
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let read = |part: &str| BigInt::from_str(part.trim()).map_err(|_| wrong());
        let (numerator, denominator) = (read(numerator)?, read(denominator)?);
        if denominator.is_zero() {
            return Err(wrong());
        }
        Ok(Rational::of_big(BigRational::new(numerator, denominator)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fractions() -> impl Strategy<Value = Rational> {
        let near = prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>(), -20_i64..20];
        (near.clone(), near)
            .prop_map(|(n, d)| Rational::new(n, if d == 0 { 1 } else { d }).expect("not zero"))
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_long_fractions(a in fractions(), b in fractions()) {
            let (long_a, long_b) = (a.big(), b.big());
            prop_assert_eq!((&a + &b).big(), &long_a + &long_b);
            prop_assert_eq!((&a - &b).big(), &long_a - &long_b);
            prop_assert_eq!((&a * &b).big(), &long_a * &long_b);
            prop_assert_eq!(a.cmp(&b), long_a.cmp(&long_b));
            prop_assert_eq!(a == b, long_a == long_b);
            prop_assert_eq!(a.to_string().parse::<Rational>().unwrap(), a);
        }

        #[test]
        fn small_numbers_say_when_they_are_not_exact(a in fractions(), b in fractions()) {
            let Some((x, y)) = a.small().zip(b.small()) else { return Ok(()) };
            let (long_x, long_y) = (Big(a.big()), Big(b.big()));
            if !y.is_zero() && let Some(quotient) = exactly(|| x.over(&y)) {
                prop_assert_eq!(quotient.rational(), long_x.over(&long_y).rational());
            }
            if let Some(floor) = exactly(|| x.floor()) {
                prop_assert_eq!(floor.rational(), long_x.floor().rational());
            }
            if x.is_positive() && y.is_positive()
                && let Some(multiple) = exactly(|| x.common_multiple(&y))
            {
                prop_assert_eq!(multiple.rational(), long_x.common_multiple(&long_y).rational());
            }
        }
    }

    #[test]
    fn what_is_no_fraction_is_said() {
        for text in ["", "1/0", "a", "1/2/3", "0.5"] {
            let error = text.parse::<Rational>().unwrap_err();
            assert!(error.to_string().contains("22/7"), "{error}");
        }
    }

    #[test]
    fn what_is_too_long_to_compute_with_is_not_read() {
        // Reading digits takes the square of their number.
        let digits = "9".repeat(400_000);
        for text in [digits.clone(), format!("1/{digits}")] {
            let error = text.parse::<Rational>().unwrap_err();
            assert!(matches!(error, NotANumber::TooLong(_)), "{error}");
            assert!(error.to_string().len() < 100, "{error}");
        }
        // What an operation gives is read again.
        let longest = num_bigint::BigInt::from(2).pow(BITS as u32);
        let number = Rational::of_big(BigRational::new(longest.clone() - 1, longest));
        assert_eq!(number.to_string().parse::<Rational>(), Ok(number));
    }
}
