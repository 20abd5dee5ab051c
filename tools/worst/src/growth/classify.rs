//! How fast a series of exact counts grows.
//!
//! Looked at is not the count but what it gains: with constant, logarithmic, linear and quadratic
//! growth the gain of w doublings is 0, 1, 2^w and 4^w times that of the w doublings before. So
//! a large fixed part of a count does not hide what grows, and a logarithm that rises in steps is
//! still one. Looked at are all w that the sizes allow, and the middle growth counts, the slower
//! of two: where one way of a call takes over from another (the C library copies a long block
//! otherwise than a short one), some widths see a leap and others a rest.
//!
//! Invariant: a series is judged on its envelope, the most counted so far, so that a size that
//! happens to be cheap does not look like a limit.

use metes_heap::complexity::Growth;

/// A count, and the log2 of the number that grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// log2 of the size.
    pub log2: u32,
    /// Instructions.
    pub count: u64,
}

/// What a count may gain over half of a series and still be called constant. A step of a loop or
/// a level of a tree takes at least three instructions, and twice the halves see several.
pub const TOLERANCE: u64 = 8;

/// Faster than all that a heap may declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Observed {
    /// As fast as can be declared.
    Grows(Growth),
    /// Faster than with the square.
    Faster,
}

impl Observed {
    /// The usual notation.
    pub const fn notation(self) -> &'static str {
        match self {
            Observed::Grows(growth) => growth.notation(),
            Observed::Faster => "more than O(n^2)",
        }
    }
}

/// The growth of a series with rising sizes; `None` where it has no three sizes that lie the
/// same factor of at least four apart.
///
/// Growth with n log n is called linear, and one with the root of n as the range happens to show
/// it: neither is declared by any heap here.
pub fn classify(series: &[Point]) -> Option<Observed> {
    let mut most = 0;
    let envelope: Vec<Point> = series
        .iter()
        .map(|point| {
            most = point.count.max(most);
            Point {
                count: most,
                ..*point
            }
        })
        .collect();
    let last = *envelope.last()?;
    let at = |log2: u32| envelope.iter().find(|point| point.log2 == log2);
    // A size, the one as much smaller than the last, and the one as much smaller again.
    let mut windows = envelope.iter().filter_map(|middle| {
        let width = last.log2 - middle.log2;
        let first = at(middle.log2.checked_sub(width)?)?;
        (width > 0).then_some((width, last.count - middle.count, middle.count - first.count))
    });
    let widest = windows.next().filter(|(width, ..)| *width >= 2)?;
    if widest.1 <= TOLERANCE {
        // Also where it grew and has stopped: bounded, as far as the range tells.
        return Some(Observed::Grows(Growth::Constant));
    }
    let mut found: Vec<Observed> = [widest].into_iter().chain(windows).map(relative).collect();
    found.sort_unstable();
    found.get((found.len() - 1) / 2).copied()
}

/// The growth that gains so much in the last doublings, and so much in as many before.
fn relative((width, gain, before): (u32, u64, u64)) -> Observed {
    let ratio = gain as f64 / before.max(TOLERANCE) as f64;
    // The geometric means between the ratios of neighbouring growths: 1, 2^w, 4^w, 8^w.
    let below = |widths: f64| ratio < 2f64.powf(f64::from(width) * widths);
    if below(0.5) {
        Observed::Grows(Growth::Logarithmic)
    } else if below(1.5) {
        Observed::Grows(Growth::Linear)
    } else if below(2.5) {
        Observed::Grows(Growth::Quadratic)
    } else {
        Observed::Faster
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(logs: impl IntoIterator<Item = u32>, count: impl Fn(u32) -> f64) -> Vec<Point> {
        logs.into_iter()
            .map(|log2| Point {
                log2,
                count: count(log2) as u64,
            })
            .collect()
    }

    fn growth(logs: impl IntoIterator<Item = u32>, count: impl Fn(u32) -> f64) -> Observed {
        classify(&series(logs, count)).expect("enough sizes")
    }

    fn size(log2: u32) -> f64 {
        f64::from(log2).exp2()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever is fixed, however steep, on every grid that the study uses.
        #[test]
        fn formulas_are_recognised(fixed in 0f64..1000.0, slope in 5f64..60.0, grid in 0usize..4) {
            let logs: Vec<u32> = [
                (10..=20).step_by(2).collect::<Vec<_>>(),
                (4..=12).step_by(2).collect(),
                (9..=15).collect(),
                (10..=16).step_by(2).collect(),
            ][grid].clone();
            let found = |count: &dyn Fn(u32) -> f64| growth(logs.clone(), count);
            let is = Observed::Grows;
            prop_assert_eq!(found(&|_| fixed), is(Growth::Constant));
            prop_assert_eq!(found(&|log2| fixed + slope * f64::from(log2)), is(Growth::Logarithmic));
            prop_assert_eq!(found(&|log2| fixed + slope * size(log2)), is(Growth::Linear));
            prop_assert_eq!(found(&|log2| fixed + slope * size(log2).powi(2)), is(Growth::Quadratic));
            prop_assert_eq!(found(&|log2| fixed + size(log2).powi(3)), Observed::Faster);
            // What is added and grows slower does not matter.
            prop_assert_eq!(
                found(&|log2| fixed + slope * (size(log2) + 3.0 * f64::from(log2))),
                is(Growth::Linear)
            );
        }

        /// A few instructions here and there are no growth.
        #[test]
        fn noise_within_the_tolerance_is_constant(noise in prop::collection::vec(0u64..=8, 6), fixed in 20u64..200) {
            let points: Vec<Point> = (10..=20)
                .step_by(2)
                .zip(&noise)
                .map(|(log2, noise)| Point { log2, count: fixed + noise })
                .collect();
            prop_assert_eq!(classify(&points), Some(Observed::Grows(Growth::Constant)));
        }
    }

    #[test]
    fn a_logarithm_in_steps_is_one() {
        // A tree of fan-out 8 and one of fan-out 16: a level each 3 and 4 doublings.
        for period in [2, 3, 4] {
            let steps = |log2: u32| 50.0 + 12.0 * f64::from(log2 / period);
            let found = growth((10..=20).step_by(2), steps);
            assert_eq!(found, Observed::Grows(Growth::Logarithmic), "{period}");
        }
    }

    #[test]
    fn a_slope_beside_a_large_fixed_part_is_found() {
        let found = growth((10..=20).step_by(2), |log2| 10_000.0 + size(log2) / 1024.0);
        assert_eq!(found, Observed::Grows(Growth::Linear));
    }

    #[test]
    fn a_floor_before_a_slope_is_no_leap() {
        let found = growth(9..=15, |log2| (size(log2) / 16.0 + 240.0).max(493.0));
        assert_eq!(found, Observed::Grows(Growth::Linear));
        let square = growth(9..=15, |log2| size(log2).powi(2).max(4e6));
        assert_eq!(square, Observed::Grows(Growth::Quadratic));
    }

    #[test]
    fn a_bound_that_is_reached_is_constant() {
        // A table of at most 4096 entries is searched.
        let found = growth((10..=20).step_by(2), |log2| size(log2).min(4096.0));
        assert_eq!(found, Observed::Grows(Growth::Constant));
    }

    #[test]
    fn too_few_sizes_have_no_growth() {
        assert_eq!(classify(&[]), None);
        assert_eq!(classify(&series(10..=13, size)), None);
        assert!(classify(&series(10..=14, size)).is_some());
        assert_eq!(classify(&series([4, 7, 9], size)), None);
    }
}
