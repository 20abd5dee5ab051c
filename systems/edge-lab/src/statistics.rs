//! What is said of many values.
//!
//! *Invariant:* a quantile is one of the values.

/// The value that a share of all do not exceed; none of none.
#[must_use]
pub fn quantile(values: &[u64], share: f64) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().checked_sub(1)?;
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.saturating_sub(1).min(last)).copied()
}

/// The median.
#[must_use]
pub fn median(values: &[u64]) -> Option<u64> {
    quantile(values, 0.5)
}

/// The geometric mean of positive numbers; none of none.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// The median of numbers; none of none.
#[must_use]
pub fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values() {
        let values = [5, 1, 4, 2, 3];
        assert_eq!(median(&values), Some(3));
        assert_eq!(quantile(&values, 0.0), Some(1));
        assert_eq!(quantile(&values, 0.9), Some(5));
        assert_eq!(quantile(&values, 1.0), Some(5));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[2, 1]), Some(1));
    }

    #[test]
    fn means_of_ratios() {
        assert_eq!(geometric_mean(&[]), None);
        let mean = geometric_mean(&[0.5, 2.0]).expect("of two");
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(middle(&[3.0, 1.0, 2.0]), Some(2.0));
    }
}
