//! The cut by growth: how long the faster curve is below what the slower one can grow by.
//!
//! Let W(L) be the most that f grows by within any time up to L. A split that gives g as much as
//! s ≤ L is no better than that which gives it nothing if g(s) − g(0) ≥ W(L), for then
//! f(t − s) + g(s) ≥ f(t − s) + W(L) + g(0) ≥ f(t) + g(0). So if no splits beyond L are needed, none are
//! beyond the last s ≤ L with g(s) − g(0) < W(L), and the same can be asked of that s again. This holds
//! at all times: for t ≥ T_f + s what is needed leaves f in its periodic part.
//!
//! The gap of slopes is the same with one bound for all of f, W(L) ≤ ρ_f L + M − m; a curve that
//! wanders far in the long run grows much less within a short time.
//!
//! Invariant: growth is never taken for less than it is: whole pieces are taken, with their
//! limits.

use std::collections::VecDeque;

use super::{Operand, Reach, Term, rounded};
use crate::cut::Cut;
use crate::extended::Extended::{self, Finite};
use crate::number::Number;
use crate::section::Section;

/// Asking again takes a pass over the pieces: it is to lessen the time to this part at least.
const LESS: (i64, i64) = (3, 4);

/// Most that is asked again.
const ROUNDS: usize = 24;

/// Most pieces that are looked at, whatever the limit.
const PIECES: u64 = 1 << 21;

/// A lesser cut than a known one, of curves of different slopes; `None` if there is none, a curve is
/// infinite somewhere, or it would be looked at in more pieces than the limit. O(pieces of the curves
/// as cut).
pub(super) fn growth<'a, N: Number>(
    low: &Operand<'a, N>,
    high: &Operand<'a, N>,
    known: &Term<'a, N>,
    limit: u64,
) -> Option<Term<'a, N>> {
    let most = limit.min(PIECES);
    let (Reach::Before(longest) | Reach::Through(longest)) = &known.reach else {
        return None;
    };
    let mut reach = longest.clone();
    let low_end = &low.section.end;
    let slow = ranges(&low.up_to(&low_end.plus(&reach), most).ok()?)?;
    let fast = high.up_to(&reach.plus(&high.period), most).ok()?;
    ranges(&fast)?;
    let begin = fast.value(&N::zero()).finite()?.clone();
    let (more, of) = LESS;
    let (more, of) = (N::whole(more), N::whole(of));
    for _ in 0..ROUNDS {
        let below = begin.plus(&most_growth(&slow, low_end, &reach));
        let last = last_below(&fast, &below, &reach);
        let enough = last.times(&of) <= reach.times(&more);
        reach = last;
        if !enough || reach.is_zero() {
            break;
        }
    }
    let reach = rounded(reach, low);
    (reach < *longest).then(|| Term {
        cut: Cut::Growth,
        transient: low.transient.plus(&reach),
        period: low.period.clone(),
        step: low.step.clone(),
        reach: Reach::Through(reach),
        long: low.clone(),
        short: high.clone(),
        swapped: false,
        convex: false,
    })
}

/// From where to where a piece goes, and its least and greatest value or limit.
struct Range<N> {
    start: N,
    end: N,
    least: N,
    most: N,
}

/// `None` if a section is infinite somewhere.
fn ranges<N: Number>(section: &Section<N>) -> Option<Vec<Range<N>>> {
    let mut ranges = Vec::with_capacity(section.pieces.len());
    for (piece, end) in section.spans() {
        let (at, after) = (piece.at.finite()?, piece.after.finite()?);
        let Finite(limit) = piece.line(end) else {
            return None;
        };
        ranges.push(Range {
            start: piece.start.clone(),
            end: end.clone(),
            least: at.min(after).min(&limit).clone(),
            most: at.max(after).max(&limit).clone(),
        });
    }
    Some(ranges)
}

/// The most by which values grow within a time from any time before `end`. Linear.
fn most_growth<N: Number>(ranges: &[Range<N>], end: &N, time: &N) -> N {
    let mut growth = N::zero();
    // The highest ahead, each with no higher one behind it.
    let mut highest: VecDeque<&Range<N>> = VecDeque::new();
    let mut ahead = ranges.iter().peekable();
    for range in ranges.iter().take_while(|range| range.start < *end) {
        let window = range.end.clone().min(end.clone()).plus(time);
        while let Some(next) = ahead.next_if(|next| next.start <= window) {
            while highest.back().is_some_and(|last| last.most <= next.most) {
                highest.pop_back();
            }
            highest.push_back(next);
        }
        while highest
            .front()
            .is_some_and(|first| first.start < range.start)
        {
            highest.pop_front();
        }
        if let Some(first) = highest.front() {
            growth = growth.max(first.most.minus(&range.least));
        }
    }
    growth
}

/// The last time up to a most at or before which a section is below a value, or 0 if it is never so
/// behind 0.
fn last_below<N: Number>(section: &Section<N>, value: &N, most: &N) -> N {
    let below = |known: &Extended<N>| *known < Finite(value.clone());
    let spans: Vec<_> = section.spans().collect();
    let reached = spans
        .iter()
        .rev()
        .skip_while(|(piece, _)| piece.start > *most);
    for (piece, end) in reached {
        let end = (*end).clone().min(most.clone());
        if below(&piece.line(&end)) {
            return end;
        }
        // A line that comes from below meets the value.
        if let (true, Finite(after)) = (below(&piece.after), &piece.after) {
            return piece.start.plus(&value.minus(after).over(&piece.slope));
        }
        if below(&piece.at) {
            return piece.start.clone();
        }
    }
    N::zero()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Small;
    use crate::section::Piece;

    fn number(value: i64) -> Small {
        Small::whole(value)
    }

    /// Pieces (start, value there and behind, slope).
    fn section(pieces: &[(i64, i64, i64, i64)], end: i64) -> Section<Small> {
        let piece = |&(start, at, after, slope): &(i64, i64, i64, i64)| {
            let [start, at, after, slope] = [start, at, after, slope].map(number);
            Piece::new(start, Finite(at), Finite(after), slope)
        };
        Section {
            pieces: pieces.iter().map(piece).collect(),
            end: number(end),
        }
    }

    #[test]
    fn growth_is_of_whole_pieces_within_the_time() {
        // 0 up to 2, there 5; from 6 falling to 4; -1 up to 9.
        let pieces = [(0, 0, 0, 0), (2, 5, 6, -1), (4, -1, -1, 0), (7, 3, 3, 1)];
        let ranges = ranges(&section(&pieces, 9)).expect("finite");
        let growth = |end: i64, time: i64| most_growth(&ranges, &number(end), &number(time));
        // The second piece begins where the first one ends, and the last one where the third does.
        assert_eq!(growth(9, 0), number(6));
        // From the third piece on it is 6 higher within three.
        assert_eq!(growth(9, 3), number(6));
        // From the third one only, which rises from -1 to 5 at most.
        assert_eq!(growth(1, 0), number(0));
        assert_eq!(growth(1, 1), number(6));
    }

    #[test]
    fn a_section_is_last_below_where_it_crosses_a_value() {
        let pieces = [(0, 0, 1, 2), (3, 2, 9, 0), (5, 4, 10, -1)];
        let section = section(&pieces, 12);
        let last = |value: i64, most: i64| last_below(&section, &number(value), &number(most));
        // 1 + 2 t up to 3, where it is 2 in between; 9; 4 at 5, and from 10 falling to 3.
        assert_eq!(last(5, 12), number(12));
        assert_eq!(last(5, 10), number(5));
        assert_eq!(last(4, 10), number(3));
        assert_eq!(last(4, 2), number(3).over(&number(2)));
        assert_eq!(last(0, 10), number(0));
        assert_eq!(last(100, 7), number(7));
    }
}
