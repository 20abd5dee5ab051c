//! Two small curves from bytes, every operation on them, and the laws that hold whatever they are.
//!
//! Invariant: no operation panics, and one that answers answers by its definition.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use metes_curve::{Algebra, Curve, Element, Error, Interval, Rational, Value};

#[derive(Arbitrary, Debug)]
struct Part {
    length: u8,
    at: i8,
    after: i8,
    slope: i8,
}

#[derive(Arbitrary, Debug)]
struct Described {
    parts: Vec<Part>,
    from: u8,
    step: i8,
    /// What its numbers are: fractions, near what 64 bits hold, or whole.
    unit: u8,
}

const MOST_PARTS: usize = 4;

impl Described {
    fn curve(&self) -> Option<Curve> {
        let unit = |value: i64, over: i64| match self.unit % 3 {
            0 => Rational::new(value, over),
            1 => Rational::new(value.checked_mul(1 << 54)?, over),
            _ => Some(Rational::from(value)),
        };
        let value = |value: i8| match value {
            i8::MAX => Some(Value::PositiveInfinity),
            i8::MIN => Some(Value::NegativeInfinity),
            value => unit(value.into(), 4).map(Value::Finite),
        };
        let mut elements = Vec::new();
        let mut time = Rational::from(0);
        let mut starts = Vec::new();
        for part in self.parts.iter().take(MOST_PARTS) {
            let length = unit((part.length % 16).into(), 6)?;
            let end = &time + &(&length + &unit(1, 6)?);
            starts.push(time.clone());
            elements.push(Element::Point {
                time: time.clone(),
                value: value(part.at)?,
            });
            elements.push(Element::Segment {
                start: time,
                end: end.clone(),
                value: value(part.after)?,
                slope: match self.unit % 3 {
                    2 => Rational::from(i64::from(part.slope / 16)),
                    _ => Rational::new((part.slope / 16).into(), 3)?,
                },
            });
            time = end;
        }
        let transient = starts.get(usize::from(self.from) % starts.len().max(1))?;
        let step = unit(self.step.into(), 4)?;
        Curve::new(&elements, transient, &(&time - transient), &step).ok()
    }
}

/// A result, or nothing where it is refused for a reason that may be.
fn found<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(
            Error::TooLarge { .. }
            | Error::TwoRates
            | Error::Undefined
            | Error::Decreasing { .. }
            | Error::NegativeTime { .. },
        ) => None,
        Err(error) => panic!("{error}"),
    }
}

fn laws(f: &Curve, g: &Curve) -> Option<()> {
    let mut algebra = Algebra::default();
    algebra.limit = 1_000;
    let nowhere_above = |one: &Curve, two: &Curve| found(algebra.is_nowhere_above(one, two));
    let both = [
        found(algebra.minimum(f, g)),
        found(algebra.maximum(f, g)),
        found(algebra.sum(f, g)),
        found(algebra.difference(f, g)),
        found(algebra.convolution(f, g)),
        found(algebra.maximal_convolution(f, g)),
        found(algebra.deconvolution(f, g)),
        found(algebra.maximal_deconvolution(f, g)),
        found(algebra.compose(f, g)),
    ];
    for curve in both.into_iter().flatten() {
        assert_eq!(Curve::from_json(&curve.to_json()).unwrap(), curve);
    }
    found(algebra.vertical_deviation(f, g));
    found(algebra.z_deviation(f, g));
    found(algebra.is_finally_not_above(f, g));
    found(algebra.floor(f));
    found(algebra.ceiling(f));
    std::hint::black_box((
        f.bounds(),
        f.first_nonnegative_time(),
        f.first_finite_time(),
        f.first_finite_time_behind_origin(),
        f.period_start_infimum(),
    ));
    if let Some(rest) = found(algebra.deconvolution(f, g))
        && let Some(again) = found(algebra.convolution(&rest, g))
        && !f.attains(&Value::NegativeInfinity)
        && !g.attains(&Value::NegativeInfinity)
    {
        assert_ne!(nowhere_above(f, &again), Some(false), "(f ⊘ g) ∗ g ≥ f");
    }
    if let Some(closed) = found(algebra.subadditive_closure(f)) {
        assert_ne!(nowhere_above(&closed, f), Some(false));
        if let Some(twice) = found(algebra.convolution(&closed, &closed)) {
            assert_eq!(twice, closed, "sub-additive");
        }
    }
    found(algebra.superadditive_closure(f));
    let lower = found(algebra.lower_nondecreasing_closure(f))?;
    assert_ne!(nowhere_above(&lower, f), Some(false));
    let upper = found(algebra.upper_nondecreasing_closure(f))?;
    assert_ne!(nowhere_above(f, &upper), Some(false));
    let other = found(algebra.upper_nondecreasing_closure(g))?;
    found(algebra.horizontal_deviation(&upper, &other));
    found(algebra.lower_pseudo_inverse_over(&upper, &Interval::from(Rational::from(1))));
    let first = found(algebra.lower_pseudo_inverse(&upper))?;
    let last = found(algebra.upper_pseudo_inverse(&upper))?;
    for k in 0..12 {
        let time = Rational::new(k, 3)?;
        if let Some(Value::Finite(value)) = upper.value(&time)
            && value >= Rational::from(0)
        {
            let at = Some(Value::Finite(time));
            assert!(first.value(&value) <= at && at <= last.value(&value));
        }
    }
    Some(())
}

fuzz_target!(|input: (Described, Described)| {
    if let (Some(f), Some(g)) = (input.0.curve(), input.1.curve()) {
        laws(&f, &g);
    }
});
