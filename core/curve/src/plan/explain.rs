//! Which pieces made a value of a chain: the time that each curve contributes, and its value
//! there.
//!
//! Between breakpoints of f(s) and g(t − s) the sum is affine in s, so the least of all splits is
//! found at a breakpoint or is a limit beside one.
//!
//! Invariant: the times add up to the time asked for, and the values to the value there.

use crate::curve::{Curve, Value, shown};
use crate::error::Error;
use crate::extended::Extended::{self, PositiveInfinity};
use crate::number::{Big, Number, Rational};
use crate::periodic::Periodic;
use crate::settings::Algebra;

use super::{Chain, Part};

/// At a time, or the limit beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The limit from the left.
    Before,
    /// The value.
    At,
    /// The limit from the right.
    After,
}

/// What one curve of a chain contributes to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which curve, from 0.
    pub curve: usize,
    /// At which of its times.
    pub time: Rational,
    /// Whether its value there, or a limit.
    pub side: Side,
    /// The value or limit.
    pub value: Value,
}

impl Chain {
    /// The shares of all `curves` of this chain in its value at a time, in their order; none if
    /// the value is +∞, which every split makes. The steps are computed again; after that, time
    /// is linear in the breakpoints up to `time`, for each step.
    ///
    /// # Errors
    /// [`Error::NegativeTime`], [`Error::TooLarge`], and those of
    /// [`convolution`](Algebra::convolution).
    pub fn explain(
        &self,
        curves: &[Curve],
        time: &Rational,
        algebra: &Algebra,
    ) -> Result<Vec<Share>, Error> {
        if *time < Rational::from(0) {
            return Err(Error::NegativeTime { time: time.clone() });
        }
        // By pairs: the curves, and behind them what each pair made.
        let mut made: Vec<Curve> = curves.to_vec();
        let mut pairs: Vec<(usize, usize)> = Vec::with_capacity(curves.len());
        let mut of_step = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let of = |part: &Part| match part {
                Part::Curve(curve) => *curve,
                Part::Step(step) => of_step[*step],
            };
            let mut parts = step.parts.iter().map(of);
            let Some(mut result) = parts.next() else {
                continue;
            };
            for part in parts {
                made.push(algebra.convolution(&made[result], &made[part])?);
                pairs.push((result, part));
                result = made.len() - 1;
            }
            of_step.push(result);
        }
        let functions: Vec<Periodic<Big>> = made.iter().map(Curve::big).collect();
        let Some(last) = functions.len().checked_sub(1) else {
            return Ok(Vec::new());
        };
        let mut shares = Vec::with_capacity(curves.len());
        let mut open = vec![(last, Big::from(time), Side::At)];
        while let Some((number, time, side)) = open.pop() {
            let value = match limit(&functions[number], &time, side) {
                Some(PositiveInfinity) | None => return Ok(Vec::new()),
                Some(value) => value,
            };
            let Some((left, right)) = number.checked_sub(curves.len()).map(|pair| pairs[pair])
            else {
                shares.push(Share {
                    curve: number,
                    time: time.rational(),
                    side,
                    value: shown(&value),
                });
                continue;
            };
            let (one, other) = (&functions[left], &functions[right]);
            // The value is the least of all sums, so one of them makes it.
            let Some((begin, one, other)) = split(one, other, (&time, side), &value, algebra)?
            else {
                return Ok(Vec::new());
            };
            open.push((right, time.minus(&begin), other));
            open.push((left, begin, one));
        }
        shares.sort_by_key(|share| share.curve);
        Ok(shares)
    }
}

/// A split of a time whose sum is the value, and from which side each curve is taken.
fn split<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    (time, side): (&N, Side),
    value: &Extended<N>,
    algebra: &Algebra,
) -> Result<Option<(N, Side, Side)>, Error> {
    use Side::{After, At, Before};
    let pieces = f.count_to(time).saturating_add(g.count_to(time));
    if pieces > algebra.limit {
        return Err(Error::too_large(pieces, algebra));
    }
    let sides: &[(Side, Side)] = match side {
        At => &[(At, At), (Before, After), (After, Before)],
        Before => &[
            (Before, At),
            (At, Before),
            (Before, Before),
            (Before, After),
            (After, Before),
        ],
        After => &[
            (After, At),
            (At, After),
            (After, After),
            (Before, After),
            (After, Before),
        ],
    };
    let of_g = breakpoints(g, time, algebra)?;
    let of_g = of_g.iter().map(|other| time.minus(other));
    for begin in breakpoints(f, time, algebra)?.into_iter().chain(of_g) {
        let rest = time.minus(&begin);
        for (one, other) in sides {
            let terms = limit(f, &begin, *one).zip(limit(g, &rest, *other));
            let sum = terms.map(|(one, other)| one.plus(&other).unwrap_or(PositiveInfinity));
            if sum.as_ref() == Some(value) {
                return Ok(Some((begin, *one, *other)));
            }
        }
    }
    Ok(None)
}

/// Breakpoints up to a time, itself included.
fn breakpoints<N: Number>(
    curve: &Periodic<N>,
    time: &N,
    algebra: &Algebra,
) -> Result<Vec<N>, Error> {
    let section = curve.up_to(&time.plus(&N::whole(1)), algebra.limit)?;
    let starts = section.pieces.into_iter().map(|piece| piece.start);
    Ok(starts.take_while(|start| start <= time).collect())
}

/// A value or a limit; `None` from the left of 0.
fn limit<N: Number>(curve: &Periodic<N>, time: &N, side: Side) -> Option<Extended<N>> {
    if side == Side::At {
        return Some(curve.value(time));
    }
    if side == Side::Before && time.is_zero() {
        return None;
    }
    let behind = time.minus(&curve.transient).over(&curve.period).floor();
    let mut periods = behind.max(N::zero());
    let mut within = time.minus(&periods.times(&curve.period));
    if side == Side::Before && within == curve.transient && periods.is_positive() {
        periods = periods.minus(&N::whole(1));
        within = within.plus(&curve.period);
    }
    let pieces = &curve.section.pieces;
    let index = match side {
        Side::Before => pieces.partition_point(|piece| piece.start < within),
        _ => pieces.partition_point(|piece| piece.start <= within),
    };
    let line = pieces[index.saturating_sub(1)].line(&within);
    Some(line.moved(&periods.times(&curve.step)))
}
