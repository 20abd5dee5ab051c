//! A slow curve with several steeper ones at once, on whole numbers of 64 bits.
//!
//! Let f be finite with slope ρ, and V its extent: sup (f(t) − ρ t) − inf (f(t) − ρ t), over all t ≥ 0.
//! So f(t + s) ≤ f(t) + ρ s + V, and, if f never jumps up, f(t + s) ≤ f(t) + σ s with its steepest
//! slope σ. Let g be finite at 0. A split that gives g a time s with
//!
//! g(s) ≥ g(0) + ρ s + V, or g(s) ≥ g(0) + σ s,
//!
//! is no better than that which gives it nothing and f so much more. This holds whatever else the time
//! is split among, so all such s can be left out, of each of several curves g and of any convolution
//! of them. Where they are all steeper than f, what is left of each ends: their convolution is one of
//! sections of few pieces, to which f is added once. Let it end at S. For t ≥ T_f + S what is left
//! takes f in its periodic part, so that the result goes on with f's period.
//!
//! Where f(u + j d_g) ≤ f(u) + j c_g for all u, a split that gives g as much as s ≥ T_g + j d_g is no better,
//! either, than that which gives it j periods less: of such curves j periods are left at most.
//!
//! Invariant: what is left out is no lower than one of these bounds, or made up for by an exchange. No
//! curve is written out in more pieces than [`MANY`], or than a limit that is less.

mod growth;
mod whole;

use crate::envelope::lines::{Operand, Slope, lowest};
use crate::envelope::staircase;
use crate::number::Number;
use crate::periodic::Periodic;
use crate::settings::Algebra;
use growth::Growth;
use whole::Whole;

/// Of a curve that is taken with others, at most so many pieces are left.
const PIECES: usize = 3;

/// The pieces of a convolution of several, times those of another that is taken with them.
const PAIRS: usize = 9;

/// Where more pairs of pieces meet, other cuts and kernels may take less.
const MANY: usize = 4096;

/// Looking for an exchange of so many periods takes as much as so many pairs, each.
const PAIRS_OF_A_TRY: usize = 32;

/// Most that are tried.
const TRIES: usize = 64;

/// A slow curve, and steeper ones that are still to be convolved with it.
pub(crate) struct Together {
    low: Whole,
    slope: Slope,
    high: Vec<High>,
    /// Whether all are finite, constant between breakpoints, and never fall.
    are_staircases: bool,
}

/// A curve that is still to be convolved.
struct High {
    place: usize,
    curve: Whole,
    begin: i64,
    /// The lowest distance of what repeats itself, and by how much that is higher each period; nothing
    /// of a curve that is infinite in the end.
    again: Option<(i128, i128)>,
}

/// What was convolved in a step.
pub(crate) struct Taken {
    /// Which of the steeper curves, by their places.
    pub(crate) places: Vec<usize>,
    /// How many pairs of pieces met.
    pub(crate) pairs: u64,
    /// Pieces of the result.
    pub(crate) pieces: usize,
}

impl Together {
    /// Whether the optimisations that it is made of are on.
    pub(crate) fn is_allowed(algebra: &Algebra) -> bool {
        let on = algebra.optimisations;
        on.together && on.integers && on.merge_tree && on.early_exit && on.staircase
    }

    /// `None` if a curve is not made of whole numbers, the slow one is not finite, or another one is not
    /// steeper, or infinite at 0; or if all have too many pieces. Linear.
    pub(crate) fn new<N: Number>(low: &Periodic<N>, high: &[&Periodic<N>]) -> Option<Self> {
        let pieces = |curve: &Periodic<N>| curve.section.pieces.len();
        let least = high.iter().map(|high| pieces(high)).min()?;
        if pieces(low).saturating_mul(least) > MANY {
            return None;
        }
        let low = Whole::of(low)?;
        let slope = low.slope();
        let high = high.iter().enumerate();
        let high = high.map(|(place, high)| High::new(place, Whole::of(high)?, slope));
        let high: Vec<High> = high.collect::<Option<_>>()?;
        let mut curves = high.iter().map(|high| &high.curve);
        Some(Together {
            are_staircases: low.is_staircase() && curves.all(Whole::is_staircase),
            low,
            slope,
            high,
        })
    }

    /// What is convolved by now.
    pub(crate) fn curve<N: Number>(&self) -> Periodic<N> {
        self.low.periodic()
    }

    /// Convolves the slow curve with that of which least is left, and others of which little is; `None`
    /// if so much is left of all that other cuts and kernels may take less, or more than a limit.
    pub(crate) fn next(&mut self, limit: u64) -> Option<Taken> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX).min(MANY);
        let growth = Growth::of(&self.low, self.slope, most)?;
        // By how many pairs meet at most: pairs, periods, and which.
        let mut order = Vec::with_capacity(self.high.len());
        for (number, high) in self.high.iter().enumerate() {
            let periods = high.periods(&growth)?;
            order.push((self.low.pairs_with(&high.curve, periods), periods, number));
        }
        order.sort_unstable();
        let mut order = order.into_iter();
        let (pairs, periods, first) = order.next()?;
        let high = &self.high[first];
        let periods = match periods > 1 && pairs > PAIRS_OF_A_TRY {
            true => {
                let tries = (pairs / PAIRS_OF_A_TRY).min(TRIES);
                let exchanged = self.low.exchanged(&high.curve, periods, tries, most);
                exchanged.unwrap_or(periods)
            }
            false => periods,
        };
        if self.low.pairs_with(&high.curve, periods) > most {
            return None;
        }
        let mut all = high.left(periods, &growth)?;
        let mut taken = vec![first];
        let mut pairs = 0;
        for (_, periods, number) in order {
            let high = &self.high[number];
            if high.curve.pieces_of(periods) > 2 * PIECES {
                continue;
            }
            let Some(left) = high.left(periods, &growth) else {
                continue;
            };
            let both = all.pieces() * left.pieces();
            // One more: what is at the end of either, too.
            let reach = self.low.end_of(1) + all.end() + left.end() + 2;
            if left.pieces() > PIECES || both > PAIRS || self.low.few_to(reach, most).is_none() {
                continue;
            }
            all = self.convolved(all, left, &growth)?;
            taken.push(number);
            pairs += both;
        }
        pairs += self.low.pairs(&all);
        if pairs > most {
            return None;
        }
        self.low
            .convolve(&all, self.slope, self.are_staircases, most)?;
        let places: Vec<usize> = taken
            .iter()
            .map(|number| self.high[*number].place)
            .collect();
        self.high.retain(|high| !places.contains(&high.place));
        Some(Taken {
            places,
            pairs: pairs as u64,
            pieces: self.low.pieces(),
        })
    }

    /// Of two that are left of curves, what is left of their convolution.
    fn convolved(&self, one: Operand, mut other: Operand, growth: &Growth<'_>) -> Option<Operand> {
        let begin = one.begin()?;
        if one.pieces() == 0 {
            other.raise(begin);
            return Some(other);
        }
        // One more: what is at the end, too.
        let end = one.end() + other.end() + 1;
        if !one.fits(end) || !other.fits(end) {
            return None;
        }
        let most = growth.bound(begin + other.begin()?).distance;
        let cells = match self.are_staircases {
            true => staircase::lowest(&one, &other, end),
            false => lowest(&one, &other, end, most),
        };
        let count = cells.len();
        let cells = cells.into_iter().map(Some);
        let convolved = Operand::of_cells(cells, count, None, self.slope)?;
        growth.needed(convolved)
    }
}

impl High {
    fn new(place: usize, curve: Whole, slope: Slope) -> Option<Self> {
        let again = match curve.ends() {
            true => None,
            false => {
                let gain = slope.below(curve.period, curve.step);
                if gain <= 0 {
                    return None;
                }
                Some((curve.lowest_again(slope), gain))
            }
        };
        Some(High {
            place,
            begin: curve.begin()?,
            curve,
            again,
        })
    }

    /// Periods behind which nothing of it is needed beside a slow curve; at least one.
    fn periods(&self, growth: &Growth<'_>) -> Option<i64> {
        let Some((lowest, gain)) = self.again else {
            return Some(1);
        };
        let missing = growth.bound(self.begin).distance - lowest;
        let periods = (missing + gain - 1).div_euclid(gain).max(1);
        let periods = i64::try_from(periods).ok()?;
        self.curve.has_end(periods.into()).then_some(periods)
    }

    /// What is needed of so many periods.
    fn left(&self, periods: i64, growth: &Growth<'_>) -> Option<Operand> {
        let end = self.curve.end_of(periods);
        growth.needed(self.curve.up_to(end, growth.slope(), growth.pieces())?)
    }
}
