//! Staircases that never fall, on whole numbers of 64 bits.
//!
//! Let f and g be constant between breakpoints and never fall. Then f ∗ g never falls, so that a sum
//! of two steps bounds it not only where both meet, but at all times before; and only the ends of
//! steps matter: (f ∗ g)(t) is the least sum of two steps whose ends together come to t or later.
//! Ends are numbered: 2 t is the time t itself, 2 t − 1 all of the open interval before it. Two
//! closed ends, or a closed and an open one, add up by number; two open ends e and e′ to
//! 2 (e + e′) − 1, one more than their sum. So a convolution is: note at each sum of ends the least sum
//! of values, and take the least of what is noted from there on.
//!
//! What is noted is kept in an array by end or by value, where one is short, or as a skyline: ends and
//! values that both rise.
//!
//! Invariant: steps of a list rise in end and in value.

use num_integer::Integer;

use super::lines::{Cell, INFINITY, Line, Operand, Time};
use crate::extended::Extended::{Finite, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// Beyond this sums might not fit.
const MOST: i64 = 1 << 60;

/// Cells of an array: at most so many, and at most so many for each pair.
const MOST_CELLS: i64 = 1 << 24;
const CELLS_PER_PAIR: i64 = 4;

/// The end of a step, numbered, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    end: i64,
    value: i64,
}

/// A staircase's steps by whether their end is included.
struct Steps {
    closed: Vec<Step>,
    open: Vec<Step>,
}

/// `None` if one is no such staircase, or does not fit. O(n m) for n and m pieces.
pub(super) fn envelope<N: Number>(f: &Section<N>, g: &Section<N>, end: &N) -> Option<Section<N>> {
    if !rises(f) || !rises(g) {
        return None;
    }
    let scale = Scale::of(f, g, end)?;
    let last = 2 * scale.time(end)? - 1;
    let (f, g) = (scale.steps(f)?, scale.steps(g)?);
    let skyline = skyline(&f.products(&g), last);
    Some(scale.section(&skyline, end, last))
}

/// Whether a section is finite, constant between breakpoints, and never falls. Linear.
fn rises<N: Number>(section: &Section<N>) -> bool {
    let mut before = None;
    section.pieces.iter().all(|piece| {
        let (Finite(at), Finite(after)) = (&piece.at, &piece.after) else {
            return false;
        };
        let rises = piece.slope.is_zero() && at <= after && before.is_none_or(|last| last <= at);
        before = Some(after);
        rises
    })
}

/// By what times and values are multiplied to be whole.
struct Scale {
    time: i64,
    value: i64,
}

impl Scale {
    fn of<N: Number>(f: &Section<N>, g: &Section<N>, end: &N) -> Option<Self> {
        let mut scale = Scale { time: 1, value: 1 };
        take(&mut scale.time, end)?;
        for section in [f, g] {
            take(&mut scale.time, &section.end)?;
            for piece in &section.pieces {
                take(&mut scale.time, &piece.start)?;
                take(&mut scale.value, piece.at.finite()?)?;
                take(&mut scale.value, piece.after.finite()?)?;
            }
        }
        Some(scale)
    }

    fn time<N: Number>(&self, time: &N) -> Option<i64> {
        scaled(time, self.time)
    }

    fn steps<N: Number>(&self, section: &Section<N>) -> Option<Steps> {
        let mut steps: Vec<Step> = Vec::with_capacity(2 * section.pieces.len());
        for (piece, end) in section.spans() {
            let number = |number: &N| scaled(number, self.value);
            let point = Step {
                end: 2 * self.time(&piece.start)?,
                value: number(piece.at.finite()?)?,
            };
            let segment = Step {
                end: 2 * self.time(end)? - 1,
                value: number(piece.after.finite()?)?,
            };
            for step in [point, segment] {
                // Numbers that did not fit may be any, and are thrown away later.
                if steps.last().is_some_and(|last| last.end >= step.end) {
                    return None;
                }
                // Of equal values the last goes furthest.
                if steps.last().is_some_and(|last| last.value == step.value) {
                    steps.pop();
                }
                steps.push(step);
            }
        }
        Some(Steps::parted(steps))
    }

    /// What a skyline says of the times before the end.
    fn section<N: Number>(&self, skyline: &[Step], end: &N, last: i64) -> Section<N> {
        let (times, values) = (N::whole(self.time), N::whole(self.value));
        let level = |value: Option<i64>| match value {
            Some(value) => Finite(N::whole(value).over(&values)),
            None => PositiveInfinity,
        };
        let pieces = breakpoints(skyline, last).map(|(begin, at, after)| {
            let start = N::whole(begin).over(&times);
            Piece::new(start, level(at), level(after), N::zero())
        });
        Section {
            pieces: pieces.collect(),
            end: end.clone(),
        }
    }
}

/// Where the skyline changes before the last end, and what it is there and behind; nothing is +∞.
fn breakpoints(
    skyline: &[Step],
    last: i64,
) -> impl Iterator<Item = (i64, Option<i64>, Option<i64>)> {
    let mut begun = None;
    let mut step = 0;
    // A step begins behind the end of the one before: at a time or behind it.
    let begins = skyline.iter().map(|step| (step.end + 1) / 2);
    std::iter::once(0).chain(begins).filter_map(move |begin| {
        if begun == Some(begin) || 2 * begin > last {
            return None;
        }
        begun = Some(begin);
        let mut reaching = |number: i64| {
            while skyline.get(step).is_some_and(|step| step.end < number) {
                step += 1;
            }
            skyline.get(step).map(|step| step.value)
        };
        Some((begin, reaching(2 * begin), reaching(2 * begin + 1)))
    })
}

/// The convolution of two operands that are such staircases, before `last`.
pub(crate) fn lowest(f: &Operand, g: &Operand, last: i64) -> Vec<Cell> {
    let last = 2 * last - 1;
    let (f, g) = (Steps::of(f), Steps::of(g));
    let level = |value: Option<i64>| value.unwrap_or(INFINITY);
    let skyline = skyline(&f.products(&g), last);
    let cells = breakpoints(&skyline, last).map(|(begin, at, after)| {
        let line = after.map_or(Line::NONE, |value| Line::through(begin, value, 0));
        Cell::new(Time::at(begin), level(at), line)
    });
    cells.collect()
}

impl Steps {
    fn of(operand: &Operand) -> Self {
        let mut steps: Vec<Step> = Vec::with_capacity(2 * operand.bends.len());
        let ends = operand.bends.iter().skip(1).map(|bend| bend.time.ceiling());
        for (bend, end) in operand.bends.iter().zip(ends.chain([0])) {
            for (end, value) in [
                (2 * bend.time.ceiling(), bend.at),
                (2 * end - 1, bend.after),
            ] {
                if value == INFINITY {
                    continue;
                }
                // Of equal values the last goes furthest.
                if steps.last().is_some_and(|last| last.value == value) {
                    steps.pop();
                }
                steps.push(Step { end, value });
            }
        }
        Steps::parted(steps)
    }

    fn parted(steps: Vec<Step>) -> Self {
        let (closed, open) = steps.into_iter().partition(|step| step.end % 2 == 0);
        Steps { closed, open }
    }

    /// Each kind with each, and how much more than their sum the end of two is.
    fn products<'a>(&'a self, other: &'a Self) -> [Product<'a>; 4] {
        [
            (&self.closed, &other.closed, 0),
            (&self.closed, &other.open, 0),
            (&self.open, &other.closed, 0),
            (&self.open, &other.open, 1),
        ]
    }
}

/// Extends a common denominator.
fn take<N: Number>(common: &mut i64, number: &N) -> Option<()> {
    let (_, denominator) = number.parts()?;
    if *common % denominator != 0 {
        *common = (denominator / common.gcd(&denominator)).checked_mul(*common)?;
    }
    Some(())
}

fn scaled<N: Number>(number: &N, by: i64) -> Option<i64> {
    let (numerator, denominator) = number.parts()?;
    let whole = numerator.checked_mul(by / denominator)?;
    (-MOST / 4..MOST / 4).contains(&whole).then_some(whole)
}

type Product<'a> = (&'a Vec<Step>, &'a Vec<Step>, i64);

/// The skyline of all sums, up to an end.
fn skyline(products: &[Product], last: i64) -> Vec<Step> {
    // The least sum that goes on to the last end: what is not lower is not needed.
    let mut ceiling = i64::MAX;
    for (f, g, more) in products {
        for step in *g {
            let reaches = f.partition_point(|other| other.end + step.end + more < last);
            if let Some(other) = f.get(reaches) {
                ceiling = ceiling.min(other.value + step.value);
            }
        }
    }
    let is_needed = |one: &Step, other: &Step, more: i64| {
        one.end + other.end + more < last && one.value + other.value < ceiling
    };
    // The longer list is the inner one.
    let rows = products.iter().flat_map(|&(f, g, more)| {
        let (inner, outer) = if f.len() < g.len() { (g, f) } else { (f, g) };
        outer.iter().map(move |step| {
            let needed = inner.partition_point(|other| is_needed(other, step, more));
            (step, &inner[..needed], more)
        })
    });
    let mut pairs = 0_i64;
    let mut values: Option<(i64, i64)> = None;
    for (step, inner, _) in rows.clone() {
        pairs += inner.len() as i64;
        if let [first, .., end] | [first @ end] = inner {
            let (low, high) = (step.value + first.value, step.value + end.value);
            values = Some(match values {
                None => (low, high),
                Some((least, most)) => (least.min(low), most.max(high)),
            });
        }
    }
    let room = MOST_CELLS.min(1024 + pairs.saturating_mul(CELLS_PER_PAIR));
    let (least, most) = values.unwrap_or((0, 0));
    let mut skyline = if most - least < room && most - least <= last {
        by_value(rows, least, most)
    } else if last < room {
        by_end(rows, last)
    } else {
        let mut levels = Levels::default();
        for (step, inner, more) in rows {
            let sums = inner.iter().map(|other| Step {
                end: other.end + step.end + more,
                value: other.value + step.value,
            });
            levels.add(sums.collect());
        }
        levels.lowest()
    };
    if ceiling < i64::MAX {
        skyline.push(Step {
            end: last,
            value: ceiling,
        });
    }
    skyline
}

/// The furthest end of each value, in an array.
fn by_value<'a>(
    rows: impl Iterator<Item = (&'a Step, &'a [Step], i64)>,
    least: i64,
    most: i64,
) -> Vec<Step> {
    let mut ends = vec![i64::MIN; (most - least) as usize + 1];
    for (step, inner, more) in rows {
        let (end, value) = (step.end + more, step.value - least);
        for other in inner {
            let cell = &mut ends[(other.value + value) as usize];
            *cell = (*cell).max(other.end + end);
        }
    }
    let mut furthest = i64::MIN;
    let noted = ends.into_iter().zip(least..);
    let further = noted.filter(|(end, _)| {
        let is_further = *end > furthest;
        furthest = furthest.max(*end);
        is_further
    });
    further.map(|(end, value)| Step { end, value }).collect()
}

/// The least value of each end, in an array.
fn by_end<'a>(rows: impl Iterator<Item = (&'a Step, &'a [Step], i64)>, last: i64) -> Vec<Step> {
    let mut values = vec![i64::MAX; last as usize + 1];
    for (step, inner, more) in rows {
        let (end, value) = (step.end + more, step.value);
        for other in inner {
            let cell = &mut values[(other.end + end) as usize];
            *cell = (*cell).min(other.value + value);
        }
    }
    let noted = (0..=last).rev().zip(values.into_iter().rev());
    rising(noted.map(|(end, value)| Step { end, value }))
}

/// Of steps whose ends fall those whose values are the least so far, turned round.
fn rising(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut lowest = i64::MAX;
    let mut kept: Vec<Step> = steps
        .filter(|step| {
            let is_lower = step.value < lowest;
            lowest = lowest.min(step.value);
            is_lower
        })
        .collect();
    kept.reverse();
    kept
}

/// Skylines of 1, 2, 4, … rows, no two of which are as many.
#[derive(Default)]
struct Levels {
    levels: Vec<Option<Vec<Step>>>,
}

impl Levels {
    fn add(&mut self, mut skyline: Vec<Step>) {
        for level in &mut self.levels {
            match level.take() {
                Some(other) => skyline = merged(&other, &skyline),
                None => {
                    *level = Some(skyline);
                    return;
                }
            }
        }
        self.levels.push(Some(skyline));
    }

    fn lowest(self) -> Vec<Step> {
        let levels = self.levels.into_iter().flatten();
        levels
            .reduce(|one, two| merged(&one, &two))
            .unwrap_or_default()
    }
}

/// The lower of two skylines, from their last steps on. Linear.
fn merged(one: &[Step], two: &[Step]) -> Vec<Step> {
    let (mut one, mut two) = (one.iter().rev().peekable(), two.iter().rev().peekable());
    let later = std::iter::from_fn(|| {
        let is_first = match (one.peek(), two.peek()) {
            // Of equal ends the lower one first: the other is then not kept.
            (Some(a), Some(b)) => (a.end, b.value) >= (b.end, a.value),
            (first, _) => first.is_some(),
        };
        if is_first { one.next() } else { two.next() }.copied()
    });
    rising(later)
}
