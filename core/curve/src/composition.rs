//! Composition: f(g(t)).
//!
//! Let g be at least 0 and repeat itself by d_g, rising by c_g. With c_g = 0 so does f(g(t)). Else
//! it does as soon as g is at T_f or later for good, by the least number of periods of g over which
//! it rises by a multiple of d_f.
//!
//! Invariant: no value of the outer curve is used that lies behind what was taken of it.

use crate::error::Error;
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::periodic::Periodic;
use crate::section::{Piece, Section};
use crate::settings::Algebra;

/// f(g(t)).
pub(crate) fn compose<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let zero = N::zero();
    for (piece, end) in g.section.spans() {
        let zero = Finite(zero.clone());
        if piece.at < zero || piece.after < zero || piece.line(end) < zero {
            return Err(Error::NegativeTime {
                time: piece.start.rational(),
            });
        }
    }
    if g.step < zero {
        return Err(Error::NegativeTime {
            time: g.section.end.rational(),
        });
    }
    let infinite = f.ultimate_infinity().is_some();
    let (transient, period, step) = if g.step.is_zero() {
        (g.transient.clone(), g.period.clone(), N::zero())
    } else {
        // From when on g is not below T_f.
        let slope = g.slope();
        let least = lowest_behind(g, &slope);
        let late = f.transient.minus(&least).over(&slope);
        let transient = g.transient.clone().max(late);
        if infinite {
            (transient, g.period.clone(), N::zero())
        } else if f.is_ultimately_affine() {
            (transient, g.period.clone(), f.slope().times(&g.step))
        } else if g.is_ultimately_affine() {
            (transient, f.period.over(&slope), f.step.clone())
        } else {
            let common = f.period.common_multiple(&g.step);
            let period = common.over(&g.step).times(&g.period);
            (transient, period, common.over(&f.period).times(&f.step))
        }
    };
    let end = transient.plus(&period);
    let inner = g.up_to(&end, algebra.limit)?;
    let outer = f.up_to(&most(&inner).plus(&f.period), algebra.limit)?;
    let section = sections(&outer, &inner, limit(f).as_ref(), algebra)?;
    Ok(Periodic::new(section, transient, period, step))
}

/// The least of g(t) − slope · t from T on, where g is finite.
fn lowest_behind<N: Number>(g: &Periodic<N>, slope: &N) -> N {
    let mut least: Option<N> = None;
    for (piece, end) in g.section.spans() {
        if *end <= g.transient {
            continue;
        }
        let begin = piece.start.clone().max(g.transient.clone());
        let at = match piece.start == begin {
            true => piece.at.clone(),
            false => piece.line(&begin),
        };
        for (time, value) in [
            (&begin, at),
            (&begin, piece.line(&begin)),
            (end, piece.line(end)),
        ] {
            if let Finite(value) = value {
                let above = value.minus(&slope.times(time));
                least = Some(match least {
                    Some(least) => least.min(above),
                    None => above,
                });
            }
        }
    }
    least.unwrap_or_else(N::zero)
}

/// The highest finite value of a section, or 0.
pub(crate) fn most<N: Number>(inner: &Section<N>) -> N {
    let mut most = N::zero();
    for (piece, end) in inner.spans() {
        for value in [piece.at.clone(), piece.after.clone(), piece.line(end)] {
            if let Finite(value) = value {
                most = most.max(value);
            }
        }
    }
    most
}

/// What f comes to as time goes on; `None` if to nothing.
fn limit<N: Number>(f: &Periodic<N>) -> Option<Extended<N>> {
    if let Some(infinity) = f.ultimate_infinity() {
        return Some(infinity);
    }
    f.around_slope()?;
    if f.step.is_positive() {
        return Some(PositiveInfinity);
    }
    if f.step < N::zero() {
        return Some(NegativeInfinity);
    }
    f.is_ultimately_affine()
        .then(|| f.section.value(&f.transient))
}

/// A section of the outer curve at the values of one of the inner, which are below its end, or +∞,
/// where the outer one is `beyond`. Values of the inner one below 0, which only −∞ may be, count as
/// 0.
pub(crate) fn sections<N: Number>(
    outer: &Section<N>,
    inner: &Section<N>,
    beyond: Option<&Extended<N>>,
    algebra: &Algebra,
) -> Result<Section<N>, Error> {
    let at = |value: &Extended<N>| match value {
        Finite(value) => Ok(outer.value(value)),
        NegativeInfinity => Ok(outer.value(&N::zero())),
        PositiveInfinity => beyond.cloned().ok_or(Error::Undefined),
    };
    let index = |value: &N| outer.pieces.partition_point(|piece| piece.start <= *value);
    // How many pieces, before any is made.
    let mut pieces = 0_u64;
    for (piece, end) in inner.spans() {
        pieces += 1;
        if let (Finite(from), Finite(to)) = (&piece.after, piece.line(end)) {
            pieces += index(from).abs_diff(index(&to)) as u64;
        }
    }
    if pieces > algebra.limit {
        return Err(Error::too_large(pieces, algebra));
    }
    let mut found = Vec::with_capacity(pieces as usize);
    for (piece, end) in inner.spans() {
        let point = at(&piece.at)?;
        let (Finite(from), Finite(to)) = (&piece.after, piece.line(end)) else {
            let after = at(&piece.after)?;
            found.push(Piece::new(piece.start.clone(), point, after, N::zero()));
            continue;
        };
        if piece.slope.is_zero() {
            let after = outer.value(from);
            found.push(Piece::new(piece.start.clone(), point, after, N::zero()));
            continue;
        }
        let slope = |of: &Piece<N>| of.slope.times(&piece.slope);
        let time = |value: &N| piece.start.plus(&value.minus(from).over(&piece.slope));
        if piece.slope.is_positive() {
            let first = index(from).saturating_sub(1);
            let over = &outer.pieces[first];
            found.push(Piece::new(
                piece.start.clone(),
                point,
                over.line(from),
                slope(over),
            ));
            for over in outer.pieces[first + 1..]
                .iter()
                .take_while(|over| over.start < to)
            {
                found.push(Piece::new(
                    time(&over.start),
                    over.at.clone(),
                    over.after.clone(),
                    slope(over),
                ));
            }
        } else {
            // Values go down: each piece of the outer curve is entered at its end.
            let mut over = outer.pieces.partition_point(|over| over.start < *from);
            over = over.saturating_sub(1);
            found.push(Piece::new(
                piece.start.clone(),
                point,
                outer.pieces[over].line(from),
                slope(&outer.pieces[over]),
            ));
            while over > 0 && outer.pieces[over].start > to {
                let left = &outer.pieces[over];
                let entered = &outer.pieces[over - 1];
                found.push(Piece::new(
                    time(&left.start),
                    left.at.clone(),
                    entered.line(&left.start),
                    slope(entered),
                ));
                over -= 1;
            }
        }
    }
    Ok(Section::merged(found, inner.end.clone()))
}
