//! The laws of the operations, beside definitions and brute force.
//!
//! Invariant: a law is checked as an equality of curves where it is one, and else at times and
//! values that lie on and between breakpoints. What is refused for its size is passed over, and may
//! not be most of it.

use std::cell::Cell;

use crate::common::{Model, finite, models, number, part, plus, values};
use metes_curve::{Algebra, Curve, Element, Error, Interval, Rational, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn algebra() -> Algebra {
    Algebra {
        limit: 30_000,
        ..Algebra::default()
    }
}

/// Runs a law on many operands. `None` is a refusal; of ten at most six may be.
fn law<S: Strategy>(
    cases: u32,
    operands: S,
    check: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    law_with_refusals(cases, operands, |operands| check(operands).map(Some));
}

fn law_with_refusals<S: Strategy>(
    cases: u32,
    operands: S,
    check: impl Fn(S::Value) -> Result<Option<()>, TestCaseError>,
) {
    let (ran, refused) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&operands, |operands| {
        ran.set(ran.get() + 1);
        if check(operands)?.is_none() {
            refused.set(refused.get() + 1);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{} of {} refused", refused.get(), ran.get());
    assert!(refused.get() * 10 <= ran.get() * 6);
}

/// The result; `Ok(None)` where a refusal is allowed.
macro_rules! or_refused {
    ($result:expr) => {
        match $result {
            Ok(result) => result,
            Err(Error::TooLarge { .. } | Error::TwoRates) => return Ok(None),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    };
}

fn any_curves() -> impl Strategy<Value = Model> + Clone {
    let models = || prop_oneof![models(finite()), models(values())];
    models().boxed()
}

/// Multiples of a 42nd: on every breakpoint and between them.
fn times(count: i64) -> impl Iterator<Item = Rational> {
    (0..count).map(|k| part(k, 42))
}

fn constant(value: Value) -> Curve {
    let elements = [
        Element::Point {
            time: number(0),
            value: value.clone(),
        },
        Element::Segment {
            start: number(0),
            end: number(1),
            value,
            slope: number(0),
        },
    ];
    Curve::new(&elements, &number(0), &number(1), &number(0)).expect("well formed")
}

fn zero() -> Curve {
    constant(Value::Finite(number(0)))
}

fn rising(model: &Model) -> Curve {
    algebra()
        .upper_nondecreasing_closure(&model.curve())
        .expect("small")
}

fn at(curve: &Curve, time: &Rational) -> Value {
    curve.value(time).expect("a time")
}

fn compared(low: &Curve, high: &Curve) -> bool {
    algebra().is_nowhere_above(low, high).expect("small")
}

#[test]
fn pseudo_inverses_are_the_first_and_the_last_time() {
    law(80, any_curves(), |model| {
        let f = rising(&model);
        let (first, last) = (
            algebra().lower_pseudo_inverse(&f).expect("it rises"),
            algebra().upper_pseudo_inverse(&f).expect("it rises"),
        );
        let mut levels: Vec<Rational> = (0..60).map(|k| part(k, 6)).collect();
        levels.extend(times(200).filter_map(|time| match at(&f, &time) {
            Value::Finite(value) if value >= number(0) => Some(value),
            _ => None,
        }));
        levels.dedup();
        for level in levels {
            let x = Value::Finite(level.clone());
            let (first, last) = (at(&first, &level), at(&last, &level));
            prop_assert!(first <= last || last == Value::NegativeInfinity);
            for time in times(200) {
                let (value, time) = (at(&f, &time), Value::Finite(time));
                // f(t) ≥ x ⇒ t ≥ first; t > first ⇒ f(t) ≥ x.
                prop_assert!(
                    value < x || time >= first,
                    "f({time}) = {value}, first of {x}: {first}"
                );
                prop_assert!(
                    time <= first || value >= x,
                    "f({time}) = {value}, first of {x}: {first}"
                );
                // f(t) ≤ x ⇒ t ≤ last; t < last ⇒ f(t) ≤ x.
                prop_assert!(
                    value > x || time <= last,
                    "f({time}) = {value}, last of {x}: {last}"
                );
                prop_assert!(
                    time >= last || value <= x,
                    "f({time}) = {value}, last of {x}: {last}"
                );
            }
        }
        Ok(())
    });
}

#[test]
fn pseudo_inverses_on_an_interval_are_those_of_its_times() {
    let ends = (0_i64..60, 1_i64..60, any::<[bool; 3]>());
    law(
        60,
        (any_curves(), ends),
        |(model, (start, length, [left, right, bounded]))| {
            let f = rising(&model);
            let end = start + length;
            let interval = Interval {
                start: part(start, 42),
                start_included: left,
                end: bounded.then(|| part(end, 42)),
                end_included: right,
            };
            let inside = |k: i64| {
                (k > start || (k == start && left)) && (!bounded || k < end || (k == end && right))
            };
            let first = algebra()
                .lower_pseudo_inverse_over(&f, &interval)
                .expect("it rises");
            let last = algebra()
                .upper_pseudo_inverse_over(&f, &interval)
                .expect("it rises");
            for k in (0..200).filter(|k| inside(*k)) {
                let time = part(k, 42);
                if let Value::Finite(level) = at(&f, &time)
                    && level >= number(0)
                {
                    // The value of a time of the interval has a first and a last time in it.
                    let (first, last) = (at(&first, &level), at(&last, &level));
                    let time = Value::Finite(time);
                    prop_assert!(first <= time && time <= last, "{first} {time} {last}");
                    prop_assert!(first >= Value::Finite(part(start, 42)));
                    prop_assert!(!bounded || last <= Value::Finite(part(end, 42)));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn deconvolution_is_the_residue_of_convolution() {
    let operands = (any_curves(), models(finite()), any_curves());
    law_with_refusals(80, operands, |(f, g, h)| {
        let (f, g, h) = (f.curve(), g.curve(), h.curve());
        let residue = or_refused!(algebra().deconvolution(&h, &g));
        let again = or_refused!(algebra().convolution(&residue, &g));
        prop_assert!(compared(&h, &again), "(h ⊘ g) ∗ g ≥ h");
        let sum = or_refused!(algebra().convolution(&f, &g));
        let least = or_refused!(algebra().deconvolution(&sum, &g));
        prop_assert!(compared(&least, &f), "(f ∗ g) ⊘ g ≤ f");
        prop_assert_eq!(
            compared(&h, &sum),
            compared(&residue, &f),
            "h ≤ f ∗ g ⇔ h ⊘ g ≤ f"
        );
        // Of the greatest.
        let sum = or_refused!(algebra().maximal_convolution(&f, &g));
        let most = or_refused!(algebra().maximal_deconvolution(&sum, &g));
        prop_assert!(compared(&f, &most));
        Ok(Some(()))
    });
}

#[test]
fn a_deconvolution_is_the_greatest_of_all_differences() {
    law_with_refusals(60, (any_curves(), any_curves()), |(f, g)| {
        let result = or_refused!(algebra().deconvolution(&f.curve(), &g.curve()));
        // One common period behind both transient parts has all splits that can be the greatest, if
        // the faster curve is subtracted; close slopes may need all of it.
        let latest = f.transient.clone().max(g.transient.clone());
        let multiples = (1..=40).map(|k| &f.period * &number(k));
        let common = multiples.into_iter().find(|multiple| {
            let times = multiple.divided_by(&g.period).expect("a period");
            times == times.floor()
        });
        let Some(last) = common.map(|common| &latest + &common) else {
            return Ok(None);
        };
        if last > number(40) {
            return Ok(None);
        }
        let near = part(1, 10_000_019);
        let most = Value::Finite(&near * &number(40));
        for k in 0..12 {
            let time = part(5 * k, 42);
            let splits = times(42 * 40)
                .take_while(|split| *split <= last)
                .flat_map(|split| [split.clone(), &split + &near, &split - &near]);
            let splits = splits.filter(|split| *split >= number(0));
            let differences = splits.map(|split| {
                let (left, right) = (f.value(&(&time + &split)), g.value(&split));
                match (left, right) {
                    (Value::Finite(left), Value::Finite(right)) => Value::Finite(&left - &right),
                    (_, Value::PositiveInfinity) => Value::NegativeInfinity,
                    (left, _) => left,
                }
            });
            let tried = differences.max().expect("some");
            let found = at(&result, &time);
            prop_assert!(tried <= found, "at {time}: {tried} above {found}");
            if let Value::Finite(_) = found {
                prop_assert!(
                    found <= plus(&tried, &most),
                    "at {time}: {tried} far below {found}"
                );
            }
        }
        Ok(Some(()))
    });
}

#[test]
fn deviations_are_what_they_are_defined_as() {
    law_with_refusals(100, (models(finite()), models(finite())), |(f, g)| {
        let (one, two) = (f.curve(), g.curve());
        let found = or_refused!(algebra().vertical_deviation(&one, &two));
        let residue = or_refused!(algebra().deconvolution(&one, &two));
        prop_assert_eq!(
            &found.value,
            &at(&residue, &number(0)),
            "sup f − g = (f ⊘ g)(0)"
        );
        let difference = or_refused!(algebra().difference(&one, &two));
        prop_assert_eq!(&found.value, &difference.bounds().supremum);
        let near = part(1, 10_000_019);
        if let (Value::Finite(value), Some(time)) = (&found.value, &found.time) {
            let beside = [time - &near, time.clone(), time + &near];
            let beside = beside.iter().filter(|time| **time >= number(0));
            let most = beside.map(|time| at(&difference, time)).max().expect("one");
            prop_assert!(
                most >= Value::Finite(value - &(&near * &number(10))),
                "{most} at {time}"
            );
        }
        Ok(Some(()))
    });
}

#[test]
fn the_horizontal_deviation_is_the_least_shift_that_hides_one_behind_the_other() {
    law_with_refusals(100, (any_curves(), any_curves()), |(f, g)| {
        let (f, g) = (rising(&f), rising(&g));
        let found = or_refused!(algebra().horizontal_deviation(&f, &g));
        let hides = |by: &Rational| compared(&f, &g.advanced(by).expect("small"));
        match &found.value {
            Value::Finite(delay) => {
                prop_assert!(*delay >= number(0));
                for more in [part(1, 1_000_003), number(1), number(50)] {
                    prop_assert!(hides(&(delay + &more)), "{delay} and {more} more");
                }
                for less in [part(1, 1_000_003), part(1, 2), number(1)] {
                    let shift = delay - &less;
                    prop_assert!(shift < number(0) || !hides(&shift), "{delay} less {less}");
                }
            }
            infinity => {
                prop_assert_eq!(infinity, &Value::PositiveInfinity);
                for shift in [number(0), number(10), number(1000)] {
                    prop_assert!(!hides(&shift), "{}", shift);
                }
            }
        }
        Ok(Some(()))
    });
}

#[test]
fn a_composition_is_one_curve_at_the_values_of_another() {
    law_with_refusals(
        60,
        (any_curves(), models(finite()), any::<bool>()),
        |(f, g, rise)| {
            let g = if rise { rising(&g) } else { g.curve() };
            let f = f.curve();
            let below = g.bounds().infimum < Value::Finite(number(0));
            let result = algebra().compose(&f, &g);
            if below {
                let negative = matches!(result, Err(Error::NegativeTime { .. }));
                prop_assert!(negative, "{result:?}");
                return Ok(Some(()));
            }
            let result = or_refused!(result);
            for time in times(400) {
                let Value::Finite(inner) = at(&g, &time) else {
                    continue;
                };
                prop_assert_eq!(at(&result, &time), at(&f, &inner), "at {}", time);
            }
            Ok(Some(()))
        },
    );
}

#[test]
fn nondecreasing_closures_are_convolutions_with_zero() {
    law_with_refusals(100, any_curves(), |model| {
        let f = model.curve();
        let upper = or_refused!(algebra().upper_nondecreasing_closure(&f));
        let lower = or_refused!(algebra().lower_nondecreasing_closure(&f));
        prop_assert_eq!(
            &or_refused!(algebra().upper_nondecreasing_closure(&upper)),
            &upper
        );
        prop_assert_eq!(
            &or_refused!(algebra().lower_nondecreasing_closure(&lower)),
            &lower
        );
        prop_assert!(compared(&lower, &f) && compared(&f, &upper));
        prop_assert_eq!(
            or_refused!(algebra().maximal_convolution(&f, &zero())),
            upper
        );
        prop_assert_eq!(
            or_refused!(algebra().maximal_deconvolution(&f, &zero())),
            lower
        );
        Ok(Some(()))
    });
}

#[test]
fn rounding_rounds_every_value() {
    law_with_refusals(100, any_curves(), |model| {
        let f = model.curve();
        let (floor, ceiling) = (
            or_refused!(algebra().floor(&f)),
            or_refused!(algebra().ceiling(&f)),
        );
        for time in times(400) {
            match (at(&f, &time), at(&floor, &time), at(&ceiling, &time)) {
                (Value::Finite(value), Value::Finite(low), Value::Finite(high)) => {
                    prop_assert!(low <= value && value < &low + &number(1));
                    prop_assert!(high >= value && value > &high - &number(1));
                    let whole = |value: &Rational| !value.to_string().contains('/');
                    prop_assert!(whole(&low) && whole(&high));
                }
                (value, low, high) => prop_assert!(value == low && value == high),
            }
        }
        Ok(Some(()))
    });
}

#[test]
fn shifts_and_scales_move_every_value() {
    let by = (0_i64..30, 1_i64..5, -4_i64..5);
    law(80, (any_curves(), by), |(model, (up, over, factor))| {
        let f = model.curve();
        let by = part(up, over);
        let (late, early) = (f.delayed(&by).unwrap(), f.advanced(&by).unwrap());
        let (high, slow) = (f.raised(&by), f.stretched(&part(over, 3)).unwrap());
        let behind = f.raised_behind_origin(&by).unwrap();
        let scaled = f.scaled(&number(factor));
        prop_assert_eq!(&late.advanced(&by).unwrap(), &f);
        prop_assert_eq!(&high.raised(&(&number(0) - &by)), &f);
        prop_assert_eq!(&f.negated().negated(), &f);
        let more = Value::Finite(by.clone());
        for time in times(200) {
            let value = at(&f, &time);
            prop_assert_eq!(at(&late, &(&time + &by)), value.clone());
            prop_assert_eq!(at(&early, &time), at(&f, &(&time + &by)));
            prop_assert_eq!(at(&high, &time), plus(&value, &more));
            prop_assert_eq!(at(&slow, &(&time * &part(over, 3))), value.clone());
            let raised = if time == number(0) {
                value.clone()
            } else {
                plus(&value, &more)
            };
            prop_assert_eq!(at(&behind, &time), raised);
            match (&scaled, value) {
                (Ok(scaled), Value::Finite(value)) => {
                    prop_assert_eq!(at(scaled, &time), Value::Finite(&value * &number(factor)));
                }
                (Ok(scaled), _) => {
                    prop_assert_eq!(at(scaled, &time) == Value::PositiveInfinity, factor > 0);
                }
                (Err(error), _) => prop_assert!(factor == 0 && *error == Error::Undefined),
            }
        }
        Ok(())
    });
}

#[test]
fn comparisons_and_bounds_are_those_of_all_values() {
    law_with_refusals(60, (any_curves(), any_curves(), 0_i64..30), |(f, g, up)| {
        let (f, g) = (f.curve(), g.curve().raised(&number(up)));
        let least = or_refused!(algebra().minimum(&f, &g));
        let below = or_refused!(algebra().is_nowhere_above(&f, &g));
        prop_assert_eq!(below, least == f);
        let finally = or_refused!(algebra().is_finally_not_above(&f, &g));
        prop_assert!(finally || !below);
        let late = number(100_000);
        let (f_late, g_late) = (f.advanced(&late), g.advanced(&late));
        if let (Ok(f_late), Ok(g_late)) = (f_late, g_late) {
            let below = or_refused!(algebra().is_nowhere_above(&f_late, &g_late));
            prop_assert_eq!(finally, below);
        }
        let bounds = f.bounds();
        for time in times(300) {
            let value = at(&f, &time);
            prop_assert!(bounds.infimum <= value && value <= bounds.supremum);
            prop_assert!(bounds.has_minimum || value != bounds.infimum);
            prop_assert!(bounds.has_maximum || value != bounds.supremum);
            prop_assert!(f.attains(&value));
        }
        prop_assert_eq!(f.attains(&bounds.infimum), bounds.has_minimum);
        prop_assert_eq!(f.attains(&bounds.supremum), bounds.has_maximum);
        let first = f.first_nonnegative_time();
        let early = times(300).find(|time| at(&f, time) >= Value::Finite(number(0)));
        if let Some(early) = early {
            prop_assert!(first.is_some_and(|first| first <= early));
        }
        Ok(Some(()))
    });
}

/// Curves that are +∞ from 0 to some time, or not.
fn closable() -> impl Strategy<Value = Model> {
    (any_curves(), any::<bool>()).prop_map(|(mut model, gap)| {
        if gap {
            model.pieces[0].2 = Value::PositiveInfinity;
            model.pieces[0].3 = number(0);
        }
        model
    })
}

#[test]
fn a_closure_is_subadditive_and_the_greatest_below() {
    law_with_refusals(60, closable(), |model| {
        let f = model.curve();
        let closure = or_refused!(algebra().subadditive_closure(&f));
        let twice = or_refused!(algebra().convolution(&closure, &closure));
        prop_assert_eq!(&twice, &closure, "sub-additive");
        prop_assert_eq!(
            &or_refused!(algebra().subadditive_closure(&closure)),
            &closure
        );
        prop_assert!(compared(&closure, &f));
        if at(&f, &number(0)) >= Value::Finite(number(0)) {
            prop_assert_eq!(at(&closure, &number(0)), Value::Finite(number(0)));
        }
        let negated = or_refused!(algebra().superadditive_closure(&f.negated()));
        prop_assert_eq!(negated.negated(), closure.clone());
        // Nothing sub-additive between: sums of up to 2^k copies reach it where copies take time.
        if model.pieces[0].2 != Value::PositiveInfinity || model.transient == number(0) {
            return Ok(Some(()));
        }
        if at(&f, &number(0)) < Value::Finite(number(0)) {
            return Ok(Some(()));
        }
        let until = part(40, 7);
        let mut sums = or_refused!(algebra().convolution(&f, &f));
        let mut all = or_refused!(algebra().minimum(&f, &sums));
        let copies = 6;
        for _ in 0..copies {
            sums = or_refused!(algebra().convolution(&all, &all));
            all = or_refused!(algebra().minimum(&all, &sums));
        }
        // 2^7 copies, each of a seventh of a unit at least.
        for time in times(200).skip(1).take_while(|time| *time < until) {
            prop_assert_eq!(at(&closure, &time), at(&all, &time), "at {}", time);
        }
        Ok(Some(()))
    });
}

/// Results of scaled operands are scaled results: the one on numbers of 64 bits, the other on
/// numbers that do not fit.
#[test]
fn numbers_that_do_not_fit_are_exact_all_the_same() {
    let factors = ((i64::MAX - 1000)..i64::MAX, (i64::MAX / 2)..i64::MAX);
    let operands = (any_curves(), any_curves(), factors);
    law_with_refusals(25, operands, |(f, g, (denominator, numerator))| {
        let (up, long) = (part(1_000_003, denominator), part(numerator, 1_000_033));
        let (f, g) = (f.curve(), g.curve());
        let scaled = |curve: &Curve| curve.scaled(&up).unwrap().stretched(&long).unwrap();
        let (far_f, far_g) = (scaled(&f), scaled(&g));
        let algebra = algebra();
        type Binary = fn(&Algebra, &Curve, &Curve) -> Result<Curve, Error>;
        let binaries: [Binary; 6] = [
            Algebra::minimum,
            Algebra::sum,
            Algebra::convolution,
            Algebra::maximal_convolution,
            Algebra::deconvolution,
            Algebra::maximal_deconvolution,
        ];
        for operation in binaries {
            let Ok(near) = operation(&algebra, &f, &g) else {
                continue;
            };
            prop_assert_eq!(operation(&algebra, &far_f, &far_g), Ok(scaled(&near)));
        }
        type Unary = fn(&Algebra, &Curve) -> Result<Curve, Error>;
        let unaries: [Unary; 3] = [
            Algebra::upper_nondecreasing_closure,
            Algebra::lower_nondecreasing_closure,
            Algebra::subadditive_closure,
        ];
        for operation in unaries {
            let Ok(near) = operation(&algebra, &f) else {
                continue;
            };
            prop_assert_eq!(operation(&algebra, &far_f), Ok(scaled(&near)));
        }
        // Times and values change places.
        let rise = or_refused!(algebra.upper_nondecreasing_closure(&f));
        let far = scaled(&rise);
        for operation in [Algebra::lower_pseudo_inverse, Algebra::upper_pseudo_inverse] {
            let near = or_refused!(operation(&algebra, &rise));
            let expected = near.scaled(&long).unwrap().stretched(&up).unwrap();
            prop_assert_eq!(or_refused!(operation(&algebra, &far)), expected);
        }
        let other = or_refused!(algebra.upper_nondecreasing_closure(&g));
        let near = or_refused!(algebra.horizontal_deviation(&rise, &other));
        let far = or_refused!(algebra.horizontal_deviation(&far, &scaled(&other)));
        match (near.value, far.value) {
            (Value::Finite(near), Value::Finite(far)) => prop_assert_eq!(far, &near * &long),
            (near, far) => prop_assert_eq!(far, near),
        }
        prop_assert_eq!(far.time, near.time.map(|time| &time * &long));
        // f(g(t)) with g in the times of f.
        let inner = g.bounds().infimum >= Value::Finite(number(0));
        if inner && g.bounds().supremum != Value::PositiveInfinity {
            let near = or_refused!(algebra.compose(&f, &g));
            let far =
                or_refused!(algebra.compose(&f.stretched(&up).unwrap(), &g.scaled(&up).unwrap()));
            prop_assert_eq!(far, near);
        }
        Ok(Some(()))
    });
}

#[test]
fn what_can_not_be_is_said() {
    let number_of = Value::Finite(number(1));
    let one = constant(number_of);
    let minus = constant(Value::Finite(number(-1)));
    let error = one.compose(&minus).unwrap_err();
    assert!(error.to_string().contains("below 0"), "{error}");
    let falling = Curve::from_json(
        r#"{"T":"0","d":"1","c":"-1","elements":[{"k":"p","t":"0","v":"5"},{"k":"s","t0":"0","t1":"1","v0":"5","slope":"0"}]}"#,
    )
    .unwrap();
    for result in [
        falling.lower_pseudo_inverse().map(drop),
        falling.upper_pseudo_inverse().map(drop),
        falling.horizontal_deviation(&one).map(drop),
        one.horizontal_deviation(&falling).map(drop),
    ] {
        let error = result.unwrap_err();
        assert!(error.to_string().contains("falls at 1"), "{error}");
        assert!(error.to_string().contains("closure"), "{error}");
    }
    for result in [
        one.delayed(&number(-1)),
        one.advanced(&number(-1)),
        one.stretched(&number(0)),
        one.lower_pseudo_inverse_over(&Interval {
            start: number(2),
            start_included: true,
            end: Some(number(1)),
            end_included: true,
        }),
    ] {
        assert!(matches!(result, Err(Error::Argument { .. })), "{result:?}");
    }
    let infinite = constant(Value::PositiveInfinity);
    assert_eq!(infinite.scaled(&number(0)), Err(Error::Undefined));
    assert_eq!(
        infinite.vertical_deviation(&infinite),
        Err(Error::Undefined)
    );
    assert_eq!(
        one.vertical_deviation(&falling).unwrap().value,
        Value::PositiveInfinity
    );
}
