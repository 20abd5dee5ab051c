//! Exact numbers: as files have them, as answers show them, and as whole numbers of a common grain.
//!
//! *Invariant:* what is read is what is written there, to the last digit: 0.1 is one tenth.

use std::fmt;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// An exact number.
pub type Rational = num_rational::BigRational;

/// Most characters of a number in a file.
const MOST_DIGITS: usize = 60;

/// A whole number as a rational.
#[must_use]
pub fn whole(value: i64) -> Rational {
    Rational::from_integer(value.into())
}

/// The nearest number of 64 bits, for people and for plots.
#[must_use]
pub fn nearly(value: &Rational) -> f64 {
    value.to_f64().unwrap_or(f64::NAN)
}

/// What a number of 64 bits is written as, exactly: its shortest decimal. None for what is no number, or beyond all digits.
#[must_use]
pub fn of_decimal(value: f64) -> Option<Rational> {
    parse(&format!("{value:e}")).ok()
}

/// Reads `4`, `0.25`, `1e-3` or `8/3`.
pub(crate) fn parse(text: &str) -> Result<Rational, String> {
    let text = text.trim();
    let wrong = || format!("`{}` is no number: write 4, 0.25 or \"8/3\"", shown(text));
    if text.len() > MOST_DIGITS {
        return Err(format!(
            "a number has {} characters, and may have {MOST_DIGITS}",
            text.len()
        ));
    }
    if let Some((top, bottom)) = text.split_once('/') {
        let (top, bottom) = (decimal(top), decimal(bottom));
        let (Some(top), Some(bottom)) = (top, bottom) else {
            return Err(wrong());
        };
        if bottom.is_zero() {
            return Err(format!("`{}` divides by zero", shown(text)));
        }
        return Ok(top / bottom);
    }
    decimal(text).ok_or_else(wrong)
}

/// Reads a number above 0, as [`System::parse`](crate::System::parse) does.
///
/// # Errors
/// One line, with what to write.
pub fn positive(text: &str) -> Result<Rational, String> {
    let value = parse(text)?;
    if value > Rational::zero() {
        Ok(value)
    } else {
        Err(format!("{value} must be above 0"))
    }
}

fn shown(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_control()).collect()
}

/// Digits with a point and a power of ten.
fn decimal(text: &str) -> Option<Rational> {
    let text = text.trim().replace('_', "");
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text.as_str(), 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{before}{after}");
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !all_digits || exponent.unsigned_abs() > MOST_DIGITS as u32 {
        return None;
    }
    let value: BigInt = digits.parse().ok()?;
    let shift = exponent - i32::try_from(after.len()).ok()?;
    let power = BigInt::from(10).pow(shift.unsigned_abs());
    let value = if shift < 0 {
        Rational::new(value, power)
    } else {
        Rational::from_integer(value * power)
    };
    Some(if negative { -value } else { value })
}

/// A number of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) Rational);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Numbers).map(Number)
    }
}

struct Numbers;

impl Visitor<'_> for Numbers {
    type Value = Rational;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a rational as a string like \"8/3\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Rational, E> {
        Ok(whole(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Rational, E> {
        Ok(Rational::from_integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Rational, E> {
        // The shortest decimal that is this number: what stood in the file, if that had 15 digits or less.
        parse(&format!("{value:e}")).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Rational, E> {
        parse(text).map_err(E::custom)
    }
}

/// The least common multiple of the denominators: of such a grain all values are whole numbers.
pub(crate) fn grain<'a>(values: impl IntoIterator<Item = &'a Rational>) -> BigInt {
    values.into_iter().fold(BigInt::one(), |grain, value| {
        let bottom = value.denom();
        if (&grain % bottom).is_zero() {
            grain
        } else {
            grain.lcm(bottom)
        }
    })
}

/// A value in grains; it is a whole number of them.
pub(crate) fn in_grains(value: &Rational, grain: &BigInt) -> BigInt {
    value.numer() * (grain / value.denom())
}

/// The least number of which two periods are whole divisors.
pub(crate) fn common_period(left: &Rational, right: &Rational) -> Rational {
    Rational::new(
        left.numer().lcm(right.numer()),
        left.denom().gcd(right.denom()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly() {
        for (text, top, bottom) in [
            ("4", 4, 1),
            ("8/3", 8, 3),
            ("0.1", 1, 10),
            ("-1.5e2", -150, 1),
            ("2.5E-1", 1, 4),
            ("1_000", 1000, 1),
            ("0.5/0.25", 2, 1),
        ] {
            assert_eq!(parse(text), Ok(Rational::new(top.into(), bottom.into())));
        }
        for text in [
            "", "/", "1/0", "a", "1e99", "--1", ".", "1/2/3", "inf", "NaN",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_common_period_is_the_least() {
        let half = Rational::new(1.into(), 2.into());
        let third = Rational::new(1.into(), 3.into());
        assert_eq!(common_period(&half, &third), whole(1));
        assert_eq!(common_period(&whole(4), &whole(6)), whole(12));
    }
}
