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

use super::operand::Slope;
use crate::extended::Extended::{Finite, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// +∞, of a value or of a line's `b`.
pub(crate) const INFINITY: i64 = i64::MAX;

/// A fraction; the denominator is 1 if it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    pub(super) numerator: i64,
    pub(super) denominator: i64,
}

impl Time {
    /// Behind every time that is computed with.
    pub(crate) const NEVER: Time = Time::at(1 << 62);

    pub(crate) const fn at(numerator: i64) -> Self {
        Time {
            numerator,
            denominator: 1,
        }
    }

    /// The number, if it is whole.
    pub(crate) fn whole(self) -> Option<i64> {
        (self.denominator == 1).then_some(self.numerator)
    }

    pub(crate) fn denominator(self) -> i64 {
        self.denominator
    }

    /// The least whole number that is not less.
    pub(crate) fn ceiling(self) -> i64 {
        -(-self.numerator).div_euclid(self.denominator)
    }

    /// As a number of another kind.
    pub(crate) fn number<N: Number>(self) -> N {
        match self.denominator {
            1 => N::whole(self.numerator),
            denominator => N::whole(self.numerator).over(&N::whole(denominator)),
        }
    }

    /// So much later.
    pub(crate) fn moved(self, by: i64) -> Self {
        Time {
            numerator: self.numerator + by * self.denominator,
            ..self
        }
    }

    /// Which comes first.
    pub(crate) fn earlier(self, other: Self) -> Self {
        match other.order(self) {
            Ordering::Less => other,
            _ => self,
        }
    }

    /// Whether it is before a whole time.
    pub(crate) fn is_before(self, time: i64) -> bool {
        match self.denominator {
            1 => self.numerator < time,
            _ => i128::from(self.numerator) < i128::from(time) * i128::from(self.denominator),
        }
    }

    pub(crate) fn order(self, other: Self) -> Ordering {
        if self.denominator == other.denominator {
            return self.numerator.cmp(&other.numerator);
        }
        let left = i128::from(self.numerator) * i128::from(other.denominator);
        left.cmp(&(i128::from(other.numerator) * i128::from(self.denominator)))
    }
}

/// m t + b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(super) m: i64,
    pub(super) b: i64,
}

impl Line {
    pub(crate) const NONE: Line = Line { m: 0, b: INFINITY };

    /// Through a value at a time.
    pub(crate) fn through(time: i64, value: i64, m: i64) -> Self {
        Line {
            m,
            b: value - m * time,
        }
    }

    /// The line moved by a time and a value.
    pub(crate) fn moved(self, time: i64, value: i64) -> Self {
        match self.is_none() {
            true => self,
            false => Line {
                m: self.m,
                b: self.b + value - self.m * time,
            },
        }
    }

    /// The slope; 0 if there is none.
    pub(crate) fn slope(self) -> i64 {
        self.m
    }

    /// Whether it is of one value.
    pub(crate) fn is_flat(self) -> bool {
        self.m == 0
    }

    pub(crate) fn is_none(self) -> bool {
        self.b == INFINITY
    }

    /// At a whole time.
    pub(crate) fn at(self, time: i64) -> i64 {
        match self.is_none() {
            true => INFINITY,
            false => self.m * time + self.b,
        }
    }

    /// Which is lower behind a time.
    pub(crate) fn order_behind(self, other: Self, time: Time) -> Ordering {
        self.order_at(other, time).then(self.m.cmp(&other.m))
    }

    /// Which is lower at a time.
    pub(crate) fn order_at(self, other: Self, time: Time) -> Ordering {
        match (self.is_none(), other.is_none()) {
            (false, false) => {}
            (one, two) => return one.cmp(&two),
        }
        match time.denominator {
            1 => self.at(time.numerator).cmp(&other.at(time.numerator)),
            _ => {
                let rise = i128::from(self.m - other.m) * i128::from(time.numerator);
                let apart = i128::from(self.b - other.b) * i128::from(time.denominator);
                (rise + apart).cmp(&0)
            }
        }
    }

    /// How much higher it is at a time than another one at an earlier one, rounded up; the times differ by
    /// a whole number.
    pub(crate) fn rise_from(self, other: Self, to: Time, from: Time) -> i64 {
        if let (Some(to), Some(from)) = (to.whole(), from.whole()) {
            return self.at(to) - other.at(from);
        }
        let value = |line: Self, time: Time| {
            i128::from(line.m) * i128::from(time.numerator)
                + i128::from(line.b) * i128::from(time.denominator)
        };
        let rise = value(other, from) - value(self, to);
        // Values are below 2⁵⁷.
        -(rise.div_euclid(i128::from(to.denominator))) as i64
    }

    /// Whether this line is steeper than another, and meets it at a time.
    pub(crate) fn crosses(self, other: Self, time: Time) -> bool {
        let rise = i128::from(self.m - other.m) * i128::from(time.numerator);
        let apart = i128::from(other.b) - i128::from(self.b);
        let lines = !self.is_none() && !other.is_none() && self.m > other.m;
        lines && rise == apart * i128::from(time.denominator)
    }

    /// Where this line, lower before, meets one that is less steep.
    fn crossing(self, other: Self) -> Option<Time> {
        if self.is_none() || other.is_none() || self.m <= other.m {
            return None;
        }
        let (numerator, denominator) = (other.b - self.b, self.m - other.m);
        Some(match numerator % denominator {
            0 => Time::at(numerator / denominator),
            _ => Time {
                numerator,
                denominator,
            },
        })
    }
}

/// From one breakpoint to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) start: Time,
    /// The value there, if that is a whole time; else it is on the line.
    pub(crate) at: i64,
    pub(crate) line: Line,
}

impl Cell {
    pub(crate) fn new(start: Time, at: i64, line: Line) -> Self {
        Cell { start, at, line }
    }

    /// So much later, and higher.
    pub(crate) fn moved(&self, time: i64, value: i64) -> Self {
        Cell {
            start: self.start.moved(time),
            at: match self.at {
                INFINITY => INFINITY,
                at => at + value,
            },
            line: self.line.moved(time, value),
        }
    }

    /// Whether it is +∞ somewhere.
    pub(crate) fn is_infinite(&self) -> bool {
        self.line.is_none() || self.start.whole().is_some() && self.at == INFINITY
    }

    /// How far it is above a slope up to its end, at least and at most.
    pub(crate) fn distances(&self, end: Time, slope: Slope) -> (i128, i128) {
        let (first, then) = (
            slope.below_line(self.start, self.line),
            slope.below_line(end, self.line),
        );
        let at = match self.start.whole() {
            Some(start) => slope.below(start, self.at),
            None => first,
        };
        // What is not whole was rounded down.
        (first.min(then).min(at), (first.max(then) + 1).max(at))
    }

    /// Whether it only goes on with a line before.
    pub(crate) fn continues(&self, before: Line) -> bool {
        self.line == before
            && (self.start.denominator != 1 || self.at == before.at(self.start.numerator))
    }
}

/// Cells that are gathered before they are merged: few enough that they stay at hand.
const GATHERED: usize = 1 << 11;

/// The lowest of many parts, which are gathered one behind the other, and merged by pairs from one
/// buffer to another and back.
pub(super) struct Lowest {
    cells: Vec<Cell>,
    /// Where each part ends.
    ends: Vec<usize>,
    /// The lowest of 1, 2, 4, … such gatherings, no two of which are as many.
    levels: Vec<Option<Vec<Cell>>>,
}

impl Lowest {
    /// Of about so many cells.
    pub(super) fn of(cells: usize) -> Self {
        Lowest {
            cells: Vec::with_capacity(cells.min(GATHERED)),
            ends: Vec::with_capacity(16),
            levels: Vec::new(),
        }
    }

    /// Where the cells of another part go, about so many, behind those that are there.
    pub(super) fn next_part(&mut self, cells: usize) -> &mut Vec<Cell> {
        if self.cells.len() + cells > GATHERED && !self.ends.is_empty() {
            self.merge();
        }
        &mut self.cells
    }

    /// Ends the part, if it has any cells.
    pub(super) fn close_part(&mut self) {
        let end = self.cells.len();
        if end > self.ends.last().copied().unwrap_or(0) {
            self.ends.push(end);
        }
    }

    /// Merges what was gathered.
    fn merge(&mut self) {
        let mut part = std::mem::take(&mut self.cells);
        let mut other = Vec::with_capacity(part.len());
        while self.ends.len() > 1 {
            let mut begin = 0;
            let mut kept = 0;
            for pair in 0..self.ends.len().div_ceil(2) {
                let middle = self.ends[2 * pair];
                match self.ends.get(2 * pair + 1).copied() {
                    Some(end) => {
                        merge(&part[begin..middle], &part[middle..end], &mut other);
                        begin = end;
                    }
                    None => other.extend_from_slice(&part[begin..middle]),
                }
                self.ends[kept] = other.len();
                kept += 1;
            }
            self.ends.truncate(kept);
            std::mem::swap(&mut part, &mut other);
            other.clear();
        }
        self.ends.clear();
        for level in &mut self.levels {
            match level.take() {
                Some(before) => part = lower(&before, &part),
                None => {
                    *level = Some(part);
                    return;
                }
            }
        }
        self.levels.push(Some(part));
    }

    /// That of all parts; nothing of none.
    pub(super) fn of_all(mut self) -> Vec<Cell> {
        if !self.ends.is_empty() {
            self.merge();
        }
        let levels = self.levels.into_iter().flatten();
        levels
            .reduce(|one, other| lower(&other, &one))
            .unwrap_or_default()
    }
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
pub(crate) fn section<N: Number>(part: &[Cell], end: &N) -> Section<N> {
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
        let start: N = cell.start.number();
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
