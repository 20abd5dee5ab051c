//! Staircases of a trace: most bytes allocated, and fewest freed, in windows of each length.
//!
//! Where not all lengths are tried, those between take the value of the next one tried for what is
//! allocated, and of the last one for what is freed.
//!
//! Invariant: a staircase of allocations is nowhere below the exact one, a staircase of releases
//! nowhere above.

use metes_curve::{Curve, Element, Error, Rational, Value};

use crate::busy::Busy;
use crate::classes::Counted;
use crate::windows::{Arrivals, Windows};

/// A staircase: 0 at 0, and from each step on its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staircase {
    /// Times and values, both ascending.
    steps: Vec<(u64, u128)>,
    /// Whether a step counts at its time or only behind it.
    side: Side,
    /// Whether nothing was rounded.
    exact: bool,
    tail: Tail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Right of its time: what arrives in half-open windows.
    Behind,
    /// From its time on.
    At,
}

/// What is behind the last window of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// Nothing more.
    Constant,
    /// No window is as long: +∞ behind this length.
    Vacuous { behind: u64 },
}

impl Staircase {
    /// The arrival curve: α(Δ) is most bytes allocated in a half-open window of length Δ. Behind
    /// the length of the trace it is constant: nothing is allocated before or after the trace.
    /// [`Arrivals::most`] for each window length.
    pub(crate) fn arrival(arrivals: &Arrivals, windows: &Windows) -> Self {
        let mut steps: Vec<(u64, u128)> = Vec::new();
        let mut next = 0;
        let values = arrivals.most(&windows.lengths);
        for (length, value) in windows.lengths.iter().zip(values) {
            // Lengths between two that were tried count as the longer one.
            let time = if windows.exact { *length } else { next };
            if steps.last().is_none_or(|(_, before)| *before < value) {
                steps.push((time, value));
            }
            next = *length + 1;
        }
        Staircase {
            steps,
            side: Side::Behind,
            exact: windows.exact,
            tail: Tail::Constant,
        }
    }

    /// The release curve: β(Δ) is the fewest bytes freed in any window of length Δ throughout
    /// which something is live. [`Busy::fewest`].
    pub(crate) fn release(busy: &Busy, counted: Counted, windows: &Windows) -> Self {
        let mut steps: Vec<(u64, u128)> = vec![(0, 0)];
        for (length, value) in busy.fewest(windows, counted) {
            if steps.last().is_none_or(|(_, before)| *before < value) {
                steps.push((length, value));
            }
        }
        Staircase {
            steps,
            side: Side::At,
            exact: windows.exact,
            tail: match busy.drains {
                // Frees come last in their tick, so the longest period reaches into the next.
                true => Tail::Vacuous {
                    behind: busy.longest.saturating_add(1),
                },
                false => Tail::Constant,
            },
        }
    }

    /// Whether it is the staircase itself, or one on the safe side of it.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Times and values of its steps, ascending.
    #[must_use]
    pub fn steps(&self) -> &[(u64, u128)] {
        &self.steps
    }

    /// The value of the last step up to a time.
    fn up_to(&self, time: u64) -> u128 {
        let behind = self.steps.partition_point(|(step, _)| *step <= time);
        behind.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }

    /// The most by which an arrival curve is above a release curve, in windows up to `longest`:
    /// what can be live at once; and in which length of window. The release curve only rises, so it
    /// is at a step of the arrival curve.
    pub(crate) fn above(&self, release: &Staircase, longest: u64) -> (u64, u128) {
        let steps = self.steps.iter().filter(|(time, _)| *time <= longest);
        steps
            .map(|(time, value)| (*time, value.saturating_sub(release.up_to(*time))))
            .max_by_key(|(time, above)| (*above, std::cmp::Reverse(*time)))
            .unwrap_or((0, 0))
    }

    /// The staircase as an exact curve. Linear.
    ///
    /// # Errors
    /// [`Error`] of a curve that cannot be; none is known.
    pub fn curve(&self) -> Result<Curve, Error> {
        let mut points: Vec<(u64, Value, Value)> = vec![(0, whole(0), whole(0))];
        let mut put = |time: u64, at: Value, behind: Value| match points.last_mut() {
            Some(last) if last.0 == time => *last = (time, at, behind),
            _ => points.push((time, at, behind)),
        };
        let mut before = 0;
        for (time, value) in &self.steps {
            let at = match self.side {
                Side::Behind => before,
                Side::At => *value,
            };
            put(*time, whole(at), whole(*value));
            before = *value;
        }
        if let Tail::Vacuous { behind } = self.tail {
            put(behind, whole(self.up_to(behind)), Value::PositiveInfinity);
        }
        // The value at a step may differ from that behind it, so the curve repeats itself one tick later.
        if let Some((time, _, behind)) = points.last().cloned() {
            points.push((time.saturating_add(1), behind.clone(), behind));
        }
        let transient = rational(points.last().map_or(0, |(time, ..)| *time).into());
        let end = &transient + &Rational::from(1);
        let starts = points.iter().map(|(time, ..)| rational((*time).into()));
        let ends = starts.clone().skip(1).chain([end]);
        let pairs = points.iter().zip(starts.zip(ends));
        let elements: Vec<Element> = pairs
            .flat_map(|((_, at, behind), (start, end))| {
                let point = Element::Point {
                    time: start.clone(),
                    value: at.clone(),
                };
                let segment = Element::Segment {
                    start,
                    end,
                    value: behind.clone(),
                    slope: Rational::from(0),
                };
                [point, segment]
            })
            .collect();
        let none = Rational::from(0);
        Curve::new(&elements, &transient, &Rational::from(1), &none)
    }
}

fn whole(value: u128) -> Value {
    Value::Finite(rational(value))
}

/// A whole number of any length.
pub(crate) fn rational(value: u128) -> Rational {
    match i64::try_from(value) {
        Ok(value) => Rational::from(value),
        // Digits are always read.
        Err(_) => value
            .to_string()
            .parse()
            .unwrap_or_else(|_| Rational::from(i64::MAX)),
    }
}
