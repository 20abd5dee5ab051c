//! The sub-additive closure: the least of δ, f, f ∗ f, f ∗ f ∗ f, …, where δ is 0 at 0 and +∞ behind;
//! the greatest curve that is 0 at 0, nowhere above f, and sub-additive.
//!
//! If f ∧ δ is the same convolved with itself, it is its own closure. Else the closure is taken apart
//! (Bouillard and Thierry, 2008): that of a minimum is the convolution of the closures. Let f be
//! its transient part ∧ (E ∗ P), E one period of it and P the multiples of the point (d, c). P ∗ P = P,
//! so (E ∗ P)\* = δ ∧ E ∗ E\* ∗ P, and
//!
//! f\* = (transient part)\* ∗ (δ ∧ E ∗ E\* ∗ P).
//!
//! What is left are closures of points and of open segments, which are written down:
//!
//! - A point (t, v): n v at n t.
//! - A segment on (a, b) with the line y + σ t: n copies are n y + σ t on (n a, n b). With y < 0 as many
//!   copies as can be are best, and one more each a; with y > 0 as few, and one more each b; with
//!   y = 0 it does not matter. Behind a b / (b − a) the intervals overlap and leave no gap. With
//!   a = 0 and y < 0 there is no least: −∞ behind 0.
//!
//! They are convolved in the order of their long-run slopes, so that each step finds a slope gap
//! and the period stays that of the least slope.
//!
//! Invariant: no closure is enumerated beyond the time from which it repeats itself; all copies and
//! convolutions of one closure together look at no more than the limit ([`Budget`]).

use crate::convolution;
use crate::error::Error;
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::{Number, Rational};
use crate::paths::Envelope;
use crate::periodic::Periodic;
use crate::pointwise;
use crate::section::{Piece, Section};
use crate::settings::Algebra;

/// What a closure may still look at, of what an operation may.
struct Budget {
    /// With what is left as its limit.
    algebra: Algebra,
    /// What was taken.
    taken: u64,
}

impl Budget {
    fn of(algebra: &Algebra) -> Self {
        Budget {
            algebra: algebra.clone(),
            taken: 0,
        }
    }

    /// Takes so much of it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if that is not left.
    fn take<N: Number>(&mut self, work: &N) -> Result<u64, Error> {
        let whole = work.rational().whole();
        match whole.filter(|work| *work <= self.algebra.limit) {
            Some(work) => {
                self.algebra.limit -= work;
                self.taken += work;
                Ok(work)
            }
            None => Err(self.beyond(work.rational())),
        }
    }

    /// What is looked at in a convolution is gone.
    fn convolved<N: Number>(
        &mut self,
        f: &Periodic<N>,
        g: &Periodic<N>,
    ) -> Result<Periodic<N>, Error> {
        let (result, work) = convolved(f, g, &self.algebra).map_err(|error| match error {
            Error::TooLarge { pieces, .. } => self.beyond(pieces),
            other => other,
        })?;
        self.take(&N::whole(i64::try_from(work).unwrap_or(i64::MAX)))?;
        // Of many curves with other denominators each, numbers grow with every one.
        result.checked()
    }

    /// So much more is not left.
    fn beyond(&self, more: Rational) -> Error {
        let taken = i64::try_from(self.taken).unwrap_or(i64::MAX);
        Error::TooLarge {
            pieces: &more + &Rational::from(taken),
            limit: self.algebra.limit.saturating_add(self.taken),
        }
    }
}

/// f\*.
pub(crate) fn subadditive<N: Number>(
    f: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let zero = Finite(N::zero());
    let begin = f.section.value(&N::zero());
    let reached = || from_zero(&marked(f, |value| *value != PositiveInfinity), algebra);
    if begin < zero {
        // n copies at 0 go down without end, wherever any sum of times of f is.
        return Ok(sunk(&reached()?));
    }
    if !f.has(&NegativeInfinity) {
        return from_zero(f, algebra);
    }
    // −∞ at a time at which f is that, plus any sum of times; elsewhere the closure of the rest.
    let low = marked(f, |value| *value == NegativeInfinity);
    let low = sunk(&convolved(&low, &reached()?, algebra)?.0);
    let mut rest = f.clone();
    for piece in &mut rest.section.pieces {
        for value in [&mut piece.at, &mut piece.after] {
            if *value == NegativeInfinity {
                *value = PositiveInfinity;
            }
        }
    }
    let Periodic {
        section,
        transient,
        period,
        step,
    } = rest;
    let rest = Periodic::new(section, transient, period, step);
    pointwise::minimum(&from_zero(&rest, algebra)?, &low, algebra)
}

/// The super-additive closure: the negation of the sub-additive one of −f.
pub(crate) fn superadditive<N: Number>(
    f: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    Ok(subadditive(&f.negated(), algebra)?.negated())
}

/// 0 where a value is one of some, +∞ elsewhere.
fn marked<N: Number>(f: &Periodic<N>, which: impl Fn(&Extended<N>) -> bool) -> Periodic<N> {
    flat(f, |value| match which(value) {
        true => Finite(N::zero()),
        false => PositiveInfinity,
    })
}

/// A curve of constants in place of the values.
fn flat<N: Number>(f: &Periodic<N>, value: impl Fn(&Extended<N>) -> Extended<N>) -> Periodic<N> {
    let pieces = f.section.pieces.iter().map(|piece| {
        let (at, after) = (value(&piece.at), value(&piece.after));
        Piece::new(piece.start.clone(), at, after, N::zero())
    });
    let section = Section {
        pieces: pieces.collect(),
        end: f.section.end.clone(),
    };
    Periodic::new(section, f.transient.clone(), f.period.clone(), N::zero())
}

/// −∞ where a curve is finite, +∞ where it is that.
fn sunk<N: Number>(f: &Periodic<N>) -> Periodic<N> {
    flat(f, |value| match value {
        PositiveInfinity => PositiveInfinity,
        _ => NegativeInfinity,
    })
}

/// The closure of a curve that is nowhere −∞ and not below 0 at 0.
fn from_zero<N: Number>(f: &Periodic<N>, algebra: &Algebra) -> Result<Periodic<N>, Error> {
    let f = pointwise::minimum(f, &unit(), algebra)?;
    match convolution::minimal(&f, &f, algebra) {
        Ok(twice) if twice == f => Ok(f),
        _ => by_elements(&f, algebra),
    }
}

/// δ.
fn unit<N: Number>() -> Periodic<N> {
    let piece = Piece::new(N::zero(), Finite(N::zero()), PositiveInfinity, N::zero());
    let section = Section {
        pieces: vec![piece],
        end: N::whole(2),
    };
    Periodic::new(section, N::whole(1), N::whole(1), N::zero())
}

/// The closure from those of points and segments.
fn by_elements<N: Number>(f: &Periodic<N>, algebra: &Algebra) -> Result<Periodic<N>, Error> {
    // An affine end has any period, and begins anywhere behind its last breakpoint: one as long as
    // what is before leaves few copies apart.
    let (transient, period) = match f.section.pieces.last() {
        Some(last) if f.is_ultimately_affine() => {
            let period = f.period.clone().max(last.start.clone());
            let begins = match last.at == last.after {
                true => last.start.clone(),
                false => last.start.plus(&period),
            };
            (begins, period)
        }
        _ => (f.transient.clone(), f.period.clone()),
    };
    let step = f.slope().times(&period);
    let end = transient.plus(&period);
    let all = f.up_to(&end, algebra.limit)?;
    let mut budget = Budget::of(algebra);
    let mut closures = Vec::new();
    if transient.is_positive() && !closures_of(&all.cut(&transient), &mut closures, &mut budget)? {
        return Ok(bottomless());
    }
    let again = all.part(&transient, &end);
    let finite = |value: &Extended<N>| value.finite().is_some();
    if again
        .pieces
        .iter()
        .any(|piece| finite(&piece.at) || finite(&piece.after))
    {
        let mut repeated = vec![point(&period, &step)];
        if !closures_of(&again, &mut repeated, &mut budget)? {
            return Ok(bottomless());
        }
        let once = only(&again, &transient);
        let all = in_order(repeated, &mut budget)?;
        let all = convolution::minimal(&once, &all, algebra)?;
        closures.push(pointwise::minimum(&all, &unit(), algebra)?);
    }
    in_order(closures, &mut budget)
}

/// 0 at 0, −∞ behind.
fn bottomless<N: Number>() -> Periodic<N> {
    let piece = Piece::new(N::zero(), Finite(N::zero()), NegativeInfinity, N::zero());
    let section = Section {
        pieces: vec![piece],
        end: N::whole(2),
    };
    Periodic::new(section, N::whole(1), N::whole(1), N::zero())
}

/// A part of a curve, +∞ elsewhere.
fn only<N: Number>(part: &Section<N>, from: &N) -> Periodic<N> {
    let nothing = |start: N| Piece::new(start, PositiveInfinity, PositiveInfinity, N::zero());
    let before = from.is_positive().then(|| nothing(N::zero()));
    let pieces = before.into_iter().chain(part.pieces.iter().cloned());
    let section = Section {
        pieces: pieces.chain([nothing(part.end.clone())]).collect(),
        end: part.end.plus(&N::whole(1)),
    };
    Periodic::new(section, part.end.clone(), N::whole(1), N::zero())
}

/// Adds the closures of all points and segments; false if one of them has no lower bound.
fn closures_of<N: Number>(
    part: &Section<N>,
    closures: &mut Vec<Periodic<N>>,
    budget: &mut Budget,
) -> Result<bool, Error> {
    for (piece, end) in part.spans() {
        if let (Finite(value), true) = (&piece.at, piece.start.is_positive()) {
            closures.push(point(&piece.start, value));
        }
        if let Finite(value) = &piece.after {
            match segment(&piece.start, end, value, &piece.slope, budget)? {
                Some(closure) => closures.push(closure),
                None => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// The closure of a value at a time above 0.
fn point<N: Number>(time: &N, value: &N) -> Periodic<N> {
    let piece = Piece::new(N::zero(), Finite(N::zero()), PositiveInfinity, N::zero());
    let section = Section {
        pieces: vec![piece],
        end: time.clone(),
    };
    Periodic::new(section, N::zero(), time.clone(), value.clone())
}

/// The closure of a line on (start, end), from a limit; `None` if it has no lower bound.
fn segment<N: Number>(
    start: &N,
    end: &N,
    value: &N,
    slope: &N,
    budget: &mut Budget,
) -> Result<Option<Periodic<N>>, Error> {
    let each = value.minus(&slope.times(start));
    let zero = N::zero();
    if start.is_zero() && each < zero {
        return Ok(None);
    }
    // From where no gap is left.
    let closed = start.times(end).over(&end.minus(start));
    let few = each.is_positive() || start.is_zero();
    let period = if few { end } else { start };
    let transient = closed.plus(period);
    let until = transient.plus(period);
    // More copies than these begin behind the end, or are above others.
    let copies = budget.take(&until.over(period).floor().plus(&N::whole(2)))?;
    let mut envelope = Envelope::new(until);
    envelope.path(&zero, Finite(zero.clone()), &[]);
    let length = end.minus(start);
    let mut begin = (zero.clone(), zero.clone(), zero);
    for _ in 0..copies {
        let (time, low, long) = begin;
        begin = (time.plus(start), low.plus(value), long.plus(&length));
        let line = (Finite(begin.1.clone()), begin.2.clone(), slope.clone());
        envelope.path(&begin.0, PositiveInfinity, &[line]);
    }
    let step = each.plus(&slope.times(period));
    let section = envelope.lowest();
    Ok(Some(Periodic::new(
        section,
        transient,
        period.clone(),
        step,
    )))
}

/// All convolved, by slope.
fn in_order<N: Number>(
    mut curves: Vec<Periodic<N>>,
    budget: &mut Budget,
) -> Result<Periodic<N>, Error> {
    let ends = |curve: &Periodic<N>| curve.ultimate_infinity().is_some();
    curves.sort_by(|one, two| {
        let slopes = || one.slope().cmp(&two.slope());
        ends(one).cmp(&ends(two)).then_with(slopes)
    });
    let mut all = unit();
    for curve in curves {
        all = budget.convolved(&all, &curve)?;
    }
    Ok(all)
}

/// f ∗ g, and what that looked at; if the one of lesser slope is +∞ at times of each period and the other is finite, without
/// a common multiple.
fn convolved<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<(Periodic<N>, u64), Error> {
    if f.ultimate_infinity().is_none() && g.ultimate_infinity().is_none() {
        let (low, high) = if f.slope() < g.slope() {
            (f, g)
        } else {
            (g, f)
        };
        if let Some(transient) = beside_gaps(low, high) {
            let (period, step) = (low.period.clone(), low.step.clone());
            return convolution::of_sections(low, high, transient, period, step, algebra);
        }
    }
    convolution::with_work(f, g, algebra)
}

/// From when on the convolution repeats itself as `low` does, which is +∞ at times of each period.
///
/// Let low be finite at u ≥ T_l, and M be above high(r) − ρ_l r for r in [T_h, T_h + d_l). Any t ≥ u + T_h
/// is u + k d_l + r with such an r, so the result is at most ρ_l t + low(u) − ρ_l u + M there. Giving s to
/// high makes it at least ρ_l t + m_l + m_h + (ρ_h − ρ_l) s. So what wins has
/// s ≤ S = (low(u) − ρ_l u + M − m_l − m_h) / (ρ_h − ρ_l), and behind T_l + S leaves low in its periodic part.
fn beside_gaps<N: Number>(low: &Periodic<N>, high: &Periodic<N>) -> Option<N> {
    let apart = high.slope().minus(&low.slope());
    if !apart.is_positive() || low.around_slope().is_some() {
        return None;
    }
    let (_, most) = high.around_slope()?;
    let (least_low, least_high) = (low.lowest()?, high.lowest()?);
    let slope = low.slope();
    let (time, value) = low
        .section
        .pieces_of(&low.transient, &low.section.end)
        .find_map(|piece| Some((piece.start.clone(), piece.at.finite()?.clone())))?;
    let latest = high.transient.plus(&low.period);
    let most = most.plus(&apart.times(&latest));
    let above = value.minus(&slope.times(&time)).plus(&most);
    let reach = above.minus(&least_low).minus(&least_high).over(&apart);
    let covered = time.plus(&high.transient);
    Some(covered.max(low.transient.plus(&reach.max(N::zero()))))
}

#[cfg(test)]
mod tests {
    use crate::curve::{Curve, Element, Value};
    use crate::number::Rational;
    use crate::settings::Algebra;

    const STRETCH: i64 = 1_000_000;

    fn part(numerator: i64, denominator: i64) -> Rational {
        Rational::new(numerator, denominator).expect("not zero")
    }

    fn whole(value: i64) -> Rational {
        Rational::from(value)
    }

    /// A value at 0 and another up to 1/2, where there is none; behind it a line.
    fn broken([origin, before, behind, slope]: [i64; 4]) -> Curve {
        let value = |value: i64| Value::Finite(whole(value));
        let point = |time: Rational, value: Value| Element::Point { time, value };
        let segment = |ends: [Rational; 2], value: Value, slope: i64| {
            let [start, end] = ends;
            Element::Segment {
                start,
                end,
                value,
                slope: whole(slope),
            }
        };
        let (half, next, end) = (part(1, 2), part(3, 2), part(5, 2));
        let elements = [
            point(whole(0), value(origin)),
            segment([whole(0), half.clone()], value(before), 0),
            point(half.clone(), Value::PositiveInfinity),
            segment([half, next.clone()], value(behind), slope),
            point(next.clone(), value(behind + slope)),
            segment([next.clone(), end], value(behind + slope), slope),
        ];
        Curve::new(&elements, &next, &whole(1), &whole(slope)).expect("a curve")
    }

    /// Its closure, and that of the same in a million times the time, of which an end by periods of
    /// one tick has as many copies as there are ticks: each is its definition.
    #[track_caller]
    fn is_closed(parts: [i64; 4], definition: impl Fn(&Rational) -> Value) {
        let algebra = Algebra {
            limit: 30_000,
            ..Algebra::default()
        };
        let curve = broken(parts);
        let stretched = curve.stretched(&whole(STRETCH)).expect("above 0");
        let short = algebra.subadditive_closure(&curve).expect("short");
        let long = algebra.subadditive_closure(&stretched).expect("stretched");
        assert_eq!(long, short.stretched(&whole(STRETCH)).expect("above 0"));
        for sixths in 0..60 {
            let (time, later) = (part(sixths, 6), part(sixths * STRETCH, 6));
            let expected = Some(definition(&time));
            assert_eq!(short.value(&time), expected, "at {time}");
            assert_eq!(long.value(&later), expected, "at {later}");
        }
    }

    #[test]
    fn affine_ends_behind_an_open_start_are_closed_however_late() {
        let number = |value: i64| Value::Finite(whole(value));
        is_closed([-1, 0, 0, 0], |_| Value::NegativeInfinity);
        is_closed([0, 0, 0, 0], |_| number(0));
        // Only two pieces up to 1/2 are at 1/2.
        is_closed([0, 1, 0, 0], |time| match time {
            time if *time == whole(0) || *time > part(1, 2) => number(0),
            time => number(if *time < part(1, 2) { 1 } else { 2 }),
        });
        // As many pieces up to 1/2 as are needed, or one on the line.
        is_closed([0, 1, 3, 1], |time| match time {
            time if *time == whole(0) => number(0),
            time => {
                let pieces = &(time * &whole(2)).floor() + &whole(1);
                Value::Finite(pieces.min(time + &part(5, 2)))
            }
        });
    }
}
