//! Least squares with what it is worth: intervals of parameters and of what is foretold, residuals, and how far the data
//! reach.
//!
//! Ordinary least squares by a QR decomposition of the scaled columns; intervals by Student's t with n - p degrees of
//! freedom, under the usual assumptions (errors independent, of one variance, about normal); R² about the mean, also of
//! models without a constant, so that models of one table compare.
//!
//! Invariant: a fit exists only if its parameters are determined; what rests on no degree of freedom is none, never 0.

mod beyond;

use nalgebra::{DMatrix, DVector};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::model::{Point, Quantity, Term};
use crate::table::Row;

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Fewer points than parameters.
    #[error(
        "{points} points cannot determine {parameters} parameters ({terms}): measure at more pairs of frequencies, or name fewer terms"
    )]
    TooFew {
        /// Points there are.
        points: usize,
        /// Parameters asked for.
        parameters: usize,
        /// Their terms.
        terms: String,
    },
    /// Two terms do not differ on the points.
    #[error(
        "the points do not tell {term} from the terms before it ({before}): vary its frequency, or leave it out"
    )]
    Alike {
        /// The term.
        term: &'static str,
        /// Those before it.
        before: String,
    },
    /// A term that needs a voltage at a point without one.
    #[error(
        "the term {term} needs a voltage, and line {line} has none: add voltage_v, or leave the term out"
    )]
    NoVoltage {
        /// The term.
        term: &'static str,
        /// The row's line.
        line: u64,
    },
    /// A term of another quantity, or one twice.
    #[error("{term} {why}")]
    Term {
        /// The term.
        term: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No term.
    #[error("a model needs a term")]
    NoTerm,
    /// A confidence that is none.
    #[error("a confidence of {0} is none: it lies between 0 and 1, say 0.95")]
    Confidence(f64),
}

/// A fitted parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Of which term.
    pub term: Term,
    /// Its value.
    pub value: f64,
    /// In which unit.
    pub unit: &'static str,
    /// Its standard error; none if there are as many points as parameters.
    pub standard_error: Option<f64>,
    /// Its interval at the fit's confidence.
    pub interval: Option<[f64; 2]>,
}

/// A point beside the fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// The row's line.
    pub line: u64,
    /// Where it was measured.
    pub point: Point,
    /// What was measured.
    pub measured: f64,
    /// What the fit says.
    pub fitted: f64,
    /// Measured - fitted.
    pub residual: f64,
    /// How much the point itself decides what the fit says of it, 0 to 1.
    pub leverage: f64,
    /// The residual over its deviation, estimated without the point.
    pub studentised: Option<f64>,
}

/// A model fitted to points.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// What it tells of.
    pub quantity: Quantity,
    /// Points.
    pub points: usize,
    /// Probability that an interval covers, under the assumptions.
    pub confidence: f64,
    /// Its parameters, in the order of the terms.
    pub parameters: Vec<Parameter>,
    /// 1 - sum of squared residuals / sum of squares about the mean; none if all measured are equal.
    pub r_squared: Option<f64>,
    /// Standard deviation of the errors, estimated.
    pub deviation: Option<f64>,
    /// Largest |residual| / measured.
    pub worst_relative: f64,
    /// The same with each point left out of the fit that foretells it; none if some point alone determines a parameter.
    pub worst_left_out: Option<f64>,
    /// Every point.
    pub residuals: Vec<Residual>,
    /// (XᵀX)⁻¹, for intervals elsewhere.
    #[serde(skip)]
    covariance: DMatrix<f64>,
}

/// What a fit foretells at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Foretold {
    /// Where.
    pub point: Point,
    /// The value.
    pub value: f64,
    /// Where a further measurement would lie, at the fit's confidence.
    pub interval: Option<[f64; 2]>,
    /// Why the data do not reach there, if they do not.
    pub extrapolated: Option<String>,
}

/// The least squares solution of rows of terms.
pub(crate) struct Solution {
    pub(crate) parameters: DVector<f64>,
    covariance: DMatrix<f64>,
}

/// A column is no new direction if this part of it or less is left beside those before it.
const ALIKE: f64 = 1e-9;

/// Solves, or names the first column that the ones before it make up.
pub(crate) fn solve(rows: &DMatrix<f64>, measured: &DVector<f64>) -> Result<Solution, usize> {
    let columns = rows.ncols();
    let scale = DVector::from_iterator(columns, rows.column_iter().map(|column| column.norm()));
    let mut scaled = rows.clone();
    for (mut column, scale) in scaled.column_iter_mut().zip(&scale) {
        column /= *scale;
    }
    let decomposed = scaled.qr();
    let r = decomposed.r();
    if let Some(alike) = (0..columns).find(|&k| {
        let left = r[(k, k)].abs();
        left.is_nan() || left <= ALIKE
    }) {
        return Err(alike);
    }
    let rotated = decomposed.q().transpose() * measured;
    let mut parameters = r.solve_upper_triangular(&rotated).ok_or(columns - 1)?;
    let identity = DMatrix::identity(columns, columns);
    let mut inverse = r.solve_upper_triangular(&identity).ok_or(columns - 1)?;
    for k in 0..columns {
        parameters[k] /= scale[k];
        let mut row = inverse.row_mut(k);
        row /= scale[k];
    }
    Ok(Solution {
        parameters,
        covariance: &inverse * inverse.transpose(),
    })
}

/// The terms at rows, as a matrix, and what was measured there.
pub(crate) fn matrix(
    terms: &[Term],
    data: &[(Row, f64)],
) -> Result<(DMatrix<f64>, DVector<f64>), FitError> {
    let mut rows = DMatrix::zeros(data.len(), terms.len());
    for (i, (row, _)) in data.iter().enumerate() {
        for (k, term) in terms.iter().enumerate() {
            rows[(i, k)] = term.at(row.point).ok_or(FitError::NoVoltage {
                term: term.name(),
                line: row.line,
            })?;
        }
    }
    let measured = DVector::from_iterator(data.len(), data.iter().map(|(_, value)| *value));
    Ok((rows, measured))
}

fn check(quantity: Quantity, terms: &[Term], points: usize) -> Result<(), FitError> {
    if terms.is_empty() {
        return Err(FitError::NoTerm);
    }
    for (number, term) in terms.iter().enumerate() {
        let wrong = |why| FitError::Term {
            term: term.name(),
            why,
        };
        if !term.is_of(quantity) {
            return Err(wrong(match quantity {
                Quantity::Time => "is no term of a time: cpu-cycles, memory-cycles, constant are",
                Quantity::Power => {
                    "is no term of a power: floor, cpu-cubed, cpu, switching, leakage, memory are"
                }
            }));
        }
        if terms[..number].contains(term) {
            return Err(wrong("is there twice"));
        }
    }
    if points < terms.len() {
        return Err(FitError::TooFew {
            points,
            parameters: terms.len(),
            terms: names(terms),
        });
    }
    Ok(())
}

fn names(terms: &[Term]) -> String {
    let names: Vec<_> = terms.iter().map(|term| term.name()).collect();
    names.join(", ")
}

/// The probability of |t| at most the answer is `confidence`.
pub(crate) fn student(confidence: f64, freedom: usize) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(t.inverse_cdf(0.5 + confidence / 2.0))
}

/// Fits terms to rows with their values.
///
/// # Errors
/// [`FitError`] if the rows do not determine the parameters, or the terms are none of the quantity.
pub fn fit(
    quantity: Quantity,
    terms: &[Term],
    data: &[(Row, f64)],
    confidence: f64,
) -> Result<Fit, FitError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(FitError::Confidence(confidence));
    }
    check(quantity, terms, data.len())?;
    let (rows, measured) = matrix(terms, data)?;
    let Solution {
        parameters,
        covariance,
    } = solve(&rows, &measured).map_err(|alike| FitError::Alike {
        term: terms[alike].name(),
        before: names(&terms[..alike]),
    })?;
    let fitted = &rows * &parameters;
    let errors = &measured - &fitted;
    let freedom = data.len() - terms.len();
    let squares = errors.norm_squared();
    let variance = (freedom > 0).then(|| squares / freedom as f64);
    let about = measured.add_scalar(-measured.mean()).norm_squared();
    let leverages: Vec<f64> = rows
        .row_iter()
        .map(|row| (row * &covariance * row.transpose())[0].clamp(0.0, 1.0))
        .collect();
    // What is left of rounding is no error to be judged.
    let exact = squares.sqrt() <= 1e-12 * measured.norm();
    let residuals: Vec<Residual> = data
        .iter()
        .enumerate()
        .map(|(i, (row, value))| Residual {
            line: row.line,
            point: row.point,
            measured: *value,
            fitted: fitted[i],
            residual: errors[i],
            leverage: leverages[i],
            studentised: (!exact)
                .then(|| studentised(errors[i], leverages[i], squares, freedom))
                .flatten(),
        })
        .collect();
    let t = student(confidence, freedom.max(1));
    let parameters = terms.iter().enumerate().map(|(k, term)| {
        let value = parameters[k];
        let error = variance.map(|variance| (variance * covariance[(k, k)]).sqrt());
        Parameter {
            term: *term,
            value,
            unit: term.unit(),
            standard_error: error,
            interval: error
                .zip(t)
                .map(|(error, t)| [value - t * error, value + t * error]),
        }
    });
    let relative = |of: f64, measured: f64| of.abs() / measured.abs();
    let alone = leverages.iter().any(|leverage| *leverage > 1.0 - 1e-9);
    let left_out = residuals
        .iter()
        .map(|point| relative(point.residual / (1.0 - point.leverage), point.measured));
    Ok(Fit {
        quantity,
        points: data.len(),
        confidence,
        parameters: parameters.collect(),
        r_squared: (about > 0.0).then(|| 1.0 - squares / about),
        deviation: variance.map(f64::sqrt),
        worst_relative: residuals
            .iter()
            .map(|point| relative(point.residual, point.measured))
            .fold(0.0, f64::max),
        worst_left_out: (!alone).then(|| left_out.fold(0.0, f64::max)),
        residuals,
        covariance,
    })
}

/// A residual over its deviation, the latter estimated without the point.
fn studentised(residual: f64, leverage: f64, squares: f64, freedom: usize) -> Option<f64> {
    let left = 1.0 - leverage;
    if freedom < 2 || left < 1e-9 {
        return None;
    }
    let without = (squares - residual * residual / left) / (freedom - 1) as f64;
    let value = residual / (without * left).sqrt();
    // The others lie exactly on the fit: the point is as far out as can be.
    Some(if value.is_finite() {
        value
    } else {
        residual.signum() * f64::MAX
    })
}
