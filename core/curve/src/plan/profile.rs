//! What a curve is like from afar: enough to tell, in constant time for two curves, about how
//! many pairs of pieces their convolution looks at.
//!
//! Numbers are in floating point: they only choose an order, and every order gives the same
//! curve.
//!
//! Invariant: a profile takes one pass over the pieces, and a cost takes none.

use crate::curve::{Curve, either};
use crate::extended::Extended::{self, Finite, PositiveInfinity};
use crate::number::Number;
use crate::periodic::Periodic;

/// A curve from afar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    /// c / d; +∞ of a curve that is +∞ in the end.
    pub(super) slope: f64,
    pub(super) transient: f64,
    pub(super) period: f64,
    step: f64,
    /// Pieces before T.
    before: f64,
    /// Pieces of a period.
    each: f64,
    /// Highest above the slope from T on; +∞ if infinite there.
    pub(super) most: f64,
    /// Lowest above the slope anywhere.
    pub(super) least: f64,
    /// The value at 0.
    pub(super) origin: f64,
    /// Whether it is affine or infinite in the end, and so has every period.
    pub(super) is_affine: bool,
}

impl Profile {
    /// That of a curve. Linear.
    pub(crate) fn of(curve: &Curve) -> Self {
        either!(curve, curve => Profile::new(curve))
    }

    fn new<N: Number>(curve: &Periodic<N>) -> Self {
        let [transient, period, step] =
            [&curve.transient, &curve.period, &curve.step].map(Number::approximate);
        // In the canonical form one piece is all of an infinite end.
        let ends = curve.section.pieces.last().is_some_and(|last| {
            let infinite = last.at == PositiveInfinity && last.after == PositiveInfinity;
            infinite && last.start <= curve.transient
        });
        let slope = if ends { f64::INFINITY } else { step / period };
        let mut profile = Profile {
            slope,
            transient,
            period,
            step,
            before: 0.0,
            each: 0.0,
            most: f64::NEG_INFINITY,
            least: f64::INFINITY,
            origin: approximate(&curve.section.pieces[0].at),
            is_affine: curve.is_ultimately_affine() || curve.ultimate_infinity().is_some(),
        };
        let slope = step / period;
        let mut next = 0.0;
        for (piece, end) in curve.section.spans() {
            let (start, end) = (next, end.approximate());
            next = end;
            let (at, after) = (approximate(&piece.at), approximate(&piece.after));
            let near = [
                at - slope * start,
                after - slope * start,
                after + piece.slope.approximate() * (end - start) - slope * end,
            ];
            profile.least = near.into_iter().fold(profile.least, f64::min);
            // A piece may begin before T and go on behind it.
            if end <= transient {
                profile.before += 1.0;
            } else {
                profile.each += 1.0;
                profile.most = near.into_iter().fold(profile.most, f64::max);
            }
        }
        profile
    }

    /// One of these numbers: slope, T, d, highest, lowest, the value at 0, and c.
    #[cfg(test)]
    pub(super) fn drawn(numbers: [f64; 7], is_affine: bool) -> Self {
        let [slope, transient, period, most, least, origin, step] = numbers;
        Profile {
            slope,
            transient,
            period,
            step,
            before: 1.0,
            each: 2.0,
            most,
            least,
            origin,
            is_affine,
        }
    }

    /// About how many pieces it has up to a time.
    fn pieces(&self, until: f64) -> f64 {
        match until < self.transient {
            true => 1.0 + self.before * until / self.transient,
            false => self.before + self.each * ((until - self.transient) / self.period).max(1.0),
        }
    }

    /// About how many pairs of pieces a convolution looks at.
    pub(super) fn cost(&self, other: &Profile) -> f64 {
        let (low, high) = match self.slope <= other.slope {
            true => (self, other),
            false => (other, self),
        };
        let transients = low.transient + high.transient;
        if high.slope == f64::INFINITY {
            return low.pairs(high, transients + low.period);
        }
        let whole = |common: f64| low.pairs(high, transients + 2.0 * common);
        if low.slope == high.slope {
            return whole(common(low.period, high.period));
        }
        let reach = low.reach(high);
        let cut =
            low.pieces(low.transient + reach + low.period) * high.pieces(reach.max(low.transient));
        // A common multiple is no less than the longer period.
        if cut <= whole(low.period.max(high.period)) {
            return cut;
        }
        let whole = whole(common(low.period, high.period));
        match cut.is_finite() {
            true => cut.min(whole),
            false => whole,
        }
    }

    /// How far a steeper curve is needed beside it: until it has outgrown what this one varies by.
    pub(super) fn reach_of(&self, high: &Profile) -> f64 {
        match high.slope == f64::INFINITY {
            true => high.transient,
            false => {
                (self.most - self.least + high.origin - high.least) / (high.slope - self.slope)
            }
        }
    }

    /// How far the faster curve is needed: by the gap of the slopes, or up to the least whole
    /// number of its periods after which it has outgrown the slower one's variation, or in
    /// which it rises by a multiple of the slower one's step.
    fn reach(&self, high: &Profile) -> f64 {
        let apart = high.slope - self.slope;
        let width = self.most - self.least;
        let gap = ((width + high.origin - high.least) / apart).max(0.0);
        let periods = (width / (apart * high.period)).ceil().max(1.0);
        let exchange = high.transient + high.period * periods;
        if periods == 1.0 || gap <= high.transient + high.period {
            return gap.min(exchange);
        }
        let rises = common(self.step, high.step) / high.step;
        let rises = if rises.is_finite() { rises } else { periods };
        gap.min(high.transient + high.period * periods.min(rises))
    }

    /// About what their convolution is like: the bounds of the slope gap, as if nothing merged.
    pub(super) fn convolved(&self, other: &Profile) -> Profile {
        let (low, high) = match self.slope <= other.slope {
            true => (self, other),
            false => (other, self),
        };
        let least = low.least + high.least;
        let most = (low.most + high.origin).max(least);
        let width = low.most - low.least + high.origin - high.least;
        let apart = high.slope - low.slope;
        let (transient, period) = match apart > 0.0 {
            true if apart.is_finite() => (low.transient + (width / apart).max(0.0), low.period),
            true => (low.transient + high.transient, low.period),
            false => {
                let multiple = common(low.period, high.period);
                // What repeats itself by either, does by their greatest common divisor.
                let divisor = low.period * high.period / multiple;
                (low.transient + high.transient + multiple, divisor)
            }
        };
        Profile {
            slope: low.slope,
            transient,
            period,
            step: low.slope * period,
            before: low.pieces(transient) + high.pieces(transient.min(high.transient)),
            each: low.each * period / low.period,
            most,
            least,
            origin: low.origin + high.origin,
            is_affine: low.is_affine && high.is_affine,
        }
    }

    /// Pairs of which the starts add up to less than `end`.
    fn pairs(&self, other: &Profile, end: f64) -> f64 {
        self.pieces(end) * other.pieces(end) / 2.0
    }
}

/// About the least common multiple: of whole numbers exactly, of others no less than their
/// product.
pub(super) fn common(one: f64, other: f64) -> f64 {
    // Casts saturate, so that what is no such number differs.
    let (mut a, mut b) = (one.abs() as u32, other.abs() as u32);
    if f64::from(a) == one.abs() && f64::from(b) == other.abs() {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        return one * other / f64::from(a);
    }
    let (mut a, mut b) = (one, other);
    while b > 1e-9 * one {
        (a, b) = (b, a % b);
    }
    one / a * other
}

fn approximate<N: Number>(value: &Extended<N>) -> f64 {
    match value {
        Finite(number) => number.approximate(),
        PositiveInfinity => f64::INFINITY,
        Extended::NegativeInfinity => f64::NEG_INFINITY,
    }
}
