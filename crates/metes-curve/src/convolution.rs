//! (min,+) and (max,+) convolution.
//!
//! (f ∗ g)(t) is the least f(s) + g(t − s), s from 0 to t. How far each curve has to be looked at
//! is decided first, from periods and slopes; then every point and segment of one meets every one
//! of the other, and the lower envelope is taken by merging pairs, pairs of pairs, and so on.
//!
//! **Slope gap.** Let the long-run slope of f be less than that of g, M the highest that f lies
//! above its slope from T_f on, m_f and m_g the lowest that f and g lie above theirs anywhere. For
//! t ≥ T_f the split s = 0 of g gives at most ρ_f t + M + g(0), any split s at least
//! ρ_f t + m_f + m_g + (ρ_g − ρ_f) s. So only s ≤ S = (M − m_f + g(0) − m_g) / (ρ_g − ρ_f) can
//! win, and from T_f + S on all that win leave f in its periodic part: the result has its period
//! and step from there on, and of g no more than `[0, max(S, T_f)]` is needed. No least common
//! multiple is taken.
//!
//! Invariant: no time is computed whose value would need more of f or g than was taken.

use crate::algebra::Algebra;
use crate::error::Error;
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::periodic::Periodic;
use crate::pointwise;
use crate::section::{Piece, Section};

/// f ∗ g, the least of all sums.
pub(crate) fn minimal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    match (f.ultimate_infinity(), g.ultimate_infinity()) {
        (Some(NegativeInfinity), _) | (_, Some(NegativeInfinity)) => infinite(f, g, algebra),
        (Some(_), _) => beside_end(f, g, algebra),
        (_, Some(_)) => beside_end(g, f, algebra),
        _ if f.slope() == g.slope() => equal_slopes(f, g, algebra),
        _ => {
            let (low, high) = if f.slope() < g.slope() {
                (f, g)
            } else {
                (g, f)
            };
            match Gap::of(low, high) {
                Some(gap) => gap.convolve(low, high, algebra),
                None => by_parts(low, high, algebra),
            }
        }
    }
}

/// The greatest of all sums.
pub(crate) fn maximal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    Ok(minimal(&f.negated(), &g.negated(), algebra)?.negated())
}

/// One is −∞ from some time on: so is the result, once the other has been finite.
fn infinite<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let transient = f.section.end.plus(&g.section.end);
    of_sections(f, g, transient, N::whole(1), N::zero(), algebra)
}

/// f is +∞ from some time on: there it adds nothing.
fn beside_end<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let transient = f.transient.plus(&g.transient);
    of_sections(f, g, transient, g.period.clone(), g.step.clone(), algebra)
}

/// With equal slopes the result repeats itself by the common period (Bouillard and Thierry,
/// 2008), and by less, which its canonical form finds.
fn equal_slopes<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let period = pointwise::common_period(f, g);
    let transient = f.transient.plus(&g.transient).plus(&period);
    let step = f.slope().times(&period);
    of_sections(f, g, transient, period, step, algebra)
}

/// What the slope gap says.
struct Gap<N> {
    /// S.
    reach: N,
}

impl<N: Number> Gap<N> {
    /// `None` where one is not finite from below, or infinite at times of each period, or the
    /// higher one at 0.
    fn of(low: &Periodic<N>, high: &Periodic<N>) -> Option<Self> {
        let (_, most) = low.around_slope()?;
        let (least, least_high) = (low.lowest()?, high.lowest()?);
        let begin = match high.section.value(&N::zero()) {
            Finite(begin) => begin,
            _ => return None,
        };
        let apart = high.slope().minus(&low.slope());
        let more = most.minus(&least).plus(&begin).minus(&least_high);
        Some(Gap {
            reach: more.over(&apart).max(N::zero()),
        })
    }

    fn convolve(
        self,
        low: &Periodic<N>,
        high: &Periodic<N>,
        algebra: &Algebra,
    ) -> Result<Periodic<N>, Error> {
        let transient = low.transient.plus(&self.reach);
        let end = transient.plus(&low.period);
        let reach = self.reach.max(low.transient.clone());
        // The value at the reach itself is needed, too.
        let high = high.up_to(&reach.plus(&high.period).min(end.clone()), algebra.limit)?;
        let section = envelope(&low.up_to(&end, algebra.limit)?, &high, &end, algebra)?;
        let (period, step) = (low.period.clone(), low.step.clone());
        Ok(Periodic::new(&section, transient, period, step))
    }
}

/// Transient and periodic parts apart: four convolutions, and the least of them.
fn by_parts<N: Number>(
    low: &Periodic<N>,
    high: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let ((f, f_later), (g, g_later)) = (low.parts(), high.parts());
    let period = low.period.common_multiple(&high.period);
    let step = low.slope().times(&period);
    let transient = low.transient.plus(&high.transient).plus(&period);
    let mut result = of_sections(&f_later, &g_later, transient, period, step, algebra)?;
    let others = [
        f.as_ref().map(|f| beside_end(f, &g_later, algebra)),
        g.as_ref().map(|g| beside_end(g, &f_later, algebra)),
        f.as_ref()
            .zip(g.as_ref())
            .map(|(f, g)| beside_end(f, g, algebra)),
    ];
    for part in others.into_iter().flatten() {
        result = pointwise::minimum(&result, &part?, algebra)?;
    }
    Ok(result)
}

/// Both up to the end of the result's first period.
pub(crate) fn of_sections<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    transient: N,
    period: N,
    step: N,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let end = transient.plus(&period);
    let (left, right) = (f.up_to(&end, algebra.limit)?, g.up_to(&end, algebra.limit)?);
    let section = envelope(&left, &right, &end, algebra)?;
    Ok(Periodic::new(&section, transient, period, step))
}

/// The convolution of two sections on `[0, end)`, as if both were +∞ behind their ends.
/// O(n m log(n m)) for n and m pieces.
fn envelope<N: Number>(
    f: &Section<N>,
    g: &Section<N>,
    end: &N,
    algebra: &Algebra,
) -> Result<Section<N>, Error> {
    let pairs = f.pieces.len() as u64 * g.pieces.len() as u64;
    if pairs > algebra.limit {
        return Err(Error::TooLarge {
            pieces: (pairs.min(i64::MAX as u64) as i64).into(),
            limit: algebra.limit,
        });
    }
    let mut tree = Tree::new(end);
    for (one, one_end) in f.spans() {
        for (two, two_end) in g.spans() {
            if one.start.plus(&two.start) < *end {
                tree.meet((one, one_end), (two, two_end));
            }
        }
    }
    Ok(tree.lowest())
}

/// Lower envelopes of 1, 2, 4, … sections, of which no two are as large.
struct Tree<'a, N> {
    end: &'a N,
    levels: Vec<Option<Section<N>>>,
}

impl<'a, N: Number> Tree<'a, N> {
    fn new(end: &'a N) -> Self {
        Tree {
            end,
            levels: Vec::new(),
        }
    }

    fn add(&mut self, section: Section<N>) {
        let mut section = section;
        for level in &mut self.levels {
            match level.take() {
                Some(other) => section = other.minimum(&section),
                None => {
                    *level = Some(section);
                    return;
                }
            }
        }
        self.levels.push(Some(section));
    }

    fn lowest(self) -> Section<N> {
        let nothing = self.between(&N::zero(), PositiveInfinity, &[]);
        let levels = self.levels.into_iter().flatten();
        levels.fold(nothing, |lowest, section| lowest.minimum(&section))
    }

    /// A point and the segment behind it with another point and segment.
    fn meet(&mut self, (one, one_end): (&Piece<N>, &N), (two, two_end): (&Piece<N>, &N)) {
        let start = one.start.plus(&two.start);
        let both =
            |left: &Extended<N>, right: &Extended<N>| left.plus(right).unwrap_or(PositiveInfinity);
        // The points, and each point with the other's segment.
        let at = both(&one.at, &two.at);
        for (point, segment, length) in [
            (one, two, two_end.minus(&two.start)),
            (two, one, one_end.minus(&one.start)),
        ] {
            let value = both(&point.at, &segment.after);
            let section = self.between(&start, at.clone(), &[(value, length, &segment.slope)]);
            self.add(section);
        }
        // Both segments: the flatter one first.
        let value = both(&one.after, &two.after);
        let lengths = [one_end.minus(&one.start), two_end.minus(&two.start)];
        let [one_length, two_length] = lengths;
        let (flat, steep) = match one.slope <= two.slope {
            true => ((one_length, &one.slope), (two_length, &two.slope)),
            false => ((two_length, &two.slope), (one_length, &one.slope)),
        };
        let turn = match &value {
            Finite(value) => Finite(value.plus(&flat.0.times(flat.1))),
            infinity => infinity.clone(),
        };
        let parts = [(value, flat.0, flat.1), (turn, steep.0, steep.1)];
        let section = self.between(&start, PositiveInfinity, &parts);
        self.add(section);
    }

    /// +∞ but for a value at `start` and lines behind it: values, lengths and slopes.
    fn between(&self, start: &N, at: Extended<N>, lines: &[(Extended<N>, N, &N)]) -> Section<N> {
        let nothing = |start: N| Piece::new(start, PositiveInfinity, PositiveInfinity, N::zero());
        let mut pieces = Vec::with_capacity(lines.len() + 2);
        if start.is_positive() {
            pieces.push(nothing(N::zero()));
        }
        let mut time = start.clone();
        for (index, (value, length, slope)) in lines.iter().enumerate() {
            let at = if index == 0 {
                at.clone()
            } else {
                value.clone()
            };
            pieces.push(Piece::new(
                time.clone(),
                at,
                value.clone(),
                (*slope).clone(),
            ));
            time = time.plus(length);
        }
        match lines {
            [] => pieces.push(Piece::new(time, at, PositiveInfinity, N::zero())),
            _ => pieces.push(nothing(time)),
        }
        pieces.retain(|piece| piece.start < *self.end);
        Section {
            pieces,
            end: self.end.clone(),
        }
    }
}
