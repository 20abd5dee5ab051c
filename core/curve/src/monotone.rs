//! Closures under time: the least curve above that never falls, the greatest one below.
//!
//! The upper one is the highest value so far, the lower one the lowest value yet to come. The lower
//! one looks ahead only, so it repeats itself when the curve does. The upper one repeats itself
//! with c > 0 from one period behind T on, and as many more as it takes until the highest value of
//! a period is not below the highest before T; with c ≤ 0 it is constant from T + d on.
//!
//! Invariant: each is computed by one walk.

use crate::error::Error;
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::periodic::Periodic;
use crate::section::{Piece, Section};
use crate::settings::Algebra;

/// sup f(s) over s ≤ t.
pub(crate) fn upper<N: Number>(f: &Periodic<N>, algebra: &Algebra) -> Result<Periodic<N>, Error> {
    let first = f.section.cut_highest(&N::zero(), &f.transient);
    let again = f.section.cut_highest(&f.transient, &f.section.end);
    let mut transient = f.section.end.clone();
    let mut step = f.step.clone().max(N::zero());
    match (&first, &again) {
        (PositiveInfinity, _) | (_, PositiveInfinity) => step = N::zero(),
        (Finite(first), Finite(again)) if step.is_positive() && first > again => {
            let more = again.minus(first).over(&step).floor().negated();
            transient = transient.plus(&more.times(&f.period));
        }
        _ => {}
    }
    let end = transient.plus(&f.period);
    let long = f.up_to(&end, algebra.limit)?;
    let mut level = NegativeInfinity;
    let mut pieces = Vec::with_capacity(long.pieces.len());
    for (piece, end) in long.spans() {
        let at = level.max(piece.at.clone());
        let after = at.clone().max(piece.after.clone());
        level = after.clone().max(piece.line(end));
        if !piece.slope.is_positive() || piece.after.finite().is_none() || level == after {
            pieces.push(Piece::new(piece.start.clone(), at, after, N::zero()));
            continue;
        }
        if piece.after == after {
            let slope = piece.slope.clone();
            pieces.push(Piece::new(piece.start.clone(), at, after, slope));
            continue;
        }
        let (Finite(flat), Finite(from)) = (&after, &piece.after) else {
            continue;
        };
        let time = piece.start.plus(&flat.minus(from).over(&piece.slope));
        let met = Piece::new(time, after.clone(), after.clone(), piece.slope.clone());
        pieces.push(Piece::new(piece.start.clone(), at, after, N::zero()));
        pieces.push(met);
    }
    let section = Section { pieces, end };
    Ok(Periodic::new(section, transient, f.period.clone(), step))
}

/// inf f(s) over s ≥ t.
pub(crate) fn lower<N: Number>(f: &Periodic<N>, _: &Algebra) -> Result<Periodic<N>, Error> {
    let least = f
        .negated()
        .section
        .cut_highest(&f.transient, &f.section.end);
    let least = least.negated();
    if f.step < N::zero() || least == NegativeInfinity {
        return Ok(Periodic::constant(NegativeInfinity));
    }
    let mut level = least.moved(&f.step);
    let mut pieces: Vec<Piece<N>> = Vec::with_capacity(f.section.pieces.len());
    let spans: Vec<_> = f.section.spans().collect();
    for (piece, end) in spans.into_iter().rev() {
        let last = piece.line(end);
        let start = piece.start.clone();
        let after = if !piece.slope.is_positive() || piece.after >= level {
            let flat = level.min(last).min(piece.after.clone());
            pieces.push(Piece::new(start, flat.clone(), flat.clone(), N::zero()));
            flat
        } else {
            if let (Finite(level), Finite(from)) = (&level, &piece.after)
                && Finite(level.clone()) < last
            {
                let time = piece.start.plus(&level.minus(from).over(&piece.slope));
                let level = Finite(level.clone());
                pieces.push(Piece::new(time, level.clone(), level, N::zero()));
            }
            let after = piece.after.clone();
            let slope = piece.slope.clone();
            pieces.push(Piece::new(start, after.clone(), after.clone(), slope));
            after
        };
        level = after.min(piece.at.clone());
        if let Some(piece) = pieces.last_mut() {
            piece.at = level.clone();
        }
    }
    pieces.reverse();
    let section = Section {
        pieces,
        end: f.section.end.clone(),
    };
    Ok(Periodic::new(
        section,
        f.transient.clone(),
        f.period.clone(),
        f.step.clone(),
    ))
}

impl<N: Number> Section<N> {
    /// The supremum on `[from, to)`; −∞ of no time.
    fn cut_highest(&self, from: &N, to: &N) -> Extended<N> {
        if from >= to {
            return NegativeInfinity;
        }
        let part = self.part(from, to);
        let highest = part.spans().map(|(piece, end)| {
            let line = piece.after.clone().max(piece.line(end));
            line.max(piece.at.clone())
        });
        highest.max().unwrap_or(NegativeInfinity)
    }
}
