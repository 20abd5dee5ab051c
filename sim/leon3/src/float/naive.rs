//! The unit as IEEE 754 says it: the exact result, a fraction of integers of any length, then
//! rounded. It knows numbers only, neither NaNs nor infinities.
//!
//! Invariant: nothing here is shared with what it is compared with but the names of exceptions and
//! directions.

use num_bigint::BigUint;

use super::format::{Direction, INEXACT, OVERFLOW, UNDERFLOW};

/// ±numerator/denominator.
#[derive(Clone, Debug)]
pub(super) struct Fraction {
    pub(super) negative: bool,
    pub(super) numerator: BigUint,
    pub(super) denominator: BigUint,
}

fn power(exponent: u64) -> BigUint {
    BigUint::from(1u32) << exponent
}

/// Fields of a format: bits of the fraction, bits of the exponent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields(pub(super) u64, pub(super) u64);

impl Fields {
    fn bias(self) -> i64 {
        (1 << (self.1 - 1)) - 1
    }

    /// What finite bits stand for.
    pub(super) fn value(self, bits: u64) -> Fraction {
        let fraction = bits % (1 << self.0);
        let field = (bits >> self.0) % (1 << self.1);
        let (significand, exponent) = match field {
            0 => (fraction, 1),
            _ => (fraction + (1 << self.0), field as i64),
        };
        let exponent = exponent - self.bias() - self.0 as i64;
        let significand = BigUint::from(significand);
        let (numerator, denominator) = if exponent < 0 {
            (significand, power(exponent.unsigned_abs()))
        } else {
            (significand * power(exponent.unsigned_abs()), power(0))
        };
        Fraction {
            negative: bits >> (self.0 + self.1) != 0,
            numerator,
            denominator,
        }
    }

    /// Rounds a nonzero fraction: bits and exceptions.
    pub(super) fn round(self, exact: &Fraction, direction: Direction) -> (u64, u32) {
        let Fraction {
            negative,
            numerator,
            denominator,
        } = exact;
        // 2^leading is the largest power of two that is not above the value.
        let mut leading = numerator.bits() as i64 - denominator.bits() as i64;
        if !at_least(numerator, denominator, leading) {
            leading -= 1;
        }
        let least = 1 - self.bias();
        let unit = leading.max(least) - self.0 as i64;
        let (over, under) = if unit < 0 {
            (numerator * power(unit.unsigned_abs()), denominator.clone())
        } else {
            (numerator.clone(), denominator * power(unit.unsigned_abs()))
        };
        let below = &over / &under;
        let rest = over - &below * &under;
        let zero = BigUint::ZERO;
        let up = match direction {
            Direction::Nearest => {
                let twice = &rest * 2u32;
                twice > under || twice == under && below.bit(0)
            }
            Direction::Zero => false,
            Direction::Up => !negative && rest != zero,
            Direction::Down => *negative && rest != zero,
        };
        let mut units = if up { below + 1u32 } else { below };
        let mut unit = unit;
        if units == power(self.0 + 1) {
            units >>= 1u32;
            unit += 1;
        }
        let sign = u64::from(*negative) << (self.0 + self.1);
        let largest_unit = self.bias() - self.0 as i64;
        if unit > largest_unit {
            let infinity = ((1u64 << self.1) - 1) << self.0;
            let to_infinity = match direction {
                Direction::Nearest => true,
                Direction::Zero => false,
                Direction::Up => !negative,
                Direction::Down => *negative,
            };
            let magnitude = if to_infinity { infinity } else { infinity - 1 };
            return (sign | magnitude, OVERFLOW | INEXACT);
        }
        let units = u64::try_from(units).expect("a significand");
        let magnitude = if units < 1 << self.0 {
            units
        } else {
            let field = (unit + self.0 as i64 + self.bias()) as u64;
            (field << self.0) + units - (1 << self.0)
        };
        let mut exceptions = 0;
        if rest != zero {
            exceptions |= INEXACT;
        }
        if leading < least {
            exceptions |= UNDERFLOW;
        }
        (sign | magnitude, exceptions)
    }
}

/// Whether numerator/denominator is 2^exponent or more.
fn at_least(numerator: &BigUint, denominator: &BigUint, exponent: i64) -> bool {
    let factor = power(exponent.unsigned_abs());
    if exponent < 0 {
        numerator * factor >= *denominator
    } else {
        *numerator >= denominator * factor
    }
}

pub(super) fn add(a: &Fraction, b: &Fraction) -> Fraction {
    let (x, y) = (&a.numerator * &b.denominator, &b.numerator * &a.denominator);
    let (negative, numerator) = match (a.negative == b.negative, x >= y) {
        (true, _) => (a.negative, x + y),
        (false, true) => (a.negative, x - y),
        (false, false) => (b.negative, y - x),
    };
    Fraction {
        negative,
        numerator,
        denominator: &a.denominator * &b.denominator,
    }
}

pub(super) fn multiply(a: &Fraction, b: &Fraction) -> Fraction {
    Fraction {
        negative: a.negative != b.negative,
        numerator: &a.numerator * &b.numerator,
        denominator: &a.denominator * &b.denominator,
    }
}

pub(super) fn divide(a: &Fraction, b: &Fraction) -> Fraction {
    Fraction {
        negative: a.negative != b.negative,
        numerator: &a.numerator * &b.denominator,
        denominator: &a.denominator * &b.numerator,
    }
}

/// The root if it has 2^700 for a denominator (that of every number has, when it has one), else a
/// fraction that lies between the same two multiples of 2^−700 as the root.
pub(super) fn root(a: &Fraction) -> Fraction {
    let scaled = &a.numerator * power(1400);
    let square = &scaled / &a.denominator;
    let root = square.sqrt();
    let is_exact = &root * &root * &a.denominator == scaled;
    Fraction {
        negative: false,
        numerator: root * 2u32 + u32::from(!is_exact),
        denominator: power(701),
    }
}
