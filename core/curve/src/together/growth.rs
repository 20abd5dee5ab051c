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
    /// Most pieces that it may be written out in.
    pieces: usize,
}

impl<'a> Growth<'a> {
    /// Asked for by writing out at most so many pieces; `None` if it is infinite somewhere. Linear.
    pub(super) fn of(low: &'a Whole, slope: Slope, pieces: usize) -> Option<Self> {
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
            pieces,
        })
    }

    pub(super) fn slope(&self) -> Slope {
        self.slope
    }

    /// Most pieces that a curve may be written out in.
    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// What is needed of a curve, or of a convolution of several, that begins with a value.
    pub(super) fn bound(&self, begin: i64) -> Bound {
        Bound {
            distance: self.extent + self.slope.below(0, begin),
            line: self.steepest.map(|slope| Line::through(0, begin, slope)),
        }
    }

    /// What is needed of an operand; `None` if that does not fit, or is found only by writing out too many
    /// pieces.
    pub(super) fn needed(&self, mut operand: Operand) -> Option<Operand> {
        let begin = operand.begin()?;
        operand.keep(&self.bound(begin));
        if self.is_staircase && operand.pieces() > 0 {
            let end = operand.end() + 1;
            let cells = self.low.first_and(end, self.pieces)?;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::whole::tests::{curve, value};
    use super::*;
    use crate::curve::Curve;
    use crate::number::Rational;

    /// A staircase of steps (length, to the point, behind it), that repeats itself from one on.
    fn staircase(steps: &[(i64, i64, i64)], from: usize) -> Curve {
        let part = |(length, to, behind): &(i64, i64, i64)| (*length, *to, *behind, 0);
        curve(&steps.iter().map(part).collect::<Vec<_>>(), from, 0)
    }

    proptest! {
        #[test]
        fn growth_is_the_most_that_is_found(
            steps in proptest::collection::vec((1..6_i64, 0..4_i64, 0..4_i64), 1..5),
            from in any::<proptest::sample::Index>(),
            time in 1..20_i64,
        ) {
            let curve = staircase(&steps, from.index(steps.len()));
            let low = Whole::of(curve.short().expect("short")).expect("whole");
            let growth = Growth::of(&low, low.slope(), usize::MAX).expect("finite");
            prop_assert!(growth.is_staircase);
            let cells = low.first_and(time, usize::MAX).expect("small");
            let found = growth.within(&cells, time);
            // It is constant between whole times, and from 60 on it has long repeated itself.
            let grown = |from: i64| &value(&curve, from + 16 * time - 1) - &value(&curve, from);
            let most = (0..960).step_by(2).map(grown).max().expect("times");
            prop_assert_eq!(Rational::from(found), most);
        }
    }

    #[test]
    fn what_is_needed_ends_where_it_has_outgrown() {
        // It grows by 7 in less than 13 from 0 on, and by 14 in more.
        let low = Whole::of(staircase(&[(13, 0, 7)], 0).short().expect("short")).expect("whole");
        let growth = Growth::of(&low, low.slope(), usize::MAX).expect("finite");
        let needed = |steps: &[(i64, i64, i64)], end: i64| {
            let high = staircase(steps, 0);
            let high = Whole::of(high.short().expect("short")).expect("whole");
            let operand = high.up_to(end, growth.slope(), usize::MAX).expect("whole");
            let needed = growth.needed(operand).expect("small");
            (needed.pieces(), needed.end())
        };
        assert_eq!(needed(&[(5, 0, 7)], 40), (0, 0));
        // 6 up to 5, 12 up to 10; behind that it has outgrown 7 or 14.
        assert_eq!(needed(&[(5, 0, 6), (5, 0, 6), (5, 0, 6)], 60), (1, 5));
        assert_eq!(needed(&[(15, 0, 13), (5, 0, 6)], 60), (1, 15));
    }
}
