//! What a sweep says of the plasma: its potential, the temperature of its electrons, both saturation currents.
//!
//! The model is that of a small sphere whose charges move freely around it (orbital-motion-limited; Mott-Smith and
//! Langmuir, Physical Review 28, 1926): with x = (V - P) / T, electrons bring exp(x) below the plasma potential P and
//! 1 + x above, ions 1 - x below and exp(-x) above. For any P and T the two currents follow by linear least squares; so
//! a search in two dimensions remains, over a grid that closes in.
//!
//! *Invariant:* units are those of the points: codes in, codes out. Where the points do not show both branches, the answer
//! is a sentence and no figure.

use serde::Serialize;

/// What a fit of a sweep found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Bias at which the probe draws no current; none if that is outside of the sweep.
    pub floating: Option<f64>,
    /// Plasma potential.
    pub plasma: f64,
    /// Bias over which the electrons' current grows by e.
    pub temperature: f64,
    /// Ion current at the plasma potential.
    pub ion: f64,
    /// Electron current at the plasma potential.
    pub electron: f64,
    /// Share of the variance that the model explains.
    pub explained: f64,
    /// The fitted characteristic: bias, current.
    pub curve: Vec<(f64, f64)>,
}

/// Fewest points of a sweep that is fitted.
const FEWEST: usize = 50;
/// Points of the first look, and of a curve.
const FEW: usize = 128;
/// Least share of the variance that a fit has to explain.
const EXPLAINED: f64 = 0.98;

/// Fits a characteristic, whose points are (bias, current) in the order of the bias. O(points).
///
/// # Errors
/// Why there is nothing to be fitted.
pub fn fit(points: &[(f64, f64)]) -> Result<Fit, &'static str> {
    if points.len() < FEWEST {
        return Err("too few steps for a fit");
    }
    let (least, most) = (points[0].0, points[points.len() - 1].0);
    let span = most - least;
    if span <= 0.0 {
        return Err("the bias does not rise");
    }
    let few: Vec<(f64, f64)> = thinned(points).collect();
    // The temperature by powers, as it may be any part of the range.
    let grid = (1..24).flat_map(|p| (0..24).map(move |t| (p, t)));
    let coarse = grid
        .map(|(p, t)| {
            (
                least + span * f64::from(p) / 24.0,
                span * 0.5_f64.powf(f64::from(t) / 3.0),
            )
        })
        .filter_map(|(plasma, temperature)| solve(&few, plasma, temperature))
        .min_by(|a, b| a.rest.total_cmp(&b.rest));
    let mut best = coarse.ok_or("no characteristic fits")?;
    let (mut wide, mut factor) = (span / 24.0, 1.3_f64);
    for _ in 0..48 {
        let around = [-1.0, -0.5, 0.0, 0.5, 1.0];
        let places = around
            .iter()
            .flat_map(|p| around.iter().map(move |t| (p, t)));
        let nearer = places
            .filter_map(|(p, t)| {
                solve(
                    points,
                    best.plasma + p * wide,
                    best.temperature * factor.powf(*t),
                )
            })
            .min_by(|a, b| a.rest.total_cmp(&b.rest));
        best = nearer.unwrap_or(best);
        wide *= 0.75;
        factor = factor.powf(0.75);
    }
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let variance: f64 = points.iter().map(|point| (point.1 - mean).powi(2)).sum();
    let rest = solve(points, best.plasma, best.temperature).map_or(f64::MAX, |one| one.rest);
    let explained = 1.0 - rest / variance;
    // Not a number where nothing varies.
    if best.electron <= 0.0 || explained.is_nan() || explained < EXPLAINED {
        return Err("no characteristic fits");
    }
    if best.plasma <= least + span * 0.02 || best.plasma >= most - span * 0.02 {
        return Err("the plasma potential is outside of the sweep");
    }
    let curve: Vec<(f64, f64)> = thinned(points)
        .map(|(bias, _)| (bias, best.at(bias)))
        .collect();
    Ok(Fit {
        floating: curve
            .windows(2)
            .find(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)
            .map(|pair| crossing(&best, pair[0].0, pair[1].0)),
        plasma: best.plasma,
        temperature: best.temperature,
        ion: best.ion,
        electron: best.electron,
        explained,
        curve,
    })
}

/// Some of the points, the first and the last among them.
fn thinned(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let count = points.len().min(FEW);
    let last = points.len() - 1;
    (0..count).map(move |k| points[k * last / (count - 1)])
}

/// Where between two biases the model has no current.
fn crossing(model: &Model, mut below: f64, mut above: f64) -> f64 {
    for _ in 0..40 {
        let middle = f64::midpoint(below, above);
        if model.at(middle) < 0.0 {
            below = middle;
        } else {
            above = middle;
        }
    }
    below
}

/// A model, and the sum of squares that it leaves.
#[derive(Clone, Copy)]
struct Model {
    plasma: f64,
    temperature: f64,
    electron: f64,
    ion: f64,
    rest: f64,
}

impl Model {
    fn at(&self, bias: f64) -> f64 {
        let (electrons, ions) = branches((bias - self.plasma) / self.temperature);
        self.electron * electrons - self.ion * ions
    }
}

/// What both charges bring, each in units of its own saturation current.
fn branches(x: f64) -> (f64, f64) {
    if x < 0.0 {
        (x.exp(), 1.0 - x)
    } else {
        (1.0 + x, (-x).exp())
    }
}

/// The currents that fit best at a potential and a temperature; none where they are not determined.
fn solve(points: &[(f64, f64)], plasma: f64, temperature: f64) -> Option<Model> {
    let (mut ee, mut ei, mut ii, mut ey, mut iy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(bias, current) in points {
        let (electrons, ions) = branches((bias - plasma) / temperature);
        ee += electrons * electrons;
        ei += electrons * ions;
        ii += ions * ions;
        ey += electrons * current;
        iy -= ions * current;
    }
    let determinant = ee * ii - ei * ei;
    if !determinant.is_finite() || determinant <= ee * ii * 1e-12 {
        return None;
    }
    let mut model = Model {
        plasma,
        temperature,
        electron: (ey * ii + iy * ei) / determinant,
        ion: (iy * ee + ey * ei) / determinant,
        rest: 0.0,
    };
    model.rest = points
        .iter()
        .map(|&(bias, current)| (current - model.at(bias)).powi(2))
        .sum();
    Some(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characteristic(steps: usize, plasma: f64, temperature: f64, noise: f64) -> Vec<(f64, f64)> {
        let mut random = metes_random::Random::new(5);
        let made = Model {
            plasma,
            temperature,
            electron: 80_000.0,
            ion: 480.0,
            rest: 0.0,
        };
        (0..steps)
            .map(|step| {
                let bias = -32_768.0 + 65_535.0 * step as f64 / (steps - 1) as f64;
                let stray = (random.below(2001) as f64 - 1000.0) / 1000.0 * noise;
                (bias, made.at(bias) + stray)
            })
            .collect()
    }

    #[test]
    fn a_characteristic_gives_back_what_it_was_made_of() {
        for (steps, noise, within) in [
            (600, 0.0, 0.005),
            (1000, 0.0, 0.005),
            (600, 20.0, 0.03),
            (1000, 20.0, 0.03),
        ] {
            for (plasma, temperature) in [
                (-6500.0, 3300.0),
                (0.0, 6000.0),
                (13_000.0, 13_000.0),
                (4000.0, 9000.0),
            ] {
                let found = fit(&characteristic(steps, plasma, temperature, noise)).expect("a fit");
                let told = format!("{steps} {noise} {plasma} {temperature}: {found:?}");
                assert!(
                    (found.temperature / temperature - 1.0).abs() < within,
                    "{told}"
                );
                assert!(
                    (found.plasma - plasma).abs() < within * temperature,
                    "{told}"
                );
                assert!(
                    (found.electron / 80_000.0 - 1.0).abs() < 2.0 * within,
                    "{told}"
                );
                assert!(found.explained > 0.999, "{told}");
            }
        }
    }

    #[test]
    fn the_floating_potential_is_where_no_current_flows() {
        let found = fit(&characteristic(1000, 4000.0, 3300.0, 0.0)).expect("a fit");
        let floating = found.floating.expect("it is inside");
        let x = (floating - 4000.0) / 3300.0;
        let electrons = 80_000.0 * x.exp();
        assert!(
            (electrons / (480.0 * (1.0 - x)) - 1.0).abs() < 0.01,
            "{floating}"
        );
        // At a high temperature electrons arrive at any bias of the sweep.
        let warm = fit(&characteristic(1000, -6500.0, 13_000.0, 0.0)).expect("a fit");
        assert_eq!(warm.floating, None);
    }

    #[test]
    fn what_is_no_characteristic_is_not_fitted() {
        assert!(fit(&characteristic(20, 0.0, 6000.0, 0.0)).is_err());
        let flat: Vec<(f64, f64)> = (0..600).map(|k| (f64::from(k), 7.0)).collect();
        assert!(fit(&flat).is_err());
        assert!(fit(&vec![(1.0, 1.0); 600]).is_err());
        let mut random = metes_random::Random::new(1);
        let noise: Vec<(f64, f64)> = (0..600)
            .map(|k| (f64::from(k), random.below(1000) as f64))
            .collect();
        assert!(fit(&noise).is_err());
    }
}
