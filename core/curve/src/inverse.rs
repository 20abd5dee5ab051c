//! Pseudo-inverses of curves that never fall.
//!
//! The lower one is the first time at which a value is reached, `inf {t ≥ 0 : f(t) ≥ x}`, the upper
//! one the last at which it is not exceeded, `sup {t ≥ 0 : f(t) ≤ x}`; both for x ≥ 0. Times and
//! values change places: a plateau becomes a jump and a jump a plateau. The lower one is continuous
//! from the left, the upper one is its limit from the right where any time has a value so low, and
//! −∞ where none has.
//!
//! With c > 0 the lower one repeats itself by c, rising by d, behind f(T): a value above f(T) is
//! reached at T or later, and the same value plus c just d later.
//!
//! Invariant: an inverse is taken of a curve that was seen not to fall.

use crate::error::Error;
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::{Number, Rational};
use crate::periodic::Periodic;
use crate::pointwise;
use crate::section::{Piece, Section};
use crate::settings::Algebra;

/// An interval of times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Where it begins.
    pub start: Rational,
    /// Whether `start` belongs to it.
    pub start_included: bool,
    /// Where it ends; `None` if it does not.
    pub end: Option<Rational>,
    /// Whether `end` belongs to it.
    pub end_included: bool,
}

impl Interval {
    /// All times from `start` on.
    #[must_use]
    pub fn from(start: Rational) -> Self {
        Interval {
            start,
            start_included: true,
            end: None,
            end_included: false,
        }
    }

    /// # Errors
    /// [`Error::Argument`] of an interval with no time in it.
    pub(crate) fn checked(&self) -> Result<(), Error> {
        let empty = match &self.end {
            Some(end) if *end == self.start => !(self.start_included && self.end_included),
            Some(end) => *end < self.start,
            None => false,
        };
        let zero = Rational::from(0);
        if self.start < zero || empty {
            let end = self.end.as_ref().map_or("+inf".into(), Rational::to_string);
            return Err(Error::Argument {
                what: format!(
                    "no time is between {} and {end}: an interval begins at 0 or later, ends later than it begins, and has both ends if they are one",
                    self.start
                ),
            });
        }
        Ok(())
    }
}

/// Refuses a curve that falls. Linear.
///
/// # Errors
/// [`Error::Decreasing`].
pub(crate) fn never_falls<N: Number>(
    f: &Periodic<N>,
    operation: &'static str,
) -> Result<(), Error> {
    let falls = |time: &N| {
        Err(Error::Decreasing {
            operation,
            time: time.rational(),
        })
    };
    let mut before = NegativeInfinity;
    for (piece, end) in f.section.spans() {
        let rises = before <= piece.at && piece.at <= piece.after;
        if !rises {
            return falls(&piece.start);
        }
        if piece.slope < N::zero() {
            return falls(&piece.start);
        }
        before = piece.line(end);
    }
    let again = f.section.value(&f.transient).moved(&f.step);
    match before <= again {
        true => Ok(()),
        false => falls(&f.section.end),
    }
}

/// `inf {t ≥ 0 : f(t) ≥ x}` for x ≥ 0.
pub(crate) fn lower<N: Number>(f: &Periodic<N>, algebra: &Algebra) -> Result<Periodic<N>, Error> {
    never_falls(f, "a pseudo-inverse")?;
    if !f.step.is_positive() {
        let mut graph = Graph::default();
        graph.follow(&f.section);
        return Ok(graph.without_period());
    }
    // The first value of the period that counts is not below 0.
    let Finite(value) = f.section.value(&f.transient) else {
        return Err(Error::Undefined);
    };
    let below = value.negated().over(&f.step);
    let ceiling = below.negated().floor().negated().max(N::zero());
    let begin = f.transient.plus(&ceiling.times(&f.period));
    let long = f.up_to(&begin.plus(&f.period.times(&N::whole(3))), algebra.limit)?;
    let mut graph = Graph::default();
    graph.follow(&long);
    let value = value.plus(&ceiling.times(&f.step));
    let transient = value.plus(&f.step);
    let section = Section {
        pieces: graph.pieces,
        end: graph.level,
    };
    Ok(Periodic::new(
        section,
        transient,
        f.step.clone(),
        f.period.clone(),
    ))
}

/// `sup {t ≥ 0 : f(t) ≤ x}` for x ≥ 0.
pub(crate) fn upper<N: Number>(f: &Periodic<N>, algebra: &Algebra) -> Result<Periodic<N>, Error> {
    let mut right = lower(f, algebra)?;
    for piece in &mut right.section.pieces {
        piece.at = piece.after.clone();
    }
    let Periodic {
        section,
        transient,
        period,
        step,
    } = right;
    let right = Periodic::new(section, transient, period, step);
    let nowhere = match f.section.value(&N::zero()) {
        Finite(least) if least.is_positive() => Range::from(least, true).indicator().negated(),
        PositiveInfinity => return Ok(Periodic::constant(NegativeInfinity)),
        _ => return Ok(right),
    };
    pointwise::minimum(&right, &nowhere, algebra)
}

/// The lower one of f on an interval; +∞ of values outside the range that f has there.
pub(crate) fn lower_over<N: Number>(
    f: &Periodic<N>,
    interval: &Interval,
    ends: &[N],
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    interval.checked()?;
    let restricted = restricted(f, interval, ends, algebra)?;
    let mut range = restricted.range;
    if ends[0].is_zero() {
        range.low = None;
    }
    let inverse = lower(&restricted.curve, algebra)?;
    pointwise::maximum(&inverse, &range.indicator(), algebra)
}

/// The upper one of f on an interval; −∞ of values outside the range that f has there.
pub(crate) fn upper_over<N: Number>(
    f: &Periodic<N>,
    interval: &Interval,
    ends: &[N],
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    interval.checked()?;
    let restricted = restricted(f, interval, ends, algebra)?;
    let inverse = upper(&restricted.curve, algebra)?;
    pointwise::minimum(&inverse, &restricted.range.indicator().negated(), algebra)
}

/// A curve on an interval: −∞ before, +∞ behind.
struct Restricted<N> {
    curve: Periodic<N>,
    range: Range<N>,
}

fn restricted<N: Number>(
    f: &Periodic<N>,
    interval: &Interval,
    ends: &[N],
    algebra: &Algebra,
) -> Result<Restricted<N>, Error> {
    let start = &ends[0];
    let one = N::whole(1);
    let transient = match ends.get(1) {
        Some(end) => end.plus(&one),
        None => f.transient.clone().max(start.clone()).plus(&f.period),
    };
    let (period, step) = match ends.get(1) {
        Some(_) => (one, N::zero()),
        None => (f.period.clone(), f.step.clone()),
    };
    let long = f.up_to(&transient.plus(&period), algebra.limit)?;
    let inside = long.part(start, &long.end);
    let first = &inside.pieces[0];
    // A curve that is infinite where the interval begins rises from the limit before.
    let low = match (&first.at, interval.start_included) {
        (PositiveInfinity, true) if start.is_positive() => (before(&long, start), true),
        (at, true) => (at.clone(), true),
        _ => (first.after.clone(), first.slope.is_zero()),
    };
    let mut pieces = Vec::new();
    if start.is_positive() {
        pieces.push(Piece::new(
            N::zero(),
            NegativeInfinity,
            NegativeInfinity,
            N::zero(),
        ));
    }
    pieces.extend(inside.pieces.iter().cloned());
    if let Some(piece) = pieces.iter_mut().find(|piece| piece.start == *start)
        && !interval.start_included
    {
        piece.at = NegativeInfinity;
    }
    let mut high = None;
    if let Some(end) = ends.get(1) {
        let at = match interval.end_included {
            true => long.value(end),
            false => PositiveInfinity,
        };
        high = Some(match interval.end_included {
            true => (at.clone(), true),
            false => {
                let flat = pieces
                    .iter()
                    .rev()
                    .find(|piece| piece.start < *end)
                    .is_some_and(|piece| piece.slope.is_zero());
                (before(&long, end), flat)
            }
        });
        pieces.retain(|piece| piece.start < *end);
        pieces.push(Piece::new(end.clone(), at, PositiveInfinity, N::zero()));
    }
    let section = Section {
        pieces,
        end: long.end,
    };
    Ok(Restricted {
        curve: Periodic::new(section, transient, period, step),
        range: Range {
            low: Some(low),
            high,
        },
    })
}

/// The limit at a time from the left.
fn before<N: Number>(section: &Section<N>, time: &N) -> Extended<N> {
    let piece = section
        .pieces
        .iter()
        .rev()
        .find(|piece| piece.start < *time);
    piece.map_or(NegativeInfinity, |piece| piece.line(time))
}

/// Values between two, each of which belongs to it or not.
struct Range<N> {
    low: Option<(Extended<N>, bool)>,
    high: Option<(Extended<N>, bool)>,
}

impl<N: Number> Range<N> {
    fn from(low: N, included: bool) -> Self {
        Range {
            low: Some((Finite(low), included)),
            high: None,
        }
    }

    /// −∞ inside, +∞ outside.
    fn indicator(&self) -> Periodic<N> {
        let zero = N::zero();
        let (inside, outside) = (NegativeInfinity, PositiveInfinity);
        let mut pieces = Vec::new();
        let begin = |pieces: &mut Vec<Piece<N>>, start: N, at: Extended<N>, after: Extended<N>| {
            pieces.retain(|piece: &Piece<N>| piece.start < start);
            pieces.push(Piece::new(start, at, after, N::zero()));
        };
        begin(&mut pieces, zero.clone(), inside.clone(), inside.clone());
        let mut last = zero.clone();
        match &self.low {
            Some((PositiveInfinity, _)) => return Periodic::constant(outside),
            Some((Finite(low), included)) if *low > zero || (*low == zero && !included) => {
                if low.is_positive() {
                    begin(&mut pieces, zero.clone(), outside.clone(), outside.clone());
                }
                let at = if *included {
                    inside.clone()
                } else {
                    outside.clone()
                };
                begin(&mut pieces, low.clone(), at, inside);
                last = low.clone();
            }
            _ => {}
        }
        match &self.high {
            Some((NegativeInfinity, _)) => return Periodic::constant(outside),
            Some((Finite(high), _)) if *high < last => return Periodic::constant(outside),
            Some((Finite(high), included)) => {
                let at = match pieces.last() {
                    Some(piece) if piece.start == *high && *included => piece.at.clone(),
                    _ if *included => NegativeInfinity,
                    _ => outside.clone(),
                };
                begin(&mut pieces, high.clone(), at, outside);
                last = high.clone();
            }
            _ => {}
        }
        let transient = last.plus(&N::whole(1));
        let end = transient.plus(&N::whole(1));
        let section = Section { pieces, end };
        Periodic::new(section, transient, N::whole(1), N::zero())
    }
}

/// The graph of a curve with its axes changed.
struct Graph<N> {
    /// Pieces over the values from 0 up to `level`.
    pieces: Vec<Piece<N>>,
    /// Up to here the inverse is known.
    level: N,
    /// The inverse at `level`; `None` while no value from 0 on was reached.
    at: Option<N>,
    /// The curve is +∞ from this time on.
    infinite: Option<N>,
}

impl<N: Number> Default for Graph<N> {
    fn default() -> Self {
        Graph {
            pieces: Vec::new(),
            level: N::zero(),
            at: None,
            infinite: None,
        }
    }
}

impl<N: Number> Graph<N> {
    fn follow(&mut self, section: &Section<N>) {
        for (piece, end) in section.spans() {
            self.jump(&piece.at, &piece.start);
            self.jump(&piece.after, &piece.start);
            if self.infinite.is_some() {
                return;
            }
            if piece.slope.is_positive() {
                self.climb(piece, end);
            }
        }
    }

    /// At a time the curve has a value, or a limit from the right.
    fn jump(&mut self, to: &Extended<N>, time: &N) {
        match to {
            PositiveInfinity => {
                self.infinite.get_or_insert(time.clone());
            }
            Finite(to) if *to >= N::zero() => {
                let at = self.at.get_or_insert(time.clone());
                if *to > self.level {
                    let (at, after) = (Finite(at.clone()), Finite(time.clone()));
                    let level = std::mem::replace(&mut self.level, to.clone());
                    self.pieces.push(Piece::new(level, at, after, N::zero()));
                    self.at = Some(time.clone());
                }
            }
            _ => {}
        }
    }

    /// It rises along a line.
    fn climb(&mut self, piece: &Piece<N>, end: &N) {
        let (Finite(from), Finite(to)) = (&piece.after, piece.line(end)) else {
            return;
        };
        if to <= self.level {
            return;
        }
        let begin = self.level.minus(from).over(&piece.slope);
        let begin = piece.start.plus(&begin);
        let at = self.at.replace(end.clone()).unwrap_or(begin.clone());
        let level = std::mem::replace(&mut self.level, to);
        let slope = N::whole(1).over(&piece.slope);
        self.pieces
            .push(Piece::new(level, Finite(at), Finite(begin), slope));
    }

    /// Of a curve that ends constant or infinite.
    fn without_period(mut self) -> Periodic<N> {
        let after = self.infinite.map_or(PositiveInfinity, Finite);
        let at = self.at.map_or(after.clone(), Finite);
        let transient = self.level.plus(&N::whole(1));
        let end = transient.plus(&N::whole(1));
        self.pieces
            .push(Piece::new(self.level, at, after, N::zero()));
        let section = Section {
            pieces: self.pieces,
            end,
        };
        Periodic::new(section, transient, N::whole(1), N::zero())
    }
}
