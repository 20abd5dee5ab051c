//! What modules of operations find, turned into what the interface shows.

use crate::curve::{Curve, Value, shown};
use crate::cut::Prediction;
use crate::error::Error;
use crate::extended::Extended;
use crate::number::{Big, Number, Small};
use crate::periodic::Periodic;

/// What a kernel found, as the interface shows it.
pub(crate) trait Found: Sized {
    type Shown;
    fn shown(self) -> Self::Shown;

    /// What was found, unless one of its numbers is longer than may be computed with.
    fn checked(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl Found for Periodic<Small> {
    type Shown = Curve;

    fn shown(self) -> Curve {
        Curve::of_small(self)
    }
}

impl Found for Periodic<Big> {
    type Shown = Curve;

    fn shown(self) -> Curve {
        Curve::of_big(self)
    }

    fn checked(self) -> Result<Self, Error> {
        Periodic::checked(self)
    }
}

impl<N: Number> Found for Extended<N> {
    type Shown = Value;

    fn shown(self) -> Value {
        shown(&self)
    }
}

impl<F: Found> Found for Result<F, Error> {
    type Shown = Result<F::Shown, Error>;

    fn shown(self) -> Self::Shown {
        self.and_then(Found::checked).map(Found::shown)
    }
}

impl<F: Found> Found for Option<F> {
    type Shown = Option<F::Shown>;

    fn shown(self) -> Self::Shown {
        self.map(Found::shown)
    }
}

/// With a number of operations.
impl<F: Found> Found for (F, u64) {
    type Shown = (F::Shown, u64);

    fn shown(self) -> Self::Shown {
        (self.0.shown(), self.1)
    }

    fn checked(self) -> Result<Self, Error> {
        Ok((self.0.checked()?, self.1))
    }
}

impl Found for Prediction {
    type Shown = Prediction;

    fn shown(self) -> Prediction {
        self
    }
}

impl Found for u64 {
    type Shown = u64;

    fn shown(self) -> u64 {
        self
    }
}
