//! Chains of curves: every plan, order and tree gives the same struct.
//!
//! Invariant: what is compared was computed by different convolutions.

use crate::common::{Model, finite, models, number, part};
use metes_curve::plan::{Estimate, FirstPair, NextCurve, Part, Plan, Side, orders, splits};
use metes_curve::{Algebra, Curve, Error, Value};
use proptest::prelude::*;

fn algebra() -> Algebra {
    Algebra {
        limit: 100_000,
        ..Algebra::default()
    }
}

fn plans() -> Vec<Plan> {
    let named = ["automatic", "subsets", "left-to-right", "least-slope"];
    let mut plans: Vec<Plan> = named.map(|name| name.parse().expect("a plan")).to_vec();
    for first in FirstPair::ALL {
        for next in NextCurve::ALL {
            plans.extend(Estimate::ALL.map(|estimate| Plan::Policy {
                first,
                next,
                estimate,
            }));
        }
    }
    plans
}

/// Staircases, each of a jump or two and flat stretches.
fn staircases(count: usize) -> impl Strategy<Value = Vec<Curve>> {
    let steps = prop::collection::vec((1_i64..8, 1_i64..8), 1..3);
    let curve = (steps, any::<bool>()).prop_map(|(steps, even)| {
        let (mut time, mut value) = (number(0), number(0));
        let mut pieces = Vec::new();
        for (length, jump) in steps {
            let at = value.clone();
            value = &value + &number(jump);
            pieces.push((
                time.clone(),
                Value::Finite(at),
                Value::Finite(value.clone()),
                number(0),
            ));
            time = &time + &number(length);
        }
        // Half of them rise by as much as they are long, so that slopes are equal, too.
        if even {
            value = time.clone();
        }
        Model {
            pieces,
            transient: number(0),
            period: time,
            step: value,
        }
        .curve()
    });
    prop::collection::vec(curve, count)
}

/// The result of every subset by every split, all equal; `None` if one is refused.
fn by_every_tree(curves: &[Curve]) -> Option<Curve> {
    let algebra = algebra();
    let mut results: Vec<Option<Curve>> = vec![None; 1 << curves.len()];
    for set in 1..1_u32 << curves.len() {
        if set.count_ones() == 1 {
            results[set as usize] = Some(curves[set.trailing_zeros() as usize].clone());
            continue;
        }
        for (one, other) in splits(set) {
            let (left, right) = (
                results[one as usize].as_ref()?,
                results[other as usize].as_ref()?,
            );
            let result = algebra.convolution(left, right).ok()?;
            if let Some(earlier) = &results[set as usize] {
                assert_eq!(*earlier, result, "{one:b} and {other:b}");
            }
            results[set as usize] = Some(result);
        }
    }
    results.pop()?
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn all_orders_trees_and_plans_agree(curves in staircases(5)) {
        let Some(expected) = by_every_tree(&curves) else { return Ok(()) };
        let given = orders(5).into_iter().map(Plan::Order);
        for plan in plans().into_iter().chain(given) {
            let Ok(chain) = algebra().chain(&curves, &plan) else { continue };
            prop_assert_eq!(&chain.curve, &expected, "{}", plan);
            // Every part but the last result enters once.
            let mut parts: Vec<Part> = chain.steps.iter().flat_map(|step| step.parts.clone()).collect();
            parts.sort_by_key(|part| match part { Part::Curve(n) => (0, *n), Part::Step(n) => (1, *n) });
            let results = 0..chain.steps.len() - 1;
            let all = (0..5).map(Part::Curve).chain(results.map(Part::Step));
            prop_assert_eq!(parts, all.collect::<Vec<_>>());
            prop_assert!(plan == Plan::Automatic || chain.steps.len() == 4);
        }
    }

    #[test]
    fn jumps_and_lines_agree_too(models in prop::collection::vec(models(finite()), 3)) {
        let curves: Vec<Curve> = models.iter().map(Model::curve).collect();
        let Some(expected) = by_every_tree(&curves) else { return Ok(()) };
        for plan in plans() {
            if let Ok(chain) = algebra().chain(&curves, &plan) {
                prop_assert_eq!(&chain.curve, &expected, "{}", plan);
            }
        }
    }

    #[test]
    fn the_shares_of_a_value_make_it(
        models in prop::collection::vec(models(finite()), 3), at in 0_i64..400,
    ) {
        let curves: Vec<Curve> = models.iter().map(Model::curve).collect();
        let Ok(chain) = algebra().chain(&curves, &Plan::Automatic) else { return Ok(()) };
        let time = part(at, 42);
        let shares = chain.explain(&curves, &time, &algebra()).expect("small");
        prop_assert_eq!(shares.len(), 3);
        let (mut times, mut values) = (number(0), number(0));
        let near = part(1, 1_000_003);
        for (place, share) in shares.iter().enumerate() {
            prop_assert_eq!(share.curve, place);
            times = &times + &share.time;
            let Value::Finite(value) = &share.value else { panic!("finite") };
            values = &values + value;
            // The model is near it: slopes are no steeper than 3.
            let beside = match share.side {
                Side::Before => &share.time - &near,
                Side::At => share.time.clone(),
                Side::After => &share.time + &near,
            };
            let Value::Finite(modelled) = models[place].value(&beside) else { panic!("finite") };
            let apart = &modelled - value;
            let allowed = &near * &number(4);
            prop_assert!(apart <= allowed && &apart + &allowed >= number(0), "{:?}", share);
        }
        prop_assert_eq!(&times, &time);
        prop_assert_eq!(chain.curve.value(&time), Some(Value::Finite(values)));
    }

    #[test]
    fn plans_are_read_as_they_are_shown(order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle()) {
        for plan in plans().into_iter().chain([Plan::Order(order)]) {
            prop_assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
        }
    }
}

#[test]
fn short_chains() {
    let line = Model {
        pieces: vec![(
            number(0),
            Value::Finite(number(0)),
            Value::Finite(number(0)),
            part(1, 2),
        )],
        transient: number(0),
        period: number(1),
        step: part(1, 2),
    }
    .curve();
    for plan in plans() {
        let none = algebra().chain(&[], &plan).expect("neutral").curve;
        assert_eq!(none.convolution(&line), Ok(line.clone()), "{plan}");
        let one = algebra().chain(std::slice::from_ref(&line), &plan);
        assert_eq!(one.expect("itself").curve, line, "{plan}");
    }
}

#[test]
fn wrong_orders_and_plans_are_said() {
    let line = algebra()
        .chain(&[], &Plan::Automatic)
        .expect("neutral")
        .curve;
    let curves = [line.clone(), line.clone(), line];
    for (order, what) in [
        (vec![0, 1], "3 is missing"),
        (vec![0, 1, 1], "2 stands in it"),
        (vec![0, 1, 3], "4 stands in it"),
    ] {
        let error = algebra()
            .chain(&curves, &Plan::Order(order))
            .expect_err("wrong");
        assert!(matches!(error, Error::Order { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    for text in [
        "",
        "fastest",
        "0,1",
        "1,,2",
        "shortest",
        "shortest/longest/x",
        "shortest/longest/runtime/x",
    ] {
        let error = text.parse::<Plan>().expect_err("no plan");
        assert!(error.to_string().contains("least-slope"), "{error}");
    }
}

/// After a large result what is left is planned anew: of the curves that wait, and of results that no
/// step has used.
#[test]
fn what_is_planned_anew_comes_to_the_same() {
    let periods = [61_i64, 67, 71, 73, 79, 83];
    let curves: Vec<Curve> = periods
        .iter()
        .map(|period| Curve::staircase(&number(0), &number(*period), &number(*period)).unwrap())
        .collect();
    let large = Algebra::default();
    let chain = large.chain(&curves, &Plan::Automatic).unwrap();
    let results = &chain.steps[..chain.steps.len() - 2];
    assert!(
        results.iter().any(|step| step.elements >= 512),
        "{results:?}"
    );
    let given = large.chain(&curves, &Plan::LeftToRight).unwrap();
    assert_eq!(chain.curve, given.curve);
    assert_eq!(chain.steps.len(), 5);
}
