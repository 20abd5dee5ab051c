//! What a fit says where nothing was measured, and what speaks against it.
//!
//! Invariant: whatever is foretold comes with its interval, or with none, and with the reason why the data do not reach it.

use nalgebra::DVector;

use super::{Fit, Foretold, student};
use crate::model::{Model, Point};

impl Fit {
    /// The model alone.
    #[must_use]
    pub fn model(&self) -> Model {
        Model {
            quantity: self.quantity,
            terms: self
                .parameters
                .iter()
                .map(|parameter| (parameter.term, parameter.value))
                .collect(),
        }
    }

    /// Foretells the quantity at a point; none where a term needs a voltage.
    #[must_use]
    pub fn foretell(&self, point: Point) -> Option<Foretold> {
        let value = self.model().at(point)?;
        let row: Option<Vec<f64>> = self
            .parameters
            .iter()
            .map(|parameter| parameter.term.at(point))
            .collect();
        let row = DVector::from_vec(row?);
        let leverage = row.dot(&(&self.covariance * &row));
        let freedom = self.points - self.parameters.len();
        let half = self
            .deviation
            .zip(student(self.confidence, freedom.max(1)))
            .map(|(deviation, t)| t * deviation * (1.0 + leverage).sqrt());
        Some(Foretold {
            point,
            value,
            interval: half.map(|half| [value - half, value + half]),
            extrapolated: self.beyond(point, leverage),
        })
    }

    /// Why the data do not reach a point: a frequency out of their range, or a pair unlike all of theirs.
    fn beyond(&self, point: Point, leverage: f64) -> Option<String> {
        let outside = |name: &str, of: fn(Point) -> f64| {
            let values = self.residuals.iter().map(|measured| of(measured.point));
            let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
                (least.min(value), most.max(value))
            });
            let slack = 1e-9 * most;
            let inside = (least - slack..=most + slack).contains(&of(point));
            let mhz = |ghz: f64| (ghz * 1e6).round() / 1e3;
            (!inside).then(|| {
                format!(
                    "the {name}'s {} MHz lie outside of the measured {} to {} MHz",
                    mhz(of(point)),
                    mhz(least),
                    mhz(most)
                )
            })
        };
        let far = || {
            let most = self
                .residuals
                .iter()
                .map(|measured| measured.leverage)
                .fold(0.0, f64::max);
            (leverage > most * (1.0 + 1e-6))
                .then(|| format!("the pair {point} is unlike all that were measured"))
        };
        outside("processor", |point| point.cpu)
            .or_else(|| outside("memory", |point| point.memory))
            .or_else(far)
    }

    /// What about the parameters themselves speaks against the model.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        for parameter in &self.parameters {
            let name = parameter.term.name();
            match parameter.interval {
                _ if parameter.value < 0.0 => doubts.push(format!(
                    "{name} is negative, which no hardware is: the model does not fit, or its term is drowned in noise"
                )),
                Some([low, _]) if low <= 0.0 => {
                    doubts.push(format!("{name} may be 0: the interval covers it"));
                }
                _ => {}
            }
        }
        if self.points == self.parameters.len() {
            doubts.push(
                "as many points as parameters: the fit passes through all, and nothing tells its error"
                    .to_owned(),
            );
        }
        doubts
    }
}
