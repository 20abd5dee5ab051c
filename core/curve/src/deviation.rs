//! How far one curve is from another: vertically, horizontally.
//!
//! The vertical deviation is the supremum of f(t) − g(t): of an arrival and a service curve the
//! backlog. The horizontal one is the supremum over t of `inf {d ≥ 0 : f(t) ≤ g(t + d)}`: the delay.
//! Either is found by one walk over both curves up to a time behind which it does not grow.
//!
//! **How far to look.** With ρ_f = ρ_g, f − g repeats itself by the common period from the later of
//! both T on. With ρ_f < ρ_g it falls below what was found: behind both T it is at most
//! M_f − m_g − (ρ_g − ρ_f) t, where M_f is the highest of f above its slope and m_g the lowest of g
//! above its own, and at the later T it is at least m_f − M_g − (ρ_g − ρ_f) T. So no common
//! multiple is needed; the nearer of both ends is taken. Horizontally the same holds of the lower
//! pseudo-inverse φ of g and its slope 1/ρ_g: φ(f(t)) − t ≤ M_f/ρ_g + M_φ − (1 − ρ_f/ρ_g) t.
//!
//! Invariant: what is not below any number is +∞, and no error.

use crate::composition;
use crate::curve::{Value, shown};
use crate::error::Error;
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::found::Found;
use crate::inverse::{self, never_falls};
use crate::number::{Number, Rational, exactly};
use crate::periodic::Periodic;
use crate::pointwise::common_period;
use crate::section::Section;
use crate::settings::Algebra;

/// How far, and when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deviation {
    /// The supremum; +∞ if there is no bound.
    pub value: Value,
    /// The first time at which it is attained, or is the limit from one side; `None` if it is
    /// approached only as time goes on.
    pub time: Option<Rational>,
}

/// A deviation on one kind of number.
pub(crate) struct Highest<N> {
    value: Extended<N>,
    time: Option<N>,
}

impl<N: Number> Found for Highest<N> {
    type Shown = Deviation;

    fn shown(self) -> Deviation {
        Deviation {
            value: shown(&self.value),
            time: self.time.map(|time| time.rational()),
        }
    }
}

impl<N: Number> Highest<N> {
    fn new(value: Extended<N>, time: Option<N>) -> Self {
        Highest { value, time }
    }

    fn take(&mut self, value: Extended<N>, time: &N) {
        if value > self.value {
            *self = Highest::new(value, Some(time.clone()));
        }
    }
}

/// The nearer of two times, of which the first may take more than 64 bits where the other does not.
pub(crate) fn nearer<N: Number>(far: impl FnOnce() -> N, near: Option<N>) -> N {
    match near {
        None => far(),
        Some(near) => exactly(far).map_or(near.clone(), |far| far.min(near)),
    }
}

/// sup f(t) − g(t).
pub(crate) fn vertical<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Highest<N>, Error> {
    let latest = f.transient.clone().max(g.transient.clone());
    let one_ends = f.ultimate_infinity().is_some() || g.ultimate_infinity().is_some();
    let around = f.around_slope().zip(g.around_slope());
    let apart = g.slope().minus(&f.slope());
    let grows = !one_ends && apart < N::zero();
    let gap = match (&around, grows) {
        (Some(_), true) => Some(latest.plus(&f.period)),
        (Some(((least_f, most_f), (least_g, most_g))), false) if apart.is_positive() => {
            let spread = most_f.minus(least_f).plus(&most_g.minus(least_g));
            Some(latest.plus(&spread.over(&apart)).plus(&f.period))
        }
        _ => None,
    };
    let end = nearer(|| latest.plus(&common_period(f, g)), gap);
    let (left, right) = (f.up_to(&end, algebra.limit)?, g.up_to(&end, algebra.limit)?);
    // Whether both are finite at one time of each period.
    let mut together = around.is_some();
    let mut highest = Highest::new(NegativeInfinity, Some(N::zero()));
    left.together(&right, |one, two, end| {
        let minus = |left: &Extended<N>, right: &Extended<N>| {
            left.plus(&right.negated()).ok_or(Error::Undefined)
        };
        let (at, after) = (minus(&one.at, &two.at)?, minus(&one.after, &two.after)?);
        let finite = at.finite().is_some() && one.start >= latest;
        together |= finite || (after.finite().is_some() && *end > latest);
        highest.take(at, &one.start);
        highest.take(after, &one.start);
        highest.take(minus(&one.line(end), &two.line(end))?, end);
        Ok::<(), Error>(())
    })?;
    if grows && together && highest.value != PositiveInfinity {
        return Ok(Highest::new(PositiveInfinity, None));
    }
    Ok(highest)
}

/// The supremum of `inf {d ≥ 0 : f(t) ≤ g(t + d)}`; neither falls.
pub(crate) fn horizontal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Highest<N>, Error> {
    never_falls(f, "a horizontal deviation")?;
    never_falls(g, "a horizontal deviation")?;
    // Moved together so that inverses begin below all values.
    let least = first_finite(f).into_iter().chain(first_finite(g)).min();
    let up = least.unwrap_or_else(N::zero).negated().max(N::zero());
    let (f, g) = (&f.raised(&up), &g.raised(&up));
    let delay = inverse::lower(g, algebra)?;
    let reached = |value: &Extended<N>| match value {
        NegativeInfinity => Finite(N::zero()),
        Finite(value) => delay.value(value),
        PositiveInfinity => match g.ultimate_infinity() {
            Some(PositiveInfinity) => delay.value(&delay.transient),
            _ => PositiveInfinity,
        },
    };
    let end = if f.ultimate_infinity().is_some() || f.step.is_zero() {
        f.section.end.clone()
    } else if let Some(PositiveInfinity) = g.ultimate_infinity() {
        g.section.end.clone()
    } else if !g.step.is_positive() {
        // f exceeds all that g reaches.
        let last = inverse::upper(f, algebra)?;
        let time = match g.section.value(&g.transient) {
            Finite(most) if most >= N::zero() => last.value(&most),
            _ => Finite(N::zero()),
        };
        let time = time.finite().cloned().unwrap_or_else(N::zero);
        return Ok(Highest::new(PositiveInfinity, Some(time)));
    } else {
        match f.slope().cmp(&g.slope()) {
            std::cmp::Ordering::Greater => return Ok(Highest::new(PositiveInfinity, None)),
            std::cmp::Ordering::Equal => same_slope(f, g, &delay, algebra)?,
            std::cmp::Ordering::Less => {
                let near = gap(f, g, &delay, &reached(&f.section.value(&N::zero())));
                let far = || same_slope(f, g, &delay, algebra);
                match near {
                    Some(near) => near,
                    None => far()?,
                }
            }
        }
    };
    let end = end.max(
        f.section
            .pieces
            .get(1)
            .map_or(f.period.clone(), |piece| piece.start.clone()),
    );
    let inner = f.up_to(&end, algebra.limit)?;
    let most = composition::most(&inner);
    let outer = delay.up_to(&most.plus(&delay.period), algebra.limit)?;
    let beyond = reached(&PositiveInfinity);
    let reached = composition::sections(&outer, &inner, Some(&beyond), algebra)?;
    Ok(above_time(&reached))
}

/// The highest of f(t) − t, or 0.
fn above_time<N: Number>(section: &Section<N>) -> Highest<N> {
    let mut highest = Highest::new(Finite(N::zero()), Some(N::zero()));
    for (piece, end) in section.spans() {
        for (value, time) in [
            (piece.at.clone(), &piece.start),
            (piece.after.clone(), &piece.start),
            (piece.line(end), end),
        ] {
            highest.take(value.moved(&time.negated()), time);
        }
    }
    highest
}

/// The first finite value, or limit from the right, of a curve that never falls.
fn first_finite<N: Number>(f: &Periodic<N>) -> Option<N> {
    let values = f
        .section
        .pieces
        .iter()
        .flat_map(|piece| [&piece.at, &piece.after]);
    values.filter_map(Extended::finite).next().cloned()
}

/// Behind one common period of f and of the inverse at its values.
fn same_slope<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    delay: &Periodic<N>,
    algebra: &Algebra,
) -> Result<N, Error> {
    let reached = inverse::lower(f, algebra)?.value(&delay.transient);
    let begin = f
        .transient
        .clone()
        .max(reached.finite().cloned().unwrap_or_else(N::zero));
    let period = if f.is_ultimately_affine() {
        delay.period.over(&f.slope())
    } else if g.is_ultimately_affine() {
        f.period.clone()
    } else {
        let common = f.step.common_multiple(&delay.period);
        common.over(&f.step).times(&f.period)
    };
    Ok(begin.plus(&period).plus(&f.period))
}

/// From when on no value can be above the first one; `None` where a curve is not finite.
fn gap<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    delay: &Periodic<N>,
    first: &Extended<N>,
) -> Option<N> {
    let most = |curve: &Periodic<N>| Some(curve.negated().lowest()?.negated());
    let slope = g.slope();
    let above = most(f)?.over(&slope).plus(&most(delay)?);
    let above = above.minus(first.finite()?);
    let apart = N::whole(1).minus(&f.slope().over(&slope));
    Some(above.over(&apart).max(N::zero()))
}
