//! What a sweep says of the plasma: floating and plasma potential, electron temperature.
//!
//! The analysis is that of a retarding characteristic: the ion branch is a straight line through the most negative
//! biases; what exceeds it is the electrons' current, which grows as exp(V / T) up to the plasma potential, the
//! bias at which the current rises fastest (Mott-Smith and Langmuir, Physical Review 28, 1926).
//!
//! *Invariant:* units are those of the points: codes in, codes out. Where the points do not show a characteristic, the
//! answer is a sentence and no figure.

use serde::Serialize;

/// What a fit of a sweep found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Bias at which the probe draws no current.
    pub floating: f64,
    /// Bias at which the current rises fastest.
    pub plasma: f64,
    /// Bias over which the electrons' current grows by e.
    pub temperature: f64,
    /// Ion current at the floating potential.
    pub ion: f64,
    /// Electron current at the plasma potential, as fitted.
    pub electron: f64,
    /// Points from which the temperature was fitted.
    pub points: usize,
    /// The fitted characteristic up to the plasma potential: bias, current.
    pub curve: Vec<(f64, f64)>,
}

/// Fewest points of a sweep that is fitted.
const FEWEST: usize = 50;
/// Fewest points for the temperature.
const FEWEST_RETARDED: usize = 8;

/// Fits a characteristic, whose points are (bias, current) in the order of the bias. O(points · window).
///
/// # Errors
/// Why there is nothing to be fitted.
pub fn fit(points: &[(f64, f64)]) -> Result<Fit, &'static str> {
    if points.len() < FEWEST {
        return Err("too few steps for a fit");
    }
    let ions = line(&points[..points.len() / 5]).ok_or("the bias does not rise")?;
    let electrons: Vec<(f64, f64)> = points
        .iter()
        .map(|&(bias, current)| (bias, current - ions.at(bias)))
        .collect();
    let floating = points
        .windows(2)
        .find(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)
        .map(crossing)
        .ok_or("the current does not cross zero")?;
    let top = steepest(points);
    let (plasma, most) = electrons[top];
    let retarded: Vec<(f64, f64)> = electrons[..top]
        .iter()
        .filter(|&&(_, current)| current > 0.05 * most && current < 0.6 * most)
        .map(|&(bias, current)| (bias, current.ln()))
        .collect();
    if retarded.len() < FEWEST_RETARDED {
        return Err("too few steps where electrons are retarded");
    }
    let slope = line(&retarded).ok_or("the bias does not rise")?;
    if slope.rise <= 0.0 || slope.explained < 0.8 {
        return Err("the current does not grow exponentially where electrons are retarded");
    }
    let modelled = |bias: f64| ions.at(bias) + slope.at(bias).exp();
    Ok(Fit {
        floating,
        plasma,
        temperature: 1.0 / slope.rise,
        ion: ions.at(floating),
        electron: slope.at(plasma).exp(),
        points: retarded.len(),
        curve: points[..=top]
            .iter()
            .map(|&(bias, _)| (bias, modelled(bias)))
            .collect(),
    })
}

/// Where the line through two points has no current.
fn crossing(pair: &[(f64, f64)]) -> f64 {
    let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
    x0 + (x1 - x0) * -y0 / (y1 - y0)
}

/// Index of the point around which the current rises fastest.
fn steepest(points: &[(f64, f64)]) -> usize {
    let reach = (points.len() / 60).max(2);
    let rise = |middle: usize| {
        line(&points[middle - reach..=middle + reach]).map_or(f64::MIN, |line| line.rise)
    };
    (reach..points.len() - reach)
        .max_by(|&a, &b| rise(a).total_cmp(&rise(b)))
        .unwrap_or(0)
}

/// A straight line, and which share of the values' variance it explains.
struct Line {
    rise: f64,
    middle: (f64, f64),
    explained: f64,
}

impl Line {
    fn at(&self, x: f64) -> f64 {
        self.middle.1 + (x - self.middle.0) * self.rise
    }
}

/// The line of least squares; none through points of one x.
fn line(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let middle = (mean(|point| point.0), mean(|point| point.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for &(x, y) in points {
        let (dx, dy) = (x - middle.0, y - middle.1);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    (xx > 0.0).then(|| Line {
        rise: xy / xx,
        middle,
        explained: if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe in a plasma: ions that a line describes, retarded electrons, then a square root.
    fn characteristic(steps: usize, noise: f64) -> Vec<(f64, f64)> {
        let mut random = metes_random::Random::new(5);
        (0..steps)
            .map(|step| {
                let bias = -30_000.0 + 60_000.0 * step as f64 / (steps - 1) as f64;
                let beyond = (bias - 4000.0) / 2500.0;
                let electrons = if beyond < 0.0 {
                    100_000.0 * beyond.exp()
                } else {
                    100_000.0 * (1.0 + beyond).sqrt()
                };
                let stray = (random.below(2001) as f64 - 1000.0) / 1000.0 * noise;
                (bias, electrons - 1500.0 + 0.01 * bias + stray)
            })
            .collect()
    }

    #[test]
    fn a_characteristic_gives_back_what_it_was_made_of() {
        for (steps, noise) in [(600, 0.0), (1000, 0.0), (600, 300.0), (1000, 300.0)] {
            let found = fit(&characteristic(steps, noise)).expect("a fit");
            assert!((found.temperature - 2500.0).abs() < 100.0, "{steps}: {found:?}");
            assert!((found.plasma - 4000.0).abs() < 600.0, "{steps}: {found:?}");
            // 100000 exp(x / 2500) = 1500 - 0.01 V
            assert!((found.floating + 6420.0).abs() < 120.0, "{steps}: {found:?}");
            assert!(found.curve.iter().all(|&(bias, _)| bias <= found.plasma));
        }
    }

    #[test]
    fn what_is_no_characteristic_is_not_fitted() {
        assert!(fit(&characteristic(20, 0.0)).is_err());
        let flat: Vec<(f64, f64)> = (0..600).map(|k| (f64::from(k), 7.0)).collect();
        assert!(fit(&flat).is_err());
        let same = vec![(1.0, 1.0); 600];
        assert!(fit(&same).is_err());
        let straight: Vec<(f64, f64)> = (0..600).map(|k| (f64::from(k), f64::from(k - 300))).collect();
        assert!(fit(&straight).is_err());
    }
}
