//! Fits beside statsmodels and quantiles beside scipy: `tests/peers/fits.py` made `fits.json`.

use metes_power::fit::fit;
use metes_power::model::{Point, Quantity, Term};
use metes_power::table::Row;
use serde_json::Value;

fn peers() -> Value {
    serde_json::from_str(include_str!("../peers/fits.json")).expect("JSON of the script")
}

fn numbers(value: &Value) -> Vec<f64> {
    let values = value.as_array().expect("a list");
    values
        .iter()
        .map(|value| value.as_f64().expect("a number"))
        .collect()
}

fn point(values: &[f64]) -> Point {
    Point {
        voltage: Some(values[2]),
        ..Point::new(values[0], values[1])
    }
}

#[track_caller]
fn close(ours: f64, theirs: f64, what: &str) {
    let scale = theirs.abs().max(1e-6);
    assert!(
        (ours - theirs).abs() <= 1e-8 * scale,
        "{what}: {ours} {theirs}"
    );
}

#[test]
fn fits_are_those_of_statsmodels() {
    let peers = peers();
    let cases = peers["fits"].as_array().expect("cases");
    assert_eq!(cases.len(), 14);
    for (number, case) in cases.iter().enumerate() {
        let quantity = match case["quantity"].as_str() {
            Some("time") => Quantity::Time,
            _ => Quantity::Power,
        };
        let terms = case["terms"].as_array().expect("terms").iter();
        let terms: Vec<Term> = terms
            .map(|name| Term::named(name.as_str().expect("a name")).expect("a term"))
            .collect();
        let points = case["points"].as_array().expect("points").iter();
        let data: Vec<(Row, f64)> = points
            .enumerate()
            .map(|(line, values)| {
                let values = numbers(values);
                let row = Row {
                    line: line as u64 + 2,
                    point: point(&values),
                    time: None,
                    power: None,
                    energy: None,
                };
                (row, values[3])
            })
            .collect();
        let confidence = case["confidence"].as_f64().expect("a number");
        let ours = fit(quantity, &terms, &data, confidence).expect("determined");
        let what = |part: &str| format!("case {number}, {part}");
        let errors = numbers(&case["errors"]);
        for (k, parameter) in ours.parameters.iter().enumerate() {
            close(
                parameter.value,
                numbers(&case["parameters"])[k],
                &what("parameter"),
            );
            close(
                parameter.standard_error.expect("freedom"),
                errors[k],
                &what("error"),
            );
            let interval = parameter.interval.expect("freedom");
            let theirs = numbers(&case["intervals"][k]);
            close(interval[0], theirs[0], &what("low"));
            close(interval[1], theirs[1], &what("high"));
        }
        let r_squared = case["r_squared"].as_f64().expect("a number");
        close(ours.r_squared.expect("they differ"), r_squared, &what("R²"));
        let deviation = case["deviation"].as_f64().expect("a number");
        close(
            ours.deviation.expect("freedom"),
            deviation,
            &what("deviation"),
        );
        for (k, point) in ours.residuals.iter().enumerate() {
            close(
                point.leverage,
                numbers(&case["leverages"])[k],
                &what("leverage"),
            );
            let studentised = point.studentised.expect("freedom");
            close(
                studentised,
                numbers(&case["studentised"])[k],
                &what("studentised"),
            );
        }
        let foretold = ours
            .foretell(point(&numbers(&case["new"])))
            .expect("a voltage");
        let theirs = numbers(&case["interval"]);
        let interval = foretold.interval.expect("freedom");
        close(
            foretold.value,
            case["foretold"].as_f64().expect("a number"),
            &what("foretold"),
        );
        close(interval[0], theirs[0], &what("foretold low"));
        close(interval[1], theirs[1], &what("foretold high"));
    }
}

/// The interval of a mean of two values is their mean ± t(1) × |difference| / 2: so a fit of a constant shows quantiles.
#[test]
fn quantiles_are_those_of_scipy() {
    for case in peers()["quantiles"].as_array().expect("cases") {
        let case = numbers(case);
        let points = case[1] as usize + 1;
        let data: Vec<(Row, f64)> = (0..points)
            .map(|line| {
                let row = Row {
                    line: line as u64 + 2,
                    point: Point::new(1.0, 1.0),
                    time: None,
                    power: None,
                    energy: None,
                };
                (row, if line % 2 == 0 { 1.0 } else { 2.0 })
            })
            .collect();
        let ours = fit(Quantity::Time, &[Term::Constant], &data, case[0]).expect("determined");
        let parameter = &ours.parameters[0];
        let [low, high] = parameter.interval.expect("freedom");
        let t = (high - low) / 2.0 / parameter.standard_error.expect("freedom");
        assert!((t - case[2]).abs() <= 1e-7 * case[2], "{case:?}: {t}");
    }
}
