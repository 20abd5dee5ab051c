//! Moments of data: rows are observations, columns are variables.
//!
//! *Invariant:* no column is constant, so no deviation is zero.

use crate::arrays::{Array, Checksum, add_scaled, fraction, matrix, vector};

fn data(rows: usize, n: usize) -> Array<f64> {
    matrix(rows, n, |i, j| {
        fraction(i * (j + 1) + j, n + 1) + fraction(i, rows)
    })
}

/// Takes the mean of each column from it.
fn centre(data: &mut [f64], rows: usize, n: usize) {
    let mut mean = vector(n, |_| 0.0);
    for row in data.chunks_exact(n) {
        add_scaled(&mut mean, 1.0, row);
    }
    for mean in &mut mean {
        *mean /= rows as f64;
    }
    for row in data.chunks_exact_mut(n) {
        add_scaled(row, -1.0, &mean);
    }
}

/// Dataᵀ Data.
fn products(data: &[f64], n: usize) -> Array<f64> {
    let mut products = matrix(n, n, |_, _| 0.0);
    for row in data.chunks_exact(n) {
        for (i, factor) in row.iter().enumerate() {
            add_scaled(&mut products[i * n + i..(i + 1) * n], *factor, &row[i..]);
        }
    }
    for i in 1..n {
        for j in 0..i {
            products[i * n + j] = products[j * n + i];
        }
    }
    products
}

pub(crate) fn covariance(n: usize) -> u64 {
    let rows = n + n / 4;
    let mut data = data(rows, n);
    centre(&mut data, rows, n);
    let mut products = products(&data, n);
    for value in &mut products {
        *value /= rows as f64 - 1.0;
    }
    Checksum::new().of(&products).end()
}

pub(crate) fn correlation(n: usize) -> u64 {
    let rows = n + n / 4;
    let mut data = data(rows, n);
    centre(&mut data, rows, n);
    let mut deviation = vector(n, |_| 0.0);
    for row in data.chunks_exact(n) {
        for (deviation, value) in deviation.iter_mut().zip(row) {
            *deviation += value * value;
        }
    }
    for deviation in &mut deviation {
        *deviation = f64::sqrt(*deviation / rows as f64) * f64::sqrt(rows as f64);
    }
    for row in data.chunks_exact_mut(n) {
        for (value, deviation) in row.iter_mut().zip(&deviation) {
            *value /= deviation;
        }
    }
    Checksum::new().of(&products(&data, n)).end()
}
