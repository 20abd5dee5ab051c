//! Arrays of kernels: made and filled, and their checksums.
//!
//! *Invariant:* an array is written whole when it is made, so that its pages are touched as those of a C program are that
//! asks `malloc` for them.

/// A vector.
pub(crate) fn vector<T>(n: usize, value: impl Fn(usize) -> T) -> Vec<T> {
    let mut vector = Vec::with_capacity(n);
    vector.extend((0..n).map(value));
    vector
}

/// A matrix, row by row.
pub(crate) fn matrix<T>(rows: usize, columns: usize, value: impl Fn(usize, usize) -> T) -> Vec<T> {
    let mut matrix = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        matrix.extend((0..columns).map(|j| value(i, j)));
    }
    matrix
}

/// A number of a sequence, from 0 to below 1, that repeats after `n`.
pub(crate) fn fraction(value: usize, n: usize) -> f64 {
    (value % n) as f64 / n as f64
}

/// y += a x.
pub(crate) fn add_scaled(y: &mut [f64], a: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// x · y, from left to right.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y)
}

/// The running checksum of values.
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) fn new() -> Checksum {
        Checksum(0x6a09_e667_f3bc_c908)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    pub(crate) fn of(mut self, values: &[f64]) -> Checksum {
        let mut finite = true;
        for value in values {
            finite &= value.is_finite();
            self.word(value.to_bits());
        }
        assert!(finite, "a kernel has left the finite numbers");
        self
    }

    pub(crate) fn of_single(mut self, values: &[f32]) -> Checksum {
        let mut finite = true;
        for value in values {
            finite &= value.is_finite();
            self.word(u64::from(value.to_bits()));
        }
        assert!(finite, "a kernel has left the finite numbers");
        self
    }

    pub(crate) fn of_integers(mut self, values: &[i32]) -> Checksum {
        for value in values {
            self.word(u64::from(value.cast_unsigned()));
        }
        self
    }

    pub(crate) fn end(self) -> u64 {
        self.0
    }
}
