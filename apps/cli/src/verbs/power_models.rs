//! `metes power fit`, `predict`, `measure` and `apply`: models of time and power, and the machine that they are of.

pub(crate) mod apply;
pub(crate) mod fit;
pub(crate) mod measure;
pub(crate) mod predict;
mod sweep;

use std::path::Path;

use metes_power::model::Point;
use metes_power::table::Table;

use crate::error::Failure;
use crate::output;

/// A table of measurements.
pub(crate) fn table(path: &Path) -> Result<Table, Failure> {
    Table::parse(&read(path)?).map_err(|error| about(path, error))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))
}

fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", output::name(path)))
}

fn fail(error: impl std::fmt::Display) -> Failure {
    Failure::input(error.to_string())
}

/// Positive numbers, parted by commas.
fn numbers(
    text: &str,
    what: &str,
    counts: std::ops::RangeInclusive<usize>,
) -> Result<Vec<f64>, Failure> {
    let values: Result<Vec<f64>, _> = text.split(',').map(|word| word.trim().parse()).collect();
    values
        .ok()
        .filter(|values| counts.contains(&values.len()))
        .filter(|values| values.iter().all(|value| (0.0..=1e12).contains(value)))
        .ok_or_else(|| {
            Failure::input(format!(
                "'{text}' is no {what}: give numbers that are not negative, with commas"
            ))
        })
}

/// A pair in MHz, and maybe a voltage.
pub(crate) fn pair(text: &str) -> Result<Point, Failure> {
    let values = numbers(text, "pair of frequencies in MHz", 2..=3)?;
    if values.contains(&0.0) {
        return Err(Failure::input(format!(
            "'{text}': a frequency of 0 runs nothing"
        )));
    }
    Ok(Point {
        voltage: values.get(2).copied(),
        ..Point::mhz(values[0], values[1])
    })
}

/// MHz as the kHz of a machine.
fn khz(mhz: f64) -> Result<u64, Failure> {
    if !(1e-3..=1e9).contains(&mhz) {
        return Err(Failure::input(format!("{mhz} MHz is no frequency")));
    }
    Ok((mhz * 1e3).round() as u64)
}
