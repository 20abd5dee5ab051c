//! The little statistics that the experiments need.
//!
//! Invariant: exact formulas over the given values; nothing is sampled.

/// Spearman's rank correlation, from -1 to 1; equal values share their mean rank.
/// None if either side does not vary. What is beyond the shorter side is left out.
/// O(n log n).
pub(crate) fn rank_correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let length = one.len().min(other.len());
    let (one, other) = (ranks(&one[..length]), ranks(&other[..length]));
    let mean = (length as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = product(&one, &one) * product(&other, &other);
    (spread > 0.0).then(|| product(&one, &other) / spread.sqrt())
}

/// Ranks from 1; equal values share their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for &place in tied {
            ranks[place] = mean;
        }
        before += tied.len();
    }
    ranks
}

/// The expected least of `count` values drawn without return; `sorted` ascends.
/// None of no values. O(n).
pub(crate) fn expected_least(sorted: &[f64], count: usize) -> Option<f64> {
    let (total, count) = (sorted.len() as f64, count.min(sorted.len()) as f64);
    if count == 0.0 {
        return None;
    }
    // That the value at place i is the least drawn: C(n-i-1, k-1) / C(n, k).
    let mut probability = count / total;
    let mut expected = 0.0;
    for (place, value) in sorted.iter().enumerate() {
        expected += probability * value;
        let behind = total - place as f64 - 1.0;
        if behind <= 0.0 {
            break;
        }
        probability *= ((behind - count + 1.0) / behind).max(0.0);
    }
    Some(expected)
}

/// The linear correlation (Pearson's), from -1 to 1; none if either side does not vary. What is
/// beyond the shorter side is left out.
pub(crate) fn correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let length = one.len().min(other.len());
    let (one, other) = (&one[..length], &other[..length]);
    let (mean_one, mean_other) = (mean(one)?, mean(other)?);
    let product = |a: &[f64], mean_a: f64, b: &[f64], mean_b: f64| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - mean_a) * (b - mean_b))
            .sum()
    };
    let spread =
        product(one, mean_one, one, mean_one) * product(other, mean_other, other, mean_other);
    (spread > 0.0).then(|| product(one, mean_one, other, mean_other) / spread.sqrt())
}

/// The standard deviation of all values there are; none of no values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / values.len() as f64).sqrt())
}

/// The mean; none of no values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_as_in_the_textbook() {
        let close = |value: Option<f64>, wanted: f64| {
            let value = value.expect("both sides vary");
            assert!((value - wanted).abs() < 1e-9, "{value} {wanted}");
        };
        close(rank_correlation(&[1.0, 2.0, 5.0], &[10.0, 40.0, 90.0]), 1.0);
        close(rank_correlation(&[1.0, 2.0, 5.0], &[3.0, 2.0, 1.0]), -1.0);
        // 1 - 6 * 194 / (10 * 99): intelligence and hours of television.
        let quotient = [106., 100., 86., 101., 99., 103., 97., 113., 112., 110.];
        let hours = [7., 27., 2., 50., 28., 29., 20., 12., 6., 17.];
        close(rank_correlation(&quotient, &hours), -29.0 / 165.0);
        // Ties: ranks 1.5, 1.5, 3 against 1, 2, 3.
        close(
            rank_correlation(&[4.0, 4.0, 9.0], &[1.0, 2.0, 3.0]),
            0.75_f64.sqrt(),
        );
        assert_eq!(rank_correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(rank_correlation(&[], &[]), None);
    }

    #[test]
    fn the_least_of_some_is_that_of_all_subsets() {
        let values = [1.0, 3.0, 4.0, 10.0];
        // All six pairs: 1, 1, 1, 3, 3, 4.
        let pairs = expected_least(&values, 2).expect("there are values");
        assert!((pairs - 13.0 / 6.0).abs() < 1e-12, "{pairs}");
        assert_eq!(expected_least(&values, 1), mean(&values));
        assert_eq!(expected_least(&values, 4), Some(1.0));
        assert_eq!(expected_least(&values, 9), Some(1.0));
        assert_eq!(expected_least(&[], 3), None);
        assert_eq!(expected_least(&values, 0), None);
    }
}
