//! A histogram over powers of two.
//!
//! Invariant: `count`, `sum` and `longest` are exact; a bucket holds the values
//! from `from` up to the next bucket's `from`, and the first holds 0 alone.

use serde::Serialize;

/// Values by powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// Values added.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The largest of them.
    pub longest: u64,
    /// From the smallest value's bucket 0 up to that of the largest.
    pub buckets: Vec<Bucket>,
}

/// Values from `from` up to twice that, or 0 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Smallest value that belongs here.
    pub from: u64,
    /// Values here.
    pub count: u64,
}

impl Histogram {
    /// Adds a value. O(1) amortised.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.longest = self.longest.max(value);
        let index = (u64::BITS - value.leading_zeros()) as usize;
        while self.buckets.len() <= index {
            let from = match self.buckets.len() {
                0 => 0,
                n => 1 << (n - 1),
            };
            self.buckets.push(Bucket { from, count: 0 });
        }
        self.buckets[index].count += 1;
    }

    /// Mean of the values; None if there are none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The value that the share `share` (0 to 1) of the values does not exceed,
    /// up to the width of its bucket; None if there are no values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        let found = self.buckets.iter().find(|bucket| {
            seen += bucket.count;
            seen >= wanted && bucket.count > 0
        })?;
        Some(
            found
                .from
                .saturating_mul(2)
                .saturating_sub(1)
                .min(self.longest),
        )
    }
}
