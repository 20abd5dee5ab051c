//! The conformance cases of the field, of the operations that there are.
//!
//! Invariant: a case passes if the result equals the expected function, whatever form that is
//! written in.

use std::collections::BTreeMap;

use metes_curve::{Curve, Error};
use serde_json::Value as Json;

fn curve(json: &Json) -> Curve {
    Curve::from_json(&json.to_string()).unwrap_or_else(|error| panic!("{error}: {json}"))
}

type Binary = fn(&Curve, &Curve) -> Result<Curve, Error>;

/// Whether a case passes; `None` of operations that there are not.
fn passes(case: &Json) -> Option<bool> {
    let operation = case["op"].as_str().expect("a name");
    let operands = &case["operands"];
    let binary = |operation: Binary| {
        let result = operation(&curve(&operands["f"]), &curve(&operands["g"]));
        Some(result.ok()? == curve(&case["expected"]))
    };
    match operation {
        "minimum" => binary(Curve::minimum),
        "maximum" => binary(Curve::maximum),
        "add" => binary(Curve::sum),
        "sub" => binary(Curve::difference),
        "minplus_convolution" => binary(Curve::convolution),
        "maxplus_convolution" => binary(Curve::maximal_convolution),
        "equivalent" => {
            let equal = curve(&operands["f"]) == curve(&operands["g"]);
            Some(case["expected"].as_bool() == Some(equal))
        }
        "minimize_representation" => Some(curve(&operands["f"]) == curve(&case["expected"])),
        "is_ultimately_affine" => {
            let affine = curve(&operands["f"]).is_ultimately_affine();
            Some(case["expected"].as_bool() == Some(affine))
        }
        _ => None,
    }
}

#[test]
fn cases_of_the_field() {
    let text = std::fs::read_to_string("tests/data/cases.json").expect("the cases");
    let document: Json = serde_json::from_str(&text).expect("JSON");
    let cases = document["cases"].as_array().expect("a list");
    let mut passed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for case in cases {
        let operation = case["op"].as_str().expect("a name");
        match passes(case) {
            Some(true) => *passed.entry(operation).or_default() += 1,
            Some(false) => failed.push(case["id"].as_str().expect("a name")),
            None => {}
        }
    }
    println!("{passed:?}");
    assert_eq!(failed, Vec::<&str>::new());
    assert_eq!(
        passed.values().sum::<usize>(),
        54 + 54 + 56 + 2 + 44 + 34 + 10 + 140 + 132
    );
}
