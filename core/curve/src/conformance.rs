//! Conformance cases: documents of operations, operands and expected results, checked.
//!
//! A document is JSON: `{"cases": [{"id", "op", "operands", "expected"}]}`. A case passes if the
//! result equals the expected one as a function, whatever form that is written in. Of the field's
//! published cases one expects what contradicts the definition of its operation: `errata.json`
//! corrects it, it is checked against the correction, and the report says so.
//!
//! Invariant: every case of the document is counted once, as passed or as failed; an operation
//! that there is not fails.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::curve::{Curve, Value};
use crate::deviation::Deviation;
use crate::document::value;
use crate::inverse::Interval;
use crate::number::Rational;
use crate::settings::Algebra;

/// What came of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many cases passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many cases of each operation passed, and how many failed.
    pub operations: BTreeMap<String, (usize, usize)>,
    /// What failed.
    pub failures: Vec<Failure>,
    /// What was checked against a correction.
    pub corrected: Vec<Correction>,
}

/// A case that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub id: String,
    /// Of which operation.
    pub operation: String,
    /// What came instead: a result, or why there is none.
    pub came: String,
}

/// A case whose expected result is wrong, as its definition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Which.
    pub id: String,
    /// Why.
    pub why: String,
}

/// The document has no cases.
#[derive(Debug, thiserror::Error)]
#[error(
    "this is no document of cases, `{{\"cases\": [{{\"id\", \"op\", \"operands\", \"expected\"}}]}}`: {0}"
)]
pub struct NoCases(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Document {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    op: String,
    operands: Json,
    expected: Json,
}

#[derive(Deserialize)]
struct Erratum {
    why: String,
    /// What the document expects.
    published: Json,
    /// What the definition says.
    expected: Json,
}

const ERRATA: &str = include_str!("errata.json");

/// Checks every case of a document, by the means of an algebra.
///
/// # Errors
/// [`NoCases`] if it is none. A case that can not be read or computed is a failure, no error.
pub fn check(document: &str, algebra: &Algebra) -> Result<Report, NoCases> {
    let document: Document = serde_json::from_str(document)?;
    let errata: BTreeMap<String, Erratum> = serde_json::from_str(ERRATA)?;
    let mut report = Report::default();
    for case in document.cases {
        let erratum = errata.get(&case.id);
        let erratum = erratum.filter(|erratum| erratum.published == case.expected);
        let expected = erratum.map_or(&case.expected, |erratum| &erratum.expected);
        if let Some(erratum) = erratum {
            report.corrected.push(Correction {
                id: case.id.clone(),
                why: erratum.why.clone(),
            });
        }
        let of_operation = report.operations.entry(case.op.clone()).or_default();
        match came_instead(&case, expected, algebra) {
            None => {
                report.passed += 1;
                of_operation.0 += 1;
            }
            Some(came) => {
                report.failed += 1;
                of_operation.1 += 1;
                report.failures.push(Failure {
                    id: case.id,
                    operation: case.op,
                    came,
                });
            }
        }
    }
    Ok(report)
}

/// `None` if the case passes.
fn came_instead(case: &Case, expected: &Json, algebra: &Algebra) -> Option<String> {
    match Came::of(&case.op, &case.operands, algebra) {
        Ok(came) => match came.is(expected) {
            Ok(true) => None,
            Ok(false) => Some(came.shown()),
            Err(error) => Some(format!("the expected result can not be read: {error}")),
        },
        Err(error) => Some(error),
    }
}

/// A result of one of the kinds that there are.
enum Came {
    Curve(Box<Curve>),
    Value(Value),
    Answer(bool),
    Bounds(crate::query::Bounds),
}

impl Came {
    /// What an operation gives.
    fn of(operation: &str, operands: &Json, algebra: &Algebra) -> Result<Self, String> {
        let said = |error: crate::Error| error.to_string();
        let f = || curve(&operands["f"]);
        let both = || Ok::<_, String>((f()?, curve(&operands["g"])?));
        let curve = |result: Result<Curve, crate::Error>| {
            result
                .map(|curve| Came::Curve(Box::new(curve)))
                .map_err(said)
        };
        type Binary = fn(&Algebra, &Curve, &Curve) -> Result<Curve, crate::Error>;
        type Unary = fn(&Algebra, &Curve) -> Result<Curve, crate::Error>;
        let binary = |operation: Binary| {
            let (f, g) = both()?;
            curve(operation(algebra, &f, &g))
        };
        let unary = |operation: Unary| curve(operation(algebra, &f()?));
        type Deviate = fn(&Algebra, &Curve, &Curve) -> Result<Deviation, crate::Error>;
        let deviation = |operation: Deviate| {
            let (f, g) = both()?;
            operation(algebra, &f, &g).map_err(said)
        };
        let time = |time: Option<Rational>| {
            Ok(Came::Value(
                time.map_or(Value::PositiveInfinity, Value::Finite),
            ))
        };
        match operation {
            "minimum" => binary(Algebra::minimum),
            "maximum" => binary(Algebra::maximum),
            "add" => binary(Algebra::sum),
            "sub" => binary(Algebra::difference),
            "minplus_convolution" => binary(Algebra::convolution),
            "maxplus_convolution" => binary(Algebra::maximal_convolution),
            "equivalent" => {
                let (f, g) = both()?;
                Ok(Came::Answer(f == g))
            }
            "minimize_representation" => Ok(Came::Curve(Box::new(f()?))),
            "is_ultimately_affine" => Ok(Came::Answer(f()?.is_ultimately_affine())),
            "lower_pseudo_inverse" => unary(Algebra::lower_pseudo_inverse),
            "upper_pseudo_inverse" => unary(Algebra::upper_pseudo_inverse),
            "lower_pseudo_inverse_over_interval" => {
                curve(algebra.lower_pseudo_inverse_over(&f()?, &interval(operands)?))
            }
            "upper_pseudo_inverse_over_interval" => {
                curve(algebra.upper_pseudo_inverse_over(&f()?, &interval(operands)?))
            }
            "vertical_deviation" => Ok(Came::Value(deviation(Algebra::vertical_deviation)?.value)),
            "vertical_deviation_arg" => time(deviation(Algebra::vertical_deviation)?.time),
            "horizontal_deviation" => {
                Ok(Came::Value(deviation(Algebra::horizontal_deviation)?.value))
            }
            "horizontal_deviation_arg" => time(deviation(Algebra::horizontal_deviation)?.time),
            "minplus_deconvolution" => binary(Algebra::deconvolution),
            "maxplus_deconvolution" => binary(Algebra::maximal_deconvolution),
            "to_upper_nondecreasing" => unary(Algebra::upper_nondecreasing_closure),
            "to_lower_nondecreasing" => unary(Algebra::lower_nondecreasing_closure),
            "subadditive_closure" => unary(Algebra::subadditive_closure),
            "superadditive_closure" => unary(Algebra::superadditive_closure),
            "floor" => unary(Algebra::floor),
            "ceil" => unary(Algebra::ceiling),
            "vertical_shift" => {
                let (f, by) = (f()?, finite(&operands["shift"])?);
                curve(match operands["except_origin"].as_bool() {
                    Some(true) => f.raised_behind_origin(&by),
                    _ => Ok(f.raised(&by)),
                })
            }
            "compose" => binary(Algebra::compose),
            "boundary_values" => Ok(Came::Bounds(f()?.bounds())),
            "attains_value" => Ok(Came::Answer(f()?.attains(&extended(&operands["value"])?))),
            "first_finite_time" => time(f()?.first_finite_time()),
            "first_finite_time_except_origin" => time(f()?.first_finite_time_behind_origin()),
            "first_nonnegative_time" => time(f()?.first_nonnegative_time()),
            "period_start_infimum" => time(Some(f()?.period_start_infimum())),
            "z_deviation" => {
                let (f, g) = both()?;
                time(algebra.z_deviation(&f, &g).map_err(said)?)
            }
            _ => Err(format!("there is no operation `{operation}`")),
        }
    }

    fn is(&self, expected: &Json) -> Result<bool, String> {
        Ok(match self {
            Came::Curve(came) => **came == curve(expected)?,
            Came::Value(came) => *came == extended(expected)?,
            Came::Answer(came) => expected.as_bool().ok_or("it is no answer")? == *came,
            Came::Bounds(came) => {
                let bound = |name: &str, bound: &Value| {
                    Ok::<_, String>(extended(&expected[name])? == *bound)
                };
                let attained = |name: &str, attained: bool, bound: &Value| match attained {
                    true => Ok(extended(&expected[name])? == *bound),
                    false => Ok::<_, String>(expected[name].is_null()),
                };
                bound("inf", &came.infimum)?
                    && bound("sup", &came.supremum)?
                    && attained("min", came.has_minimum, &came.infimum)?
                    && attained("max", came.has_maximum, &came.supremum)?
            }
        })
    }

    fn shown(&self) -> String {
        match self {
            Came::Curve(curve) => curve.to_json(),
            Came::Value(value) => value.to_string(),
            Came::Answer(answer) => answer.to_string(),
            Came::Bounds(bounds) => format!("{bounds:?}"),
        }
    }
}

fn curve(json: &Json) -> Result<Curve, String> {
    Curve::from_json(&json.to_string()).map_err(|error| error.to_string())
}

fn extended(json: &Json) -> Result<Value, String> {
    let text = json
        .as_str()
        .ok_or_else(|| format!("{json} is no string"))?;
    value(text).map_err(|error| error.to_string())
}

fn finite(json: &Json) -> Result<Rational, String> {
    match extended(json)? {
        Value::Finite(number) => Ok(number),
        _ => Err(format!("{json} is infinite")),
    }
}

fn interval(operands: &Json) -> Result<Interval, String> {
    let end = match extended(&operands["end"])? {
        Value::Finite(end) => Some(end),
        Value::PositiveInfinity => None,
        Value::NegativeInfinity => return Err("an interval ends at -inf".into()),
    };
    let answer = |name: &str| {
        operands[name]
            .as_bool()
            .ok_or(format!("`{name}` is no answer"))
    };
    Ok(Interval {
        start: finite(&operands["start"])?,
        start_included: answer("start_included")?,
        end,
        end_included: answer("end_included")?,
    })
}
