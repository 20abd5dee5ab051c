//! What is convolved, as whole numbers of 64 bits: breakpoints, and segments between them.
//!
//! Invariant: at a breakpoint whose time is not whole the function is continuous, and less steep
//! behind it than before: nothing is ever moved by one.

use std::cmp::Ordering;

use super::parts::{Cell, INFINITY, Line, Time};
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// Beyond this operands are left to kernels of any number: sums are to stay below 2⁶⁰.
const MOST: i64 = 1 << 57;

/// Steeper lines are not made breakpoints of: distances are to stay below 2¹²⁵.
pub(crate) const STEEPEST: i64 = 1 << 30;

/// What only counts as +∞ in sums of distances.
pub(crate) const FAR: i128 = i128::MAX / 4;

/// A slope that distances are measured from, in units in which they are whole: a value is so far
/// above it as `run` times the value is above `rise` times the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slope {
    pub(crate) rise: i64,
    pub(crate) run: i64,
}

impl Slope {
    /// How far a value at a time is above it.
    pub(crate) fn below(self, time: i64, value: i64) -> i128 {
        match value {
            INFINITY => FAR,
            value => {
                i128::from(value) * i128::from(self.run) - i128::from(self.rise) * i128::from(time)
            }
        }
    }

    /// How far a line is above it at a time, rounded down.
    pub(super) fn below_line(self, time: Time, line: Line) -> i128 {
        if line.is_none() {
            return FAR;
        }
        if let Some(time) = time.whole() {
            return self.below(time, line.at(time));
        }
        let (numerator, denominator) = (i128::from(time.numerator), i128::from(time.denominator));
        let run = i128::from(self.run);
        let steeper = i128::from(line.m) * run - i128::from(self.rise);
        (steeper * numerator).div_euclid(denominator) + i128::from(line.b) * run
    }
}

/// A function on an interval from 0 on, +∞ behind it: its breakpoints, 0 and the end among them.
#[derive(Clone)]
pub(crate) struct Operand {
    pub(crate) bends: Vec<Bend>,
    /// How far anything is above the slope, at most and at least.
    pub(crate) most: i128,
    pub(crate) least: i128,
    pub(crate) slope: Slope,
}

/// A breakpoint, and the segment behind it; none behind the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bend {
    pub(crate) time: Time,
    /// The value there, and the limits from the left and from the right: of a time that is whole.
    pub(crate) at: i64,
    pub(crate) before: i64,
    pub(crate) after: i64,
    /// The segment.
    pub(crate) line: Line,
    /// The least distance of the segment above the slope.
    pub(crate) least: i128,
    /// The lowest of the value and both limits.
    pub(crate) value: i64,
    /// Segments of which slopes are taken here, in this place of a sum: none if the first is more.
    pub(crate) taken: (i64, i64),
}

impl Bend {
    /// At a whole time.
    fn new(time: i64, [before, at, after]: [i64; 3], slope_before: i64, line: Line) -> Self {
        let value = before.min(at).min(after);
        let low = if before == value {
            slope_before
        } else {
            i64::MIN
        };
        let high = if after == value { line.m } else { i64::MAX };
        Bend {
            time: Time::at(time),
            at,
            before,
            after,
            line,
            least: FAR,
            value,
            taken: (low, high),
        }
    }

    /// Where two lines cross, the flatter one being lower behind: nothing is moved by it.
    fn between(time: Time, line: Line) -> Self {
        Bend {
            time,
            at: 0,
            before: 0,
            after: 0,
            line,
            least: FAR,
            value: 0,
            taken: (i64::MAX, i64::MIN),
        }
    }

    pub(crate) fn is_continuous(&self) -> bool {
        self.at == self.before && self.at == self.after
    }

    /// The least distance of what is at and behind it.
    pub(crate) fn lowest(&self, slope: Slope) -> i128 {
        match self.time.whole() {
            Some(time) => self.least.min(slope.below(time, self.at)),
            None => self.least,
        }
    }
}

/// A whole number that is not too large.
pub(crate) fn whole<N: Number>(number: &N) -> Option<i64> {
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

/// A time whose terms are not too large.
pub(crate) fn time<N: Number>(time: &N) -> Option<Time> {
    let (numerator, denominator) = time.parts()?;
    let fits = numerator.abs() < MOST && denominator < 2 * STEEPEST;
    fits.then_some(Time {
        numerator,
        denominator,
    })
}

/// Pieces as cells, of which lines fit up to a time; none where there are none.
pub(crate) fn cells<N: Number>(
    section: &Section<N>,
    last: i64,
) -> impl Iterator<Item = Option<Cell>> {
    let mut before = Line::NONE;
    section.pieces.iter().map(move |piece| {
        let start = time(&piece.start)?;
        let line = line(piece, start).filter(|line| fits(line.m, last))?;
        let at = match start.whole() {
            Some(_) => value(&piece.at)?,
            None if piece.at == piece.after && before.crosses(line, start) => INFINITY,
            None => return None,
        };
        before = line;
        Some(Cell { start, at, line })
    })
}

/// The line of a piece that begins at a time.
fn line<N: Number>(piece: &Piece<N>, start: Time) -> Option<Line> {
    let after = match &piece.after {
        Finite(after) => after,
        PositiveInfinity => return Some(Line::NONE),
        NegativeInfinity => return None,
    };
    let m = whole(&piece.slope)?;
    Some(match start.whole() {
        Some(start) => Line::through(start, whole(after)?, m),
        None if m.abs() < STEEPEST => Line {
            m,
            b: whole(&after.minus(&piece.slope.times(&piece.start)))?,
        },
        None => return None,
    })
}

/// Whether a line of some slope, and where it would be at 0, fit up to a time.
pub(crate) fn fits(slope: i64, last: i64) -> bool {
    slope
        .checked_mul(last)
        .is_some_and(|rise| rise.abs() < MOST)
}

impl Operand {
    /// `None` if a section is −∞ somewhere, or does not fit whole numbers.
    pub(crate) fn new<N: Number>(section: &Section<N>, slope: Slope) -> Option<Self> {
        let last = whole(&section.end)?;
        let count = section.pieces.len();
        Self::of_cells(cells(section, last), count, Some(last), slope)
    }

    /// What cells say, about so many, that begin at 0, up to an end, or if the last is none, to that one. `None` if a
    /// cell is none, or they are not in order, as after a result that did not fit.
    pub(crate) fn of_cells(
        cells: impl IntoIterator<Item = Option<Cell>>,
        count: usize,
        last: Option<i64>,
        slope: Slope,
    ) -> Option<Self> {
        let mut bends: Vec<Bend> = Vec::with_capacity(count + 1);
        let (mut most, mut least) = (-FAR, FAR);
        let mut before = Line::NONE;
        let mut close = |bend: &mut Bend, end: Time| {
            let first = slope.below_line(bend.time, bend.line);
            let then = slope.below_line(end, bend.line);
            bend.least = first.min(then);
            let at = bend.time.whole().map(|time| slope.below(time, bend.at));
            // What is not whole was rounded down.
            let high = (first.max(then) + 1).max(at.unwrap_or(-FAR));
            (most, least) = (most.max(high).min(FAR), least.min(bend.lowest(slope)));
        };
        for cell in cells {
            let Cell { start, at, line } = cell?;
            if let Some(bend) = bends.last_mut() {
                if bend.time.order(start).is_ge() {
                    return None;
                }
                close(bend, start);
            }
            bends.push(match start.whole() {
                Some(start) => Bend::new(
                    start,
                    [before.at(start), at, line.at(start)],
                    before.m,
                    line,
                ),
                None => Bend::between(start, line),
            });
            before = line;
        }
        if let (Some(last), Some(bend)) = (last, bends.last_mut()) {
            close(bend, Time::at(last));
            let end = [before.at(last), INFINITY, INFINITY];
            bends.push(Bend::new(last, end, before.m, Line::NONE));
        }
        let begins = bends.first()?.time == Time::at(0);
        begins.then_some(Operand {
            bends,
            most,
            least,
            slope,
        })
    }

    /// The most that a convolution can lie above the slope before the end: the split that gives the
    /// other nothing. +∞ if this ends earlier. (What is behind the end makes it greater at most.)
    pub(crate) fn most_with(&self, other: &Self, last: i64) -> i128 {
        let reaches = self
            .bends
            .last()
            .is_some_and(|end| !end.time.is_before(last));
        match other.bends.first() {
            Some(first) if reaches && first.at != INFINITY => {
                (self.most + self.slope.below(0, first.at)).min(FAR)
            }
            _ => FAR,
        }
    }

    /// Looks how low it is.
    fn look(&mut self) {
        let lowest = self.bends.iter().map(|bend| bend.lowest(self.slope));
        self.least = lowest.fold(FAR, i128::min);
    }

    /// Cuts it behind the last that is below a bound. What is at 0 stays.
    pub(crate) fn keep(&mut self, bound: &Bound) {
        let slope = self.slope;
        let is_needed = |place: &usize| {
            let bend = &self.bends[*place];
            bound.is_above_point(bend, slope) || bound.is_above_segment(&self.bends[*place..])
        };
        let last = (0..self.bends.len()).rev().find(is_needed).unwrap_or(0);
        let next = bound
            .is_above_segment(&self.bends[last..])
            .then(|| self.bends[last + 1].time.ceiling());
        self.bends.truncate(last + 1);
        let slope_before = match last {
            0 => 0,
            _ => self.bends[last - 1].line.m,
        };
        let bend = &mut self.bends[last];
        match next {
            Some(end) => {
                // Up to the next whole time: what is said beyond a crossing is no lower than it was.
                let line = bend.line;
                let values = [line.at(end), INFINITY, INFINITY];
                self.bends.push(Bend::new(end, values, line.m, Line::NONE));
            }
            None => {
                let (time, values) = (bend.time.ceiling(), [bend.before, bend.at, INFINITY]);
                *bend = Bend::new(time, values, slope_before, Line::NONE);
            }
        }
        self.look();
    }

    /// Cuts it behind the last that is needed: what lies behind 0 and before a time is not, if it is as
    /// high as a level of that time. What is at 0 stays.
    pub(crate) fn keep_below(&mut self, mut level: impl FnMut(i64) -> i64) {
        while let [.., bend, end] = &mut self.bends[..] {
            let time = end.time.ceiling();
            if end.at != INFINITY {
                if end.at < level(time + 1) {
                    break;
                }
                end.at = INFINITY;
            }
            let level = level(time);
            let flat = Line::through(0, level, 0);
            let is_low = |time: Time| bend.line.order_at(flat, time).is_lt();
            if is_low(bend.time) || is_low(end.time) {
                *end = Bend::new(
                    time,
                    [end.before, INFINITY, INFINITY],
                    bend.line.m,
                    Line::NONE,
                );
                break;
            }
            self.bends.pop();
            let Some((last, others)) = self.bends.split_last_mut() else {
                break;
            };
            let line = others.last().map_or(Line::NONE, |before| before.line);
            let (time, at) = match last.time.whole() {
                Some(0) => (0, last.at),
                Some(time) if last.at < level => (time, last.at),
                Some(time) => (time, INFINITY),
                None => (last.time.ceiling(), INFINITY),
            };
            *last = Bend::new(time, [line.at(time), at, INFINITY], line.m, Line::NONE);
        }
        self.look();
    }

    /// The value at 0, if it is finite.
    pub(crate) fn begin(&self) -> Option<i64> {
        let begin = self.bends.first()?.at;
        (begin != INFINITY).then_some(begin)
    }

    /// How many pieces it has.
    pub(crate) fn pieces(&self) -> usize {
        self.bends.len() - 1
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> i64 {
        self.bends.last().map_or(0, |end| end.time.ceiling())
    }

    /// Raises every finite value by a number.
    pub(crate) fn raise(&mut self, by: i64) {
        let raised = |value: &mut i64| {
            if *value != INFINITY {
                *value += by;
            }
        };
        for bend in &mut self.bends {
            let values = [&mut bend.at, &mut bend.before, &mut bend.after];
            values.into_iter().for_each(raised);
            raised(&mut bend.value);
            raised(&mut bend.line.b);
        }
        let distance = self.slope.below(0, by);
        for bend in self.bends.iter_mut().filter(|bend| bend.least != FAR) {
            bend.least += distance;
        }
        self.look();
    }

    /// Whether it can be moved so far that something ends at `last`.
    pub(crate) fn fits(&self, last: i64) -> bool {
        let is_small = |value: i64| value == INFINITY || value.abs() < MOST;
        last < MOST
            && self.bends.iter().all(|bend| {
                let line = bend.line;
                line.m.abs() < STEEPEST
                    && fits(line.m, last)
                    && is_small(line.b)
                    && is_small(bend.at)
            })
    }
}

/// What is needed lies below it.
pub(crate) struct Bound {
    /// A distance above the slope.
    pub(crate) distance: i128,
    /// A line.
    pub(crate) line: Option<Line>,
}

impl Bound {
    fn is_above_point(&self, bend: &Bend, slope: Slope) -> bool {
        let Some(time) = bend.time.whole() else {
            // It is on the segment behind it.
            return false;
        };
        slope.below(time, bend.at) < self.distance
            && self.line.is_none_or(|line| bend.at < line.at(time))
    }

    /// Whether anything of the segment behind the first breakpoint is below it.
    fn is_above_segment(&self, bends: &[Bend]) -> bool {
        let [bend, next, ..] = bends else {
            return false;
        };
        let is_above = |line: Line| {
            let times = [bend.time, next.time];
            let mut orders = times
                .map(|time| bend.line.order_behind(line, time))
                .into_iter();
            orders.any(Ordering::is_lt)
        };
        bend.least < self.distance && self.line.is_none_or(is_above)
    }
}
