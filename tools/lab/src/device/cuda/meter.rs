//! What is read before and after a call: on a device a clock, on the model of the driver the
//! number of its calls, which is exact there.
//!
//! Invariant: no time is read on the model.

use std::time::Instant;

use serde::Serialize;

use super::super::measure::clock;
use super::driver::{Device, Model};

/// A clock or a counter.
pub(super) enum Meter {
    /// Nanoseconds since then.
    Clock(Instant),
    /// Calls of the driver.
    Calls(Model),
}

impl Meter {
    pub(super) fn of(device: &Device) -> Self {
        match device.model() {
            None => Meter::Clock(Instant::now()),
            Some(model) => Meter::Calls(model),
        }
    }

    pub(super) fn is_clock(&self) -> bool {
        matches!(self, Meter::Clock(_))
    }

    #[inline(always)]
    pub(super) fn read(&self) -> u64 {
        match self {
            Meter::Clock(begin) => begin.elapsed().as_nanos() as u64,
            Meter::Calls(model) => model.calls(),
        }
    }

    #[inline(always)]
    pub(super) fn since(&self, before: u64) -> u64 {
        self.read() - before
    }

    /// Seconds, without what reading the clock takes; none on the model.
    pub(super) fn seconds(&self, found: Option<Distribution>) -> Option<Distribution> {
        let found = found.filter(|_| self.is_clock())?;
        let own = f64::from(clock());
        Some(found.map(|nanoseconds| (nanoseconds - own).max(0.0) * 1e-9))
    }

    /// Calls of the driver; none on a device.
    pub(super) fn calls(&self, found: Option<Distribution>) -> Option<Distribution> {
        found.filter(|_| !self.is_clock())
    }
}

/// Values of many calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// How many.
    pub count: usize,
    /// Of half of them.
    pub median: f64,
    /// Of 99 of 100.
    pub percentile_99: f64,
    /// Of all.
    pub most: f64,
    /// In the mean.
    pub mean: f64,
}

impl Distribution {
    /// `None` of no values.
    pub(super) fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let at = |part: f64| {
            let rank = (values.len() as f64 * part).ceil() as usize;
            values.get(rank.max(1) - 1).map(|value| *value as f64)
        };
        Some(Distribution {
            count: values.len(),
            median: at(0.5)?,
            percentile_99: at(0.99)?,
            most: at(1.0)?,
            mean: values.iter().sum::<u64>() as f64 / values.len() as f64,
        })
    }

    pub(super) fn map(self, by: impl Fn(f64) -> f64) -> Self {
        Distribution {
            count: self.count,
            median: by(self.median),
            percentile_99: by(self.percentile_99),
            most: by(self.most),
            mean: by(self.mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_values() {
        let found = Distribution::of((1..=200).rev().collect()).unwrap();
        assert_eq!(
            (found.count, found.median, found.percentile_99, found.most),
            (200, 100.0, 198.0, 200.0)
        );
        assert!((found.mean - 100.5).abs() < 1e-12);
        let one = Distribution::of(vec![7]).unwrap();
        assert_eq!((one.median, one.percentile_99, one.most), (7.0, 7.0, 7.0));
        assert_eq!(Distribution::of(Vec::new()), None);
    }
}
