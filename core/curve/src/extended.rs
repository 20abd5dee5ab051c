//! Numbers with two infinities.

use crate::number::Number;

/// A number, or an infinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Extended<N> {
    /// Below every number.
    NegativeInfinity,
    /// A number.
    Finite(N),
    /// Above every number.
    PositiveInfinity,
}

use Extended::{Finite, NegativeInfinity, PositiveInfinity};

impl<N: Number> Extended<N> {
    pub(crate) fn finite(&self) -> Option<&N> {
        match self {
            Finite(number) => Some(number),
            NegativeInfinity | PositiveInfinity => None,
        }
    }

    /// The value in another kind of number; infinities stay.
    pub(crate) fn converted<M, E>(
        &self,
        number: impl Fn(&N) -> Result<M, E>,
    ) -> Result<Extended<M>, E> {
        Ok(match self {
            NegativeInfinity => NegativeInfinity,
            Finite(finite) => Finite(number(finite)?),
            PositiveInfinity => PositiveInfinity,
        })
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            NegativeInfinity => PositiveInfinity,
            Finite(number) => Finite(number.negated()),
            PositiveInfinity => NegativeInfinity,
        }
    }

    /// The sum; `None` of two infinities of different signs.
    pub(crate) fn plus(&self, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (Finite(left), Finite(right)) => Finite(left.plus(right)),
            (Finite(_), infinity) | (infinity, Finite(_)) => infinity.clone(),
            (left, right) => (left == right).then(|| left.clone())?,
        })
    }

    /// The value times a number above zero; infinities stay.
    pub(crate) fn times(&self, by: &N) -> Self {
        match self {
            Finite(number) => Finite(number.times(by)),
            infinity => infinity.clone(),
        }
    }

    /// The value plus a number; infinities stay.
    pub(crate) fn moved(&self, by: &N) -> Self {
        match self {
            Finite(number) => Finite(number.plus(by)),
            infinity => infinity.clone(),
        }
    }
}
