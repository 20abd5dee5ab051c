//! Products of matrices and vectors.
//!
//! *Invariant:* sums run from left to right; a product of matrices goes row by row of its right factor, which is how a
//! compiler finds neighbours to compute at once.

use crate::arrays::{Array, Checksum, add_scaled, dot, fraction, matrix, vector};

const ALPHA: f64 = 1.5;
const BETA: f64 = 1.25;

/// A square matrix that is not symmetric; `k` tells several apart.
fn square(n: usize, k: usize) -> Array<f64> {
    matrix(n, n, |i, j| fraction(i * (j + k) + k, n + k))
}

/// C += a A B, of n × n.
fn multiply(c: &mut [f64], a: f64, left: &[f64], right: &[f64], n: usize) {
    for (c, left) in c.chunks_exact_mut(n).zip(left.chunks_exact(n)) {
        for (left, right) in left.iter().zip(right.chunks_exact(n)) {
            add_scaled(c, a * left, right);
        }
    }
}

fn scale(values: &mut [f64], by: f64) {
    for value in values {
        *value *= by;
    }
}

pub(crate) fn gemm(n: usize) -> u64 {
    let (a, b, mut c) = (square(n, 1), square(n, 2), square(n, 3));
    scale(&mut c, BETA);
    multiply(&mut c, ALPHA, &a, &b, n);
    Checksum::new().of(&c).end()
}

pub(crate) fn two_products(n: usize) -> u64 {
    let (a, b, c) = (square(n, 1), square(n, 2), square(n, 3));
    let (mut d, mut between) = (square(n, 4), matrix(n, n, |_, _| 0.0));
    multiply(&mut between, ALPHA, &a, &b, n);
    scale(&mut d, BETA);
    multiply(&mut d, 1.0, &between, &c, n);
    Checksum::new().of(&d).end()
}

pub(crate) fn three_products(n: usize) -> u64 {
    let (a, b, c, d) = (square(n, 1), square(n, 2), square(n, 3), square(n, 4));
    let zeros = || matrix(n, n, |_, _| 0.0);
    let (mut e, mut f, mut g) = (zeros(), zeros(), zeros());
    multiply(&mut e, 1.0, &a, &b, n);
    multiply(&mut f, 1.0, &c, &d, n);
    multiply(&mut g, 1.0, &e, &f, n);
    Checksum::new().of(&g).end()
}

pub(crate) fn atax(n: usize) -> u64 {
    let a = square(n, 1);
    let x = vector(n, |i| 1.0 + fraction(i, n));
    let mut y = vector(n, |_| 0.0);
    for row in a.chunks_exact(n) {
        add_scaled(&mut y, dot(row, &x), row);
    }
    Checksum::new().of(&y).end()
}

pub(crate) fn bicg(n: usize) -> u64 {
    let a = square(n, 2);
    let (p, r) = (
        vector(n, |i| fraction(i, n)),
        vector(n, |i| fraction(i + 1, n)),
    );
    let (mut q, mut s) = (vector(n, |_| 0.0), vector(n, |_| 0.0));
    for ((row, q), r) in a.chunks_exact(n).zip(&mut q).zip(&r) {
        add_scaled(&mut s, *r, row);
        *q = dot(row, &p);
    }
    Checksum::new().of(&q).of(&s).end()
}

pub(crate) fn mvt(n: usize) -> u64 {
    let a = square(n, 3);
    let (mut x, mut z) = (
        vector(n, |i| fraction(i, n)),
        vector(n, |i| fraction(i + 1, n)),
    );
    let (y, w) = (
        vector(n, |i| fraction(i + 3, n)),
        vector(n, |i| fraction(i + 4, n)),
    );
    for (row, x) in a.chunks_exact(n).zip(&mut x) {
        *x += dot(row, &y);
    }
    for (row, w) in a.chunks_exact(n).zip(&w) {
        add_scaled(&mut z, *w, row);
    }
    Checksum::new().of(&x).of(&z).end()
}

pub(crate) fn gesummv(n: usize) -> u64 {
    let (a, b) = (square(n, 1), square(n, 2));
    let x = vector(n, |i| fraction(i, n));
    let mut y = vector(n, |_| 0.0);
    for ((y, a), b) in y.iter_mut().zip(a.chunks_exact(n)).zip(b.chunks_exact(n)) {
        *y = ALPHA * dot(a, &x) + BETA * dot(b, &x);
    }
    Checksum::new().of(&y).end()
}

pub(crate) fn syrk(n: usize) -> u64 {
    let (a, mut c) = (square(n, 1), square(n, 2));
    for (i, row) in c.chunks_exact_mut(n).enumerate() {
        let below = &mut row[..=i];
        scale(below, BETA);
        for k in 0..n {
            let factor = ALPHA * a[i * n + k];
            for (value, other) in below.iter_mut().zip(a.chunks_exact(n)) {
                *value += factor * other[k];
            }
        }
    }
    Checksum::new().of(&c).end()
}

pub(crate) fn trmm(n: usize) -> u64 {
    let (a, mut b) = (square(n, 1), square(n, 2));
    for i in 0..n {
        let (above, below) = b.split_at_mut((i + 1) * n);
        let row = &mut above[i * n..];
        for (k, other) in below.chunks_exact(n).enumerate() {
            add_scaled(row, a[(i + 1 + k) * n + i], other);
        }
        scale(row, ALPHA);
    }
    Checksum::new().of(&b).end()
}
