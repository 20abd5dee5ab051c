//! Envelopes of shifted copies, on whole numbers of 64 bits.
//!
//! Where two segments meet, the least of their sums goes along the flatter one first: one of the two
//! is at an end all the time. So the convolution of f and g is the lowest of copies: g moved by each
//! breakpoint of f, to the lowest value or limit there, and f moved by each of g. And of a copy not
//! all is needed. Let f have the slopes a before a breakpoint and b behind it, and be continuous
//! there; along a segment of g with slope m, a little more of f and less of g is lower if m > b, and
//! a little less of f if m < a. So a segment is taken only at breakpoints where a ≤ m ≤ b. A side
//! whose limit is above the lowest of both limits and the value is no bound; neither is what lies
//! beyond the ends of a section, +∞.
//!
//! *Values at a time.* Where a breakpoint of f meets one of g, the value there is the least of both
//! values and of a left limit with a right one. Let both be continuous. If a_f > b_g or a_g > b_f, a
//! neighbouring split is lower. Else b_g is in \[a_f, b_f\] or b_f in \[a_g, b_g\], so that a segment that
//! begins there is taken, and the value with it. Values are thus noted where a taken segment begins,
//! and wherever one of both is not continuous. If two breakpoints with a > b meet, a neighbouring
//! split is lower; so a copy by one of these is needed for none of its values, either. ∎
//!
//! Invariant: a copy is a part in the sense of [`parts`].

mod parts;

use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::section::Section;
use parts::{Cell, INFINITY, Line, add, lower, section};

/// Beyond this operands are left to kernels of any number: sums are to stay below 2⁶⁰.
const MOST: i64 = 1 << 57;

/// What only counts as +∞ in sums of distances.
const FAR: i128 = i128::MAX / 4;

/// Fewer pairs than this take less than starting a thread.
const WORTH_THREADS: usize = 1 << 16;

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
    let (rise, run) = slope.parts()?;
    let slope = (i128::from(rise), i128::from(run));
    let (f, g) = (Operand::new(f, slope)?, Operand::new(g, slope)?);
    let last = whole(end)?;
    let most = match early_exit {
        true => f.most_with(&g, last).min(g.most_with(&f, last)),
        false => FAR,
    };
    let pairs = f.bends.len().saturating_mul(g.bends.len());
    let copies = Copies { f, g, last, most };
    let lowest = match pairs < WORTH_THREADS {
        true => copies.lowest(0, 1),
        false => copies.lowest_of_threads(threads.max(1)),
    };
    Some(section(&lowest, end))
}

/// A section as whole numbers: its breakpoints, 0 and its end among them.
struct Operand {
    bends: Vec<Bend>,
    /// How far a piece is above the slope, at most.
    most: i128,
    /// How far anything is above the slope, at least.
    least: i128,
    /// The slope that distances are measured from: times its denominator.
    slope: (i128, i128),
}

/// A breakpoint, and the segment behind it; none behind the last.
#[derive(Clone, Copy)]
struct Bend {
    time: i64,
    at: i64,
    /// The limits from the left and from the right.
    before: i64,
    after: i64,
    /// The slope of the segment.
    slope: i64,
    /// The least distance of the segment above the result's slope.
    least: i128,
    /// The lowest of the value and both limits.
    value: i64,
    /// Segments of which slopes are taken here, in this place of a sum.
    taken: (i64, i64),
}

impl Bend {
    fn is_continuous(&self) -> bool {
        self.at == self.before && self.at == self.after
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

/// The sum of two values of which either may be +∞.
fn sum(one: i64, two: i64) -> i64 {
    match one == INFINITY || two == INFINITY {
        true => INFINITY,
        false => one + two,
    }
}

impl Operand {
    fn new<N: Number>(section: &Section<N>, slope: (i128, i128)) -> Option<Self> {
        let last = whole(&section.end)?;
        let mut operand = Operand {
            bends: Vec::with_capacity(section.pieces.len() + 1),
            most: -FAR,
            least: FAR,
            slope,
        };
        let (mut before, mut slope_before) = (INFINITY, 0);
        for (piece, end) in section.spans() {
            let (start, end) = (whole(&piece.start)?, whole(end)?);
            let (at, after) = (value(&piece.at)?, value(&piece.after)?);
            let slope = whole(&piece.slope)?;
            // Both the line and where it would be at 0 and at the end of all are to fit. Numbers that
            // did not fit may be any, and are thrown away later.
            let fits = slope.checked_mul(last)?.abs() < MOST && (0..end).contains(&start);
            let bends = &mut operand.bends;
            if !fits || bends.last().is_some_and(|last: &Bend| last.time >= start) {
                return None;
            }
            let limit = match after {
                INFINITY => INFINITY,
                after => after + slope * (end - start),
            };
            let [at_start, behind, at_end] =
                [(start, at), (start, after), (end, limit)].map(|point| operand.above(point));
            operand.most = operand.most.max(at_start).max(behind).max(at_end);
            operand.least = operand.least.min(at_start).min(behind).min(at_end);
            operand.bends.push(bend(
                [before, at, after],
                start,
                (slope_before, slope),
                behind.min(at_end),
            ));
            (before, slope_before) = (limit, slope);
        }
        let end = [before, INFINITY, INFINITY];
        let end = bend(end, last, (slope_before, 0), FAR);
        operand.bends.push(end);
        Some(operand)
    }

    /// How far a value at a time is above the slope.
    fn above(&self, (time, value): (i64, i64)) -> i128 {
        let (rise, run) = self.slope;
        match value {
            INFINITY => FAR,
            value => i128::from(value) * run - rise * i128::from(time),
        }
    }

    /// The most that the result can lie above the slope before the end: the split that gives the
    /// other nothing. +∞ if this ends earlier. (What is behind the end makes it greater at most.)
    fn most_with(&self, other: &Self, last: i64) -> i128 {
        let reaches = self.bends.last().is_some_and(|end| end.time >= last);
        match other.bends.first() {
            Some(first) if reaches && first.at != INFINITY => {
                (self.most + i128::from(first.at) * self.slope.1).min(FAR)
            }
            _ => FAR,
        }
    }
}

fn bend(
    [before, at, after]: [i64; 3],
    time: i64,
    (slope_before, slope): (i64, i64),
    least: i128,
) -> Bend {
    let value = before.min(at).min(after);
    let low = if before == value {
        slope_before
    } else {
        i64::MIN
    };
    let high = if after == value { slope } else { i64::MAX };
    Bend {
        time,
        at,
        before,
        after,
        slope,
        least,
        value,
        taken: (low, high),
    }
}

/// What the lowest is taken of.
struct Copies {
    f: Operand,
    g: Operand,
    /// Where the result ends.
    last: i64,
    /// The most that the result can be above its slope.
    most: i128,
}

impl Copies {
    /// The lowest of every so many copies, from one on.
    fn lowest(&self, from: usize, every: usize) -> Vec<Cell> {
        let mut lowest: Option<Vec<Cell>> = None;
        for (moved, by) in [(&self.f, &self.g), (&self.g, &self.f)] {
            let mut levels: Vec<Option<Vec<Cell>>> = Vec::new();
            let bends = by.bends.iter().skip(from).step_by(every);
            for bend in bends.take_while(|bend| bend.time < self.last) {
                if let Some(part) = self.copy(moved, bend, by) {
                    add(&mut levels, part);
                }
            }
            for part in levels.into_iter().flatten() {
                lowest = Some(match lowest {
                    Some(lowest) => lower(&part, &lowest),
                    None => part,
                });
            }
        }
        lowest.unwrap_or_default()
    }

    /// What is needed of one operand, moved by a breakpoint of the other.
    fn copy(&self, moved: &Operand, by: &Bend, other: &Operand) -> Option<Vec<Cell>> {
        let (low, high) = by.taken;
        let above = other.above((by.time, by.value));
        if by.value == INFINITY || low > high || above + moved.least > self.most {
            return None;
        }
        let mut cells: Vec<Cell> = Vec::with_capacity(moved.bends.len());
        let mut is_open = false;
        for bend in &moved.bends {
            let time = by.time + bend.time;
            if time >= self.last {
                break;
            }
            let is_taken = bend.after != INFINITY
                && low <= bend.slope
                && bend.slope <= high
                && above + bend.least <= self.most;
            let at = match is_taken || !bend.is_continuous() || !by.is_continuous() {
                true => sum(by.at, bend.at)
                    .min(sum(by.before, bend.after))
                    .min(sum(by.after, bend.before)),
                false => INFINITY,
            };
            if is_taken {
                let line = Line::through(time, by.value + bend.after, bend.slope);
                cells.push(Cell::new(time, at, line));
            } else if is_open || at != INFINITY {
                cells.push(Cell::new(time, at, Line::NONE));
            }
            is_open = is_taken;
        }
        if is_open {
            // A part ends with nothing; what is behind the end is not looked at.
            let end = moved.bends.last()?.time.min(self.last) + by.time;
            cells.push(Cell::new(end, INFINITY, Line::NONE));
        }
        (!cells.is_empty()).then_some(cells)
    }

    /// The lowest of all copies, of which each thread takes its share: late ones are shorter.
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
