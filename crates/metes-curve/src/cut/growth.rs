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

/// Most pieces that are looked at.
const PIECES: u64 = 1 << 21;

/// A lesser cut than a known one, of curves of different slopes; `None` if there is none, or a
/// curve is infinite somewhere. O(pieces of the curves as cut).
pub(super) fn growth<'a, N: Number>(
    low: &Operand<'a, N>,
    high: &Operand<'a, N>,
    known: &Term<'a, N>,
) -> Option<Term<'a, N>> {
    let (Reach::Before(most) | Reach::Through(most)) = &known.reach else {
        return None;
    };
    let mut reach = most.clone();
    let low_end = &low.section.end;
    let slow = ranges(&low.up_to(&low_end.plus(&reach), PIECES).ok()?)?;
    let fast = high.up_to(&reach.plus(&high.period), PIECES).ok()?;
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
    (reach < *most).then(|| Term {
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
