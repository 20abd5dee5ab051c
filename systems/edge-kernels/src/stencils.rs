//! Grids whose points follow from their neighbours.
//!
//! *Invariant:* borders keep what they were filled with.

use crate::arrays::{Checksum, fraction, matrix, vector};

/// Steps of a stencil.
const STEPS: usize = 20;

pub(crate) fn jacobi_1d(n: usize) -> u64 {
    let mut a = vector(n, |i| fraction(i + 2, n));
    let mut b = vector(n, |i| fraction(i + 3, n));
    let step = |to: &mut [f64], from: &[f64]| {
        for (to, near) in to[1..n - 1].iter_mut().zip(from.windows(3)) {
            *to = 0.33333 * (near[0] + near[1] + near[2]);
        }
    };
    for _ in 0..5 * STEPS {
        step(&mut b, &a);
        step(&mut a, &b);
    }
    Checksum::new().of(&a).of(&b).end()
}

pub(crate) fn jacobi_2d(n: usize) -> u64 {
    let mut a = matrix(n, n, |i, j| fraction(i * (j + 2) + 2, n));
    let mut b = matrix(n, n, |i, j| fraction(i * (j + 3) + 3, n));
    let step = |to: &mut [f64], from: &[f64]| {
        for i in 1..n - 1 {
            let row = |i: usize| &from[i * n..(i + 1) * n];
            let (above, here, below) = (row(i - 1), row(i), row(i + 1));
            let to = &mut to[i * n + 1..(i + 1) * n - 1];
            for (j, to) in to.iter_mut().enumerate() {
                *to = 0.2 * (here[j + 1] + here[j] + here[j + 2] + below[j + 1] + above[j + 1]);
            }
        }
    };
    for _ in 0..STEPS {
        step(&mut b, &a);
        step(&mut a, &b);
    }
    Checksum::new().of(&a).of(&b).end()
}

pub(crate) fn seidel_2d(n: usize) -> u64 {
    let mut a = matrix(n, n, |i, j| fraction(i * (j + 2) + 2, n));
    for _ in 0..STEPS {
        for i in 1..n - 1 {
            let (above, rest) = a.split_at_mut(i * n);
            let above = &above[(i - 1) * n..];
            let (here, below) = rest.split_at_mut(n);
            for j in 1..n - 1 {
                let sum = above[j - 1] + above[j] + above[j + 1];
                let sum = sum + here[j - 1] + here[j] + here[j + 1];
                here[j] = (sum + below[j - 1] + below[j] + below[j + 1]) / 9.0;
            }
        }
    }
    Checksum::new().of(&a).end()
}

pub(crate) fn heat_3d(n: usize) -> u64 {
    let start = |i: usize| (i / (n * n) + i / n % n + n - i % n) as f64 * 10.0 / n as f64;
    let mut a = vector(n * n * n, start);
    let mut b = vector(n * n * n, start);
    let step = |to: &mut [f64], from: &[f64]| {
        for i in 1..n - 1 {
            for j in 1..n - 1 {
                let line = |i: usize, j: usize| &from[(i * n + j) * n..(i * n + j + 1) * n];
                let here = line(i, j);
                let (up, down) = (line(i - 1, j), line(i + 1, j));
                let (before, behind) = (line(i, j - 1), line(i, j + 1));
                let to = &mut to[(i * n + j) * n + 1..(i * n + j + 1) * n - 1];
                for (k, to) in to.iter_mut().enumerate() {
                    let middle = here[k + 1];
                    *to = 0.125 * (down[k + 1] - 2.0 * middle + up[k + 1])
                        + 0.125 * (behind[k + 1] - 2.0 * middle + before[k + 1])
                        + 0.125 * (here[k + 2] - 2.0 * middle + here[k])
                        + middle;
                }
            }
        }
    };
    for _ in 0..STEPS {
        step(&mut b, &a);
        step(&mut a, &b);
    }
    Checksum::new().of(&a).of(&b).end()
}

pub(crate) fn fdtd_2d(n: usize) -> u64 {
    let field = |k: usize| matrix(n, n, |i, j| fraction(i * (j + k) + k, n));
    let (mut ex, mut ey, mut hz) = (field(1), field(2), field(3));
    let source = vector(2 * STEPS, |t| t as f64);
    for &t in &source {
        ey[..n].fill(t);
        for i in 1..n {
            let (above, here) = (&hz[(i - 1) * n..i * n], &hz[i * n..(i + 1) * n]);
            for ((ey, here), above) in ey[i * n..(i + 1) * n].iter_mut().zip(here).zip(above) {
                *ey -= 0.5 * (here - above);
            }
        }
        for (ex, hz) in ex.chunks_exact_mut(n).zip(hz.chunks_exact(n)) {
            for (ex, near) in ex[1..].iter_mut().zip(hz.windows(2)) {
                *ex -= 0.5 * (near[1] - near[0]);
            }
        }
        for i in 0..n - 1 {
            let ex = &ex[i * n..(i + 1) * n];
            let (here, below) = (&ey[i * n..(i + 1) * n], &ey[(i + 1) * n..(i + 2) * n]);
            for (j, hz) in hz[i * n..(i + 1) * n - 1].iter_mut().enumerate() {
                *hz -= 0.7 * (ex[j + 1] - ex[j] + below[j] - here[j]);
            }
        }
    }
    Checksum::new().of(&ex).of(&ey).of(&hz).end()
}
