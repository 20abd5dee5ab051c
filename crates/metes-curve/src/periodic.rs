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
use crate::extended::Extended;
use crate::number::Number;
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
    /// O(pieces × divisors of the pieces of a period).
    pub(crate) fn new(section: &Section<N>, transient: N, period: N, step: N) -> Self {
        if section.pieces.is_empty() {
            // Only after a result that did not fit: what comes of it is thrown away.
            return Periodic::constant(Extended::PositiveInfinity);
        }
        let end = transient.plus(&period);
        let section = Section::merged(section.cut(&end).pieces, end);
        let long = Periodic {
            section,
            transient,
            period,
            step,
        };
        long.with_least_period().with_least_transient()
    }

    /// The part that repeats itself, as pieces.
    fn repeated(&self) -> Vec<Piece<N>> {
        self.section
            .pieces_of(&self.transient, &self.section.end)
            .collect()
    }

    /// The function up to so many periods more.
    fn longer(&self, periods: u64) -> Section<N> {
        let pieces = self.repeated();
        let mut all = self.section.pieces.clone();
        let (mut time, mut value) = (N::zero(), N::zero());
        for _ in 0..periods {
            (time, value) = (time.plus(&self.period), value.plus(&self.step));
            all.extend(pieces.iter().map(|piece| piece.moved(&time, &value)));
        }
        Section::merged(all, self.section.end.plus(&time))
    }

    /// With the smallest period, beginning at a breakpoint if there is any.
    fn with_least_period(self) -> Self {
        let two = self.longer(1);
        let breakpoint = |piece: &&Piece<N>| piece.start > self.transient;
        if !two.pieces.iter().any(|piece| breakpoint(&piece)) {
            // Affine, or infinite: a jump would come again.
            let end = self.transient.plus(&N::whole(1));
            let last = &two.pieces[two.pieces.len() - 1];
            return Periodic {
                step: last.slope.clone(),
                section: Section {
                    pieces: two.pieces,
                    end,
                },
                transient: self.transient,
                period: N::whole(1),
            };
        }
        // A breakpoint at T itself may be of the transient part alone.
        let first = two
            .pieces
            .partition_point(|piece| piece.start <= self.transient);
        let transient = two.pieces[first].start.clone();
        let end = transient.plus(&self.period);
        let pieces: Vec<_> = two.pieces_of(&transient, &end).collect();
        let count = pieces.len();
        let parts = (1..=count).filter(|part| count.is_multiple_of(*part));
        for part in parts {
            let times = N::whole((count / part) as i64);
            let (period, step) = (self.period.over(&times), self.step.over(&times));
            let repeats =
                |(one, other): (&Piece<N>, &Piece<N>)| one.moved(&period, &step) == *other;
            if pieces.iter().zip(&pieces[part..]).all(repeats) {
                return Periodic {
                    section: two.cut(&transient.plus(&period)),
                    transient,
                    period,
                    step,
                };
            }
        }
        self
    }

    /// The last time before T at which the function is not what it is a period later, less the
    /// step, and whether that is the end of a difference
    /// or the time of one.
    pub(crate) fn last_difference(&self) -> Option<(N, bool)> {
        if self.transient.is_zero() {
            return None;
        }
        // The function beside itself one period later.
        let later: Vec<Piece<N>> = self
            .section
            .pieces_of(&self.period, &self.section.end)
            .map(|piece| piece.moved(&self.period.negated(), &self.step.negated()))
            .collect();
        let now = self.section.cut(&self.transient);
        let later = Section {
            pieces: later,
            end: self.transient.clone(),
        };
        // The last time of a difference, and whether it holds at that time itself.
        let mut differs: Option<(N, bool)> = None;
        let _: Result<(), ()> = now.together(&later, |one, other, end| {
            if one.after != other.after || one.slope != other.slope {
                differs = Some((end.clone(), true));
            } else if one.at != other.at {
                differs = Some((one.start.clone(), false));
            }
            Ok(())
        });
        differs
    }

    /// With the least transient part.
    fn with_least_transient(self) -> Self {
        let zero = N::zero();
        if self.transient.is_zero() {
            return self;
        }
        let differs = self.last_difference();
        let transient = match differs {
            None => zero,
            Some((time, true)) => time,
            Some((time, false)) => {
                let next = self
                    .section
                    .pieces
                    .partition_point(|piece| piece.start <= time);
                match self.section.pieces.get(next) {
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
        let section = match end <= self.section.end {
            true => self.section.cut(&end),
            false => self.longer(1).cut(&end),
        };
        Periodic {
            section,
            transient,
            ..self
        }
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
        let each = self.repeated().len() as i64;
        let more = end.minus(&self.section.end).over(&self.period).floor();
        let more = more.plus(&N::whole(1));
        let pieces = more.times(&N::whole(each)).rational();
        match more.rational().whole() {
            Some(periods) if pieces <= (limit.min(i64::MAX as u64) as i64).into() => {
                Ok(self.longer(periods).cut(end))
            }
            _ => Err(Error::TooLarge { pieces, limit }),
        }
    }

    /// About how many pieces it has on `[0, end)`, and not fewer. O(pieces of a period).
    pub(crate) fn count_to(&self, end: &N) -> u64 {
        let pieces = &self.section.pieces;
        if *end <= self.section.end {
            return pieces.partition_point(|piece| piece.start < *end) as u64;
        }
        if self.is_ultimately_affine() || self.ultimate_infinity().is_some() {
            return pieces.len() as u64;
        }
        let first = pieces.partition_point(|piece| piece.start <= self.transient);
        // One more: a piece may go on over T.
        let each = (pieces.len() - first) as u64 + 1;
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

    /// Whether it is affine from some time on.
    pub(crate) fn is_ultimately_affine(&self) -> bool {
        match &self.repeated()[..] {
            [only] => {
                only.at == only.after
                    && only.after.finite().is_some()
                    && only.line(&self.section.end) == only.at.moved(&self.step)
            }
            _ => false,
        }
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

    /// The same, higher by a number.
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
        match &self.repeated()[..] {
            [only] if only.at == only.after && only.at.finite().is_none() => Some(only.at.clone()),
            _ => None,
        }
    }

    /// c / d.
    pub(crate) fn slope(&self) -> N {
        self.step.over(&self.period)
    }

    /// Least and greatest of f(t) − c/d · t from T on, where that is finite. Linear.
    pub(crate) fn around_slope(&self) -> Option<(N, N)> {
        let slope = self.slope();
        let mut range: Option<(N, N)> = None;
        let mut take = |time: &N, value: &Extended<N>| {
            let distance = value.finite()?.minus(&slope.times(time));
            range = Some(match range.take() {
                None => (distance.clone(), distance),
                Some((least, most)) => (least.min(distance.clone()), most.max(distance)),
            });
            Some(())
        };
        let pieces = self.repeated();
        let ends = pieces.iter().skip(1).map(|piece| &piece.start);
        for (piece, end) in pieces.iter().zip(ends.chain([&self.section.end])) {
            take(&piece.start, &piece.at)?;
            take(&piece.start, &piece.after)?;
            take(end, &piece.line(end))?;
        }
        range
    }

    /// The same function on other numbers.
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
        let slope = self.slope();
        let mut least: Option<N> = None;
        for (piece, end) in self.section.spans() {
            for (time, value) in [
                (&piece.start, piece.at.clone()),
                (&piece.start, piece.after.clone()),
                (end, piece.line(end)),
            ] {
                let distance = match value {
                    Extended::Finite(value) => value.minus(&slope.times(time)),
                    Extended::PositiveInfinity => continue,
                    Extended::NegativeInfinity => return None,
                };
                least = Some(match least {
                    Some(least) => least.min(distance),
                    None => distance,
                });
            }
        }
        least
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
            Some(Periodic::new(&before, transient.clone(), one, N::zero())),
            Periodic::new(&behind, transient, self.period.clone(), self.step.clone()),
        )
    }

    /// The same value everywhere.
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
