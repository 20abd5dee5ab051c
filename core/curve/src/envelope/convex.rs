//! Convex sections: their segments, merged by slope.
//!
//! *Proof.* A convex function is the sum, in the sense of convolution, of its segments, each a line
//! on `[0, length]` and +∞ behind; of two such lines the flatter comes first, for whatever takes of
//! the steeper one before is lowered by exchanging. The order of convolutions does not matter, so
//! all segments of both may be sorted. ∎
//!
//! Invariant: what is not convex, or begins with a jump, is left alone.

use crate::extended::Extended::{Finite, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// A convex function: where it begins, and its segments' lengths and slopes; +∞ behind.
struct Convex<'a, N> {
    begin: &'a N,
    segments: Vec<(N, &'a N)>,
    /// Whether it is finite at its end.
    closed: bool,
}

/// Whether a section is convex.
pub(crate) fn is_convex<N: Number>(section: &Section<N>) -> bool {
    Convex::of(section).is_some()
}

impl<'a, N: Number> Convex<'a, N> {
    fn of(section: &'a Section<N>) -> Option<Self> {
        let mut segments: Vec<(N, &N)> = Vec::new();
        let begin = section.pieces.first()?.at.finite()?;
        let mut reached = Finite(begin.clone());
        let mut closed = false;
        for (index, (piece, end)) in section.spans().enumerate() {
            if piece.after == PositiveInfinity {
                // The end of what is finite.
                closed = piece.at == reached;
                let is_last = index + 1 == section.pieces.len();
                let is_open = piece.at == PositiveInfinity;
                if !is_last || !(closed || is_open) {
                    return None;
                }
                break;
            }
            let steeper = segments.last().is_none_or(|last| *last.1 <= piece.slope);
            if piece.at != reached || piece.after != reached || !steeper {
                return None;
            }
            segments.push((end.minus(&piece.start), &piece.slope));
            reached = piece.line(end);
        }
        Some(Convex {
            begin,
            segments,
            closed,
        })
    }
}

/// `None` if one is not convex. O(n + m) for n and m pieces.
pub(super) fn envelope<N: Number>(f: &Section<N>, g: &Section<N>, end: &N) -> Option<Section<N>> {
    let (f, g) = (Convex::of(f)?, Convex::of(g)?);
    let (mut left, mut right) = (f.segments.iter().peekable(), g.segments.iter().peekable());
    let mut pieces: Vec<Piece<N>> = Vec::with_capacity(f.segments.len() + g.segments.len() + 1);
    let (mut time, mut value) = (N::zero(), f.begin.plus(g.begin));
    while time < *end {
        let flatter = match (left.peek(), right.peek()) {
            (Some(one), Some(two)) if one.1 <= two.1 => left.next(),
            (_, Some(_)) => right.next(),
            _ => left.next(),
        };
        let Some((length, slope)) = flatter else {
            let at = match f.closed && g.closed {
                true => Finite(value),
                false => PositiveInfinity,
            };
            pieces.push(Piece::new(time, at, PositiveInfinity, N::zero()));
            break;
        };
        if pieces.last().is_none_or(|last| last.slope != **slope) {
            let value = Finite(value.clone());
            pieces.push(Piece::new(
                time.clone(),
                value.clone(),
                value,
                (*slope).clone(),
            ));
        }
        value = value.plus(&slope.times(length));
        time = time.plus(length);
    }
    Some(Section {
        pieces,
        end: end.clone(),
    })
}
