//! The convolutions of the published pairs, at times from all over the result.
//!
//! Invariant: what they are compared with tries every split at and beside a breakpoint, and
//! knows nothing of how far one has to look.

use metes_curve::{Curve, Element, Rational, Value};
use serde_json::Value as Json;

/// Breakpoints up to a time.
fn breakpoints(curve: &Curve, until: &Rational) -> Vec<Rational> {
    let mut found = Vec::new();
    for element in curve.elements() {
        let Element::Point { time, .. } = element else {
            continue;
        };
        let periodic = time >= curve.transient();
        let mut time = time;
        while time <= *until {
            found.push(time.clone());
            if !periodic {
                break;
            }
            time = &time + &curve.period();
        }
    }
    found
}

fn brute(f: &Curve, g: &Curve, time: &Rational) -> Value {
    // The curves are staircases and continuous lines of small numbers: beside a breakpoint is
    // as good as at its limit, but for the rounding below.
    let near = Rational::new(1, 1_000_000_007).expect("not zero");
    let mut splits = breakpoints(f, time);
    splits.extend(breakpoints(g, time).iter().map(|split| time - split));
    let beside = splits
        .iter()
        .flat_map(|split| [split - &near, split.clone(), split + &near]);
    let sums = beside.filter_map(
        |split| match (f.value(&split)?, g.value(&(time - &split))?) {
            (Value::Finite(left), Value::Finite(right)) => Some(Value::Finite(&left + &right)),
            _ => None,
        },
    );
    sums.min().unwrap_or(Value::PositiveInfinity)
}

#[test]
fn published_pairs_are_convolved_right() {
    let text = std::fs::read_to_string("tests/data/published_pairs.json").expect("the pairs");
    let document: Json = serde_json::from_str(&text).expect("JSON");
    let mut checked = 0;
    for pairs in document["sets"].as_object().expect("sets").values() {
        for pair in pairs.as_array().expect("a list") {
            let read = |name: &str| Curve::from_json(&pair[name].to_string()).expect("a curve");
            let (f, g) = (read("f"), read("g"));
            let result = f.convolution(&g).expect("a result");
            let whole = &result.transient() + &(&result.period() * &Rational::from(2));
            // Up to ten times over all that is not repetition, at most so far as is soon tried.
            let far = whole.min(Rational::from(4000));
            for k in 0..10 {
                let time = &far * &Rational::new(2 * k + 1, 20).expect("not zero");
                let near = Rational::new(1, 1_000_000).expect("not zero");
                match (result.value(&time).expect("a value"), brute(&f, &g, &time)) {
                    (Value::Finite(found), Value::Finite(tried)) => {
                        assert!(
                            found <= tried && tried <= &found + &near,
                            "at {time}: {pair}"
                        );
                    }
                    (found, tried) => assert_eq!(found, tried, "at {time}: {pair}"),
                }
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 4000);
}
