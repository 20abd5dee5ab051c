//! Staircases of a trace: most bytes allocated, and fewest freed, in windows of each length.
//!
//! Times are whole numbers. Of n residencies there may be n²/2 different window lengths, so either
//! all are tried, where they are few, or so many of each doubling. Then the lengths between take
//! the value of the next one tried for what is allocated, and of the last one for what is freed.
//!
//! Invariant: a staircase of allocations is nowhere below the exact one, a staircase of releases
//! nowhere above.

use metes_curve::{Curve, Element, Error, Rational, Value};

use crate::residency::Residency;

/// Traces of up to so many events, or of so many times, have all of their windows tried.
const ALL: u64 = 2048;

/// The lengths of windows that are tried, ascending from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    lengths: Vec<u64>,
    /// Whether nothing changes between them.
    exact: bool,
}

impl Windows {
    /// Windows up to `longest`: each, if they are few, else `resolution` in each doubling.
    pub(crate) fn new(longest: u64, resolution: u64) -> Self {
        if longest < ALL {
            return Windows {
                lengths: (0..=longest).collect(),
                exact: true,
            };
        }
        let resolution = resolution.max(1);
        let mut lengths: Vec<u64> = (0..resolution.min(longest)).collect();
        let mut from = resolution;
        while from < longest {
            let parts = (0..resolution).map(|part| {
                let more = u128::from(from) * u128::from(part) / u128::from(resolution);
                u128::from(from) + more
            });
            lengths.extend(
                parts
                    .filter_map(|length| u64::try_from(length).ok())
                    .take_while(|length| *length < longest),
            );
            from = from.saturating_mul(2);
        }
        lengths.push(longest);
        Windows {
            lengths,
            exact: false,
        }
    }

    /// The same, and one more.
    pub(crate) fn with(&self, length: u64) -> Self {
        let mut windows = self.clone();
        if let Err(place) = windows.lengths.binary_search(&length) {
            windows.lengths.insert(place, length);
        }
        windows
    }
}

/// A window of allocations, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// The event of its first allocation.
    pub from_event: u64,
    /// The event of its last.
    pub to_event: u64,
    /// When it begins.
    pub from: u64,
    /// When it ends.
    pub to: u64,
    /// Allocations of the class in it.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u128,
}

/// The closed window of this length in which most is allocated; the first of several. O(n).
pub(crate) fn densest(arrivals: &[Residency], length: u64) -> Burst {
    let mut best = Burst::default();
    let (mut first, mut bytes) = (0, 0_u128);
    for (last, newest) in arrivals.iter().enumerate() {
        bytes += u128::from(newest.bytes);
        while newest.born - arrivals[first].born > length {
            bytes -= u128::from(arrivals[first].bytes);
            first += 1;
        }
        if bytes > best.bytes || best.blocks == 0 {
            best = Burst {
                from_event: arrivals[first].event,
                to_event: newest.event,
                from: arrivals[first].born,
                to: newest.born,
                blocks: (last - first + 1) as u64,
                bytes,
            };
        }
    }
    best
}

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
    /// O(n × windows).
    pub(crate) fn arrival(arrivals: &[Residency], windows: &Windows) -> Self {
        let mut steps: Vec<(u64, u128)> = Vec::new();
        let mut next = 0;
        for length in &windows.lengths {
            let value = densest(arrivals, *length).bytes;
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
    /// which something is live. O(n × windows).
    pub(crate) fn release(busy: &Busy, windows: &Windows) -> Self {
        let mut steps: Vec<(u64, u128)> = vec![(0, 0)];
        for length in windows
            .lengths
            .iter()
            .filter(|length| **length <= busy.longest)
        {
            let Some(value) = busy.fewest(*length) else {
                continue;
            };
            if steps.last().is_none_or(|(_, before)| *before < value) {
                steps.push((*length, value));
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

/// The times throughout which something of a class is live, and what is freed in them. At one time
/// allocations come before frees.
pub(crate) struct Busy {
    /// From when, and the ends of windows to try: the times of its frees, and the end of the
    /// trace if something is still live.
    periods: Vec<(u64, Vec<u64>)>,
    /// Times of frees, and bytes freed before each; one more at the end.
    times: Vec<u64>,
    before: Vec<u128>,
    /// The longest of the periods.
    pub(crate) longest: u64,
    /// Whether nothing is live at the end.
    pub(crate) drains: bool,
}

impl Busy {
    /// O(n log n).
    pub(crate) fn of(residencies: &[Residency], end: u64) -> Self {
        let mut frees: Vec<(u64, u64)> = residencies
            .iter()
            .filter_map(|residency| Some((residency.ended?, residency.bytes)))
            .collect();
        frees.sort_unstable_by_key(|(time, _)| *time);
        let mut periods: Vec<(u64, Vec<u64>)> = Vec::new();
        let (mut live, mut next) = (0_usize, 0);
        let free_before =
            |time: u64, live: &mut usize, next: &mut usize, periods: &mut Vec<(u64, Vec<u64>)>| {
                while let Some((freed, _)) = frees.get(*next).filter(|(freed, _)| *freed < time) {
                    if let Some((_, ends)) = periods.last_mut()
                        && ends.last() != Some(freed)
                    {
                        ends.push(*freed);
                    }
                    *live -= 1;
                    *next += 1;
                }
            };
        for residency in residencies {
            free_before(residency.born, &mut live, &mut next, &mut periods);
            if live == 0 {
                periods.push((residency.born, Vec::new()));
            }
            live += 1;
        }
        free_before(u64::MAX, &mut live, &mut next, &mut periods);
        if live > 0
            && let Some((_, ends)) = periods.last_mut()
            && ends.last() != Some(&end)
        {
            ends.push(end);
        }
        let longest = periods
            .iter()
            .filter_map(|(from, ends)| Some(ends.last()? - from))
            .max();
        let mut before = vec![0_u128];
        before.extend(frees.iter().scan(0_u128, |sum, (_, bytes)| {
            *sum += u128::from(*bytes);
            Some(*sum)
        }));
        Busy {
            periods,
            times: frees.iter().map(|(time, _)| *time).collect(),
            before,
            longest: longest.unwrap_or(0),
            drains: live == 0,
        }
    }

    /// The fewest bytes freed in a window `[s, s + length)` within a period; `None` if no period is
    /// as long. A window that ends elsewhere than before a free, or at the period's end, can be
    /// moved on until it does without a further free in it.
    fn fewest(&self, length: u64) -> Option<u128> {
        let mut least: Option<u128> = None;
        let (mut from, mut to) = (0, 0);
        for (begin, ends) in &self.periods {
            for end in ends.iter().filter(|end| **end - *begin >= length) {
                let start = end - length;
                while self.times.get(from).is_some_and(|time| *time < start) {
                    from += 1;
                }
                while self.times.get(to).is_some_and(|time| time < end) {
                    to += 1;
                }
                let freed = self.before[to] - self.before[from];
                least = Some(least.map_or(freed, |least| least.min(freed)));
            }
        }
        least
    }
}
