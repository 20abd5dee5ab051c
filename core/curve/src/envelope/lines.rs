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

mod operand;
mod parts;

use crate::number::Number;
use crate::section::Section;
use operand::{Bend, FAR};
pub(crate) use operand::{Bound, Operand, STEEPEST, Slope, cells, time, whole};
pub(crate) use parts::{Cell, INFINITY, Line, Time, section};
use parts::{Lowest, lower};

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
    let slope = Slope { rise, run };
    let (f, g) = (Operand::new(f, slope)?, Operand::new(g, slope)?);
    let last = whole(end)?;
    let most = match early_exit {
        true => f.most_with(&g, last).min(g.most_with(&f, last)),
        false => FAR,
    };
    let pairs = f.bends.len().saturating_mul(g.bends.len());
    let (f, g) = (&f, &g);
    let copies = Copies { f, g, last, most };
    let lowest = match pairs < WORTH_THREADS {
        true => copies.lowest(0, 1),
        false => copies.lowest_of_threads(threads.max(1)),
    };
    Some(section(&lowest, end))
}

/// The lowest of all copies that begin before `last`; where it lies more than `most` above the slope
/// of both, it may be anything higher than that.
pub(crate) fn lowest(f: &Operand, g: &Operand, last: i64, most: i128) -> Vec<Cell> {
    Copies { f, g, last, most }.lowest(0, 1)
}

/// What the lowest is taken of.
struct Copies<'a> {
    f: &'a Operand,
    g: &'a Operand,
    /// Where the result ends.
    last: i64,
    /// The most that the result can be above its slope.
    most: i128,
}

impl Copies<'_> {
    /// The lowest of every so many copies, from one on.
    fn lowest(&self, from: usize, every: usize) -> Vec<Cell> {
        let mut lowest = Lowest::of(2 * self.f.bends.len() * self.g.bends.len());
        for (moved, by) in [(self.f, self.g), (self.g, self.f)] {
            let bends = by.bends.iter().skip(from).step_by(every);
            for bend in bends.take_while(|bend| bend.time.is_before(self.last)) {
                self.copy(moved, bend, by, &mut lowest);
            }
        }
        lowest.of_all()
    }

    /// What is needed of one operand, moved by a breakpoint of the other.
    fn copy(&self, moved: &Operand, by: &Bend, other: &Operand, lowest: &mut Lowest) {
        let (low, high) = by.taken;
        let Some(by_time) = by
            .time
            .whole()
            .filter(|_| by.value != INFINITY && low <= high)
        else {
            return;
        };
        let above = other.slope.below(by_time, by.value);
        if above + moved.least > self.most {
            return;
        }
        let cells = lowest.next_part(moved.bends.len() + 1);
        let mut is_open = false;
        for bend in &moved.bends {
            let time = bend.time.moved(by_time);
            if !time.is_before(self.last) {
                break;
            }
            let is_taken = !bend.line.is_none()
                && low <= bend.line.m
                && bend.line.m <= high
                && above + bend.least <= self.most;
            let is_noted = is_taken || !bend.is_continuous() || !by.is_continuous();
            let at = match is_noted && bend.time.whole().is_some() {
                true => sum(by.at, bend.at)
                    .min(sum(by.before, bend.after))
                    .min(sum(by.after, bend.before)),
                // At times that are not whole it is on the line.
                false => INFINITY,
            };
            if is_taken {
                cells.push(Cell::new(time, at, bend.line.moved(by_time, by.value)));
            } else if is_open || at != INFINITY {
                cells.push(Cell::new(time, at, Line::NONE));
            }
            is_open = is_taken;
        }
        if is_open {
            // A part ends with nothing; what is behind the end is not looked at.
            let end = moved.end().min(self.last) + by_time;
            cells.push(Cell::new(Time::at(end), INFINITY, Line::NONE));
        }
        lowest.close_part();
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

/// The sum of two values of which either may be +∞.
fn sum(one: i64, two: i64) -> i64 {
    match one == INFINITY || two == INFINITY {
        true => INFINITY,
        false => one + two,
    }
}
