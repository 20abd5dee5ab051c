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
    /// ∞ − ∞.
    #[error("infinities of different signs meet in a sum at one time, which is undefined")]
    Undefined,
    /// Infinite at some times of every period and finite at others, growing at another rate than
    /// what it is combined with.
    #[error(
        "the result grows at two rates, so it does not repeat itself: one curve is infinite at some times of each period"
    )]
    TwoRates,
    /// More pieces than allowed.
    #[error(
        "the result takes about {pieces} pieces, more than the limit of {limit}: the periods have no small common multiple; raise the limit if that is meant"
    )]
    TooLarge {
        /// Predicted.
        pieces: Rational,
        /// Allowed.
        limit: u64,
    },
}
