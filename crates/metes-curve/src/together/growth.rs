//! How much a curve can grow within a time, and what of others is needed beside it.
//!
//! Invariant: growth is never taken for less than it is.

use super::whole::Whole;
use crate::envelope::lines::{Bound, Cell, Line, Operand, Slope, Time};

/// How much a slow curve can grow.
pub(super) struct Growth<'a> {
    low: &'a Whole,
    slope: Slope,
    /// V, in units of the slope.
    extent: i128,
    /// σ, if there is one.
    steepest: Option<i64>,
    /// Whether it is constant between breakpoints, and never falls.
    is_staircase: bool,
}

impl<'a> Growth<'a> {
    /// `None` if it is infinite somewhere. Linear.
    pub(super) fn of(low: &'a Whole, slope: Slope) -> Option<Self> {
        let (mut least, mut most) = (i128::MAX, i128::MIN);
        let mut steepest = i64::MIN;
        let (mut rises, mut jumps) = (true, false);
        let mut before = None;
        for (cell, end) in low.spans() {
            if cell.is_infinite() {
                return None;
            }
            let (lowest, highest) = cell.distances(end, slope);
            (least, most) = (least.min(lowest), most.max(highest));
            steepest = steepest.max(cell.line.slope());
            rises &= cell.line.is_flat();
            if let Some(start) = cell.start.whole() {
                let before = before.map_or(cell.at, |line: Line| line.at(start));
                let after = cell.line.at(start);
                rises &= before <= cell.at && cell.at <= after;
                jumps |= before < cell.at || cell.at < after;
            }
            before = Some(cell.line);
        }
        // Where it begins again.
        if let Some((again, before)) = low.again().zip(before) {
            rises &= before.at(again.0) <= again.1;
            jumps |= before.at(again.0) < again.1;
        }
        Some(Growth {
            low,
            slope,
            extent: most - least,
            steepest: (!jumps).then_some(steepest),
            is_staircase: rises,
        })
    }

    pub(super) fn slope(&self) -> Slope {
        self.slope
    }

    /// What is needed of a curve, or of a convolution of several, that begins with a value.
    pub(super) fn bound(&self, begin: i64) -> Bound {
        Bound {
            distance: self.extent + self.slope.below(0, begin),
            line: self.steepest.map(|slope| Line::through(0, begin, slope)),
        }
    }

    /// What is needed of an operand; `None` if that does not fit.
    pub(super) fn needed(&self, mut operand: Operand) -> Option<Operand> {
        let begin = operand.begin()?;
        operand.keep(&self.bound(begin));
        if self.is_staircase && operand.pieces() > 0 {
            let end = operand.end() + 1;
            let cells = self.low.first_and(end)?;
            operand.keep_below(|time| begin + self.within(&cells, time));
        }
        Some(operand)
    }

    /// The most that it grows by in less than a whole time above 0, of pieces for that long behind the
    /// first period, if it never falls.
    ///
    /// *Proof.* That is the supremum over t of the limit of f(t + time) from the left, less f(t), and of the
    /// other limits at both. Between times at which either has a breakpoint it is affine, so the limits
    /// there are enough; and where f is less steep behind a time than before, and continuous, −f(t) is
    /// not greatest. ∎
    fn within(&self, cells: &[Cell], time: i64) -> i64 {
        let end = self.low.known();
        let start = |place: usize| cells.get(place).map_or(Time::NEVER, |cell| cell.start);
        let mut most = 0;
        // From each breakpoint on.
        let mut then = 0;
        let mut before = None;
        let known = cells
            .iter()
            .take_while(|cell| cell.start.order(end).is_lt());
        for cell in known {
            if let Some(from) = cell.start.whole() {
                let to = from + time;
                while start(then + 1).is_before(to) {
                    then += 1;
                }
                let least = before.map_or(cell.at, |line: Line| line.at(from));
                most = most.max(cells[then].line.at(to) - least);
                let behind = then + usize::from(start(then + 1) == Time::at(to));
                most = most.max(cells[behind].line.at(to) - cell.line.at(from));
            }
            before = Some(cell.line);
        }
        // Up to each breakpoint.
        let mut from = 0;
        for pair in cells.windows(2) {
            let to = pair[1].start;
            let since = to.moved(-time);
            if since.is_before(0) {
                continue;
            }
            if since.order(end).is_ge() {
                break;
            }
            while start(from + 1).order(since).is_le() {
                from += 1;
            }
            let least = cells[from].line;
            most = most.max(pair[1].line.rise_from(least, to, since));
            if cells[from].start != since {
                most = most.max(pair[0].line.rise_from(least, to, since));
            }
        }
        most
    }
}
