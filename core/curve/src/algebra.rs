//! The operations, and what they may take.
//!
//! Every operation is written once, for any kind of number. [`exact!`] runs it on fractions of 64
//! bits, and again on long ones if a result did not fit.
//!
//! Invariant: which numbers an operation ran on can not be seen in its result.

use crate::closure;
use crate::comparison;
use crate::composition;
use crate::convolution;
use crate::curve::{Curve, Value, shown};
use crate::cut::Prediction;
use crate::deconvolution;
use crate::deviation::{self, Deviation};
use crate::error::Error;
use crate::extended::Extended;
use crate::inverse::{self, Interval};
use crate::monotone;
use crate::number::{Big, Number, Rational, Small, exactly};
use crate::optimisations::Optimisations;
use crate::periodic::Periodic;
use crate::pointwise;
use crate::query::{self, Bounds};
use crate::rounding;
use crate::transform;

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

    /// A convolution, and the work that was predicted for it ([`Prediction::work`]).
    pub(crate) fn convolution_with_work(
        &self,
        f: &Curve,
        g: &Curve,
    ) -> Result<(Curve, u64), Error> {
        exact!(f, g, |f, g| convolution::with_work(f, g, self))
    }
}

/// Runs a kernel on one curve and some numbers.
macro_rules! exact_with {
    ($f:expr, $numbers:expr, |$a:ident, $n:ident| $run:expr) => {{
        let numbers: &[&Rational] = $numbers;
        let short: Option<Vec<Small>> = numbers.iter().map(|number| number.small()).collect();
        let short = $f.short().zip(short);
        match short.and_then(|($a, $n)| exactly(|| $run)) {
            Some(found) => Found::shown(found),
            None => {
                let $a = &$f.big();
                let $n: Vec<Big> = numbers.iter().map(|number| Big::from(*number)).collect();
                Found::shown($run)
            }
        }
    }};
}

/// Each unary operation twice: of an [`Algebra`], and of the curve with the default one.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident -> $shown:ty, through $kernel:path;)*) => {
        impl Algebra {
            $($(#[$doc])*
            pub fn $name(&self, f: &Curve) -> Result<$shown, Error> {
                exact!(f, |f| $kernel(f, self))
            })*
        }

        impl Curve {
            $($(#[$doc])*
            pub fn $name(&self) -> Result<$shown, Error> {
                Algebra::default().$name(self)
            })*
        }
    };
}

/// Each binary operation twice: of an [`Algebra`], and of the curves with the default one.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident -> $shown:ty, through $kernel:path;)*) => {
        impl Algebra {
            $($(#[$doc])*
            pub fn $name(&self, f: &Curve, g: &Curve) -> Result<$shown, Error> {
                exact!(f, g, |f, g| $kernel(f, g, self))
            })*
        }

        impl Curve {
            $($(#[$doc])*
            pub fn $name(&self, other: &Self) -> Result<$shown, Error> {
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
    minimum -> Curve, through pointwise::minimum;

    /// The higher of both at every time.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    maximum -> Curve, through pointwise::maximum;

    /// Their sum at every time.
    ///
    /// # Errors
    /// [`Error::Undefined`], [`Error::TooLarge`].
    sum -> Curve, through pointwise::sum;

    /// Their difference at every time.
    ///
    /// # Errors
    /// [`Error::Undefined`], [`Error::TooLarge`].
    difference -> Curve, through pointwise::difference;

    /// The (min,+) convolution: at t the least of f(s) + g(t − s), s from 0 to t. Where +∞ and −∞
    /// meet the sum is +∞.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    convolution -> Curve, through convolution::minimal;

    /// The (max,+) convolution: at t the greatest of f(s) + g(t − s). Where +∞ and −∞ meet the sum
    /// is −∞.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    maximal_convolution -> Curve, through convolution::maximal;

    /// The (min,+) deconvolution: at t the supremum of f(t + s) − g(s) over s ≥ 0, the least h with
    /// h ∗ g ≥ f. Where infinities of different signs meet the sum is −∞; +∞ where there is no
    /// bound.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    deconvolution -> Curve, through deconvolution::minimal;

    /// The (max,+) deconvolution: at t the infimum of f(t + s) − g(s) over s ≥ 0. Where infinities of
    /// different signs meet the sum is +∞.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    maximal_deconvolution -> Curve, through deconvolution::maximal;

    /// Whether f is nowhere above g.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    is_nowhere_above -> bool, through comparison::nowhere_above;

    /// Whether f is not above g from some time on.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    is_finally_not_above -> bool, through comparison::finally_not_above;

    /// f(g(t)): g gives the times of f.
    ///
    /// # Errors
    /// [`Error::NegativeTime`] where g is below 0, [`Error::Undefined`] where it is +∞ and f comes
    /// to nothing as time goes on, [`Error::TooLarge`].
    compose -> Curve, through composition::compose;

    /// The vertical deviation, sup f(t) − g(t): of an arrival and a service curve the backlog.
    ///
    /// # Errors
    /// [`Error::Undefined`], [`Error::TooLarge`].
    vertical_deviation -> Deviation, through deviation::vertical;

    /// The horizontal deviation, the supremum of `inf {d ≥ 0 : f(t) ≤ g(t + d)}`: of an arrival and
    /// a service curve the delay.
    ///
    /// # Errors
    /// [`Error::Decreasing`] if either falls, [`Error::TooLarge`].
    horizontal_deviation -> Deviation, through deviation::horizontal;
}

unary! {
    /// The least curve above f that never falls: sup f(s) over s ≤ t.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    upper_nondecreasing_closure -> Curve, through monotone::upper;

    /// The greatest curve below f that never falls: inf f(s) over s ≥ t.
    ///
    /// # Errors
    /// None but those of a machine.
    lower_nondecreasing_closure -> Curve, through monotone::lower;

    /// The sub-additive closure: the least of δ, f, f ∗ f, f ∗ f ∗ f, …, where δ is 0 at 0 and +∞
    /// behind.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    subadditive_closure -> Curve, through closure::subadditive;

    /// The super-additive closure: the greatest of −δ, f, and f convolved with itself by (max,+) any
    /// number of times.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    superadditive_closure -> Curve, through closure::superadditive;

    /// Each value rounded down to a whole number.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    floor -> Curve, through rounding::floor;

    /// Each value rounded up to a whole number.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    ceiling -> Curve, through rounding::ceiling;

    /// The lower pseudo-inverse: at x ≥ 0 the first time at which f is x or more,
    /// `inf {t ≥ 0 : f(t) ≥ x}`; +∞ if it never is.
    ///
    /// # Errors
    /// [`Error::Decreasing`], [`Error::TooLarge`].
    lower_pseudo_inverse -> Curve, through inverse::lower;

    /// The upper pseudo-inverse: at x ≥ 0 the last time at which f is x or less,
    /// `sup {t ≥ 0 : f(t) ≤ x}`; −∞ if it never is.
    ///
    /// # Errors
    /// [`Error::Decreasing`], [`Error::TooLarge`].
    upper_pseudo_inverse -> Curve, through inverse::upper;
}

impl Algebra {
    /// The z-deviation: the first time at which the (min,+) convolution of both is 0 or above;
    /// `None` if there is none. It bounds the delay where service may be negative.
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`].
    pub fn z_deviation(&self, f: &Curve, g: &Curve) -> Result<Option<Rational>, Error> {
        Ok(self.convolution(f, g)?.first_nonnegative_time())
    }

    /// The lower pseudo-inverse of f on an interval: +∞ of values outside the smallest range that
    /// holds all of f there. The range begins at 0 if the interval does, and at the limit from the
    /// left if f becomes +∞ where the interval begins.
    ///
    /// # Errors
    /// [`Error::Argument`] of an empty interval, [`Error::Decreasing`] if f falls in it,
    /// [`Error::TooLarge`].
    pub fn lower_pseudo_inverse_over(
        &self,
        f: &Curve,
        interval: &Interval,
    ) -> Result<Curve, Error> {
        let ends: Vec<&Rational> = [&interval.start].into_iter().chain(&interval.end).collect();
        exact_with!(f, &ends, |f, ends| inverse::lower_over(
            f, interval, &ends, self
        ))
    }

    /// f(t + by).
    ///
    /// # Errors
    /// [`Error::Argument`] of a time below 0, [`Error::TooLarge`] if so many periods are behind it.
    pub fn advanced(&self, f: &Curve, by: &Rational) -> Result<Curve, Error> {
        exact_with!(f, &[by], |f, by| transform::advanced(f, &by[0], self))
    }

    /// The upper pseudo-inverse of f on an interval: −∞ of values outside the smallest range that
    /// holds all of f there. The range begins at the limit from the left if f becomes +∞ where the
    /// interval begins.
    ///
    /// # Errors
    /// [`Error::Argument`] of an empty interval, [`Error::Decreasing`] if f falls in it,
    /// [`Error::TooLarge`].
    pub fn upper_pseudo_inverse_over(
        &self,
        f: &Curve,
        interval: &Interval,
    ) -> Result<Curve, Error> {
        let ends: Vec<&Rational> = [&interval.start].into_iter().chain(&interval.end).collect();
        exact_with!(f, &ends, |f, ends| inverse::upper_over(
            f, interval, &ends, self
        ))
    }
}

impl Curve {
    /// [`Algebra::lower_pseudo_inverse_over`], by default means.
    ///
    /// # Errors
    /// As there.
    pub fn lower_pseudo_inverse_over(&self, interval: &Interval) -> Result<Self, Error> {
        Algebra::default().lower_pseudo_inverse_over(self, interval)
    }

    /// [`Algebra::upper_pseudo_inverse_over`], by default means.
    ///
    /// # Errors
    /// As there.
    pub fn upper_pseudo_inverse_over(&self, interval: &Interval) -> Result<Self, Error> {
        Algebra::default().upper_pseudo_inverse_over(self, interval)
    }

    /// −f(t). Linear.
    #[must_use]
    pub fn negated(&self) -> Self {
        exact!(self, |f| f.negated())
    }

    /// f(t) + by. Linear.
    #[must_use]
    pub fn raised(&self, by: &Rational) -> Self {
        exact_with!(self, &[by], |f, by| f.raised(&by[0]))
    }

    /// f(t) + by for t > 0, and f(0). Linear.
    ///
    /// # Errors
    /// None but those of a machine.
    pub fn raised_behind_origin(&self, by: &Rational) -> Result<Self, Error> {
        exact_with!(self, &[by], |f, by| transform::raised_behind_origin(
            f, &by[0]
        ))
    }

    /// f(t − by), and 0 for t < by. Linear.
    ///
    /// # Errors
    /// [`Error::Argument`] of a time below 0.
    pub fn delayed(&self, by: &Rational) -> Result<Self, Error> {
        exact_with!(self, &[by], |f, by| transform::delayed(f, &by[0]))
    }

    /// [`Algebra::advanced`], by default means.
    ///
    /// # Errors
    /// As there.
    pub fn advanced(&self, by: &Rational) -> Result<Self, Error> {
        Algebra::default().advanced(self, by)
    }

    /// by · f(t). Linear.
    ///
    /// # Errors
    /// [`Error::Undefined`] of 0 · ∞.
    pub fn scaled(&self, by: &Rational) -> Result<Self, Error> {
        exact_with!(self, &[by], |f, by| transform::scaled(f, &by[0]))
    }

    /// f(t / by): the same in `by` times the time. Linear.
    ///
    /// # Errors
    /// [`Error::Argument`] of a factor that is not above 0.
    pub fn stretched(&self, by: &Rational) -> Result<Self, Error> {
        exact_with!(self, &[by], |f, by| transform::stretched(f, &by[0]))
    }

    /// Between which values it is. Linear.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        exact!(self, |f| query::bounds(f))
    }

    /// Whether it is `value` at any time. Linear.
    #[must_use]
    pub fn attains(&self, value: &Value) -> bool {
        match value {
            Value::Finite(number) => {
                exact_with!(self, &[number], |f, value| query::attains(f, &value[0]))
            }
            Value::NegativeInfinity => exact!(self, |f| f.has(&Extended::NegativeInfinity)),
            Value::PositiveInfinity => exact!(self, |f| f.has(&Extended::PositiveInfinity)),
        }
    }

    /// The infimum of times at which it is finite; `None` if it never is. Linear.
    #[must_use]
    pub fn first_finite_time(&self) -> Option<Rational> {
        exact!(self, |f| query::first_finite(f, true).map(Extended::Finite)).and_then(number)
    }

    /// The infimum of times above 0 at which it is finite; `None` if there is none. Linear.
    #[must_use]
    pub fn first_finite_time_behind_origin(&self) -> Option<Rational> {
        exact!(self, |f| query::first_finite(f, false)
            .map(Extended::Finite))
        .and_then(number)
    }

    /// The infimum of times at which it is 0 or above; `None` if it never is. Linear.
    #[must_use]
    pub fn first_nonnegative_time(&self) -> Option<Rational> {
        exact!(self, |f| query::first_not_negative(f).map(Extended::Finite)).and_then(number)
    }

    /// The infimum of times from which on it repeats itself: T, or less where it does so behind
    /// that time and not at it. Linear.
    #[must_use]
    pub fn period_start_infimum(&self) -> Rational {
        let start = exact!(self, |f| Extended::Finite(query::period_start(f)));
        number(start).unwrap_or_else(|| self.transient())
    }
}

/// The number, of a value that is finite.
fn number(value: Value) -> Option<Rational> {
    match value {
        Value::Finite(number) => Some(number),
        Value::NegativeInfinity | Value::PositiveInfinity => None,
    }
}
