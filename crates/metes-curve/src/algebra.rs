//! The operations, and what they may take.
//!
//! Every operation is written once, for any kind of number. [`exact!`] runs it on fractions of 64
//! bits, and again on long ones if a result did not fit.
//!
//! Invariant: which numbers an operation ran on can not be seen in its result.

use crate::convolution;
use crate::curve::{Curve, Value, shown};
use crate::cut::Prediction;
use crate::error::Error;
use crate::extended::Extended;
use crate::number::{Big, Number, Small, exactly};
use crate::optimisations::Optimisations;
use crate::periodic::Periodic;
use crate::pointwise;

/// Most pieces that an operation may look at, unless another limit is set.
pub const LIMIT: u64 = 10_000_000;

/// How operations are to be computed: what they may take, and by which means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algebra {
    /// Most pieces, or pairs of pieces, that an operation may look at.
    pub limit: u64,
    /// Which optimisations may be used.
    pub optimisations: Optimisations,
    /// On how many threads large envelopes are computed; results are the same. By default 1.
    pub threads: usize,
}

impl Default for Algebra {
    fn default() -> Self {
        Algebra {
            limit: LIMIT,
            optimisations: Optimisations::all(),
            threads: 1,
        }
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

impl Algebra {
    /// What convolving two curves is going to take, as far as is known before it is done.
    /// O(pieces).
    #[must_use]
    pub fn predict(&self, f: &Curve, g: &Curve) -> Prediction {
        exact!(f, g, |f, g| convolution::prediction(f, g, self))
    }

    /// How many pairs of pieces convolving two curves meets: those that begin before the end of what
    /// is computed. O(n log m) for n and m pieces of the curves as cut.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn operation_count(&self, f: &Curve, g: &Curve) -> Result<u64, Error> {
        exact!(f, g, |f, g| convolution::operation_count(f, g, self))
    }
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
