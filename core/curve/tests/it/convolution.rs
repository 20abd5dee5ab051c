//! Convolutions beside brute force, and their laws.
//!
//! Invariant: brute force knows nothing of periods or slopes; it tries splits.

use std::cell::Cell;

use crate::common::{Model, finite, models, number, part, plus, values};
use metes_curve::{Algebra, Curve, Cut, Element, Error, Memo, Optimisations, Rational, Value};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

/// Pairs that a case may take: slopes may come close, and cases are to end soon.
const LIMIT: u64 = 20_000;

fn algebra() -> Algebra {
    Algebra {
        limit: LIMIT,
        ..Algebra::default()
    }
}

/// Tries cases of which some may be refused for what they take, but no more than one of ten.
fn check<S: Strategy>(
    cases: u32,
    operands: &S,
    mut holds: impl FnMut(S::Value) -> Result<TestCaseResult, Error>,
) {
    let more = std::env::var("PROPTEST_CASES").ok();
    let cases = more.and_then(|more| more.parse().ok()).unwrap_or(cases);
    let refused = Cell::new(0);
    let holds = std::cell::RefCell::new(&mut holds);
    let mut runner = TestRunner::new(ProptestConfig {
        source_file: Some(file!()),
        ..ProptestConfig::with_cases(cases)
    });
    let run = runner.run(operands, |operands| {
        match (*holds.borrow_mut())(operands) {
            Ok(result) => result,
            // Two growths at once are none of our functions, and are refused, too.
            Err(Error::TooLarge { .. } | Error::TwoRates) => {
                refused.set(refused.get() + 1);
                Ok(())
            }
            Err(error) => Err(TestCaseError::fail(error.to_string())),
        }
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    assert!(
        refused.get() * 10 <= cases,
        "{} of {cases} refused",
        refused.get()
    );
}

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

/// What a case comes to: refused, held, or failed.
type Outcome = Result<TestCaseResult, Error>;

/// Staircases that never fall: steps of any length, points anywhere between what is beside them.
fn staircases() -> impl Strategy<Value = Model> {
    let steps = prop::collection::vec((1_i64..6, 0_i64..4, 0_i64..3), 1..6);
    (
        steps,
        1_i64..4,
        1_i64..4,
        any::<prop::sample::Index>(),
        0_i64..3,
    )
        .prop_map(|(steps, unit, height, from, last)| {
            let (mut time, mut value) = (number(0), number(0));
            let mut pieces = Vec::new();
            for (length, low, high) in steps {
                let at = &value + &part(low, height);
                let after = &at + &part(high, height);
                pieces.push((
                    time.clone(),
                    Value::Finite(at),
                    Value::Finite(after.clone()),
                    number(0),
                ));
                (time, value) = (&time + &part(length, unit), after);
            }
            let from = from.index(pieces.len());
            let transient = pieces[from].0.clone();
            let Value::Finite(begin) = &pieces[from].1 else {
                unreachable!("they are finite")
            };
            let step = &(&value + &part(last, height)) - begin;
            let period = &time - &transient;
            Model {
                pieces,
                transient,
                period,
                step,
            }
        })
}

/// Continuous but perhaps at 0, with sorted slopes; or, of rising slopes, +∞ behind.
fn bends(is_convex: bool) -> impl Strategy<Value = Model> {
    let bends = prop::collection::vec((1_i64..6, -3_i64..6, 1_i64..4), 1..6);
    (bends, -2_i64..3, 0_i64..3, 0_u8..4).prop_map(move |(bends, begin, jump, end)| {
        let mut slopes: Vec<Rational> = bends.iter().map(|bend| part(bend.1, bend.2)).collect();
        slopes.sort();
        let mut value = number(begin);
        if !is_convex {
            slopes.reverse();
            value = &value + &number(jump);
        }
        let mut time = number(0);
        let mut pieces = Vec::new();
        for ((length, ..), slope) in bends.iter().zip(&slopes) {
            let line = Value::Finite(value.clone());
            pieces.push((time.clone(), line.clone(), line, slope.clone()));
            value = &value + &(slope * &number(*length));
            time = &time + &number(*length);
        }
        pieces[0].1 = Value::Finite(number(begin));
        let (mut transient, mut step) = (time.clone(), slopes[slopes.len() - 1].clone());
        let (at, after, slope) = match end {
            // Closed or open.
            0 | 1 if is_convex => {
                step = number(0);
                let at = match end {
                    0 => Value::Finite(value),
                    _ => Value::PositiveInfinity,
                };
                transient = &transient + &number(1);
                (at, Value::PositiveInfinity, number(0))
            }
            _ => (
                Value::Finite(value.clone()),
                Value::Finite(value),
                step.clone(),
            ),
        };
        pieces.push((time, at, after, slope));
        Model {
            pieces,
            transient,
            period: number(1),
            step,
        }
    })
}

/// Curves that are finite, or +∞ at some times of each period; and of a shape.
fn operands() -> impl Strategy<Value = (Model, Model)> {
    prop_oneof![
        (staircases(), staircases()),
        (bends(true), bends(true)),
        (bends(false), bends(false)),
        (prop_oneof![bends(true), staircases()], models(values())),
        (models(finite()), models(finite())),
        (models(values()), models(finite())),
        (models(values()), models(values())),
    ]
}

#[test]
fn a_convolution_is_the_least_of_all_splits() {
    check(100, &operands(), |(f, g)| -> Outcome {
        let result = algebra().convolution(&f.curve(), &g.curve())?;
        Ok(is_least(&f, &g, &result))
    });
}

fn is_least(f: &Model, g: &Model, result: &Curve) -> TestCaseResult {
    let near = part(1, 10_000_019);
    let most = &near * &number(40);
    for k in 0..60 {
        let time = part(5 * k, 42);
        let tried = brute(f, g, &time, &near);
        match (result.value(&time).unwrap(), tried) {
            (Value::Finite(found), Value::Finite(tried)) => {
                prop_assert!(found <= tried, "at {}: {} above {}", time, found, tried);
                prop_assert!(
                    tried <= &found + &most,
                    "at {}: {} far below {}",
                    time,
                    found,
                    tried
                );
            }
            (found, tried) => prop_assert_eq!(found, tried, "at {}", time),
        }
    }
    Ok(())
}

/// Switches by the bits of a number.
fn switches(bits: u32) -> Optimisations {
    let names = Optimisations::NAMES.iter().enumerate();
    names.fold(Optimisations::none(), |set, (bit, name)| {
        match bits >> bit & 1 {
            1 => set.with(name).unwrap(),
            _ => set,
        }
    })
}

#[test]
fn optimisations_change_no_result() {
    let sets = 0_u32..1 << Optimisations::NAMES.len();
    let sets = (operands(), prop::collection::vec(sets, 6));
    let mut compared = 0;
    check(200, &sets, |((f, g), sets)| -> Outcome {
        let (f, g) = (f.curve(), g.curve());
        let all = algebra().convolution(&f, &g)?;
        let same = || {
            for bits in sets.into_iter().chain([0]) {
                let optimisations = switches(bits);
                let with = Algebra {
                    optimisations,
                    ..algebra()
                };
                // With fewer cuts more may be refused.
                if let Ok(found) = with.convolution(&f, &g) {
                    prop_assert_eq!(&found, &all, "with {:?}", optimisations);
                    compared += 1;
                }
            }
            Ok(())
        };
        Ok(same())
    });
    assert!(compared > 200 * 4, "{compared} compared");
}

#[test]
fn laws() {
    let three = (
        models(finite()),
        models(finite()),
        models(finite()),
        0_i64..5,
    );
    check(64, &three, |(f, g, h, higher)| -> Outcome {
        let a = algebra();
        let (f, g, h) = (f.curve(), g.curve(), h.curve());
        let constant = crate::common::Model {
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
        let (fg, fh) = (a.convolution(&f, &g)?, a.convolution(&f, &h)?);
        let equal = [
            ("commutative", fg.clone(), a.convolution(&g, &f)?),
            (
                "associative",
                a.convolution(&fg, &h)?,
                a.convolution(&f, &a.convolution(&g, &h)?)?,
            ),
            (
                "distributive over the minimum",
                a.convolution(&f, &a.minimum(&g, &h)?)?,
                a.minimum(&fg, &fh)?,
            ),
            (
                "moved with an operand",
                a.convolution(&a.sum(&f, &constant)?, &g)?,
                a.sum(&fg, &constant)?,
            ),
            (
                "not lower of a higher operand",
                a.minimum(&a.convolution(&a.maximum(&f, &h)?, &g)?, &fg)?,
                fg.clone(),
            ),
        ];
        let hold = || {
            for (law, one, other) in &equal {
                prop_assert_eq!(one, other, "{}", law);
            }
            Ok(())
        };
        Ok(hold())
    });
}

#[test]
fn the_greatest_is_the_least_of_the_negated() {
    check(
        64,
        &(models(finite()), models(finite())),
        |(f, g)| -> Outcome {
            let a = algebra();
            let (f, g) = (f.curve(), g.curve());
            let negated = |curve: &Curve| a.difference(&a.difference(curve, curve)?, curve);
            let greatest = a.maximal_convolution(&f, &g)?;
            let least = negated(&a.convolution(&negated(&f)?, &negated(&g)?)?)?;
            let equal = || {
                prop_assert_eq!(&greatest, &least);
                Ok(())
            };
            Ok(equal())
        },
    );
}

#[test]
fn a_gap_of_slopes_needs_no_common_multiple() {
    // Periods of 10007 and 10009 days apart: their common multiple has a hundred million.
    let (slow, fast) = (stairs(10_007, 1), stairs(10_009, 5));
    let both = slow.convolution(&fast).unwrap();
    assert_eq!(both.period(), number(10_007));
    assert_eq!(
        both.value(&number(10_007 * 1000 + 1)),
        Some(Value::Finite(number(1001)))
    );
}

/// One flat step, `high` behind the point.
fn stairs(period: i64, high: i64) -> Curve {
    let model = Model {
        pieces: vec![(
            number(0),
            Value::Finite(number(0)),
            Value::Finite(number(high)),
            number(0),
        )],
        transient: number(0),
        period: number(period),
        step: number(high),
    };
    model.curve()
}

#[test]
fn a_convolution_is_remembered_in_either_order() {
    let (f, g) = (stairs(5, 3), stairs(7, 2));
    let mut memo = Memo::new(algebra());
    let first = memo.convolution(&f, &g).unwrap();
    assert_eq!(memo.counts(), (1, 0));
    assert_eq!(memo.convolution(&g, &f).unwrap(), first);
    assert_eq!(memo.counts(), (1, 1));
    assert_eq!(
        memo.convolution(&f, &f).unwrap(),
        f.convolution(&f).unwrap()
    );
    assert_eq!(memo.counts(), (2, 1));
}

#[test]
fn close_slopes_take_few_pairs() {
    // By period 10100, and by slopes 15150; but 60 steps of 61 are 61 steps of 60.
    let (f, g) = (stairs(100, 60), stairs(101, 61));
    let prediction = Algebra::default().predict(&f, &g);
    assert_eq!(prediction.cut, Cut::Isospeed);
    assert!(prediction.element_product < 4_000, "{prediction:?}");
    let both = f.convolution(&g).unwrap();
    assert_eq!(
        (both.transient(), both.period()),
        (number(5900), number(100))
    );
    // Equal slopes: the period is the divisor of both.
    let both = stairs(100, 60).convolution(&stairs(105, 63)).unwrap();
    assert_eq!((both.transient(), both.period()), (number(1900), number(5)));
}

/// Curves of many pieces that go up and down about a slope: of the faster one little matters, however
/// far the slower one wanders.
#[test]
fn what_wanders_takes_few_pairs() {
    let wandering = |mut state: u64, slope: i64| {
        let (mut time, mut value) = (0_i64, 0_i64);
        let mut elements = Vec::new();
        for _ in 0..1000 {
            // Knuth's multiplier and increment.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mut drawn = |below: u64| {
                let digit = (state >> 40) % below;
                state = state.rotate_left(16);
                digit as i64
            };
            let (length, rise, slope) = (1 + drawn(7), drawn(9) - 4, slope + drawn(7) - 3);
            elements.push(Element::Point {
                time: time.into(),
                value: Value::Finite(value.into()),
            });
            value += rise;
            elements.push(Element::Segment {
                start: time.into(),
                end: (time + length).into(),
                value: Value::Finite(value.into()),
                slope: slope.into(),
            });
            time += length;
            value += slope * length;
        }
        Curve::new(&elements, &0.into(), &time.into(), &value.into()).unwrap()
    };
    let (f, g) = (wandering(3, 1), wandering(5, 3));
    let all = Algebra::default();
    let without = Algebra {
        optimisations: Optimisations::default().without("growth").unwrap(),
        ..Algebra::default()
    };
    let (less, more) = (all.predict(&f, &g), without.predict(&f, &g));
    assert_eq!(less.cut, Cut::Growth);
    assert!(2 * less.work < more.work, "{less:?}, {more:?}");
    assert_eq!(all.convolution(&f, &g), without.convolution(&f, &g));
}

#[test]
fn what_is_too_large_is_refused_before_it_is_begun() {
    let (f, g) = (stairs(1_000_003, 1_000_003), stairs(999_983, 999_983));
    let error = Algebra::default().convolution(&f, &g).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(error.to_string().contains("Algebra::limit"), "{error}");
    let predicted = Algebra::default().predict(&f, &g).element_product;
    assert!(predicted > 10_000_000, "{predicted}");
}

#[test]
fn threads_change_no_result() {
    let zigzag = |pieces: i64, shift: i64, step: i64| {
        let pieces = (0..pieces).map(|k| {
            let value = (k * 7919 + shift) % 101 - 50;
            let slope = (k * 31 + shift) % 7 - 3;
            let at = Value::Finite(number(value));
            (number(2 * k), at.clone(), at, number(slope))
        });
        let pieces: Vec<_> = pieces.collect();
        let period = number(2 * pieces.len() as i64);
        Model {
            pieces,
            transient: number(0),
            period,
            step: number(step),
        }
        .curve()
    };
    // No result of either is found in the other's share alone.
    let (f, g) = (zigzag(400, 3, 800), zigzag(300, 5, 1200));
    let one = Algebra::default();
    assert!(one.predict(&f, &g).element_product > 1 << 16);
    let three = Algebra {
        threads: 3,
        ..Algebra::default()
    };
    assert_eq!(one.convolution(&f, &g), three.convolution(&f, &g));
}

#[test]
fn the_count_of_operations_is_of_pairs_that_begin_before_the_end() {
    let (f, g) = (stairs(100, 44), stairs(17, 65));
    let a = Algebra::default();
    let (predicted, counted) = (a.predict(&f, &g), a.operation_count(&f, &g).unwrap());
    assert!(
        counted > 0 && counted <= predicted.element_product,
        "{counted}"
    );
    let none = Algebra {
        optimisations: Optimisations::none(),
        ..a
    };
    assert!(none.operation_count(&f, &g).unwrap() > 10 * counted);
}
