//! Curves on whole numbers of 64 bits.
//!
//! Invariant: a curve is known on `[0, T + d)`, as lines of whole numbers; at times that are not whole
//! it is continuous, and less steep behind than before. Periods are written out only up to a number of
//! pieces that the caller names ([`Whole::few_to`]).

use std::cmp::Ordering;

use num_integer::Integer;

use crate::envelope::lines::{
    Cell, INFINITY, Line, Operand, STEEPEST, Slope, Time, cells, lowest, section, time, whole,
};
use crate::envelope::staircase;
use crate::number::Number;
use crate::periodic::Periodic;

/// What times, values and numerators come to is to be less.
const MOST: i128 = 1 << 57;

/// As [`Periodic`], but for the form: the period need not be the least.
pub(super) struct Whole {
    /// Those that begin before T + d.
    cells: Vec<Cell>,
    transient: Time,
    pub(super) period: i64,
    pub(super) step: i64,
    /// Whether the last line goes on for ever.
    is_last: bool,
    /// The number of the first cell behind T.
    behind: usize,
    /// The greatest number of a slope or a denominator.
    most: i128,
}

impl Whole {
    /// `None` if it is not made of whole numbers. Linear.
    pub(super) fn of<N: Number>(curve: &Periodic<N>) -> Option<Self> {
        let (period, step) = (whole(&curve.period)?, whole(&curve.step)?);
        if period >= STEEPEST || step.abs() >= STEEPEST {
            return None;
        }
        let transient = time(&curve.transient)?;
        let end = transient.ceiling() + period;
        let mut known = Vec::with_capacity(curve.section.pieces.len());
        for cell in cells(&curve.section, end) {
            known.push(cell?);
        }
        let cells = known;
        // Numbers that did not fit may be any, and are thrown away later.
        let is_sorted = cells.is_sorted_by(|one, other| one.start.order(other.start).is_lt());
        if !is_sorted || cells.first()?.start != Time::at(0) {
            return None;
        }
        let mut curve = Whole {
            cells,
            transient,
            period,
            step,
            is_last: curve.is_ultimately_affine() || curve.ultimate_infinity().is_some(),
            behind: 0,
            most: 0,
        };
        curve.look();
        curve.is_joined().then_some(curve)
    }

    /// Looks at the cells.
    fn look(&mut self) {
        let cells = &self.cells;
        self.behind = cells.partition_point(|cell| cell.start.order(self.transient).is_le());
        // Lines of whole numbers cross at times whose denominator is at most what their slopes differ by.
        let slopes = cells
            .iter()
            .map(|cell| 2 * i128::from(cell.line.slope()).abs());
        let denominator = i128::from(self.transient.denominator());
        self.most = slopes.fold(denominator, i128::max);
    }

    /// Whether all is small enough to compute with up to a time.
    fn fits(&self, last: i128) -> bool {
        let rise = (last / i128::from(self.period) + 1) * i128::from(self.step).abs();
        last < MOST && self.most * last < MOST && rise < MOST
    }

    /// Whether it is as the invariant says where it begins again, too, if that is not a whole time.
    fn is_joined(&self) -> bool {
        let first = self.first().moved(self.period, self.step);
        let last = self.last_line();
        self.is_last
            || first.start.whole().is_some()
            || first.continues(last)
            || last.crosses(first.line, first.start)
    }

    pub(super) fn periodic<N: Number>(&self) -> Periodic<N> {
        let transient: N = self.transient.number();
        let (period, step) = (N::whole(self.period), N::whole(self.step));
        let end = transient.plus(&period);
        Periodic::new(section(&self.cells, &end), transient, period, step)
    }

    /// c / d in lowest terms.
    pub(super) fn slope(&self) -> Slope {
        let common = self.step.gcd(&self.period);
        Slope {
            rise: self.step / common,
            run: self.period / common,
        }
    }

    /// The value at 0, if it is finite.
    pub(super) fn begin(&self) -> Option<i64> {
        let begin = self.cells.first()?.at;
        (begin != INFINITY).then_some(begin)
    }

    /// How many pieces it is known by.
    pub(super) fn pieces(&self) -> usize {
        self.cells.len()
    }

    /// The first whole time at which so many periods behind T are over.
    pub(super) fn end_of(&self, periods: i64) -> i64 {
        self.transient.ceiling() + periods * self.period
    }

    /// Whether that is soon enough to compute with.
    pub(super) fn has_end(&self, periods: i128) -> bool {
        let end =
            i128::from(self.transient.ceiling()) + periods.min(MOST) * i128::from(self.period);
        self.fits(end)
    }

    /// About how many pieces there are before that, and not fewer.
    pub(super) fn pieces_of(&self, periods: i64) -> usize {
        if self.is_last {
            return self.cells.len();
        }
        let more = usize::try_from(periods - 1).unwrap_or(0);
        let each = self.cells.len() - self.behind + 1;
        self.cells.len().saturating_add(more.saturating_mul(each))
    }

    /// About how many pieces there are on `[0, last)`, and not fewer.
    fn pieces_to(&self, last: i64) -> usize {
        let periods = (last - self.end_of(1)).max(0) / self.period + 2;
        self.pieces_of(periods)
    }

    /// About how many pairs of pieces its convolution with a section meets.
    pub(super) fn pairs(&self, high: &Operand) -> usize {
        let last = self.end_of(1) + high.end();
        self.pieces_to(last).saturating_mul(high.pieces())
    }

    /// About how many pairs of pieces its convolution with so many periods of a curve meets.
    pub(super) fn pairs_with(&self, high: &Self, periods: i64) -> usize {
        let last = self.end_of(1) + high.end_of(periods);
        self.pieces_to(last).saturating_mul(high.pieces_of(periods))
    }

    /// Whether it is finite, constant between breakpoints, and never falls.
    pub(super) fn is_staircase(&self) -> bool {
        let mut before = i64::MIN;
        let rises = self.cells.iter().all(|cell| {
            let after = cell.line.at(0);
            let rises = cell.line.is_flat() && before <= cell.at && cell.at <= after;
            before = after;
            rises && after != INFINITY
        });
        // And where it begins again.
        rises && before <= self.value_of(&self.first(), self.transient) + self.step
    }

    /// Whether it is +∞ from some time on.
    pub(super) fn ends(&self) -> bool {
        self.is_last && self.last_line().is_none()
    }

    fn last_line(&self) -> Line {
        self.cells.last().map_or(Line::NONE, |last| last.line)
    }

    /// What there is at T and on from there.
    fn first(&self) -> Cell {
        let cell = &self.cells[self.behind - 1];
        Cell::new(
            self.transient,
            self.value_of(cell, self.transient),
            cell.line,
        )
    }

    /// The value of a cell at a time that it has; at one that is not whole, nothing that matters.
    fn value_of(&self, cell: &Cell, time: Time) -> i64 {
        match time.whole() {
            Some(_) if cell.start == time => cell.at,
            Some(time) => cell.line.at(time),
            None => INFINITY,
        }
    }

    /// The pieces of `[0, last)`.
    fn cells_to(&self, last: i64) -> impl Iterator<Item = Cell> {
        let first = self.first();
        let again = first.moved(self.period, self.step);
        let is_break = !again.continues(self.last_line());
        let (mut place, mut time, mut value) = (0, 0, 0);
        let cells = std::iter::from_fn(move || {
            if let Some(cell) = self.cells.get(place) {
                place += 1;
                return Some(cell.moved(time, value));
            }
            if self.is_last {
                return None;
            }
            (time, value) = (time + self.period, value + self.step);
            place = self.behind;
            if is_break {
                return Some(first.moved(time, value));
            }
            // If T is no breakpoint there is one behind it, or the last line would go on for ever.
            place += 1;
            let next = self.cells.get(place - 1)?;
            Some(next.moved(time, value))
        });
        cells.take_while(move |cell| cell.start.is_before(last))
    }

    /// What there is on `[0, last)`; `None` if that does not fit, or may be more than so many pieces.
    pub(super) fn up_to(&self, last: i64, slope: Slope, most: usize) -> Option<Operand> {
        let count = self.few_to(last, most)?;
        let cells = self.cells_to(last).map(Some);
        Operand::of_cells(cells, count, Some(last), slope)
    }

    /// How many pieces there are on `[0, last)`, at most: asked before any is made. `None` if that does
    /// not fit, or may be more than `most`.
    pub(super) fn few_to(&self, last: i64, most: usize) -> Option<usize> {
        if !self.fits(last.into()) {
            return None;
        }
        let count = self.pieces_to(last);
        // What it is known by is there already.
        (count <= most.max(self.cells.len())).then_some(count)
    }

    /// Pieces, each with where it ends.
    pub(super) fn spans(&self) -> impl Iterator<Item = (&Cell, Time)> {
        let ends = self.cells.iter().skip(1).map(|cell| cell.start);
        self.cells.iter().zip(ends.chain([self.known()]))
    }

    /// The lowest distance of what repeats itself.
    pub(super) fn lowest_again(&self, slope: Slope) -> i128 {
        let repeated = self.spans().skip(self.behind - 1);
        let lowest = repeated.map(|(cell, end)| cell.distances(end, slope).0);
        lowest.min().unwrap_or(0)
    }

    /// When and as what it begins again, if that is a whole time.
    pub(super) fn again(&self) -> Option<(i64, i64)> {
        let first = self.first().moved(self.period, self.step);
        Some((first.start.whole()?, first.at))
    }

    /// T + d.
    pub(super) fn known(&self) -> Time {
        self.transient.moved(self.period)
    }

    /// The pieces up to the end of the first period and so much further; `None` if that does not fit, or
    /// may be more than so many.
    pub(super) fn first_and(&self, more: i64, most: usize) -> Option<Vec<Cell>> {
        let last = self.end_of(1).checked_add(more)?;
        let mut cells = Vec::with_capacity(self.few_to(last, most)?);
        cells.extend(self.cells_to(last));
        Some(cells)
    }

    /// So many periods of a steeper curve, fewer than a most, that a split is no worse for giving them to
    /// this one: the least of the first few, or those in which both repeat themselves or rise alike. `None`
    /// also if this one would have to be looked at in more than so many pieces.
    pub(super) fn exchanged(
        &self,
        high: &Self,
        most: i64,
        tries: usize,
        pieces: usize,
    ) -> Option<i64> {
        let common = self.period / self.period.gcd(&high.period);
        let alike = match self.step > 0 && high.step > 0 {
            true => self.step / self.step.gcd(&high.step),
            false => common,
        };
        let cells = self.first_and(self.end_of(1), pieces)?;
        let tries = (1..=tries as i64).chain([common.min(alike), common.max(alike)]);
        let mut tries = tries.filter(|periods| *periods < most);
        tries.find(|periods| {
            let (time, rise) = (periods * high.period, periods * high.step);
            // By whole periods less, as long as it is still the periodic part that is reached.
            let behind = (time - self.transient.ceiling()).max(0) / self.period;
            let (time, rise) = (time - behind * self.period, rise - behind * self.step);
            self.is_exchanged(&cells, time, rise)
        })
    }

    /// Whether f(t + time) ≤ f(t) + rise at all times, of which the pieces are given up to the end of the
    /// first period, and so much further.
    fn is_exchanged(&self, cells: &[Cell], time: i64, rise: i64) -> bool {
        let end = self.known();
        let start = |place: usize| cells.get(place).map_or(Time::NEVER, |cell| cell.start);
        let (mut now, mut then) = (0, 0);
        let mut at = Time::at(0);
        while at.order(end).is_lt() {
            let later = at.moved(time);
            now += usize::from(start(now + 1) == at);
            while start(then + 1).order(later).is_le() {
                then += 1;
            }
            let (one, two) = (&cells[now], cells[then].moved(-time, -rise));
            let next = [start(now + 1), start(then + 1).moved(-time)];
            let next = next.into_iter().fold(end, Time::earlier);
            if self.value_of(&two, at) > self.value_of(one, at)
                || two.line.order_at(one.line, at).is_gt()
                || two.line.order_at(one.line, next).is_gt()
            {
                return false;
            }
            at = next;
        }
        true
    }

    /// Convolves it with a section; `None` if that does not fit, or takes more than so many pieces of it.
    pub(super) fn convolve(
        &mut self,
        high: &Operand,
        slope: Slope,
        are_staircases: bool,
        most: usize,
    ) -> Option<()> {
        if high.pieces() == 0 {
            let by = high.begin()?;
            self.cells
                .iter_mut()
                .for_each(|cell| *cell = cell.moved(0, by));
            return Some(());
        }
        if !self.fits(i128::from(self.end_of(1)) + i128::from(high.end())) {
            return None;
        }
        let transient = self.transient.moved(high.end());
        let last = transient.ceiling() + self.period;
        let long = self.up_to(last, slope, most)?;
        if !high.fits(last) {
            return None;
        }
        self.cells = match are_staircases {
            true => staircase::lowest(&long, high, last),
            false => lowest(&long, high, last, long.most_with(high, last)),
        };
        self.shorten(transient);
        Some(())
    }

    /// With the least transient part that is at hand, up to which and a period more it is known.
    fn shorten(&mut self, transient: Time) {
        self.transient = match self.last_difference(transient) {
            None => Time::at(0),
            Some((time, true)) => time,
            Some((time, false)) => {
                let mut starts = self.cells.iter().map(|cell| cell.start);
                let next = starts.find(|start| start.order(time).is_gt());
                next.map_or(transient, |next| next.earlier(transient))
            }
        };
        let end = self.known();
        let kept = self
            .cells
            .partition_point(|cell| cell.start.order(end).is_lt());
        self.cells.truncate(kept);
        self.look();
    }

    /// The last time before T at which it is not what it is a period later, less a step: whether before
    /// that time, or at it.
    fn last_difference(&self, transient: Time) -> Option<(Time, bool)> {
        let before = |end: Time| {
            self.cells
                .partition_point(|cell| cell.start.order(end).is_lt())
        };
        let (mut now, mut later) = (before(transient), before(transient.moved(self.period)));
        let mut end = transient;
        while end.order(Time::at(0)).is_gt() {
            let one = &self.cells[now - 1];
            let two = self.cells[later - 1].moved(-self.period, -self.step);
            let start = match one.start.order(two.start) {
                Ordering::Less => two.start,
                _ => one.start,
            };
            if one.line != two.line {
                return Some((end, true));
            }
            if self.value_of(one, start) != self.value_of(&two, start) {
                return Some((start, false));
            }
            now -= usize::from(one.start == start);
            later -= usize::from(two.start == start);
            end = start;
        }
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::curve::{Curve, Element, Value};
    use crate::number::Rational;

    /// A curve of parts (length, to the point, behind it, slope) that repeats itself from one on, and rises by
    /// something more each time.
    pub(crate) fn curve(parts: &[(i64, i64, i64, i64)], from: usize, more: i64) -> Curve {
        let (mut time, mut value) = (0, 0);
        let mut elements = Vec::new();
        let mut starts = Vec::new();
        for (length, to, behind, slope) in parts {
            starts.push((time, value));
            let (at, after) = (value + to, value + to + behind);
            elements.push(Element::Point {
                time: time.into(),
                value: Value::Finite(at.into()),
            });
            elements.push(Element::Segment {
                start: time.into(),
                end: (time + length).into(),
                value: Value::Finite(after.into()),
                slope: (*slope).into(),
            });
            (time, value) = (time + length, after + slope * length);
        }
        let (start, begin) = starts[from];
        let (period, step) = (time - start, value - begin + more);
        Curve::new(&elements, &start.into(), &period.into(), &step.into()).expect("a curve")
    }

    pub(crate) fn value(curve: &Curve, sixteenths: i64) -> Rational {
        let time = Rational::new(sixteenths, 16).expect("not zero");
        match curve.value(&time) {
            Some(Value::Finite(value)) => value,
            other => panic!("{other:?} at {time}"),
        }
    }

    proptest! {
        /// Pieces go on as the curve does, also where T is not whole, as of a convolution.
        #[test]
        fn pieces_are_those_of_the_curve(
            one in proptest::collection::vec((1..6_i64, -3..4_i64, -3..4_i64, -3..4_i64), 1..5),
            other in proptest::collection::vec((1..6_i64, -3..4_i64, -3..4_i64, -3..4_i64), 1..4),
            from in any::<proptest::sample::Index>(),
            more in -5..20_i64,
        ) {
            let one = curve(&one, from.index(one.len()), more);
            let other = curve(&other, from.index(other.len()), more);
            for curve in [one.convolution(&other).ok(), Some(one)].into_iter().flatten() {
                let Some(short) = curve.short() else { continue };
                let Some(whole) = Whole::of(short) else { continue };
                prop_assert_eq!(&whole.periodic(), short);
                let last = whole.end_of(4);
                let long = short.up_to(&crate::number::Small::whole(last), 1 << 20).expect("small");
                let cells: Vec<Cell> = whole.cells_to(last).collect();
                let pieces = section(&cells, &crate::number::Small::whole(last));
                prop_assert_eq!(pieces, long);
                prop_assert!(cells.len() <= whole.pieces_to(last));
            }
        }

        #[test]
        fn exchanges_are_those_that_hold(
            parts in proptest::collection::vec((1..6_i64, -2..4_i64, -2..4_i64, -2..4_i64), 1..5),
            from in any::<proptest::sample::Index>(),
            more in 0..9_i64,
            length in 1..9_i64,
            height in 0..30_i64,
        ) {
            let low = curve(&parts, from.index(parts.len()), more);
            let high = curve(&[(length, 0, height, 0)], 0, 0);
            let [one, other] = [&low, &high].map(|curve| Whole::of(curve.short().expect("short")));
            let (one, other) = (one.expect("whole"), other.expect("whole"));
            // Numbers are whole: what does not hold at a limit fails by 1, and slopes differ by 6 at most. From
            // 40 on it repeats itself.
            let holds = |periods: i64| {
                (0..1280).all(|time| {
                    let later = time + 16 * periods * other.period;
                    let rise = Rational::from(periods * other.step);
                    value(&low, later) <= &value(&low, time) + &rise
                })
            };
            let found = one.exchanged(&other, 4, 3, usize::MAX);
            prop_assert_eq!(found, (1..4).find(|periods| holds(*periods)));
        }
    }
}
