//! Curves beside a naive model, and the laws of minimum, maximum and sum.
//!
//! Invariant: the model evaluates a curve by its definition, step by step, and knows no
//! canonical form.

use crate::common::{Model, finite, models, number, part, plus, values};
use metes_curve::{Curve, Element, Error, Rational, Value};
use proptest::prelude::*;

/// Multiples of a 42nd up to well behind both.
fn times(f: &Model, g: &Model) -> impl Iterator<Item = Rational> {
    let both = &(&f.transient + &g.transient) + &(&(&f.period + &g.period) * &number(2));
    (0..)
        .map(|k| part(k, 42))
        .take_while(move |time| *time < both)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn equal_functions_are_equal(
        model in models(values()), periods in 0_i64..3, times in 1_i64..4, split in 0_i64..40,
    ) {
        let long = model.longer(periods, times, &part(split, 5));
        let (one, two) = (model.curve(), long.curve());
        prop_assert_eq!(&one, &two);
        prop_assert_eq!(Curve::from_json(&one.to_json()).unwrap(), one);
    }

    #[test]
    fn values_are_those_of_the_description(model in models(values())) {
        let curve = model.curve();
        for time in times(&model, &model) {
            prop_assert_eq!(curve.value(&time), Some(model.value(&time)));
        }
    }

    #[test]
    fn operations_are_pointwise(f in models(finite()), g in models(finite())) {
        let (one, two) = (f.curve(), g.curve());
        let low = one.minimum(&two).unwrap();
        let high = one.maximum(&two).unwrap();
        let sum = one.sum(&two).unwrap();
        for time in times(&f, &g) {
            let (left, right) = (f.value(&time), g.value(&time));
            prop_assert_eq!(low.value(&time), Some(left.clone().min(right.clone())));
            prop_assert_eq!(high.value(&time), Some(left.clone().max(right.clone())));
            prop_assert_eq!(sum.value(&time), Some(plus(&left, &right)));
        }
        // What one takes away the other gave, and both halves are the whole.
        prop_assert_eq!(&sum.difference(&two).unwrap(), &one);
        prop_assert_eq!(low.sum(&high).unwrap(), sum);
    }

    #[test]
    fn laws(f in models(finite()), g in models(finite()), h in models(finite())) {
        let (f, g, h) = (f.curve(), g.curve(), h.curve());
        prop_assert_eq!(f.minimum(&g).unwrap(), g.minimum(&f).unwrap());
        prop_assert_eq!(f.sum(&g).unwrap(), g.sum(&f).unwrap());
        prop_assert_eq!(
            f.minimum(&g).unwrap().minimum(&h).unwrap(),
            f.minimum(&g.minimum(&h).unwrap()).unwrap()
        );
        prop_assert_eq!(
            f.minimum(&g).unwrap().sum(&h).unwrap(),
            f.sum(&h).unwrap().minimum(&g.sum(&h).unwrap()).unwrap()
        );
        prop_assert_eq!(f.minimum(&f.maximum(&g).unwrap()).unwrap(), f);
    }

    #[test]
    fn numbers_that_do_not_fit_are_exact_all_the_same(
        f in models(finite()), g in models(finite()), denominator in (i64::MAX - 1000)..i64::MAX,
    ) {
        // Values scaled so that their sums and slopes take more than 64 bits.
        let factor = part(1_000_003, denominator);
        let scaled = |model: &Model| {
            let mut scaled = model.clone();
            let value = |value: &Value| match value {
                Value::Finite(value) => Value::Finite(value * &factor),
                infinity => infinity.clone(),
            };
            for piece in &mut scaled.pieces {
                (piece.1, piece.2) = (value(&piece.1), value(&piece.2));
                piece.3 = &piece.3 * &factor;
            }
            scaled.step = &scaled.step * &factor;
            scaled
        };
        let (long_f, long_g) = (scaled(&f), scaled(&g));
        let low = long_f.curve().minimum(&long_g.curve()).unwrap();
        let sum = long_f.curve().sum(&long_g.curve()).unwrap();
        for time in times(&f, &g).step_by(5) {
            let (left, right) = (long_f.value(&time), long_g.value(&time));
            prop_assert_eq!(low.value(&time), Some(left.clone().min(right.clone())));
            prop_assert_eq!(sum.value(&time), Some(plus(&left, &right)));
        }
        prop_assert_eq!(sum.difference(&long_g.curve()).unwrap(), long_f.curve());
    }
}

fn point(time: i64, value: Value) -> Element {
    Element::Point {
        time: number(time),
        value,
    }
}

fn segment(start: i64, end: i64, value: Value) -> Element {
    let (start, end, slope) = (number(start), number(end), number(0));
    Element::Segment {
        start,
        end,
        value,
        slope,
    }
}

#[test]
fn what_is_no_curve_is_said() {
    let zero = || Value::Finite(number(0));
    let built = |elements: &[Element], transient: i64, period: i64| {
        Curve::new(elements, &number(transient), &number(period), &number(0)).map(drop)
    };
    let good = [point(0, zero()), segment(0, 2, zero())];
    assert_eq!(built(&good, 1, 1), Ok(()));
    for (transient, period) in [(-1, 3), (2, 0), (3, -1)] {
        let error = built(&good, transient, period).unwrap_err();
        assert!(matches!(error, Error::Period { .. }), "{error}");
    }
    let malformed: [(&[Element], usize); 6] = [
        (&[], 0),
        (&good[..1], 1),
        (&good[1..], 0),
        (&[point(0, zero()), point(1, zero())], 1),
        (
            &[
                point(0, zero()),
                segment(0, 1, zero()),
                point(2, zero()),
                segment(2, 2, zero()),
            ],
            2,
        ),
        (&[point(0, zero()), segment(0, -2, zero())], 1),
    ];
    for (elements, wrong) in malformed {
        let error = built(elements, 1, 1).unwrap_err();
        assert!(
            matches!(error, Error::Malformed { element, .. } if element == wrong),
            "{error}"
        );
    }
}

#[test]
fn what_has_no_result_is_said() {
    let curve = |elements: &[Element], period: Rational, step: i64| {
        Curve::new(elements, &number(0), &period, &number(step)).unwrap()
    };
    let infinite = |infinity: Value| {
        curve(
            &[point(0, infinity.clone()), segment(0, 1, infinity)],
            number(1),
            0,
        )
    };
    let high = infinite(Value::PositiveInfinity);
    assert_eq!(
        high.sum(&infinite(Value::NegativeInfinity)),
        Err(Error::Undefined)
    );
    assert_eq!(high.difference(&high), Err(Error::Undefined));
    let zero = Value::Finite(number(0));
    let flat = curve(
        &[point(0, zero.clone()), segment(0, 1, zero.clone())],
        number(1),
        0,
    );
    let slow = curve(
        &[
            point(0, zero.clone()),
            segment(0, 1, Value::PositiveInfinity),
        ],
        number(1),
        1,
    );
    assert_eq!(slow.maximum(&slow).unwrap(), slow);
    assert_eq!(flat.minimum(&slow), Err(Error::TwoRates));
    // Periods whose least common multiple is astronomical.
    let stairs = |numerator, denominator| {
        let end = part(numerator, denominator);
        let rise = Element::Segment {
            start: number(0),
            end: end.clone(),
            value: Value::Finite(number(1)),
            slope: number(0),
        };
        Curve::new(
            &[point(0, zero.clone()), rise],
            &number(0),
            &end,
            &number(1),
        )
        .unwrap()
    };
    let error = stairs(1_000_003, 1_000_033)
        .sum(&stairs(999_983, 999_979))
        .unwrap_err();
    assert!(error.to_string().contains("raise the limit"), "{error}");
}
