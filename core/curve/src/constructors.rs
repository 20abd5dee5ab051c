//! The curves of the field by name: arrivals, services, staircases.
//!
//! Every constructor says what its curve is at 0 and on which side of its jumps the value lies,
//! because results depend on both. Arrival curves are 0 at 0 and left-continuous, so they bound
//! what comes in half-open windows `[s, t)`. Jumps come behind a time if not said otherwise.
//!
//! Invariant: a parameter out of its range is an [`Error::Parameter`] that names it.

use crate::curve::{Curve, Element, Value};
use crate::error::Error;
use crate::number::Rational;
use crate::settings::Algebra;

impl Curve {
    /// 0 at all times.
    #[must_use]
    pub fn zero() -> Self {
        Curve::constant(Value::Finite(Rational::from(0)))
    }

    /// One value at all times, 0 included. With [`Value::PositiveInfinity`] it is the neutral
    /// element of the minimum.
    #[must_use]
    pub fn constant(value: Value) -> Self {
        line(value, &Rational::from(0))
    }

    /// `offset + rate · t`, the offset at 0 included; both may be negative.
    #[must_use]
    pub fn affine(rate: &Rational, offset: &Rational) -> Self {
        line(Value::Finite(offset.clone()), rate)
    }

    /// Token bucket, or leaky bucket: 0 at 0, then `burst + rate · t`.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a negative rate or burst.
    pub fn token_bucket(rate: &Rational, burst: &Rational) -> Result<Self, Error> {
        let of = Of("token bucket");
        of.not_negative("rate", rate)?;
        of.not_negative("burst", burst)?;
        // The value at 0 is off the line, so the line repeats itself only behind it.
        let later = finite(&(burst + rate));
        let pieces = vec![
            (zero(), finite(&zero()), finite(burst), rate.clone()),
            (one(), later.clone(), later, rate.clone()),
        ];
        periodic(pieces, &one(), &one(), rate)
    }

    /// Rate-latency service: 0 up to `latency`, then `rate · (t − latency)`.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a negative rate or latency.
    pub fn rate_latency(rate: &Rational, latency: &Rational) -> Result<Self, Error> {
        let of = Of("rate-latency curve");
        of.not_negative("rate", rate)?;
        of.not_negative("latency", latency)?;
        let mut pieces = vec![flat(&zero(), &zero(), &zero()); usize::from(*latency > zero())];
        pieces.push((
            latency.clone(),
            finite(&zero()),
            finite(&zero()),
            rate.clone(),
        ));
        periodic(pieces, latency, &one(), rate)
    }

    /// δ: 0 up to `time`, that included, then +∞. The convolution with it delays by `time`.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a negative time.
    pub fn delay(time: &Rational) -> Result<Self, Error> {
        Of("delay").not_negative("time", time)?;
        jump(time, Value::PositiveInfinity)
    }

    /// One step: 0 up to `time`, that included, then `height`.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a negative time.
    pub fn one_step(time: &Rational, height: &Rational) -> Result<Self, Error> {
        Of("step").not_negative("time", time)?;
        jump(time, finite(height))
    }

    /// Left-continuous staircase: 0 up to `offset`, that included; it rises by `height` behind
    /// `offset`, behind `offset + length`, and so on. So with offset 0 it is
    /// `height · ⌈t / length⌉`: sporadic arrivals, at least `length` apart.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a negative offset, or a length that is not positive.
    pub fn staircase(
        offset: &Rational,
        length: &Rational,
        height: &Rational,
    ) -> Result<Self, Error> {
        let of = Of("staircase");
        of.not_negative("offset", offset)?;
        of.positive("length", length)?;
        let mut pieces = vec![flat(&zero(), &zero(), &zero()); usize::from(*offset > zero())];
        pieces.push(flat(offset, &zero(), height));
        periodic(pieces, offset, length, height)
    }

    /// Right-continuous staircase: 0 before `offset`; it rises by `height` at `offset`, at
    /// `offset + length`, and so on. With `offset = length` it is `height · ⌊t / length⌋`; with
    /// offset 0 its value at 0 is `height`.
    ///
    /// # Errors
    /// As of [`Curve::staircase`].
    pub fn staircase_at(
        offset: &Rational,
        length: &Rational,
        height: &Rational,
    ) -> Result<Self, Error> {
        let of = Of("staircase");
        of.not_negative("offset", offset)?;
        of.positive("length", length)?;
        let mut pieces = vec![flat(&zero(), &zero(), &zero()); usize::from(*offset > zero())];
        pieces.push(flat(offset, height, height));
        periodic(pieces, offset, length, height)
    }

    /// [`Algebra::arrivals_at_most`], by default means.
    ///
    /// # Errors
    /// As there.
    pub fn arrivals_at_most(
        period: &Rational,
        jitter: &Rational,
        distance: &Rational,
        size: &Rational,
    ) -> Result<Self, Error> {
        Algebra::default().arrivals_at_most(period, jitter, distance, size)
    }

    /// Lower arrivals of a periodic stream with jitter:
    /// `size · max(0, ⌊(t − jitter) / period⌋)`, right-continuous.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a period that is not positive, or a negative jitter or size.
    pub fn arrivals_at_least(
        period: &Rational,
        jitter: &Rational,
        size: &Rational,
    ) -> Result<Self, Error> {
        let of = Of("periodic arrival curve");
        of.positive("period", period)?;
        of.not_negative("jitter", jitter)?;
        of.not_negative("size", size)?;
        Curve::staircase_at(&(jitter + period), period, size)
    }

    /// Arrivals of `size` at least `distance` apart: 0 at 0, then `size · ⌈t / distance⌉`.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a distance that is not positive, or a negative size.
    pub fn sporadic(distance: &Rational, size: &Rational) -> Result<Self, Error> {
        let of = Of("sporadic arrival curve");
        of.positive("distance", distance)?;
        of.not_negative("size", size)?;
        Curve::staircase(&zero(), distance, size)
    }

    /// Least service of a slot of time division: in the worst window nothing for
    /// `cycle − slot`, then `bandwidth` for `slot`, and so on.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a slot that is not positive or longer than the cycle, or a negative
    /// bandwidth.
    pub fn time_division(
        slot: &Rational,
        cycle: &Rational,
        bandwidth: &Rational,
    ) -> Result<Self, Error> {
        let gap = time_division_gap(slot, cycle, bandwidth)?;
        let mut pieces = vec![flat(&zero(), &zero(), &zero()); usize::from(gap > zero())];
        pieces.push((gap, finite(&zero()), finite(&zero()), bandwidth.clone()));
        periodic(pieces, &zero(), cycle, &(bandwidth * slot))
    }

    /// Most service of a slot of time division: `bandwidth` for `slot`, then nothing for
    /// `cycle − slot`, and so on.
    ///
    /// # Errors
    /// As of [`Curve::time_division`].
    pub fn time_division_at_most(
        slot: &Rational,
        cycle: &Rational,
        bandwidth: &Rational,
    ) -> Result<Self, Error> {
        let gap = time_division_gap(slot, cycle, bandwidth)?;
        let served = bandwidth * slot;
        let mut pieces = vec![(zero(), finite(&zero()), finite(&zero()), bandwidth.clone())];
        pieces.extend((gap > zero()).then(|| flat(slot, &served, &served)));
        periodic(pieces, &zero(), cycle, &served)
    }

    /// The continuous curve through points of ever later times, the first at 0, with a slope
    /// behind the last.
    ///
    /// # Errors
    /// [`Error::Malformed`] if there is no point, the first is not at 0, or one is not later than
    /// the one before.
    pub fn through(points: &[(Rational, Rational)], slope: &Rational) -> Result<Self, Error> {
        let Some((last, value)) = points.last() else {
            return Err(Error::Malformed {
                element: 0,
                what: "is missing: there is no point".into(),
            });
        };
        let mut elements = Vec::with_capacity(2 * points.len());
        for pair in points.windows(2) {
            if let [(start, low), (end, high)] = pair {
                let rise = (high - low).divided_by(&(end - start));
                // Of no rise time does not go on, which is reported with the elements.
                elements.extend(pieces_between(start, end, low, &rise.unwrap_or_else(zero)));
            }
        }
        let end = last + &one();
        elements.extend(pieces_between(last, &end, value, slope));
        Curve::new(&elements, &(last.clone()), &one(), slope)
    }
}

impl Algebra {
    /// Upper arrivals of a periodic stream with jitter: 0 at 0, then
    /// `size · min(⌈(t + jitter) / period⌉, ⌈t / distance⌉)`. Events are at least `distance`
    /// apart; 0 says nothing of that.
    ///
    /// # Errors
    /// [`Error::Parameter`] of a period that is not positive, a negative jitter or size, or a
    /// distance that is negative or above the period; [`Error::TooLarge`].
    pub fn arrivals_at_most(
        &self,
        period: &Rational,
        jitter: &Rational,
        distance: &Rational,
        size: &Rational,
    ) -> Result<Curve, Error> {
        let of = Of("periodic arrival curve");
        of.positive("period", period)?;
        of.not_negative("jitter", jitter)?;
        of.not_negative("size", size)?;
        of.not_negative("distance", distance)?;
        of.at_most("distance", distance, period)?;
        let early = over(jitter, period).floor();
        let first = &(&(&early + &one()) * period) - jitter;
        let (before, after) = (
            &(&early + &one()) * size,
            &(&(&early + &one()) + &one()) * size,
        );
        let pieces = vec![
            flat(&zero(), &zero(), &before),
            flat(&first, &before, &after),
        ];
        let jittered = periodic(pieces, &first, period, size)?;
        match *distance > zero() {
            true => self.minimum(&jittered, &Curve::staircase(&zero(), distance, size)?),
            false => Ok(jittered),
        }
    }
}

/// Start, value there, limit from the right, slope.
type Part = (Rational, Value, Value, Rational);

fn zero() -> Rational {
    Rational::from(0)
}

fn one() -> Rational {
    Rational::from(1)
}

fn finite(value: &Rational) -> Value {
    Value::Finite(value.clone())
}

/// A quotient by what was found to be positive.
fn over(dividend: &Rational, divisor: &Rational) -> Rational {
    dividend.divided_by(divisor).unwrap_or_else(zero)
}

fn flat(start: &Rational, at: &Rational, after: &Rational) -> Part {
    (start.clone(), finite(at), finite(after), zero())
}

fn pieces_between(
    start: &Rational,
    end: &Rational,
    value: &Rational,
    slope: &Rational,
) -> [Element; 2] {
    let point = Element::Point {
        time: start.clone(),
        value: finite(value),
    };
    let segment = Element::Segment {
        start: start.clone(),
        end: end.clone(),
        value: finite(value),
        slope: slope.clone(),
    };
    [point, segment]
}

fn line(value: Value, slope: &Rational) -> Curve {
    let step = match value {
        Value::Finite(_) => slope.clone(),
        Value::NegativeInfinity | Value::PositiveInfinity => zero(),
    };
    periodic(
        vec![(zero(), value.clone(), value, slope.clone())],
        &zero(),
        &one(),
        &step,
    )
    .expect("one piece from 0 to 1 is well formed")
}

/// 0 up to a time, then a value.
fn jump(time: &Rational, value: Value) -> Result<Curve, Error> {
    let mut pieces = vec![flat(&zero(), &zero(), &zero()); usize::from(*time > zero())];
    pieces.push((time.clone(), finite(&zero()), value.clone(), zero()));
    let later = time + &one();
    pieces.push((later.clone(), value.clone(), value, zero()));
    periodic(pieces, &later, &one(), &zero())
}

fn time_division_gap(
    slot: &Rational,
    cycle: &Rational,
    bandwidth: &Rational,
) -> Result<Rational, Error> {
    let of = Of("time division curve");
    of.positive("slot", slot)?;
    of.at_most("slot", slot, cycle)?;
    of.not_negative("bandwidth", bandwidth)?;
    Ok(cycle - slot)
}

/// The curve of parts that reach to `transient + period`.
fn periodic(
    parts: Vec<Part>,
    transient: &Rational,
    period: &Rational,
    step: &Rational,
) -> Result<Curve, Error> {
    let end = transient + period;
    let ends: Vec<Rational> = parts
        .iter()
        .skip(1)
        .map(|part| part.0.clone())
        .chain([end])
        .collect();
    let mut elements = Vec::with_capacity(2 * parts.len());
    for ((start, at, after, slope), end) in parts.into_iter().zip(ends) {
        elements.push(Element::Point {
            time: start.clone(),
            value: at,
        });
        elements.push(Element::Segment {
            start,
            end,
            value: after,
            slope,
        });
    }
    Curve::new(&elements, transient, period, step)
}

/// Checks of the parameters of one kind of curve.
struct Of(&'static str);

impl Of {
    fn not_negative(&self, parameter: &'static str, value: &Rational) -> Result<(), Error> {
        self.check(*value >= zero(), parameter, value, || "0 or above".into())
    }

    fn positive(&self, parameter: &'static str, value: &Rational) -> Result<(), Error> {
        self.check(*value > zero(), parameter, value, || "above 0".into())
    }

    fn at_most(
        &self,
        parameter: &'static str,
        value: &Rational,
        most: &Rational,
    ) -> Result<(), Error> {
        self.check(value <= most, parameter, value, || {
            format!("{most} at most")
        })
    }

    fn check(
        &self,
        good: bool,
        parameter: &'static str,
        value: &Rational,
        allowed: impl Fn() -> String,
    ) -> Result<(), Error> {
        match good {
            true => Ok(()),
            false => Err(Error::Parameter {
                curve: self.0,
                parameter,
                value: value.clone(),
                allowed: allowed(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn r(numerator: i64, denominator: i64) -> Rational {
        Rational::new(numerator, denominator).expect("not zero")
    }

    fn n(value: i64) -> Rational {
        Rational::from(value)
    }

    fn ceiling(value: &Rational) -> Rational {
        &zero() - &(&zero() - value).floor()
    }

    /// Compares with a definition at sixths of times to 20.
    #[track_caller]
    fn is(curve: Curve, definition: impl Fn(&Rational) -> Value) {
        for sixths in 0..120 {
            let time = r(sixths, 6);
            assert_eq!(curve.value(&time), Some(definition(&time)), "at {time}");
        }
    }

    #[track_caller]
    fn is_number(curve: Result<Curve, Error>, definition: impl Fn(&Rational) -> Rational) {
        is(curve.expect("in range"), |time| {
            Value::Finite(definition(time))
        });
    }

    #[test]
    fn lines_are_their_definitions() {
        is_number(Ok(Curve::zero()), |_| zero());
        is(Curve::constant(Value::PositiveInfinity), |_| {
            Value::PositiveInfinity
        });
        is(Curve::constant(Value::NegativeInfinity), |_| {
            Value::NegativeInfinity
        });
        is_number(Ok(Curve::affine(&r(1, 2), &n(-3))), |t| {
            &(t * &r(1, 2)) - &n(3)
        });
        for (rate, burst) in [(r(3, 2), n(4)), (n(0), n(4)), (n(2), n(0)), (n(0), n(0))] {
            is_number(Curve::token_bucket(&rate, &burst), |t| match *t == zero() {
                true => zero(),
                false => &(&rate * t) + &burst,
            });
        }
        for (rate, latency) in [(r(3, 2), r(7, 3)), (n(2), n(0)), (n(0), n(5))] {
            is_number(Curve::rate_latency(&rate, &latency), |t| {
                (&rate * &(t - &latency)).max(zero())
            });
        }
    }

    #[test]
    fn jumps_are_their_definitions() {
        for time in [n(0), r(5, 2)] {
            is(Curve::delay(&time).unwrap(), |t| match *t <= time {
                true => finite(&zero()),
                false => Value::PositiveInfinity,
            });
            is_number(Curve::one_step(&time, &n(-2)), |t| match *t <= time {
                true => zero(),
                false => n(-2),
            });
        }
        for (offset, length, height) in [
            (n(0), n(3), n(2)),
            (r(5, 3), r(3, 2), n(4)),
            (n(9), n(1), r(1, 3)),
        ] {
            is_number(Curve::staircase(&offset, &length, &height), |t| {
                &height * &ceiling(&over(&(t - &offset), &length)).max(zero())
            });
            is_number(Curve::staircase_at(&offset, &length, &height), |t| {
                &height * &(&over(&(t - &offset), &length).floor() + &one()).max(zero())
            });
        }
    }

    #[test]
    fn arrivals_are_their_definitions() {
        let streams = [
            (n(4), n(0), n(0)),
            (n(4), n(0), n(4)),
            (n(4), n(4), n(0)),
            (n(4), n(9), n(1)),
            (r(7, 2), r(5, 3), r(1, 2)),
            (n(2), n(13), r(2, 3)),
        ];
        let size = n(3);
        for (period, jitter, distance) in streams {
            is_number(
                Curve::arrivals_at_most(&period, &jitter, &distance, &size),
                |t| {
                    if *t == zero() {
                        return zero();
                    }
                    let by_period = ceiling(&over(&(t + &jitter), &period));
                    let by_distance = ceiling(&t.divided_by(&distance).unwrap_or(n(1_000)));
                    &by_period.min(by_distance) * &size
                },
            );
            is_number(Curve::arrivals_at_least(&period, &jitter, &size), |t| {
                &over(&(t - &jitter), &period).floor().max(zero()) * &size
            });
        }
        is_number(Curve::sporadic(&r(5, 2), &n(7)), |t| {
            &ceiling(&over(t, &r(5, 2))) * &n(7)
        });
    }

    #[test]
    fn time_division_is_its_definition() {
        let bandwidth = n(3);
        for (slot, cycle) in [(n(2), n(5)), (r(1, 3), r(7, 2)), (n(4), n(4))] {
            let gap = &cycle - &slot;
            is_number(Curve::time_division(&slot, &cycle, &bandwidth), |t| {
                let cycles = over(t, &cycle).floor();
                let inside = t - &(&cycles * &cycle);
                &(&(&cycles * &slot) + &(&inside - &gap).max(zero())) * &bandwidth
            });
            is_number(
                Curve::time_division_at_most(&slot, &cycle, &bandwidth),
                |t| {
                    let cycles = over(t, &cycle).floor();
                    let inside = t - &(&cycles * &cycle);
                    &(&(&cycles * &slot) + &inside.min(slot.clone())) * &bandwidth
                },
            );
        }
    }

    #[test]
    fn points_are_joined_by_lines() {
        let points = [(n(0), n(1)), (n(2), n(5)), (n(5), n(-1))];
        is_number(Curve::through(&points, &r(1, 2)), |t| match t {
            t if *t <= n(2) => &one() + &(t * &n(2)),
            t if *t <= n(5) => &n(9) - &(t * &n(2)),
            t => &n(-1) + &(&(t - &n(5)) * &r(1, 2)),
        });
        for wrong in [&[][..], &[(n(1), n(0))], &[(n(0), n(0)), (n(0), n(1))]] {
            let refused = Curve::through(wrong, &n(0)).unwrap_err();
            assert!(matches!(refused, Error::Malformed { .. }), "{refused}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let (bad, good) = (n(-1), n(1));
        let refused = [
            Curve::token_bucket(&bad, &good),
            Curve::token_bucket(&good, &bad),
            Curve::rate_latency(&bad, &good),
            Curve::rate_latency(&good, &bad),
            Curve::delay(&bad),
            Curve::one_step(&bad, &good),
            Curve::staircase(&bad, &good, &good),
            Curve::staircase(&good, &zero(), &good),
            Curve::staircase_at(&good, &bad, &good),
            Curve::arrivals_at_most(&zero(), &good, &good, &good),
            Curve::arrivals_at_most(&good, &bad, &good, &good),
            Curve::arrivals_at_most(&good, &good, &n(2), &good),
            Curve::arrivals_at_least(&good, &bad, &good),
            Curve::sporadic(&zero(), &good),
            Curve::time_division(&n(3), &n(2), &good),
            Curve::time_division_at_most(&zero(), &n(2), &good),
        ];
        for error in refused {
            let error = error.unwrap_err();
            assert!(matches!(error, Error::Parameter { .. }), "{error}");
        }
        let said = Curve::staircase(&good, &zero(), &good)
            .unwrap_err()
            .to_string();
        assert_eq!(said, "the length of a staircase is 0: it is above 0");
    }
}
