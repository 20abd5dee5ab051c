//! Ultimately pseudo-periodic functions over one kind of number, and the one form of each.
//!
//! A function is known on `[0, T + d)`, and from T on f(t + d) = f(t) + c. Of all ways to say
//! so the canonical one is kept: pieces that continue each other are merged; if the function is
//! affine in the end, d = 1; else d is its smallest period; T is the least time from which this
//! holds, and where there is no least one (it holds behind a time, and not at it), the first
//! breakpoint behind that time, or one period behind it if there is none.
//!
//! Invariant: equal functions are equal structs.

use crate::error::Error;
use crate::extended::Extended::{self, Finite};
use crate::number::{BITS, Number};
use crate::section::{Piece, Section};

/// A function on `[0, ∞)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Periodic<N> {
    /// `[0, T + d)`.
    pub(crate) section: Section<N>,
    /// T: from here on it repeats itself.
    pub(crate) transient: N,
    /// d: how often.
    pub(crate) period: N,
    /// c: how much higher each time; 0 if it is infinite in the end.
    pub(crate) step: N,
}

impl<N: Number> Periodic<N> {
    /// The canonical form of a function whose section reaches to `transient + period` at least.
    /// O(pieces), and where parts of a period are alike, that times their number's divisors.
    pub(crate) fn new(section: Section<N>, transient: N, period: N, step: N) -> Self {
        if section.pieces.is_empty() {
            // Only after a result that did not fit: what comes of it is thrown away.
            return Periodic::constant(Extended::PositiveInfinity);
        }
        let end = transient.plus(&period);
        let section = Section::merged(section.truncated(&end).pieces, end);
        let long = Periodic {
            section,
            transient,
            period,
            step,
        };
        long.with_least_period().with_least_transient()
    }

    /// The function, unless one of its numbers is longer than may be computed with. Linear.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        let finite = |value: &Extended<N>| value.finite().map_or(0, Number::bits);
        let pieces = self.section.pieces.iter().flat_map(|piece| {
            let values = [finite(&piece.at), finite(&piece.after)];
            [piece.start.bits(), piece.slope.bits()]
                .into_iter()
                .chain(values)
        });
        let known = [&self.transient, &self.period, &self.step].map(Number::bits);
        match pieces.chain(known).max() {
            Some(bits) if bits > BITS => Err(Error::TooLong { bits, most: BITS }),
            _ => Ok(self),
        }
    }

    /// The pieces that begin behind T.
    fn behind(&self) -> &[Piece<N>] {
        &self.section.pieces[self.first_behind()..]
    }

    /// The number of the first piece that begins behind T.
    fn first_behind(&self) -> usize {
        let pieces = &self.section.pieces;
        pieces.partition_point(|piece| piece.start <= self.transient)
    }

    /// What there is at T and on from there: a piece, or what is left of one.
    fn beginning(&self) -> Piece<N> {
        let piece = &self.section.pieces[self.first_behind().saturating_sub(1)];
        match piece.start < self.transient {
            true => piece.from(&self.transient),
            false => piece.clone(),
        }
    }

    /// The part that repeats itself, as pieces.
    fn repeated(&self) -> impl Iterator<Item = Piece<N>> {
        std::iter::once(self.beginning()).chain(self.behind().iter().cloned())
    }

    /// The function on `[0, end)`, which is not so far that it takes more periods than said.
    fn longer(&self, periods: u64, end: &N) -> Section<N> {
        let (beginning, behind) = (self.beginning(), self.behind());
        let more = usize::try_from(periods).unwrap_or(usize::MAX);
        let more = more.saturating_mul(behind.len() + 1);
        let mut pieces = Vec::with_capacity(self.section.pieces.len().saturating_add(more));
        pieces.extend_from_slice(&self.section.pieces);
        let (mut time, mut value) = (N::zero(), N::zero());
        'periods: for _ in 0..periods {
            (time, value) = (time.plus(&self.period), value.plus(&self.step));
            for (number, piece) in std::iter::once(&beginning).chain(behind).enumerate() {
                let piece = piece.moved(&time, &value);
                if piece.start >= *end {
                    break 'periods;
                }
                // Only there may two that are no breakpoint meet.
                let continues = |before| piece.continues(before);
                if number > 0 || !pieces.last().is_some_and(continues) {
                    pieces.push(piece);
                }
            }
        }
        Section {
            pieces,
            end: end.clone(),
        }
    }

    /// With the smallest period, beginning at a breakpoint if there is any.
    fn with_least_period(mut self) -> Self {
        let first = self.first_behind();
        let again = self.beginning().moved(&self.period, &self.step);
        let pieces = &mut self.section.pieces;
        let last = &pieces[pieces.len() - 1];
        let breaks = !again.continues(last);
        if first == pieces.len() && !breaks {
            // Affine, or infinite: a jump would come again.
            self.period = N::whole(1);
            self.step = last.slope.clone();
            self.section.end = self.transient.plus(&self.period);
            return self;
        }
        // A breakpoint at T itself may be of the transient part alone.
        let behind = pieces.get(first);
        self.transient = behind
            .map_or(&self.section.end, |piece| &piece.start)
            .clone();
        if breaks {
            pieces.push(again);
        }
        let repeated = &pieces[first..];
        let count = repeated.len();
        let mut parts = (1..count).filter(|part| count.is_multiple_of(*part));
        let least = parts.find_map(|part| {
            let times = N::whole((count / part) as i64);
            let (period, step) = (self.period.over(&times), self.step.over(&times));
            let repeats = |(one, other): (&Piece<N>, &Piece<N>)| {
                one.slope == other.slope && one.moved(&period, &step) == *other
            };
            let pairs = &mut repeated.iter().zip(&repeated[part..]);
            pairs.all(repeats).then_some((part, period, step))
        });
        if let Some((part, period, step)) = least {
            pieces.truncate(first + part);
            (self.period, self.step) = (period, step);
        }
        self.section.end = self.transient.plus(&self.period);
        self
    }

    /// The last time before T at which the function is not what it is a period later, less the
    /// step, and whether that is the end of a difference
    /// or the time of one. Looked for from T backwards.
    pub(crate) fn last_difference(&self) -> Option<(N, bool)> {
        let pieces = &self.section.pieces;
        let before = |end: &N| pieces.partition_point(|piece| piece.start < *end);
        let (mut now, mut later) = (before(&self.transient), before(&self.section.end));
        let mut end = self.transient.clone();
        while end.is_positive() {
            // None are missing but after a result that did not fit.
            let one = pieces.get(now.checked_sub(1)?)?;
            let two = pieces.get(later.checked_sub(1)?)?;
            let two_start = two.start.minus(&self.period);
            let start = one.start.clone().max(two_start.clone());
            let time = start.plus(&self.period);
            let down = self.step.negated();
            if one.slope != two.slope || one.line(&start) != two.line(&time).moved(&down) {
                return Some((end, true));
            }
            if one.value(&start) != two.value(&time).moved(&down) {
                return Some((start, false));
            }
            now -= usize::from(one.start == start);
            later -= usize::from(two_start == start);
            end = start;
        }
        None
    }

    /// With the least transient part.
    fn with_least_transient(mut self) -> Self {
        if self.transient.is_zero() {
            return self;
        }
        let transient = match self.last_difference() {
            None => N::zero(),
            Some((time, true)) => time,
            Some((time, false)) => {
                let pieces = &self.section.pieces;
                let next = pieces.partition_point(|piece| piece.start <= time);
                match pieces.get(next) {
                    Some(piece) => piece.start.clone(),
                    None => time.plus(&self.period),
                }
            }
        };
        if transient == self.transient {
            return self;
        }
        // Without a breakpoint behind, it may be up to a period later than what was given.
        let end = transient.plus(&self.period);
        self.section = match end <= self.section.end {
            true => self.section.truncated(&end),
            false => self.longer(1, &end),
        };
        self.transient = transient;
        self
    }

    /// The function on `[0, end)`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if that takes more than `limit` pieces.
    pub(crate) fn up_to(&self, end: &N, limit: u64) -> Result<Section<N>, Error> {
        if *end <= self.section.end {
            return Ok(self.section.cut(end));
        }
        if self.is_ultimately_affine() || self.ultimate_infinity().is_some() {
            // Its last line goes on, whatever its period is said to be.
            return Ok(Section {
                pieces: self.section.pieces.clone(),
                end: end.clone(),
            });
        }
        let each = self.behind().len() as i64 + 1;
        let more = end.minus(&self.section.end).over(&self.period).floor();
        let more = more.plus(&N::whole(1));
        let pieces = more.times(&N::whole(each)).rational();
        match more.rational().whole() {
            Some(periods) if pieces <= (limit.min(i64::MAX as u64) as i64).into() => {
                Ok(self.longer(periods, end))
            }
            _ => Err(Error::TooLarge { pieces, limit }),
        }
    }

    /// About how many pieces it has on `[0, end)`, and not fewer. Logarithmic.
    pub(crate) fn count_to(&self, end: &N) -> u64 {
        let pieces = &self.section.pieces;
        if *end <= self.section.end {
            return pieces.partition_point(|piece| piece.start < *end) as u64;
        }
        if self.is_ultimately_affine() || self.ultimate_infinity().is_some() {
            return pieces.len() as u64;
        }
        // One more: a piece may go on over T.
        let each = self.behind().len() as u64 + 1;
        let more = end.minus(&self.section.end).over(&self.period).floor();
        let periods = more.rational().whole().unwrap_or(u64::MAX);
        let more = periods.saturating_add(1).saturating_mul(each);
        more.saturating_add(pieces.len() as u64)
    }

    /// Whether f(t + time) ≤ f(t) + rise at all times. O(pieces of two periods); `false` also where
    /// the transient part is so long beside the period that looking would take much more.
    pub(crate) fn is_exchanged(&self, time: &N, rise: &N) -> bool {
        // By whole periods less, as long as it is still the periodic part that is reached.
        let behind = time.minus(&self.transient).over(&self.period).floor();
        let periods = behind.max(N::zero());
        let time = time.minus(&periods.times(&self.period));
        let rise = rise.minus(&periods.times(&self.step));
        let end = self.section.end.plus(&time);
        let most = 64 + 8 * self.section.pieces.len() as u64;
        let (true, Ok(long)) = (self.count_to(&end) <= most, self.up_to(&end, most)) else {
            return false;
        };
        let (back, down) = (time.negated(), rise.negated());
        let pieces = long.pieces_of(&time, &end);
        let later = Section {
            pieces: pieces.map(|piece| piece.moved(&back, &down)).collect(),
            end: self.section.end.clone(),
        };
        let lower = |now: &Piece<N>, later: &Piece<N>, end: &N| {
            let holds =
                later.at <= now.at && later.after <= now.after && later.line(end) <= now.line(end);
            if holds { Ok(()) } else { Err(()) }
        };
        self.section.together(&later, lower).is_ok()
    }

    /// The value at a time that is not below 0. Logarithmic.
    pub(crate) fn value(&self, time: &N) -> Extended<N> {
        let behind = time.minus(&self.transient).over(&self.period).floor();
        let periods = behind.max(N::zero());
        let value = self
            .section
            .value(&time.minus(&periods.times(&self.period)));
        value.moved(&periods.times(&self.step))
    }

    /// The piece that is all there is from T on, if there is but one.
    fn only(&self) -> Option<&Piece<N>> {
        let last = self.section.pieces.last();
        last.filter(|last| last.start <= self.transient)
    }

    /// Whether a piece that T lies in is the same at T as behind it.
    fn is_whole(&self, piece: &Piece<N>) -> bool {
        piece.start < self.transient || piece.at == piece.after
    }

    /// Whether it is affine from some time on.
    pub(crate) fn is_ultimately_affine(&self) -> bool {
        self.only().is_some_and(|only| {
            let is_finite = only.after.finite().is_some();
            is_finite && self.is_whole(only) && only.slope.times(&self.period) == self.step
        })
    }

    /// Whether it is finite and concave; it may jump up at 0. Linear.
    pub(crate) fn is_concave(&self) -> bool {
        let begin = &self.section.pieces[0];
        if !self.is_ultimately_affine() || begin.at.finite().is_none() || begin.after < begin.at {
            return false;
        }
        self.section.pieces.windows(2).all(|pair| {
            let [before, piece] = pair else { return true };
            let limit = before.line(&piece.start);
            limit.finite().is_some()
                && limit == piece.at
                && limit == piece.after
                && before.slope >= piece.slope
        })
    }

    /// The function plus a number. Linear.
    pub(crate) fn raised(&self, by: &N) -> Self {
        let zero = N::zero();
        let pieces = self.section.pieces.iter();
        Periodic {
            section: Section {
                pieces: pieces.map(|piece| piece.moved(&zero, by)).collect(),
                end: self.section.end.clone(),
            },
            ..self.clone()
        }
    }

    /// Which infinity it is from some time on, if it is one.
    pub(crate) fn ultimate_infinity(&self) -> Option<Extended<N>> {
        let only = self.only()?;
        let is_infinite = only.after.finite().is_none() && self.is_whole(only);
        is_infinite.then(|| only.after.clone())
    }

    /// c / d.
    pub(crate) fn slope(&self) -> N {
        self.step.over(&self.period)
    }

    /// Least and greatest of f(t) − c/d · t from T on, where that is finite. Linear.
    pub(crate) fn around_slope(&self) -> Option<(N, N)> {
        let beginning = self.beginning();
        let pieces = std::iter::once(&beginning).chain(self.behind());
        let ends = self.behind().iter().map(|piece| &piece.start);
        let mut range: Option<(N, N)> = None;
        for (piece, end) in pieces.zip(ends.chain([&self.section.end])) {
            for value in self.above_slope(piece, end) {
                let Finite(value) = value else { return None };
                range = Some(match range.take() {
                    None => (value.clone(), value),
                    Some((least, most)) => (least.min(value.clone()), most.max(value)),
                });
            }
        }
        // Counted in d times the distance, which is whole more often.
        range.map(|(least, most)| (least.over(&self.period), most.over(&self.period)))
    }

    /// The greatest of f(t) − c/d · t from T on, and the least anywhere; `None` if it is −∞ somewhere, or
    /// infinite from T on. Linear.
    pub(crate) fn most_and_least(&self) -> Option<(N, N)> {
        let first = self.first_behind();
        let (mut most, mut least): (Option<N>, Option<N>) = (None, None);
        for (number, (piece, end)) in self.section.spans().enumerate() {
            let mut values = self.above_slope(piece, end);
            for value in &values {
                match value {
                    Finite(value) if least.as_ref().is_none_or(|least| value < least) => {
                        least = Some(value.clone());
                    }
                    Extended::NegativeInfinity => return None,
                    _ => {}
                }
            }
            if number + 1 < first {
                continue;
            }
            if piece.start < self.transient {
                // T lies in it, or at its end: what is before is not asked for.
                let [at, after, _] = self.above_slope(&piece.from(&self.transient), end);
                (values[0], values[1]) = (at, after);
            }
            for value in values {
                let Finite(value) = value else { return None };
                if most.as_ref().is_none_or(|most| value > *most) {
                    most = Some(value);
                }
            }
        }
        // Counted in d times the distance, which is whole more often.
        most.zip(least)
            .map(|(most, least)| (most.over(&self.period), least.over(&self.period)))
    }

    /// How far a piece is above the slope, times d: its point, and its line at both ends.
    fn above_slope(&self, piece: &Piece<N>, end: &N) -> [Extended<N>; 3] {
        let above = |time: &N, value: &Extended<N>| match value {
            Finite(value) => {
                let fall = self.step.times(time);
                Finite(value.times(&self.period).minus(&fall))
            }
            infinity => infinity.clone(),
        };
        [
            above(&piece.start, &piece.at),
            above(&piece.start, &piece.after),
            above(end, &piece.line(end)),
        ]
    }

    /// The function in another kind of number. Linear.
    pub(crate) fn converted<M: Number, E>(
        &self,
        number: impl Fn(&N) -> Result<M, E>,
    ) -> Result<Periodic<M>, E> {
        let value = |value: &Extended<N>| value.converted(&number);
        let pieces = self.section.pieces.iter().map(|piece| {
            Ok(Piece {
                start: number(&piece.start)?,
                at: value(&piece.at)?,
                after: value(&piece.after)?,
                slope: number(&piece.slope)?,
            })
        });
        Ok(Periodic {
            section: Section {
                pieces: pieces.collect::<Result<_, E>>()?,
                end: number(&self.section.end)?,
            },
            transient: number(&self.transient)?,
            period: number(&self.period)?,
            step: number(&self.step)?,
        })
    }

    /// The least of f(t) − c/d · t anywhere; `None` if it is −∞ somewhere. Linear.
    pub(crate) fn lowest(&self) -> Option<N> {
        let mut least: Option<N> = None;
        for (piece, end) in self.section.spans() {
            for value in self.above_slope(piece, end) {
                let value = match value {
                    Finite(value) => value,
                    Extended::PositiveInfinity => continue,
                    Extended::NegativeInfinity => return None,
                };
                least = Some(match least {
                    Some(least) => least.min(value),
                    None => value,
                });
            }
        }
        least.map(|least| least.over(&self.period))
    }

    /// The transient part alone, +∞ behind it (`None` if there is none), and the periodic part
    /// alone, +∞ before it.
    pub(crate) fn parts(&self) -> (Option<Self>, Self) {
        let nothing = |start: N| {
            let infinity = Extended::PositiveInfinity;
            Piece::new(start, infinity.clone(), infinity, N::zero())
        };
        if self.transient.is_zero() {
            return (None, self.clone());
        }
        let one = N::whole(1);
        let zero = N::zero();
        let before = self.section.pieces_of(&zero, &self.transient);
        let before = Section {
            pieces: before.chain([nothing(self.transient.clone())]).collect(),
            end: self.transient.plus(&one),
        };
        let behind = Section {
            pieces: [nothing(N::zero())]
                .into_iter()
                .chain(self.repeated())
                .collect(),
            end: self.section.end.clone(),
        };
        let transient = self.transient.clone();
        (
            Some(Periodic::new(before, transient.clone(), one, N::zero())),
            Periodic::new(behind, transient, self.period.clone(), self.step.clone()),
        )
    }

    /// The function that has one value everywhere.
    pub(crate) fn constant(value: Extended<N>) -> Self {
        let section = Section {
            pieces: vec![Piece::new(N::zero(), value.clone(), value, N::zero())],
            end: N::whole(1),
        };
        Periodic {
            section,
            transient: N::zero(),
            period: N::whole(1),
            step: N::zero(),
        }
    }

    /// Whether it has a value anywhere, which is an infinity. Linear.
    pub(crate) fn has(&self, infinity: &Extended<N>) -> bool {
        let mut pieces = self.section.pieces.iter();
        pieces.any(|piece| piece.at == *infinity || piece.after == *infinity)
    }

    pub(crate) fn negated(&self) -> Self {
        Periodic {
            section: self.section.negated(),
            transient: self.transient.clone(),
            period: self.period.clone(),
            step: self.step.negated(),
        }
    }
}
