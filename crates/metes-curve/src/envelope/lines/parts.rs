//! Parts: piecewise linear functions on whole numbers of 64 bits, and the lower of two.
//!
//! A line is kept as m t + b, whole and never changed, so that only the times at which lines cross
//! are fractions, each of one division of two lines' numbers; values at such times are compared
//! without being computed.
//!
//! Invariants: a part is a function that is +∞ before its first cell, and whose last cell is +∞
//! behind its start; at a time that is not whole a part is continuous. Times and values are below
//! 2⁶⁰, so that sums of two fit.

use std::cmp::Ordering;

use crate::extended::Extended::{Finite, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// +∞, of a value or of a line's `b`.
pub(super) const INFINITY: i64 = i64::MAX;

/// A fraction; the denominator is 1 if it is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    numerator: i64,
    denominator: i64,
}

impl Time {
    fn whole(numerator: i64) -> Self {
        Time {
            numerator,
            denominator: 1,
        }
    }

    fn order(self, other: Self) -> Ordering {
        if self.denominator == other.denominator {
            return self.numerator.cmp(&other.numerator);
        }
        let left = i128::from(self.numerator) * i128::from(other.denominator);
        left.cmp(&(i128::from(other.numerator) * i128::from(self.denominator)))
    }
}

/// m t + b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    m: i64,
    b: i64,
}

impl Line {
    pub(super) const NONE: Line = Line { m: 0, b: INFINITY };

    /// Through a value at a time.
    pub(super) fn through(time: i64, value: i64, m: i64) -> Self {
        Line {
            m,
            b: value - m * time,
        }
    }

    fn is_none(self) -> bool {
        self.b == INFINITY
    }

    /// At a whole time.
    fn at(self, time: i64) -> i64 {
        match self.is_none() {
            true => INFINITY,
            false => self.m * time + self.b,
        }
    }

    /// Which is lower behind a time.
    fn order_behind(self, other: Self, time: Time) -> Ordering {
        match (self.is_none(), other.is_none()) {
            (false, false) => {}
            (one, two) => return one.cmp(&two),
        }
        let order = match time.denominator {
            1 => self.at(time.numerator).cmp(&other.at(time.numerator)),
            _ => {
                let rise = i128::from(self.m - other.m) * i128::from(time.numerator);
                let apart = i128::from(self.b - other.b) * i128::from(time.denominator);
                (rise + apart).cmp(&0)
            }
        };
        order.then(self.m.cmp(&other.m))
    }

    /// Where this line, lower before, meets one that is less steep.
    fn crossing(self, other: Self) -> Option<Time> {
        if self.is_none() || other.is_none() || self.m <= other.m {
            return None;
        }
        let (numerator, denominator) = (other.b - self.b, self.m - other.m);
        Some(match numerator % denominator {
            0 => Time::whole(numerator / denominator),
            _ => Time {
                numerator,
                denominator,
            },
        })
    }
}

/// From one breakpoint to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    start: Time,
    /// The value there, if that is a whole time; else it is on the line.
    at: i64,
    line: Line,
}

impl Cell {
    /// At a whole time.
    pub(super) fn new(start: i64, at: i64, line: Line) -> Self {
        Cell {
            start: Time::whole(start),
            at,
            line,
        }
    }

    /// Whether it only goes on with a line before.
    fn continues(&self, before: Line) -> bool {
        self.line == before
            && (self.start.denominator != 1 || self.at == before.at(self.start.numerator))
    }
}

/// Adds a part to the lowest of 1, 2, 4, … parts, no two of which are as many.
pub(super) fn add(levels: &mut Vec<Option<Vec<Cell>>>, mut part: Vec<Cell>) {
    for level in levels.iter_mut() {
        match level.take() {
            Some(other) => part = lower(&other, &part),
            None => {
                *level = Some(part);
                return;
            }
        }
    }
    levels.push(Some(part));
}

pub(super) fn lower(one: &[Cell], two: &[Cell]) -> Vec<Cell> {
    let mut lowest = Vec::with_capacity(one.len() + two.len());
    merge(one, two, &mut lowest);
    lowest
}

/// Appends the lower of two parts to `lowest`. Linear.
fn merge(one: &[Cell], two: &[Cell], lowest: &mut Vec<Cell>) {
    let (one, two) = match one[0].start.order(two[0].start) {
        Ordering::Greater => (two, one),
        _ => (one, two),
    };
    // Before the other begins there is nothing to compare.
    let begin = two[0].start;
    let alone = one.partition_point(|cell| cell.start.order(begin) == Ordering::Less);
    lowest.extend_from_slice(&one[..alone]);
    let (mut left, mut right) = (alone, 0);
    let mut a = match alone {
        0 => Line::NONE,
        _ => one[alone - 1].line,
    };
    let mut b = Line::NONE;
    // The line that was appended last; none at first, where a value at the start is kept.
    let mut last = match alone {
        0 => None,
        _ => Some(a),
    };
    while left < one.len() && right < two.len() {
        let order = one[left].start.order(two[right].start);
        let time = match order {
            Ordering::Greater => two[right].start,
            _ => one[left].start,
        };
        let mut at = INFINITY;
        if time.denominator == 1 {
            at = match order {
                Ordering::Less => one[left].at.min(b.at(time.numerator)),
                Ordering::Equal => one[left].at.min(two[right].at),
                Ordering::Greater => a.at(time.numerator).min(two[right].at),
            };
        }
        if order != Ordering::Greater {
            a = one[left].line;
            left += 1;
        }
        if order != Ordering::Less {
            b = two[right].line;
            right += 1;
        }
        let (low, high) = match a.order_behind(b, time) {
            Ordering::Greater => (b, a),
            _ => (a, b),
        };
        let cell = Cell {
            start: time,
            at,
            line: low,
        };
        if last.is_none_or(|last| !cell.continues(last)) {
            lowest.push(cell);
        }
        last = Some(low);
        if let Some(time) = low.crossing(high) {
            let next = [one.get(left), two.get(right)].into_iter().flatten();
            if next
                .map(|next| time.order(next.start))
                .all(|order| order == Ordering::Less)
            {
                let at = match time.denominator {
                    1 => high.at(time.numerator),
                    _ => INFINITY,
                };
                lowest.push(Cell {
                    start: time,
                    at,
                    line: high,
                });
                last = Some(high);
            }
        }
    }
    // One is over, +∞, and the other goes on alone.
    let rest = match left < one.len() {
        true => &one[left..],
        false => &two[right..],
    };
    if let Some((first, rest)) = rest.split_first() {
        if last.is_none_or(|last| !first.continues(last)) {
            lowest.push(*first);
        }
        lowest.extend_from_slice(rest);
    }
}

/// A part as a section.
pub(super) fn section<N: Number>(part: &[Cell], end: &N) -> Section<N> {
    let mut pieces = Vec::with_capacity(part.len() + 1);
    let zero = N::zero();
    if part.first().is_none_or(|first| first.start.numerator > 0) {
        pieces.push(Piece::new(
            zero.clone(),
            PositiveInfinity,
            PositiveInfinity,
            zero,
        ));
    }
    let known = |value: i64| match value {
        INFINITY => PositiveInfinity,
        value => Finite(N::whole(value)),
    };
    for cell in part {
        let Time {
            numerator,
            denominator,
        } = cell.start;
        let start = match denominator {
            1 => N::whole(numerator),
            _ => N::whole(numerator).over(&N::whole(denominator)),
        };
        if start >= *end {
            break;
        }
        let (at, after) = match denominator {
            1 => (known(cell.at), known(cell.line.at(numerator))),
            _ => {
                let rise = N::whole(cell.line.m).times(&start);
                let value = Finite(rise.plus(&N::whole(cell.line.b)));
                (value.clone(), value)
            }
        };
        pieces.push(Piece::new(start, at, after, N::whole(cell.line.m)));
    }
    Section {
        pieces,
        end: end.clone(),
    }
}
