//! Filters of images.
//!
//! *Invariant:* the exponential is our own series, so that no two mathematical libraries can disagree.

use crate::arrays::{Checksum, matrix};

/// e to the x, for small x.
fn exponential(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..30 {
        term *= x / f64::from(k);
        sum += term;
    }
    sum
}

/// Coefficients of the recursion.
struct Recursion {
    forwards: [f32; 2],
    backwards: [f32; 2],
    feedback: [f32; 2],
}

impl Recursion {
    fn new(alpha: f64) -> Recursion {
        let e = exponential(-alpha);
        let k = (1.0 - e) * (1.0 - e) / (1.0 + 2.0 * alpha * e - e * e);
        Recursion {
            forwards: [k as f32, (k * e * (alpha - 1.0)) as f32],
            backwards: [(k * e * (alpha + 1.0)) as f32, (-k * e * e) as f32],
            feedback: [(2.0 * e) as f32, (-e * e) as f32],
        }
    }
}

/// Rows first, then columns, each from both sides; what comes from the two sides is added.
pub(crate) fn deriche(n: usize) -> u64 {
    let (height, width) = (n, n * 3 / 4);
    let recursion = Recursion::new(0.25);
    let mut image = matrix(height, width, |i, j| {
        ((313 * i + 991 * j) % 65_536) as f32 / 65_535.0
    });
    let mut first = matrix(height, width, |_, _| 0.0f32);
    let mut second = matrix(height, width, |_, _| 0.0f32);
    let Recursion {
        forwards,
        backwards,
        feedback,
    } = recursion;
    for (row, out) in image.chunks_exact(width).zip(first.chunks_exact_mut(width)) {
        let (mut x1, mut y1, mut y2) = (0.0, 0.0, 0.0);
        for (x, y) in row.iter().zip(out) {
            *y = forwards[0] * x + forwards[1] * x1 + feedback[0] * y1 + feedback[1] * y2;
            (x1, y2, y1) = (*x, y1, *y);
        }
    }
    for (row, out) in image
        .chunks_exact(width)
        .zip(second.chunks_exact_mut(width))
    {
        let (mut x1, mut x2, mut y1, mut y2) = (0.0, 0.0, 0.0, 0.0);
        for (x, y) in row.iter().zip(out).rev() {
            *y = backwards[0] * x1 + backwards[1] * x2 + feedback[0] * y1 + feedback[1] * y2;
            (x2, x1, y2, y1) = (x1, *x, y1, *y);
        }
    }
    for ((pixel, first), second) in image.iter_mut().zip(&first).zip(&second) {
        *pixel = first + second;
    }
    for j in 0..width {
        let (mut x1, mut y1, mut y2) = (0.0, 0.0, 0.0);
        for at in (j..height * width).step_by(width) {
            let y =
                forwards[0] * image[at] + forwards[1] * x1 + feedback[0] * y1 + feedback[1] * y2;
            first[at] = y;
            (x1, y2, y1) = (image[at], y1, y);
        }
    }
    for j in 0..width {
        let (mut x1, mut x2, mut y1, mut y2) = (0.0, 0.0, 0.0, 0.0);
        for at in (j..height * width).step_by(width).rev() {
            let y = backwards[0] * x1 + backwards[1] * x2 + feedback[0] * y1 + feedback[1] * y2;
            second[at] = y;
            (x2, x1, y2, y1) = (x1, image[at], y1, y);
        }
    }
    for ((pixel, first), second) in image.iter_mut().zip(&first).zip(&second) {
        *pixel = first + second;
    }
    Checksum::new().of_single(&image).end()
}
