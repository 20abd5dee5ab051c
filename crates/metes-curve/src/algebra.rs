//! The operations, and what they may take.
//!
//! Every operation is written once, for any kind of number. [`exact!`] runs it on fractions of 64
//! bits, and again on long ones if a result did not fit.
//!
//! Invariant: which numbers an operation ran on can not be seen in its result.

use crate::convolution;
use crate::curve::{Curve, Value, shown};
use crate::error::Error;
use crate::extended::Extended;
use crate::number::{Big, Number, Small, exactly};
use crate::periodic::Periodic;
use crate::pointwise;

/// Most pieces that an operation may look at, unless another limit is set.
pub const LIMIT: u64 = 10_000_000;

/// How operations are to be computed: what they may take, and by which means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Algebra {
    /// Most pieces, or pairs of pieces, that an operation may look at.
    pub limit: u64,
}

impl Default for Algebra {
    fn default() -> Self {
        Algebra { limit: LIMIT }
    }
}

/// What a kernel found, as the interface shows it.
pub(crate) trait Found {
    type Shown;
    fn shown(self) -> Self::Shown;
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
        self.map(Found::shown)
    }
}

impl<F: Found> Found for Option<F> {
    type Shown = Option<F::Shown>;

    fn shown(self) -> Self::Shown {
        self.map(Found::shown)
    }
}

/// Runs a kernel on one curve or two.
macro_rules! exact {
    ($f:expr, |$a:ident| $run:expr) => {{
        let short = $f.short().and_then(|$a| exactly(|| $run));
        match short {
            Some(found) => Found::shown(found),
            None => {
                let $a = &$f.big();
                Found::shown($run)
            }
        }
    }};
    ($f:expr, $g:expr, |$a:ident, $b:ident| $run:expr) => {{
        let short = $f.short().zip($g.short());
        match short.and_then(|($a, $b)| exactly(|| $run)) {
            Some(found) => Found::shown(found),
            None => {
                let ($a, $b) = (&$f.big(), &$g.big());
                Found::shown($run)
            }
        }
    }};
}

/// Each binary operation twice: of an [`Algebra`], and of the curves with the default one.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident through $kernel:path;)*) => {
        impl Algebra {
            $($(#[$doc])*
            pub fn $name(&self, f: &Curve, g: &Curve) -> Result<Curve, Error> {
                exact!(f, g, |f, g| $kernel(f, g, self))
            })*
        }

        impl Curve {
            $($(#[$doc])*
            pub fn $name(&self, other: &Self) -> Result<Self, Error> {
                Algebra::default().$name(self, other)
            })*
        }
    };
}

binary! {
    /// The lower of both at every time.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    minimum through pointwise::minimum;

    /// The higher of both at every time.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    maximum through pointwise::maximum;

    /// Their sum at every time.
    ///
    /// # Errors
    /// [`Error::Undefined`], [`Error::TooLarge`].
    sum through pointwise::sum;

    /// Their difference at every time.
    ///
    /// # Errors
    /// [`Error::Undefined`], [`Error::TooLarge`].
    difference through pointwise::difference;

    /// The (min,+) convolution: at t the least of f(s) + g(t − s), s from 0 to t. Where +∞ and −∞
    /// meet the sum is +∞.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    convolution through convolution::minimal;

    /// The (max,+) convolution: at t the greatest of f(s) + g(t − s). Where +∞ and −∞ meet the sum
    /// is −∞.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    maximal_convolution through convolution::maximal;
}
