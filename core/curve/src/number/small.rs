//! Fractions of 64-bit numbers.
//!
//! Invariant: what [`exactly`] returns was computed without a result that did not fit.

use std::cell::Cell;
use std::cmp::Ordering;

use num_integer::Integer;

use super::{Number, Rational};

thread_local! {
    /// Whether a result did not fit since [`exactly`] began.
    static OVERFLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a computation on small numbers; `None` if one of its results did not fit.
pub(crate) fn exactly<T>(compute: impl FnOnce() -> T) -> Option<T> {
    let outer = OVERFLOWED.replace(false);
    let result = compute();
    let overflowed = OVERFLOWED.replace(outer);
    (!overflowed).then_some(result)
}

/// A fraction of 64-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Small {
    numerator: i64,
    denominator: i64,
}

impl Small {
    /// A fraction; `None` where it does not fit in lowest terms. The denominator is not zero.
    pub(super) fn new(numerator: i128, denominator: i128) -> Option<Self> {
        let common = numerator.gcd(&denominator);
        let common = if denominator < 0 { -common } else { common };
        Some(Small {
            numerator: i64::try_from(numerator / common).ok()?,
            denominator: i64::try_from(denominator / common).ok()?,
        })
    }

    /// Numerator and denominator.
    pub(super) fn terms(self) -> (i64, i64) {
        (self.numerator, self.denominator)
    }

    /// A fraction in lowest terms, if it fits; else any number, and that is noted.
    fn fit(numerator: i128, denominator: i128) -> Self {
        match (i64::try_from(numerator), i64::try_from(denominator)) {
            (Ok(numerator), Ok(denominator)) => Small {
                numerator,
                denominator,
            },
            _ => Self::lost(),
        }
    }

    #[cold]
    fn lost() -> Self {
        OVERFLOWED.set(true);
        Small {
            numerator: 0,
            denominator: 1,
        }
    }

    #[inline]
    fn sum(self, other: Self) -> Self {
        if self.denominator == 1 && other.denominator == 1 {
            return match self.numerator.checked_add(other.numerator) {
                Some(sum) => Small::whole(sum),
                None => Self::lost(),
            };
        }
        self.sum_of_fractions(other)
    }

    /// `self + other`, as Knuth (TAOCP 2, 4.5.1) keeps terms low. Divisions are of 64 bits wherever
    /// what is divided fits them.
    #[inline(never)]
    fn sum_of_fractions(self, other: Self) -> Self {
        let common = divisor(self.denominator, other.denominator);
        let (left, right) = (self.denominator / common, other.denominator / common);
        let total = i128::from(self.numerator) * i128::from(right)
            + i128::from(other.numerator) * i128::from(left);
        let again = match (common, i64::try_from(total)) {
            (1, _) => 1,
            (_, Ok(total)) => divisor(total, common),
            // The divisor of both is at most `common`.
            _ => i64::try_from(total.gcd(&i128::from(common))).unwrap_or(1),
        };
        let numerator = match (again, i64::try_from(total)) {
            (1, _) => total,
            (_, Ok(total)) => i128::from(total / again),
            _ => total / i128::from(again),
        };
        let denominator = i128::from(left) * i128::from(other.denominator / again);
        Small::fit(numerator, denominator)
    }

    #[inline]
    fn product(self, numerator: i64, denominator: i64) -> Self {
        if self.denominator == 1 && denominator == 1 {
            return match self.numerator.checked_mul(numerator) {
                Some(product) => Small::whole(product),
                None => Self::lost(),
            };
        }
        self.product_of_fractions(numerator, denominator)
    }

    #[inline(never)]
    fn product_of_fractions(self, numerator: i64, denominator: i64) -> Self {
        let left = divisor(self.numerator, denominator);
        let right = divisor(numerator, self.denominator);
        Small::fit(
            i128::from(self.numerator / left) * i128::from(numerator / right),
            i128::from(self.denominator / right) * i128::from(denominator / left),
        )
    }
}

/// The greatest common divisor, one of the numbers being above zero.
fn divisor(a: i64, b: i64) -> i64 {
    if a == 1 || b == 1 {
        return 1;
    }
    // It is not above the positive one, and so fits.
    a.unsigned_abs().gcd(&b.unsigned_abs()).max(1) as i64
}

impl PartialOrd for Small {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Small {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.denominator == other.denominator {
            return self.numerator.cmp(&other.numerator);
        }
        let left = i128::from(self.numerator) * i128::from(other.denominator);
        left.cmp(&(i128::from(other.numerator) * i128::from(self.denominator)))
    }
}

impl Number for Small {
    fn whole(value: i64) -> Self {
        Small {
            numerator: value,
            denominator: 1,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        self.sum(*other)
    }

    fn minus(&self, other: &Self) -> Self {
        match other.numerator.checked_neg() {
            Some(numerator) => self.sum(Small {
                numerator,
                ..*other
            }),
            None if self.denominator == 1 && other.denominator == 1 => {
                match self.numerator.checked_sub(other.numerator) {
                    Some(difference) => Small::whole(difference),
                    None => Self::lost(),
                }
            }
            None => Self::lost(),
        }
    }

    fn times(&self, other: &Self) -> Self {
        self.product(other.numerator, other.denominator)
    }

    fn over(&self, other: &Self) -> Self {
        debug_assert!(
            other.numerator != 0 || OVERFLOWED.get(),
            "the divisor is not zero"
        );
        match (
            other.numerator.checked_neg(),
            other.denominator.checked_neg(),
        ) {
            // After a loss elsewhere the divisor may be any number.
            _ if other.numerator == 0 => Self::lost(),
            _ if other.numerator > 0 => self.product(other.denominator, other.numerator),
            (Some(denominator), Some(numerator)) => self.product(numerator, denominator),
            _ => Self::lost(),
        }
    }

    fn floor(&self) -> Self {
        Small::whole(Integer::div_floor(&self.numerator, &self.denominator))
    }

    fn common_multiple(&self, other: &Self) -> Self {
        let (a, b) = (i128::from(self.numerator), i128::from(other.numerator));
        let numerator = match a.gcd(&b) {
            0 => return Self::lost(),
            common => a / common * b,
        };
        let denominator = divisor(self.denominator, other.denominator);
        Small::new(numerator, denominator.into()).unwrap_or_else(Self::lost)
    }

    fn parts(&self) -> Option<(i64, i64)> {
        Some(self.terms())
    }

    fn approximate(&self) -> f64 {
        match self.denominator {
            1 => self.numerator as f64,
            denominator => self.numerator as f64 / denominator as f64,
        }
    }

    fn bits(&self) -> u64 {
        0
    }

    fn rational(&self) -> Rational {
        Rational::of_small(*self)
    }
}
