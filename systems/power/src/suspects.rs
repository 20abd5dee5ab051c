//! Points that do not belong: single ones far from the fit, groups that agree among themselves and not with the rest,
//! values that were copied, and frequencies that were not applied.
//!
//! A single bad point shows in its studentised residual. Several hide each other there, since they pull the fit: so
//! least trimmed squares (Rousseeuw, 1984) finds the half of the points that agree best, and the others are judged from
//! there.
//!
//! Invariant: points are named, never dropped; whoever drops them says so. The same points give the same names.

use metes_random::Random;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::fit::{Fit, fit, matrix, solve};
use crate::model::{Quantity, Term};
use crate::table::Row;

/// A point that may be bad.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suspect {
    /// The row's line.
    pub line: u64,
    /// What speaks against it.
    pub reasons: Vec<Reason>,
}

/// What speaks against a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Reason {
    /// Its studentised residual is too large for the largest of so many.
    FarFromFit,
    /// It is too far from the fit of those that agree best.
    FarFromMost,
    /// The same digits stand at another pair.
    Copied {
        /// The other row's line.
        of: u64,
    },
    /// At a higher frequency of the processor, and the same of the memory, the time is no shorter.
    NotFaster {
        /// The row of the lower frequency.
        than: u64,
    },
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::FarFromFit => f.write_str("far from the fit"),
            Reason::FarFromMost => f.write_str("far from what most points agree on"),
            Reason::Copied { of } => write!(f, "the same digits as in line {of}, at another pair"),
            Reason::NotFaster { than } => write!(
                f,
                "no faster than line {than} at a lower frequency: not applied, or throttled"
            ),
        }
    }
}

/// The chance that any of all good points is called far from the fit.
const CHANCE: f64 = 0.05;
/// The same for far from most: the scale of half of the points is itself rough.
const CHANCE_OF_MOST: f64 = 0.001;
/// Subsets that the search of least trimmed squares begins with: if a third of the points is bad, some of them has only good
/// ones all but surely. Of large tables fewer, so that all take about as long.
const BEGINNINGS: usize = 200;
/// Points of all beginnings together.
const WORK: usize = 2_000_000;

/// Suspects among the points of a fit, by line.
#[must_use]
pub fn suspects(fit: &Fit, data: &[(Row, f64)]) -> Vec<Suspect> {
    let mut found = vec![Vec::new(); data.len()];
    let freedom = fit.points - fit.parameters.len();
    for (reasons, point) in found.iter_mut().zip(&fit.residuals) {
        if freedom > 1
            && point
                .studentised
                .is_some_and(|value| chance(value, freedom - 1) * (fit.points as f64) < CHANCE)
        {
            reasons.push(Reason::FarFromFit);
        }
    }
    let terms: Vec<Term> = fit
        .parameters
        .iter()
        .map(|parameter| parameter.term)
        .collect();
    for index in far_from_most(fit.quantity, &terms, data) {
        found[index].push(Reason::FarFromMost);
    }
    for (index, reason) in copied(data) {
        found[index].push(reason);
    }
    if fit.quantity == Quantity::Time {
        for (index, reason) in not_faster(data) {
            found[index].push(reason);
        }
    }
    let lines = data.iter().map(|(row, _)| row.line);
    lines
        .zip(found)
        .filter(|(_, reasons)| !reasons.is_empty())
        .map(|(line, reasons)| Suspect { line, reasons })
        .collect()
}

/// How likely |t| is to be so large.
fn chance(value: f64, freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(1.0, |t| 2.0 * t.cdf(-value.abs().min(1e100)))
}

/// Points one of whose values stands, digit for digit, at another pair: both, as nothing tells which was measured. Few digits
/// repeat by chance, so six or more must.
fn copied(data: &[(Row, f64)]) -> Vec<(usize, Reason)> {
    let mut found: Vec<(usize, Reason)> = Vec::new();
    for column in 0..4 {
        let of =
            |(row, value): &(Row, f64)| [Some(*value), row.time, row.power, row.energy][column];
        let mut order: Vec<(f64, usize)> = (0..data.len())
            .filter_map(|index| Some((of(&data[index])?, index)))
            .filter(|(value, _)| digits(*value) >= 6)
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for equal in order.chunk_by(|a, b| a.0 == b.0) {
            for &(_, index) in equal {
                let own = data[index].0.point;
                let other = equal.iter().find(|(_, other)| data[*other].0.point != own);
                if let Some(&(_, other)) = other {
                    let of = data[other].0.line;
                    found.push((index, Reason::Copied { of }));
                }
            }
        }
    }
    found.sort_by_key(|(index, _)| *index);
    found.dedup();
    found
}

/// Significant decimal digits of a value as it would be written shortest.
fn digits(value: f64) -> usize {
    let text = format!("{value:e}");
    let mantissa = text.split('e').next().unwrap_or("");
    mantissa.chars().filter(char::is_ascii_digit).count()
}

/// Points that are no faster than one of a lower processor frequency, by more than single points differ: the lower one
/// must be at least a tenth lower.
fn not_faster(data: &[(Row, f64)]) -> Vec<(usize, Reason)> {
    let mut order: Vec<usize> = (0..data.len()).collect();
    let key = |index: usize| data[index].0.point;
    order.sort_by(|&a, &b| {
        let (a, b) = (key(a), key(b));
        a.memory.total_cmp(&b.memory).then(a.cpu.total_cmp(&b.cpu))
    });
    let mut found = Vec::new();
    for of_memory in order.chunk_by(|&a, &b| key(a).memory == key(b).memory) {
        // The fastest among those of at most nine tenths of the frequency.
        let mut slower = 0;
        let mut fastest: Option<usize> = None;
        for &index in of_memory {
            while key(of_memory[slower]).cpu <= 0.9 * key(index).cpu {
                let other = of_memory[slower];
                fastest = fastest
                    .filter(|&known| data[known].1 <= data[other].1)
                    .or(Some(other));
                slower += 1;
            }
            if let Some(other) = fastest.filter(|&other| data[index].1 >= data[other].1) {
                let than = data[other].0.line;
                found.push((index, Reason::NotFaster { than }));
            }
        }
    }
    found
}

/// Points far from the fit of those that agree best.
fn far_from_most(quantity: Quantity, terms: &[Term], data: &[(Row, f64)]) -> Vec<usize> {
    let (points, parameters) = (data.len(), terms.len());
    // With fewer, half of them determine nothing to be judged by.
    if points < 3 * parameters || points < 8 {
        return Vec::new();
    }
    let half = (points + parameters).div_ceil(2);
    let Ok((rows, measured)) = matrix(terms, data) else {
        return Vec::new();
    };
    let errors = |chosen: &[usize]| -> Option<Vec<f64>> {
        let chosen_rows = rows.select_rows(chosen);
        let solution = solve(&chosen_rows, &measured.select_rows(chosen)).ok()?;
        let errors = &measured - &rows * solution.parameters;
        Some(errors.iter().map(|error| error.abs()).collect())
    };
    let nearest = |errors: &[f64]| {
        let mut order: Vec<usize> = (0..points).collect();
        if half < points {
            order.select_nth_unstable_by(half, |&a, &b| {
                errors[a].total_cmp(&errors[b]).then(a.cmp(&b))
            });
        }
        order.truncate(half);
        order
    };
    let squares = |errors: &[f64], of: &[usize]| of.iter().map(|&i| errors[i].powi(2)).sum::<f64>();
    let mut random = Random::new(1);
    let mut best: Option<(f64, Vec<f64>)> = None;
    for _ in 0..(WORK / points).clamp(10, BEGINNINGS) {
        let mut chosen: Vec<usize> = (0..points).collect();
        random.shuffle(&mut chosen);
        chosen.truncate(parameters);
        // Steps of concentration: never a larger sum of squares.
        let mut last = f64::INFINITY;
        for _ in 0..20 {
            let Some(of_chosen) = errors(&chosen) else {
                break;
            };
            chosen = nearest(&of_chosen);
            let sum = squares(&of_chosen, &chosen);
            if best.as_ref().is_none_or(|(least, _)| sum < *least) {
                best = Some((sum, of_chosen));
            }
            if sum >= last * (1.0 - 1e-9) {
                break;
            }
            last = sum;
        }
    }
    best.map_or(Vec::new(), |(_, errors)| {
        outside(quantity, terms, data, &errors)
    })
}

/// From the errors of the best half: those that a fit of the good points would not have measured.
fn outside(quantity: Quantity, terms: &[Term], data: &[(Row, f64)], errors: &[f64]) -> Vec<usize> {
    let points = data.len();
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The median of |errors| estimates a deviation; with few points too small a one (Rousseeuw and Leroy, 1987).
    let scale = 1.4826 * (1.0 + 5.0 / (points - terms.len()) as f64) * sorted[points / 2];
    let largest = data
        .iter()
        .map(|(_, value)| value.abs())
        .fold(0.0, f64::max);
    let scale = scale.max(1e-12 * largest);
    let good: Vec<_> = (0..points)
        .filter(|&index| errors[index] <= 2.5 * scale)
        .map(|index| data[index])
        .collect();
    let Ok(of_good) = fit(quantity, terms, &good, 0.95) else {
        return Vec::new();
    };
    let freedom = good.len() - terms.len();
    let exact = 1e-12 * largest;
    (0..points)
        .filter(|&index| {
            let (row, value) = data[index];
            let Some(foretold) = of_good.foretell(row.point) else {
                return false;
            };
            let error = (value - foretold.value).abs();
            // A good point has been fitted: it is judged by its own kind of error, which is smaller.
            let Some((deviation, half)) = of_good.deviation.zip(foretold.interval) else {
                return false;
            };
            let t95 = crate::fit::student(0.95, freedom).unwrap_or(1.0);
            let of_new = ((half[1] - half[0]) / 2.0 / t95).max(deviation).max(exact);
            error > exact && chance(error / of_new, freedom) * (points as f64) < CHANCE_OF_MOST
        })
        .collect()
}
