//! What can be wrong.

use crate::number::Rational;

/// Why there is no curve, or no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The elements are no function on `[0, T + d)`.
    #[error("element {element} of the curve {what}")]
    Malformed {
        /// Which one, from 0.
        element: usize,
        /// What is wrong, as a predicate.
        what: String,
    },
    /// T is negative, or the period is not positive.
    #[error("the curve repeats itself {what}: its period is above 0 and begins at 0 or later")]
    Period {
        /// What is said.
        what: String,
    },
    /// A parameter of a named curve is out of its range.
    #[error("the {parameter} of a {curve} is {value}: it is {allowed}")]
    Parameter {
        /// Of which kind of curve.
        curve: &'static str,
        /// Which parameter.
        parameter: &'static str,
        /// What was given.
        value: Rational,
        /// What may be given.
        allowed: String,
    },
    /// The curve falls, and the operation is defined where it does not.
    #[error(
        "{operation} takes curves that never fall, and this one falls at {time}: take its upper or lower non-decreasing closure first"
    )]
    Decreasing {
        /// What was to be computed.
        operation: &'static str,
        /// When it falls first.
        time: Rational,
    },
    /// The inner curve of a composition is below zero.
    #[error(
        "the inner curve of a composition gives the times of the outer one, and is below 0 at {time}, or at a limit there"
    )]
    NegativeTime {
        /// When.
        time: Rational,
    },
    /// An argument that the operation can not take.
    #[error("{what}")]
    Argument {
        /// What is wrong, and what is right.
        what: String,
    },
    /// ∞ − ∞, or 0 · ∞.
    #[error(
        "infinities meet that have no sum (∞ − ∞) or product (0 · ∞): cut or close the curves first"
    )]
    Undefined,
    /// Infinite at some times of every period and finite at others, growing at another rate than
    /// what it is combined with.
    #[error(
        "the result grows at two rates, so it does not repeat itself: one curve is infinite at some times of each period"
    )]
    TwoRates,
    /// An order of a chain is none of its curves.
    #[error(
        "the order is none of {curves} curves: curve {what}; name each from 1 to {curves} once"
    )]
    Order {
        /// What is wrong, of which curve, from 1.
        what: String,
        /// How many there are.
        curves: usize,
    },
    /// More pieces than allowed.
    #[error(
        "the result takes about {} pieces, more than the limit of {limit}: the periods have no small common multiple, or the slopes are close; if that is meant, raise the limit (`Algebra::limit`, `--limit`)",
        about(.pieces)
    )]
    TooLarge {
        /// Predicted.
        pieces: Rational,
        /// Allowed.
        limit: u64,
    },
    /// A number of the result is longer than may be computed with.
    #[error(
        "the result has a number of {bits} bits, and numbers of {most} at most are computed with: round what enters it"
    )]
    TooLong {
        /// Of numerator and denominator together.
        bits: u64,
        /// Allowed.
        most: u64,
    },
}

/// A number of pieces, that may be longer than can be read.
fn about(pieces: &Rational) -> String {
    let text = pieces.to_string();
    match text.len() {
        0..=40 => text,
        digits => format!("10^{}", digits - 1),
    }
}

impl Error {
    pub(crate) fn too_large(pieces: u64, algebra: &crate::settings::Algebra) -> Self {
        Error::TooLarge {
            pieces: i64::try_from(pieces).unwrap_or(i64::MAX).into(),
            limit: algebra.limit,
        }
    }
}
