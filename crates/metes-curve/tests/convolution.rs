//! Convolutions beside brute force, and their laws.
//!
//! Invariant: brute force knows nothing of periods or slopes; it tries splits.

mod common;

use common::{Model, finite, models, number, part, plus, values};
use metes_curve::{Curve, Rational, Value};
use proptest::prelude::*;

/// Breakpoints of a model up to a time.
fn breakpoints(model: &Model, until: &Rational) -> Vec<Rational> {
    let mut found = Vec::new();
    for (start, ..) in &model.pieces {
        let mut time = start.clone();
        loop {
            if time > *until {
                break;
            }
            found.push(time.clone());
            if *start < model.transient {
                break;
            }
            time = &time + &model.period;
        }
    }
    found
}

/// A least of f(s) + g(t − s) over splits at and near the breakpoints of both: the infimum is
/// there, but for what a slope makes of `near`.
fn brute(f: &Model, g: &Model, time: &Rational, near: &Rational) -> Value {
    let mut splits = breakpoints(f, time);
    splits.extend(breakpoints(g, time).iter().map(|split| time - split));
    splits.extend([number(0), time.clone()]);
    let beside = splits
        .iter()
        .flat_map(|split| [split - near, split.clone(), split + near]);
    let inside = beside.filter(|split| *split >= number(0) && split <= time);
    let sums = inside.map(|split| plus(&f.value(&split), &g.value(&(time - &split))));
    sums.min().unwrap_or(Value::PositiveInfinity)
}

fn sum(one: &Curve, two: &Curve) -> Curve {
    one.sum(two).unwrap()
}

fn convolved(one: &Curve, two: &Curve) -> Curve {
    one.convolution(two).unwrap()
}

/// Curves that are finite, or +∞ at some times of each period.
fn operands() -> impl Strategy<Value = (Model, Model)> {
    prop_oneof![
        (models(finite()), models(finite())),
        (models(values()), models(finite())),
        (models(values()), models(values())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_convolution_is_the_least_of_all_splits((f, g) in operands()) {
        // Two growths at once are none of our functions, and are refused.
        let Ok(result) = f.curve().convolution(&g.curve()) else { return Ok(()) };
        let near = part(1, 10_000_019);
        let most = &near * &number(40);
        for k in 0..60 {
            let time = part(5 * k, 42);
            let tried = brute(&f, &g, &time, &near);
            match (result.value(&time).unwrap(), tried) {
                (Value::Finite(found), Value::Finite(tried)) => {
                    prop_assert!(found <= tried, "at {}: {} above {}", time, found, tried);
                    prop_assert!(tried <= &found + &most, "at {}: {} far below {}", time, found, tried);
                }
                (found, tried) => prop_assert_eq!(found, tried, "at {}", time),
            }
        }
    }

    #[test]
    fn laws(
        f in models(finite()), g in models(finite()), h in models(finite()), higher in 0_i64..5,
    ) {
        let (f, g, h) = (f.curve(), g.curve(), h.curve());
        let fg = convolved(&f, &g);
        prop_assert_eq!(&fg, &convolved(&g, &f));
        prop_assert_eq!(convolved(&fg, &h), convolved(&f, &convolved(&g, &h)));
        prop_assert_eq!(
            convolved(&f, &g.minimum(&h).unwrap()),
            fg.minimum(&convolved(&f, &h)).unwrap()
        );
        let constant = common::Model {
            pieces: vec![(
                number(0),
                Value::Finite(number(higher)),
                Value::Finite(number(higher)),
                number(0),
            )],
            transient: number(0),
            period: number(1),
            step: number(0),
        };
        let constant = constant.curve();
        prop_assert_eq!(convolved(&sum(&f, &constant), &g), sum(&fg, &constant));
        // Of a higher curve the convolution is not lower.
        let raised = convolved(&f.maximum(&h).unwrap(), &g);
        prop_assert_eq!(raised.minimum(&fg).unwrap(), fg);
    }

    #[test]
    fn the_greatest_is_the_least_of_the_negated(f in models(finite()), g in models(finite())) {
        let (f, g) = (f.curve(), g.curve());
        let negated = |curve: &Curve| {
            let zero = curve.difference(curve).unwrap();
            zero.difference(curve).unwrap()
        };
        prop_assert_eq!(
            f.maximal_convolution(&g).unwrap(),
            negated(&convolved(&negated(&f), &negated(&g)))
        );
    }
}

#[test]
fn a_gap_of_slopes_needs_no_common_multiple() {
    // Periods of 10007 and 10009 days apart: their common multiple has a hundred million.
    let stairs = |period: i64, step: i64| {
        let model = common::Model {
            pieces: vec![(
                number(0),
                Value::Finite(number(0)),
                Value::Finite(number(step)),
                number(0),
            )],
            transient: number(0),
            period: number(period),
            step: number(step),
        };
        model.curve()
    };
    let (slow, fast) = (stairs(10_007, 1), stairs(10_009, 5));
    let both = convolved(&slow, &fast);
    assert_eq!(both.period(), number(10_007));
    assert_eq!(
        both.value(&number(10_007 * 1000 + 1)),
        Some(Value::Finite(number(1001)))
    );
}
