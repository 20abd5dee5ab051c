//! Piecewise affine functions on an interval that begins at zero.
//!
//! Invariant: pieces begin at zero and at ever later times before the end; so there are neither
//! gaps nor overlaps. The slope of an infinite piece is zero.

use std::cmp::Ordering;

use crate::extended::Extended::{self, Finite};
use crate::number::Number;

/// From one breakpoint to the next: the value there, and the line behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Piece<N> {
    /// Where it begins.
    pub(crate) start: N,
    /// The value there.
    pub(crate) at: Extended<N>,
    /// The limit from the right.
    pub(crate) after: Extended<N>,
    /// The slope up to the next piece.
    pub(crate) slope: N,
}

impl<N: Number> Piece<N> {
    /// A piece; an infinite one loses its slope.
    pub(crate) fn new(start: N, at: Extended<N>, after: Extended<N>, slope: N) -> Self {
        let slope = match after {
            Finite(_) => slope,
            _ => N::zero(),
        };
        Piece {
            start,
            at,
            after,
            slope,
        }
    }

    /// The value of the line at a time that is not before the piece.
    pub(crate) fn line(&self, time: &N) -> Extended<N> {
        match &self.after {
            Finite(after) => Finite(after.plus(&self.slope.times(&time.minus(&self.start)))),
            infinity => infinity.clone(),
        }
    }

    /// The value at a time that is not before the piece.
    pub(crate) fn value(&self, time: &N) -> Extended<N> {
        match self.start == *time {
            true => self.at.clone(),
            false => self.line(time),
        }
    }

    /// What the piece would be if it began later, on its line.
    pub(crate) fn from(&self, time: &N) -> Self {
        let value = self.line(time);
        Piece::new(time.clone(), value.clone(), value, self.slope.clone())
    }

    /// The piece moved by a time and a value.
    pub(crate) fn moved(&self, time: &N, value: &N) -> Self {
        Piece {
            start: self.start.plus(time),
            at: self.at.moved(value),
            after: self.after.moved(value),
            slope: self.slope.clone(),
        }
    }

    /// Whether it only goes on with the line of the piece before.
    pub(crate) fn continues(&self, before: &Self) -> bool {
        self.slope == before.slope && self.at == self.after && self.at == before.line(&self.start)
    }
}

/// A function on `[0, end)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Section<N> {
    /// What it is made of.
    pub(crate) pieces: Vec<Piece<N>>,
    /// Where it ends; above zero.
    pub(crate) end: N,
}

impl<N: Number> Section<N> {
    /// Merges pieces that continue each other. Linear.
    pub(crate) fn merged(pieces: impl IntoIterator<Item = Piece<N>>, end: N) -> Self {
        let mut kept: Vec<Piece<N>> = pieces.into_iter().collect();
        kept.dedup_by(|piece, before| piece.continues(before));
        Section { pieces: kept, end }
    }

    /// The number of the piece in which a time lies. Logarithmic.
    fn index(&self, time: &N) -> usize {
        self.pieces
            .partition_point(|piece| piece.start <= *time)
            .saturating_sub(1)
    }

    /// The value at a time before the end. Logarithmic.
    pub(crate) fn value(&self, time: &N) -> Extended<N> {
        let Some(piece) = self.pieces.get(self.index(time)) else {
            // Only after a result that did not fit.
            return Extended::PositiveInfinity;
        };
        piece.value(time)
    }

    /// Pieces, each with where it ends.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (&Piece<N>, &N)> {
        let ends = self.pieces.iter().skip(1).map(|piece| &piece.start);
        self.pieces.iter().zip(ends.chain([&self.end]))
    }

    /// The pieces of `[from, to)`; the first begins at `from`.
    pub(crate) fn pieces_of(&self, from: &N, to: &N) -> impl Iterator<Item = Piece<N>> {
        let first = self.index(from);
        let (from, to) = (from.clone(), to.clone());
        self.pieces[first..]
            .iter()
            .take_while(move |piece| piece.start < to)
            .map(move |piece| match piece.start < from {
                true => piece.from(&from),
                false => piece.clone(),
            })
    }

    /// The section up to an earlier end.
    pub(crate) fn cut(&self, end: &N) -> Self {
        self.part(&N::zero(), end)
    }

    /// The section up to an earlier end, cut in place. It has a piece, as of [`Self::part`].
    pub(crate) fn truncated(mut self, end: &N) -> Self {
        let kept = self.pieces.partition_point(|piece| piece.start < *end);
        self.pieces.truncate(kept.max(1));
        self.end = end.clone();
        self
    }

    /// The section from one time to a later one. It has a piece even if the times are none of a
    /// section, as they may be after a result that did not fit.
    pub(crate) fn part(&self, from: &N, to: &N) -> Self {
        let mut pieces: Vec<_> = self.pieces_of(from, to).collect();
        if pieces.is_empty() {
            pieces.extend(self.pieces.first().cloned());
        }
        Section {
            pieces,
            end: to.clone(),
        }
    }

    /// The section without pieces that begin behind a time.
    pub(crate) fn through(mut self, time: &N) -> Self {
        let kept = self.pieces.partition_point(|piece| piece.start <= *time);
        if let Some(next) = self.pieces.get(kept) {
            self.end = next.start.clone();
            self.pieces.truncate(kept);
        }
        self
    }

    pub(crate) fn negated(&self) -> Self {
        let pieces = self.pieces.iter().map(|piece| Piece {
            start: piece.start.clone(),
            at: piece.at.negated(),
            after: piece.after.negated(),
            slope: piece.slope.negated(),
        });
        Section {
            pieces: pieces.collect(),
            end: self.end.clone(),
        }
    }

    /// Applies `combine` to the pieces of two functions wherever neither has a breakpoint inside.
    /// It is given both pieces, beginning at the same time, and that at which they end. Linear.
    pub(crate) fn together<T>(
        &self,
        other: &Self,
        mut combine: impl FnMut(&Piece<N>, &Piece<N>, &N) -> Result<(), T>,
    ) -> Result<(), T> {
        let end = self.end.clone().min(other.end.clone());
        let (mut left, mut right) = (
            self.pieces.iter().peekable(),
            other.pieces.iter().peekable(),
        );
        let (Some(mut one), Some(mut two)) = (left.next().cloned(), right.next().cloned()) else {
            return Ok(());
        };
        loop {
            let starts = [left.peek(), right.peek()].map(|piece| piece.map(|piece| &piece.start));
            let next = starts.into_iter().flatten().min().unwrap_or(&end).clone();
            let next = next.min(end.clone());
            combine(&one, &two, &next)?;
            if next == end {
                return Ok(());
            }
            let step = |pieces: &mut std::iter::Peekable<std::slice::Iter<'_, Piece<N>>>,
                        last: &Piece<N>| {
                match pieces.next_if(|piece| piece.start == next) {
                    Some(piece) => piece.clone(),
                    None => last.from(&next),
                }
            };
            (one, two) = (step(&mut left, &one), step(&mut right, &two));
        }
    }

    /// The pointwise minimum, up to the earlier end. Linear.
    pub(crate) fn minimum(&self, other: &Self) -> Self {
        let mut pieces = Vec::with_capacity(self.pieces.len() + other.pieces.len());
        let _: Result<(), ()> = self.together(other, |one, two, end| {
            let at = one.at.clone().min(two.at.clone());
            let (low, high) = lower(one, two);
            pieces.push(Piece::new(
                one.start.clone(),
                at,
                low.after.clone(),
                low.slope.clone(),
            ));
            if let Some(time) = crossing(low, high)
                && time < *end
            {
                pieces.push(high.from(&time));
            }
            Ok(())
        });
        Section::merged(pieces, self.end.clone().min(other.end.clone()))
    }

    /// The pointwise sum, up to the earlier end; `None` where infinities of different signs
    /// meet. Linear.
    pub(crate) fn sum(&self, other: &Self) -> Option<Self> {
        let mut pieces = Vec::with_capacity(self.pieces.len() + other.pieces.len());
        self.together(other, |one, two, _| {
            let at = one.at.plus(&two.at).ok_or(())?;
            let after = one.after.plus(&two.after).ok_or(())?;
            let slope = one.slope.plus(&two.slope);
            pieces.push(Piece::new(one.start.clone(), at, after, slope));
            Ok::<(), ()>(())
        })
        .ok()?;
        Some(Section::merged(
            pieces,
            self.end.clone().min(other.end.clone()),
        ))
    }
}

/// Which line is lower at first, and which is not.
fn lower<'a, N: Number>(one: &'a Piece<N>, two: &'a Piece<N>) -> (&'a Piece<N>, &'a Piece<N>) {
    let order = one.after.cmp(&two.after).then(match &one.after {
        Finite(_) => one.slope.cmp(&two.slope),
        _ => Ordering::Equal,
    });
    match order {
        Ordering::Greater => (two, one),
        Ordering::Less | Ordering::Equal => (one, two),
    }
}

/// Where the lower of two lines is no more so; later than they begin.
fn crossing<N: Number>(low: &Piece<N>, high: &Piece<N>) -> Option<N> {
    let (below, above) = (low.after.finite()?, high.after.finite()?);
    let closing = low.slope.minus(&high.slope);
    closing
        .is_positive()
        .then(|| low.start.plus(&above.minus(below).over(&closing)))
}
