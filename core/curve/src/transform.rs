//! Shifts, scales and the negation.
//!
//! Invariant: each is linear in the pieces, and undone by its opposite where it has one.

use crate::error::Error;
use crate::extended::Extended::{self, Finite};
use crate::number::Number;
use crate::periodic::Periodic;
use crate::section::{Piece, Section};
use crate::settings::Algebra;

/// f(t − by), and 0 before; `by` is not below 0.
pub(crate) fn delayed<N: Number>(f: &Periodic<N>, by: &N) -> Result<Periodic<N>, Error> {
    not_below_zero(by, "a curve is delayed")?;
    if by.is_zero() {
        return Ok(f.clone());
    }
    let zero = N::zero();
    let nothing = Finite(zero.clone());
    let before = Piece::new(zero.clone(), nothing.clone(), nothing, zero.clone());
    let pieces = f.section.pieces.iter().map(|piece| piece.moved(by, &zero));
    let section = Section {
        pieces: [before].into_iter().chain(pieces).collect(),
        end: f.section.end.plus(by),
    };
    let transient = f.transient.plus(by);
    Ok(Periodic::new(
        section,
        transient,
        f.period.clone(),
        f.step.clone(),
    ))
}

/// f(t + by); `by` is not below 0.
pub(crate) fn advanced<N: Number>(
    f: &Periodic<N>,
    by: &N,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    not_below_zero(by, "a curve is advanced")?;
    let latest = f.transient.clone().max(by.clone());
    let long = f.up_to(&latest.plus(&f.period), algebra.limit)?;
    let (back, zero) = (by.negated(), N::zero());
    let pieces = long.pieces_of(by, &long.end);
    let section = Section {
        pieces: pieces.map(|piece| piece.moved(&back, &zero)).collect(),
        end: long.end.minus(by),
    };
    let transient = latest.minus(by);
    Ok(Periodic::new(
        section,
        transient,
        f.period.clone(),
        f.step.clone(),
    ))
}

/// f(t) + by, but for f(0).
pub(crate) fn raised_behind_origin<N: Number>(
    f: &Periodic<N>,
    by: &N,
) -> Result<Periodic<N>, Error> {
    let raised = f.raised(by);
    let transient = f.transient.plus(&f.period);
    let mut section = raised.up_to(&transient.plus(&f.period), u64::MAX)?;
    if let Some(first) = section.pieces.first_mut() {
        first.at = f.section.value(&N::zero());
    }
    Ok(Periodic::new(
        section,
        transient,
        f.period.clone(),
        f.step.clone(),
    ))
}

/// by · f(t).
pub(crate) fn scaled<N: Number>(f: &Periodic<N>, by: &N) -> Result<Periodic<N>, Error> {
    let infinite = |value: &Extended<N>| value.finite().is_none();
    let mut pieces = f.section.pieces.iter();
    if by.is_zero() && pieces.any(|piece| infinite(&piece.at) || infinite(&piece.after)) {
        return Err(Error::Undefined);
    }
    let value = |value: &Extended<N>| match value {
        Finite(value) => Finite(value.times(by)),
        infinity if by.is_positive() => infinity.clone(),
        infinity => infinity.negated(),
    };
    let pieces = f.section.pieces.iter().map(|piece| {
        let slope = piece.slope.times(by);
        Piece::new(
            piece.start.clone(),
            value(&piece.at),
            value(&piece.after),
            slope,
        )
    });
    let section = Section {
        pieces: pieces.collect(),
        end: f.section.end.clone(),
    };
    let (transient, period) = (f.transient.clone(), f.period.clone());
    Ok(Periodic::new(section, transient, period, f.step.times(by)))
}

/// f(t / by); `by` is above 0.
pub(crate) fn stretched<N: Number>(f: &Periodic<N>, by: &N) -> Result<Periodic<N>, Error> {
    if !by.is_positive() {
        return Err(Error::Argument {
            what: format!(
                "time can not be stretched by {}: a factor is above 0",
                by.rational()
            ),
        });
    }
    let pieces = f.section.pieces.iter().map(|piece| Piece {
        start: piece.start.times(by),
        slope: piece.slope.over(by),
        ..piece.clone()
    });
    let section = Section {
        pieces: pieces.collect(),
        end: f.section.end.times(by),
    };
    let (transient, period) = (f.transient.times(by), f.period.times(by));
    Ok(Periodic::new(section, transient, period, f.step.clone()))
}

fn not_below_zero<N: Number>(by: &N, what: &str) -> Result<(), Error> {
    if *by < N::zero() {
        return Err(Error::Argument {
            what: format!("{what} by {}: by 0 or more", by.rational()),
        });
    }
    Ok(())
}
