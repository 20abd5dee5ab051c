//! Values rounded to whole numbers.
//!
//! The result repeats itself as soon as the curve does, over the least number of periods by which
//! it rises by a whole number; a curve that is affine in the end, over the time in which it rises,
//! or falls, by one.
//!
//! Invariant: the number of pieces is known before any is made.

use crate::error::Error;
use crate::extended::Extended::{self, Finite};
use crate::number::Number;
use crate::periodic::Periodic;
use crate::section::{Piece, Section};
use crate::settings::Algebra;

/// The greatest whole numbers that are not above.
pub(crate) fn floor<N: Number>(f: &Periodic<N>, algebra: &Algebra) -> Result<Periodic<N>, Error> {
    let one = N::whole(1);
    let size = f.step.clone().max(f.step.negated());
    let (period, step) = if size.is_zero() {
        (f.period.clone(), f.step.clone())
    } else if f.is_ultimately_affine() {
        let slope = f.slope();
        let size = slope.clone().max(slope.negated());
        (one.over(&size), slope.over(&size))
    } else {
        let times = size.common_multiple(&one).over(&size);
        (f.period.times(&times), f.step.times(&times))
    };
    let end = f.transient.plus(&period);
    let long = f.up_to(&end, algebra.limit)?;
    let rise = long.spans().fold(N::zero(), |rise, (piece, end)| {
        let more = piece.slope.times(&end.minus(&piece.start));
        rise.plus(&more.clone().max(more.negated()))
            .plus(&N::whole(2))
    });
    let pieces = rise.floor().rational();
    let Some(most) = pieces.whole().filter(|most| *most <= algebra.limit) else {
        let limit = algebra.limit;
        return Err(Error::TooLarge { pieces, limit });
    };
    let mut found = Vec::new();
    for (piece, end) in long.spans() {
        let at = down(&piece.at);
        let Finite(from) = &piece.after else {
            let after = piece.after.clone();
            found.push(Piece::new(piece.start.clone(), at, after, N::zero()));
            continue;
        };
        let falls = piece.slope < N::zero();
        // The whole number just behind the start, and the next one to be met.
        let (mut level, mut next) = match falls {
            false => (from.floor(), from.floor().plus(&one)),
            true => {
                let below = from.negated().floor().negated().minus(&one);
                (below.clone(), below)
            }
        };
        let after = Finite(level.clone());
        found.push(Piece::new(piece.start.clone(), at, after, N::zero()));
        if piece.slope.is_zero() {
            if let (Some(last), Finite(from)) = (found.last_mut(), &piece.after) {
                last.after = Finite(from.floor());
            }
            continue;
        }
        // As many as there can be: after a result that did not fit times may stand still.
        for _ in 0..most {
            let time = piece.start.plus(&next.minus(from).over(&piece.slope));
            if time >= *end {
                break;
            }
            let met = Finite(next.clone());
            level = match falls {
                false => next.clone(),
                true => next.minus(&one),
            };
            next = match falls {
                false => next.plus(&one),
                true => level.clone(),
            };
            found.push(Piece::new(time, met, Finite(level.clone()), N::zero()));
        }
    }
    let section = Section::merged(found, end);
    Ok(Periodic::new(section, f.transient.clone(), period, step))
}

/// The least whole numbers that are not below.
pub(crate) fn ceiling<N: Number>(f: &Periodic<N>, algebra: &Algebra) -> Result<Periodic<N>, Error> {
    Ok(floor(&f.negated(), algebra)?.negated())
}

fn down<N: Number>(value: &Extended<N>) -> Extended<N> {
    match value {
        Finite(value) => Finite(value.floor()),
        infinity => infinity.clone(),
    }
}
