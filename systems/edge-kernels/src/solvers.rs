//! Decompositions, and systems of equations.
//!
//! *Invariant:* matrices are drawn so that no divisor is near zero: diagonals outweigh their rows, and Toeplitz systems
//! are of a convex falling sequence.

use crate::arrays::{Checksum, add_scaled, dot, fraction, matrix, vector};

pub(crate) fn lu(n: usize) -> u64 {
    let mut a = matrix(n, n, |i, j| {
        let weight = if i == j { n as f64 } else { 0.0 };
        fraction(i * j + 1, n) + weight
    });
    for i in 1..n {
        let (above, below) = a.split_at_mut(i * n);
        let row = &mut below[..n];
        for (k, other) in above.chunks_exact(n).enumerate() {
            let factor = row[k] / other[k];
            row[k] = factor;
            add_scaled(&mut row[k + 1..], -factor, &other[k + 1..]);
        }
    }
    Checksum::new().of(&a).end()
}

pub(crate) fn cholesky(n: usize) -> u64 {
    let mut a = matrix(n, n, |i, j| {
        let weight = if i == j { n as f64 } else { 0.0 };
        1.0 / (1.0 + i.abs_diff(j) as f64) + weight
    });
    for i in 0..n {
        let (above, below) = a.split_at_mut(i * n);
        let row = &mut below[..n];
        for (j, other) in above.chunks_exact(n).enumerate() {
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        row[i] = (row[i] - dot(&row[..i], &row[..i])).sqrt();
        row[i + 1..].fill(0.0);
    }
    Checksum::new().of(&a).end()
}

pub(crate) fn gramschmidt(n: usize) -> u64 {
    let mut a = matrix(n, n, |i, j| {
        let weight = if i == j { 4.0 } else { 0.0 };
        fraction(i * (j + 1), n) + weight
    });
    let mut r = matrix(n, n, |_, _| 0.0);
    let mut q = matrix(n, n, |_, _| 0.0);
    let mut sums = vector(n, |_| 0.0);
    for k in 0..n {
        let norm = a
            .chunks_exact(n)
            .fold(0.0, |sum, row| sum + row[k] * row[k]);
        r[k * n + k] = f64::sqrt(norm);
        for (q, a) in q.chunks_exact_mut(n).zip(a.chunks_exact(n)) {
            q[k] = a[k] / r[k * n + k];
        }
        let sums = &mut sums[k + 1..];
        sums.fill(0.0);
        for (q, a) in q.chunks_exact(n).zip(a.chunks_exact(n)) {
            add_scaled(sums, q[k], &a[k + 1..]);
        }
        r[k * n + k + 1..(k + 1) * n].copy_from_slice(sums);
        for (q, a) in q.chunks_exact(n).zip(a.chunks_exact_mut(n)) {
            add_scaled(&mut a[k + 1..], -q[k], sums);
        }
    }
    Checksum::new().of(&r).of(&q).end()
}

pub(crate) fn durbin(n: usize) -> u64 {
    let r = vector(n, |i| 1.0 / (i + 2) as f64);
    let (mut y, mut z) = (vector(n, |_| 0.0), vector(n, |_| 0.0));
    y[0] = -r[0];
    let (mut alpha, mut beta) = (-r[0], 1.0);
    for k in 1..n {
        beta *= 1.0 - alpha * alpha;
        let backwards = r[..k].iter().rev();
        let sum = backwards.zip(&y).fold(0.0, |sum, (r, y)| sum + r * y);
        alpha = -(r[k] + sum) / beta;
        for ((z, y), mirrored) in z.iter_mut().zip(&y[..k]).zip(y[..k].iter().rev()) {
            *z = y + alpha * mirrored;
        }
        y[..k].copy_from_slice(&z[..k]);
        y[k] = alpha;
    }
    Checksum::new().of(&y).end()
}

pub(crate) fn trisolv(n: usize) -> u64 {
    let l = matrix(n, n, |i, j| {
        let weight = if i == j { 2.0 } else { 0.0 };
        fraction(i + n - j + 1, n) / n as f64 + weight
    });
    let b = vector(n, |i| fraction(i, n) - 0.5);
    let mut x = vector(n, |_| 0.0);
    for (i, row) in l.chunks_exact(n).enumerate() {
        x[i] = (b[i] - dot(&row[..i], &x[..i])) / row[i];
    }
    Checksum::new().of(&x).end()
}
