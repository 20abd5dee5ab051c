//! Envelopes row by row, as in [`super::rows`], on whole numbers of 64 bits.
//!
//! A line is kept as m t + b, whole and never changed, so that only the times at which lines cross
//! are fractions, each of one division of two lines' numbers; values at such times are compared
//! without being computed.
//!
//! Invariants: a part is a function that is +∞ before its first cell, and whose last cell is +∞
//! behind its start; at a time that is not whole a part is continuous. Times and values are below
//! 2⁶⁰, so that sums of two fit.

use std::cmp::Ordering;

use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// Beyond this operands are left to kernels of any number: sums are to stay below 2⁶⁰.
const MOST: i64 = 1 << 57;

/// +∞, of a value or of a line's `b`.
const INFINITY: i64 = i64::MAX;

/// A fraction; the denominator is 1 if it is whole.
#[derive(Clone, Copy, Debug)]
struct Time {
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
struct Line {
    m: i64,
    b: i64,
}

impl Line {
    const NONE: Line = Line { m: 0, b: INFINITY };

    /// Through a value at a time.
    fn through(time: i64, value: i64, m: i64) -> Self {
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
struct Cell {
    start: Time,
    /// The value there, if that is a whole time; else it is on the line.
    at: i64,
    line: Line,
}

impl Cell {
    /// At a whole time.
    fn new(start: i64, at: i64, line: Line) -> Self {
        Cell {
            start: Time::whole(start),
            at,
            line,
        }
    }

    fn nothing(start: i64) -> Self {
        Cell::new(start, INFINITY, Line::NONE)
    }

    /// Whether it only goes on with a line before.
    fn continues(&self, before: Line) -> bool {
        self.line == before
            && (self.start.denominator != 1 || self.at == before.at(self.start.numerator))
    }
}

/// A piece of an operand.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
    at: i64,
    after: i64,
    slope: i64,
    /// The least distance above the result's slope, times that slope's denominator.
    least: i128,
    /// Whether the point is below both limits beside it.
    dips: bool,
}

/// What only counts as +∞ in sums of distances.
const FAR: i128 = i128::MAX / 4;

/// `None` if a section is −∞ somewhere, or does not fit whole numbers. O(n m log(n m)) for n and m
/// pieces.
pub(super) fn envelope<N: Number>(
    f: &Section<N>,
    g: &Section<N>,
    end: &N,
    slope: &N,
    early_exit: bool,
    threads: usize,
) -> Option<Section<N>> {
    let (long, short) = match f.pieces.len() < g.pieces.len() {
        true => (g, f),
        false => (f, g),
    };
    let (rise, run) = slope.parts()?;
    let slope = (i128::from(rise), i128::from(run));
    let (long, short) = (operand(long, slope)?, operand(short, slope)?);
    let last = whole(end)?;
    let most = match early_exit {
        true => most_with(&long, &short, last, slope).min(most_with(&short, &long, last, slope)),
        false => FAR,
    };
    let rows = Rows {
        least: long.iter().map(|span| span.least).min()?,
        long,
        short,
        last,
        most,
        early_exit,
    };
    let lowest = match rows.pairs() < WORTH_THREADS {
        true => rows.lowest(0, 1),
        false => rows.lowest_of_threads(threads.max(1)),
    };
    Some(section(&lowest, end))
}

/// Fewer pairs than this take less than starting a thread.
const WORTH_THREADS: usize = 1 << 16;

/// What rows are made of.
struct Rows {
    long: Vec<Span>,
    short: Vec<Span>,
    /// Where the result ends.
    last: i64,
    /// The least distance of `long`.
    least: i128,
    /// The most that the result can be above its slope.
    most: i128,
    early_exit: bool,
}

impl Rows {
    fn pairs(&self) -> usize {
        self.long.len().saturating_mul(self.short.len())
    }

    /// The lowest of every so many rows, from one on.
    fn lowest(&self, from: usize, every: usize) -> Vec<Cell> {
        let mut rows: Vec<Option<Vec<Cell>>> = Vec::new();
        let mut row = Row::default();
        let spans = self.short.iter().skip(from).step_by(every);
        for one in spans.take_while(|span| span.start < self.last) {
            if one.least + self.least > self.most {
                continue;
            }
            let soon = match self.early_exit {
                true => self
                    .long
                    .partition_point(|two| one.start + two.start < self.last),
                false => self.long.len(),
            };
            for two in &self.long[..soon] {
                if one.start + two.start < self.last && one.least + two.least <= self.most {
                    row.meet(one, two);
                }
            }
            if let Some(part) = row.finish() {
                add(&mut rows, part);
            }
        }
        let rows = rows.into_iter().flatten();
        rows.reduce(|one, two| lower(&two, &one))
            .unwrap_or_default()
    }

    /// The lowest of all rows, of which each thread takes its share: late rows have fewer pairs.
    fn lowest_of_threads(&self, threads: usize) -> Vec<Cell> {
        let parts: Vec<Vec<Cell>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|from| scope.spawn(move || self.lowest(from, threads)))
                .collect();
            let mut parts = vec![self.lowest(0, threads)];
            for other in others {
                match other.join() {
                    Ok(part) => parts.push(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            parts
        });
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts
            .reduce(|one, two| lower(&one, &two))
            .unwrap_or_default()
    }
}

fn whole<N: Number>(number: &N) -> Option<i64> {
    match number.parts()? {
        (whole, 1) if whole.abs() < MOST => Some(whole),
        _ => None,
    }
}

fn value<N: Number>(value: &Extended<N>) -> Option<i64> {
    match value {
        Finite(value) => whole(value),
        PositiveInfinity => Some(INFINITY),
        NegativeInfinity => None,
    }
}

/// A section's pieces as whole numbers.
fn operand<N: Number>(section: &Section<N>, slope: (i128, i128)) -> Option<Vec<Span>> {
    let mut before = INFINITY;
    let mut spans: Vec<Span> = Vec::with_capacity(section.pieces.len());
    let last = whole(&section.end)?;
    for (piece, end) in section.spans() {
        let mut span = Span {
            start: whole(&piece.start)?,
            end: whole(end)?,
            at: value(&piece.at)?,
            after: value(&piece.after)?,
            slope: whole(&piece.slope)?,
            least: FAR,
            dips: false,
        };
        // Both the line and where it would be at 0 and at the end of all are to fit. Numbers that
        // did not fit may be any, and are thrown away later.
        let fits =
            span.slope.checked_mul(last)?.abs() < MOST && (0..span.end).contains(&span.start);
        if !fits || spans.last().is_some_and(|last| last.start >= span.start) {
            return None;
        }
        let limit = limit(&span);
        span.least = distances(&span, limit, slope).into_iter().min()?;
        span.dips = span.at < before && span.at < span.after;
        before = limit;
        spans.push(span);
    }
    Some(spans)
}

/// The limit at the end of a piece.
fn limit(span: &Span) -> i64 {
    match span.after {
        INFINITY => INFINITY,
        after => after + span.slope * (span.end - span.start),
    }
}

/// How far a piece is above the slope: its point, and its line at both ends.
fn distances(span: &Span, limit: i64, (rise, run): (i128, i128)) -> [i128; 3] {
    let above = |time: i64, value: i64| match value {
        INFINITY => FAR,
        value => i128::from(value) * run - rise * i128::from(time),
    };
    [
        above(span.start, span.at),
        above(span.start, span.after),
        above(span.end, limit),
    ]
}

/// The most that the result can lie above the slope before the end: the split that gives the other
/// nothing.
fn most_with(spans: &[Span], other: &[Span], last: i64, slope: (i128, i128)) -> i128 {
    let reaches = spans.last().is_some_and(|span| span.end >= last);
    let begin = match other.first() {
        Some(first) if reaches && first.at != INFINITY => i128::from(first.at) * slope.1,
        _ => return FAR,
    };
    let all = spans.iter().take_while(|span| span.start < last);
    let most = all
        .flat_map(|span| distances(span, limit(span), slope))
        .max();
    most.map_or(FAR, |most| (most + begin).min(FAR))
}

/// The pairs of one piece, until they are merged.
#[derive(Default)]
struct Row {
    /// Sums with the piece's point, sorted: a part but for its last cell.
    points: Vec<Cell>,
    /// Where the last of `points` ends.
    reached: i64,
    /// Sums with the piece's segment: parts one behind the other.
    parts: Vec<Cell>,
    /// Where parts begin.
    begins: Vec<usize>,
    /// The other buffer, for merging.
    merged: Vec<Cell>,
    merged_begins: Vec<usize>,
}

impl Row {
    /// A point and the segment behind it, that of the row, with another point and segment.
    fn meet(&mut self, one: &Span, two: &Span) {
        let start = one.start + two.start;
        if one.at != INFINITY {
            if !self.points.is_empty() && self.reached < start {
                self.points.push(Cell::nothing(self.reached));
            }
            let line = match two.after {
                INFINITY => Line::NONE,
                after => Line::through(start, one.at + after, two.slope),
            };
            let at = match two.at {
                INFINITY => INFINITY,
                at => one.at + at,
            };
            self.points.push(Cell::new(start, at, line));
            self.reached = one.start + two.end;
        }
        if one.after == INFINITY {
            return;
        }
        let length = one.end - one.start;
        // A point that is not below what is beside it is not below sums with that, either.
        if two.dips {
            self.begins.push(self.parts.len());
            let line = Line::through(start, one.after + two.at, one.slope);
            self.parts.push(Cell::new(start, INFINITY, line));
            self.parts.push(Cell::nothing(start + length));
        }
        if two.after == INFINITY {
            return;
        }
        // Both segments: the flatter one first.
        let (flat, steep) = match one.slope <= two.slope {
            true => ((one.slope, length), two.slope),
            false => ((two.slope, two.end - two.start), one.slope),
        };
        self.begins.push(self.parts.len());
        let line = Line::through(start, one.after + two.after, flat.0);
        self.parts.push(Cell::new(start, INFINITY, line));
        if flat.0 != steep {
            let turn = start + flat.1;
            let then = line.at(turn);
            self.parts
                .push(Cell::new(turn, then, Line::through(turn, then, steep)));
        }
        self.parts.push(Cell::nothing(one.end + two.end));
    }

    /// The row as one part, if there is anything in it; and empty again.
    fn finish(&mut self) -> Option<Vec<Cell>> {
        while self.begins.len() > 1 {
            self.merged.clear();
            self.merged_begins.clear();
            for pair in self.begins.chunks(2) {
                let from = pair[0];
                self.merged_begins.push(self.merged.len());
                // The end of a chunk is where the next begins; the last one's that of all.
                let index = 2 * self.merged_begins.len();
                let to = self.begins.get(index).copied().unwrap_or(self.parts.len());
                match pair.get(1) {
                    None => self.merged.extend_from_slice(&self.parts[from..]),
                    Some(&middle) => merge(
                        &self.parts[from..middle],
                        &self.parts[middle..to],
                        &mut self.merged,
                    ),
                }
            }
            std::mem::swap(&mut self.parts, &mut self.merged);
            std::mem::swap(&mut self.begins, &mut self.merged_begins);
        }
        if !self.points.is_empty() {
            self.points.push(Cell::nothing(self.reached));
        }
        let part = match (self.points.is_empty(), self.parts.is_empty()) {
            (true, true) => return None,
            (true, false) => self.parts.clone(),
            (false, true) => self.points.clone(),
            (false, false) => lower(&self.points, &self.parts),
        };
        self.points.clear();
        self.parts.clear();
        self.begins.clear();
        Some(part)
    }
}

/// Adds a row to the lowest of 1, 2, 4, … rows, no two of which are as many.
fn add(rows: &mut Vec<Option<Vec<Cell>>>, mut part: Vec<Cell>) {
    for level in rows.iter_mut() {
        match level.take() {
            Some(other) => part = lower(&other, &part),
            None => {
                *level = Some(part);
                return;
            }
        }
    }
    rows.push(Some(part));
}

fn lower(one: &[Cell], two: &[Cell]) -> Vec<Cell> {
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
fn section<N: Number>(part: &[Cell], end: &N) -> Section<N> {
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
