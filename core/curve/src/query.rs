//! What can be asked of one curve: first times, bounds, whether a value is attained.
//!
//! Invariant: answers hold on all of [0, ∞), and are found without walking over periods.

use crate::curve::{Value, shown};
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::found::Found;
use crate::number::Number;
use crate::periodic::Periodic;
use crate::section::Section;

/// Between which values a curve is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The greatest value that it is nowhere below.
    pub infimum: Value,
    /// Whether it is that anywhere.
    pub has_minimum: bool,
    /// The least value that it is nowhere above.
    pub supremum: Value,
    /// Whether it is that anywhere.
    pub has_maximum: bool,
}

/// Bounds on one kind of number.
pub(crate) struct Range<N> {
    low: (Extended<N>, bool),
    high: (Extended<N>, bool),
}

impl<N: Number> Found for Range<N> {
    type Shown = Bounds;

    fn shown(self) -> Bounds {
        Bounds {
            infimum: shown(&self.low.0),
            has_minimum: self.low.1,
            supremum: shown(&self.high.0),
            has_maximum: self.high.1,
        }
    }
}

impl Found for bool {
    type Shown = bool;

    fn shown(self) -> bool {
        self
    }
}

/// Infimum and supremum. Linear.
pub(crate) fn bounds<N: Number>(f: &Periodic<N>) -> Range<N> {
    let (least, attained) = supremum(&f.negated());
    Range {
        low: (least.negated(), attained),
        high: supremum(f),
    }
}

/// The supremum, and whether it is attained.
fn supremum<N: Number>(f: &Periodic<N>) -> (Extended<N>, bool) {
    let mut best = (NegativeInfinity, false);
    for (piece, end) in f.section.spans() {
        let flat = piece.slope.is_zero();
        for (value, attained) in [
            (piece.at.clone(), true),
            (piece.after.clone(), flat),
            (piece.line(end), flat),
        ] {
            best = best.max((value, attained));
        }
    }
    match f.step.is_positive() && best.0 != PositiveInfinity {
        true => (PositiveInfinity, false),
        false => best,
    }
}

/// Whether f(t) is a number at any t ≥ 0. Linear.
pub(crate) fn attains<N: Number>(f: &Periodic<N>, value: &N) -> bool {
    // At a value, or strictly between two, after some whole number of steps, which is 0 in the
    // transient part.
    let at = |found: &Extended<N>, repeats: bool| {
        let Finite(found) = found else { return false };
        let more = value.minus(found);
        more.is_zero()
            || (repeats && !f.step.is_zero() && {
                let steps = more.over(&f.step);
                steps.is_positive() && steps == steps.floor()
            })
    };
    let between = |one: &Extended<N>, two: &Extended<N>, repeats: bool| {
        let (Finite(one), Finite(two)) = (one, two) else {
            return false;
        };
        let (low, high) = if one < two { (one, two) } else { (two, one) };
        if low < value && value < high {
            return true;
        }
        if !repeats || f.step.is_zero() {
            return false;
        }
        let ends = [value.minus(low), value.minus(high)].map(|more| more.over(&f.step));
        let [one, two] = ends;
        let (low, high) = if one < two { (one, two) } else { (two, one) };
        // A whole number, 1 or more, strictly between.
        let next = low.floor().plus(&N::whole(1)).max(N::whole(1));
        next < high
    };
    f.section.spans().any(|(piece, end)| {
        let again = piece.start >= f.transient;
        if at(&piece.at, again) {
            return true;
        }
        if piece.slope.is_zero() {
            return at(&piece.after, *end > f.transient);
        }
        let split = f
            .transient
            .clone()
            .max(piece.start.clone())
            .min(end.clone());
        // The part before T does not repeat itself.
        between(&piece.after, &piece.line(&split), false)
            || (piece.start < split && split < *end && at(&piece.line(&split), true))
            || between(&piece.line(&split), &piece.line(end), true)
    })
}

/// The infimum of times at which it is finite; of times above 0 if `origin` is not to count.
/// `None` if there is none.
pub(crate) fn first_finite<N: Number>(f: &Periodic<N>, origin: bool) -> Option<N> {
    let finite = |value: &Extended<N>| value.finite().is_some();
    let found = f.section.spans().find_map(|(piece, _)| {
        let counts = origin || piece.start.is_positive();
        ((counts && finite(&piece.at)) || finite(&piece.after)).then(|| piece.start.clone())
    });
    // Finite at times of each period, and at 0: then again one period later.
    let again = || finite(&f.section.value(&N::zero())) && f.transient.is_zero();
    found.or_else(|| again().then(|| f.period.clone()))
}

/// The infimum of times at which it is 0 or above; `None` if there is none. Linear.
pub(crate) fn first_not_negative<N: Number>(f: &Periodic<N>) -> Option<N> {
    if let Some(time) = first_above(&f.section) {
        return Some(time);
    }
    if !f.step.is_positive() {
        return None;
    }
    // The first period in which the highest value is high enough, or one more where that is only a
    // limit.
    let repeated = f.section.part(&f.transient, &f.section.end);
    let period = || repeated.pieces.iter();
    let spans = repeated.spans();
    let values = spans.flat_map(|(piece, end)| [piece.at.clone(), piece.line(end)]);
    let limits = period().map(|piece| piece.after.clone());
    let highest = values
        .chain(limits)
        .filter_map(|value| value.finite().cloned())
        .max()?;
    let before = highest.negated().over(&f.step).floor().max(N::zero());
    (0..3).find_map(|more| {
        let periods = before.plus(&N::whole(more));
        let (time, value) = (periods.times(&f.period), periods.times(&f.step));
        first_above(&Section {
            pieces: period().map(|piece| piece.moved(&time, &value)).collect(),
            end: f.section.end.plus(&time),
        })
    })
}

/// The infimum of times of a section at which it is 0 or above.
fn first_above<N: Number>(section: &Section<N>) -> Option<N> {
    let zero = Finite(N::zero());
    section.spans().find_map(|(piece, end)| {
        if piece.at >= zero || piece.after >= zero {
            return Some(piece.start.clone());
        }
        let rise = piece.after.finite()?.negated();
        let time = piece.slope.is_positive();
        let time = time.then(|| piece.start.plus(&rise.over(&piece.slope)))?;
        (time < *end).then_some(time)
    })
}

/// The infimum of times from which on it repeats itself. Linear.
pub(crate) fn period_start<N: Number>(f: &Periodic<N>) -> N {
    f.last_difference().map_or_else(N::zero, |(time, _)| time)
}
