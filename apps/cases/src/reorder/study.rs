//! One set of curves, convolved in every order and by every tree.
//!
//! Invariant: a run whose result is not the same struct as that of every other order is an
//! error, not a figure.

use std::collections::HashMap;
use std::time::Instant;

use metes_curve::plan::{
    Chain, Estimate, FirstPair, NextCurve, Plan, costs_of_trees, orders, splits,
};
use metes_curve::{Algebra, Curve};

use super::Error;

/// Runs of each computation: the first is dropped, of the others the median is taken.
pub(super) const RUNS: usize = 4;

/// What was measured of one set.
pub(super) struct Study {
    /// Seconds of every order.
    pub(super) orders: Vec<(Vec<usize>, f64)>,
    /// Seconds of every way to split a subset in two.
    splits: HashMap<(u32, u32), f64>,
    /// Seconds of every tree, as sums of their convolutions.
    pub(super) trees: Vec<f64>,
    /// Result of every subset.
    results: Vec<Option<Curve>>,
}

impl Study {
    pub(super) fn of(
        curves: &[Curve],
        algebra: &Algebra,
        tell: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let mut results: Vec<Option<Curve>> = vec![None; 1 << curves.len()];
        let mut timed = HashMap::new();
        for set in 1..1_u32 << curves.len() {
            if set.count_ones() == 1 {
                results[set as usize] = Some(curves[set.trailing_zeros() as usize].clone());
                continue;
            }
            for (one, other) in splits(set) {
                let parts = [one, other].map(|part| results[part as usize].as_ref());
                let [Some(left), Some(right)] = parts else {
                    continue;
                };
                let (seconds, result) = median(|| algebra.convolution(left, right))?;
                timed.insert((one, other), seconds);
                match &results[set as usize] {
                    Some(earlier) if *earlier != result => return Err(Error::Differs),
                    Some(_) => {}
                    None => results[set as usize] = Some(result),
                }
            }
        }
        let whole = results.last().cloned().flatten();
        let mut ordered = Vec::new();
        let all = orders(curves.len());
        for (number, order) in all.iter().enumerate() {
            if number % 40 == 0 {
                tell(&format!("order {number} of {}", all.len()));
            }
            let (seconds, chain) = chain(curves, algebra, &Plan::Order(order.clone()))?;
            if Some(&chain.curve) != whole.as_ref() {
                return Err(Error::Differs);
            }
            ordered.push((order.clone(), seconds));
        }
        let cost = |one: u32, other: u32| timed.get(&(one, other)).copied().unwrap_or(f64::NAN);
        Ok(Study {
            orders: ordered,
            trees: costs_of_trees(curves.len(), &cost),
            splits: timed,
            results,
        })
    }

    /// Mean seconds of all orders.
    pub(super) fn mean(&self) -> f64 {
        let all: f64 = self.orders.iter().map(|(_, seconds)| seconds).sum();
        all / self.orders.len() as f64
    }

    /// Seconds of the best and of the worst order.
    pub(super) fn extremes(&self) -> (f64, f64) {
        let seconds = self.orders.iter().map(|(_, seconds)| *seconds);
        seconds.fold((f64::INFINITY, 0.0), |(best, worst), next| {
            (best.min(next), worst.max(next))
        })
    }

    /// How many orders of a hundred take less.
    pub(super) fn percentile(&self, seconds: f64) -> f64 {
        let faster = self.orders.iter().filter(|(_, other)| *other < seconds);
        100.0 * faster.count() as f64 / self.orders.len() as f64
    }

    /// The order that a pair of policies chooses, its seconds, and those spent on estimates. The
    /// runtime as an estimate is that measured before, and is not counted.
    pub(super) fn chosen(
        &self,
        algebra: &Algebra,
        first: FirstPair,
        next: NextCurve,
        estimate: Estimate,
    ) -> Result<Chosen, Error> {
        let mut spent = 0.0;
        let mut cost = |one: u32, other: u32| -> Result<f64, Error> {
            let (low, high) = match one.trailing_zeros() < other.trailing_zeros() {
                true => (one, other),
                false => (other, one),
            };
            if estimate == Estimate::Runtime {
                return Ok(self.splits.get(&(low, high)).copied().unwrap_or(f64::NAN));
            }
            let parts = [low, high].map(|part| self.results[part as usize].as_ref());
            let [Some(left), Some(right)] = parts else {
                return Err(Error::Differs);
            };
            let begin = Instant::now();
            let cost = algebra.estimated(estimate, left, right)?;
            spent += begin.elapsed().as_secs_f64();
            Ok(cost)
        };
        let count = self.results.len().trailing_zeros() as usize;
        let (one, other) = first.choose(count, |one, other| cost(1 << one, 1 << other))?;
        let mut order = vec![one.min(other), one.max(other)];
        while order.len() < count {
            let so_far: u32 = order.iter().map(|curve| 1 << curve).sum();
            let left: Vec<usize> = (0..count).filter(|curve| !order.contains(curve)).collect();
            order.push(next.choose(&left, |curve| cost(so_far, 1 << curve))?);
        }
        let seconds = self.orders.iter().find(|(known, _)| *known == order);
        let Some((_, seconds)) = seconds else {
            return Err(Error::Differs);
        };
        Ok(Chosen {
            seconds: *seconds,
            estimating: spent,
        })
    }
}

/// What a pair of policies comes to.
pub(super) struct Chosen {
    pub(super) seconds: f64,
    pub(super) estimating: f64,
}

/// A chain under a plan: median seconds, and the chain of a run.
pub(super) fn chain(
    curves: &[Curve],
    algebra: &Algebra,
    plan: &Plan,
) -> Result<(f64, Chain), Error> {
    median(|| algebra.chain(curves, plan))
}

/// Seconds of a plan, of those that choosing took, and of another plan: medians of so many runs of
/// each, by turns.
pub(super) fn duel(
    curves: &[Curve],
    algebra: &Algebra,
    [ours, theirs]: [&Plan; 2],
    runs: usize,
) -> Result<[f64; 3], Error> {
    let mut seconds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs {
        let begin = Instant::now();
        let chain = std::hint::black_box(algebra.chain(curves, ours)?);
        seconds[0].push(begin.elapsed().as_secs_f64());
        seconds[1].push(chain.planning_seconds);
        let begin = Instant::now();
        std::hint::black_box(algebra.chain(curves, theirs)?);
        seconds[2].push(begin.elapsed().as_secs_f64());
    }
    Ok(seconds.map(|mut seconds| {
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    }))
}

/// Seconds of one convolution.
pub(super) fn seconds(algebra: &Algebra, f: &Curve, g: &Curve) -> Result<f64, Error> {
    Ok(median(|| algebra.convolution(f, g))?.0)
}

fn median<T>(mut run: impl FnMut() -> Result<T, metes_curve::Error>) -> Result<(f64, T), Error> {
    let mut seconds = Vec::with_capacity(RUNS);
    loop {
        let begin = Instant::now();
        let result = run()?;
        seconds.push(begin.elapsed().as_secs_f64());
        if seconds.len() == RUNS {
            let mut kept = seconds.split_off(1);
            kept.sort_by(f64::total_cmp);
            return Ok((kept[kept.len() / 2], result));
        }
    }
}
