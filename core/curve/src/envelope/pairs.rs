//! Envelopes pair by pair: each pair is a function of its own, and the lowest of all is taken
//! ([`crate::paths`]). What the other kernels are compared with.
//!
//! Invariant: every point and segment meets every one of the other section.

use crate::extended::Extended::{self, PositiveInfinity};
use crate::number::Number;
use crate::paths::{Envelope, bent};
use crate::section::{Piece, Section};

/// The convolution of two sections on `[0, end)`, as if both were +∞ behind their ends.
/// O(n m log(n m)) for n and m pieces.
pub(super) fn envelope<N: Number>(f: &Section<N>, g: &Section<N>, end: &N) -> Section<N> {
    let mut lowest = Envelope::new(end.clone());
    for (one, one_end) in f.spans() {
        for (two, two_end) in g.spans() {
            meet(&mut lowest, (one, one_end), (two, two_end));
        }
    }
    lowest.lowest()
}

/// A point and the segment behind it with another point and segment.
fn meet<N: Number>(
    lowest: &mut Envelope<N>,
    (one, one_end): (&Piece<N>, &N),
    (two, two_end): (&Piece<N>, &N),
) {
    let start = one.start.plus(&two.start);
    let both =
        |left: &Extended<N>, right: &Extended<N>| left.plus(right).unwrap_or(PositiveInfinity);
    let line = |piece: &Piece<N>, end: &N| (end.minus(&piece.start), piece.slope.clone());
    // The points, and each point with the other's segment.
    let at = both(&one.at, &two.at);
    for (point, segment, end) in [(one, two, two_end), (two, one, one_end)] {
        let (length, slope) = line(segment, end);
        let value = both(&point.at, &segment.after);
        lowest.path(&start, at.clone(), &[(value, length, slope)]);
    }
    // Both segments.
    let value = both(&one.after, &two.after);
    let bent = bent(value, line(one, one_end), line(two, two_end));
    lowest.path(&start, PositiveInfinity, &bent);
}
