//! Time of a convolution against the number of elements, with the exponent fitted by least squares
//! on logarithms.
//!
//!     cargo run --release -p metes-curve --example scaling [MOST]
//!
//! Elements are pieces (a point and the segment behind it) of the longer operand; `MOST`, by
//! default 1000000, ends a series, and so does a convolution of more than two seconds.

use std::time::Instant;

use metes_curve::{Algebra, Curve, Element, Rational, Value};

/// Pseudo-random numbers: George Marsaglia's xorshift (2003).
struct Random(u64);

impl Random {
    /// From 0 up to, but not, `below`.
    fn below(&mut self, below: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as i64
    }
}

/// A curve of pieces (length, rise to behind the point, slope), which rises by `step` from period to
/// period; or, if that is none, goes on with its last slope.
fn curve(pieces: &[(i64, i64, i64)], step: Option<i64>) -> Result<Curve, metes_curve::Error> {
    let number = Rational::from;
    let finite = |value: i64| Value::Finite(number(value));
    let (mut time, mut value, mut last) = (0, 0, 0);
    let mut elements = Vec::with_capacity(2 * pieces.len());
    for &(length, rise, slope) in pieces {
        elements.push(Element::Point {
            time: number(time),
            value: finite(value),
        });
        value += rise;
        elements.push(Element::Segment {
            start: number(time),
            end: number(time + length),
            value: finite(value),
            slope: number(slope),
        });
        (last, time) = (time, time + length);
        value += slope * length;
    }
    let slope = pieces.last().map_or(0, |piece| piece.2);
    let (transient, step) = match step {
        Some(step) => (0, step),
        None => (last, slope * (time - last)),
    };
    Curve::new(
        &elements,
        &number(transient),
        &number(time - transient),
        &number(step),
    )
}

/// Slopes that rise.
fn convex(random: &mut Random, pieces: usize) -> Result<Curve, metes_curve::Error> {
    let mut slope = 0;
    let pieces: Vec<_> = (0..pieces)
        .map(|_| {
            slope += 1 + random.below(3);
            (1 + random.below(5), 0, slope)
        })
        .collect();
    curve(&pieces, None)
}

/// Steps up, `high` on the average.
fn staircase(random: &mut Random, pieces: usize, high: i64) -> Result<Curve, metes_curve::Error> {
    let pieces: Vec<_> = (0..pieces)
        .map(|_| (1 + random.below(7), 1 + random.below(2 * high - 1), 0))
        .collect();
    curve(&pieces, Some(pieces.iter().map(|piece| piece.1).sum()))
}

/// Jumps and slopes up and down, about a slope.
fn drifting(random: &mut Random, pieces: usize, slope: i64) -> Result<Curve, metes_curve::Error> {
    let pieces: Vec<_> = (0..pieces)
        .map(|_| {
            (
                1 + random.below(7),
                random.below(9) - 4,
                slope + random.below(7) - 3,
            )
        })
        .collect();
    let rise = |(length, rise, slope): &(i64, i64, i64)| rise + slope * length;
    curve(&pieces, Some(pieces.iter().map(rise).sum()))
}

/// Jumps and slopes up and down about no slope, and at the end of each period one jump that makes up
/// for it: both curves are flat for most of a period, so that little of either can be left out.
fn catching_up(
    random: &mut Random,
    pieces: usize,
    slope: i64,
) -> Result<Curve, metes_curve::Error> {
    let pieces: Vec<_> = (0..pieces)
        .map(|_| {
            (
                1 + random.below(7),
                random.below(9) - 4,
                random.below(7) - 3,
            )
        })
        .collect();
    let length: i64 = pieces.iter().map(|piece| piece.0).sum();
    curve(&pieces, Some(slope * length))
}

type Operands = Result<(Curve, Curve), metes_curve::Error>;

fn series(
    name: &str,
    most: usize,
    mut operands: impl FnMut(&mut Random, usize) -> Operands,
) -> Result<(), metes_curve::Error> {
    let algebra = Algebra {
        limit: u64::MAX,
        ..Algebra::default()
    };
    let mut found: Vec<(f64, f64)> = Vec::new();
    println!("{name}: elements, product, milliseconds");
    for power in 0.. {
        // Two of each power of ten.
        let pieces = (100.0 * 10_f64.powf(f64::from(power) / 2.0)).round() as usize;
        if pieces > most {
            break;
        }
        let (f, g) = operands(&mut Random(0x9e37_79b9_7f4a_7c15), pieces)?;
        let product = algebra.predict(&f, &g).element_product;
        let times = (0..3).map(|_| {
            let begin = Instant::now();
            algebra
                .convolution(&f, &g)
                .map(|_| begin.elapsed().as_secs_f64())
        });
        let times: Vec<f64> = times.collect::<Result<_, _>>()?;
        let taken = times.into_iter().fold(f64::INFINITY, f64::min);
        println!("  {pieces:>8} {product:>14} {:>10.3}", taken * 1e3);
        found.push(((pieces as f64).ln(), taken.ln()));
        if taken > 2.0 {
            // The next one would take three to ten times as long.
            break;
        }
    }
    // What small operands take is not of the exponent.
    let found = &found[found.len().min(2)..];
    let count = found.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|at| at.0), mean(|at| at.1));
    let both: f64 = found.iter().map(|at| (at.0 - x) * (at.1 - y)).sum();
    let square: f64 = found.iter().map(|at| (at.0 - x).powi(2)).sum();
    println!("  exponent from 1000 elements on: {:.2}", both / square);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let most = match std::env::args().nth(1) {
        Some(most) => most.parse()?,
        None => 1_000_000,
    };
    series("convex, both", most, |random, pieces| {
        Ok((convex(random, pieces)?, convex(random, pieces)?))
    })?;
    series(
        "staircase, and one of 100 elements",
        most,
        |random, pieces| Ok((staircase(random, pieces, 4)?, staircase(random, 100, 12)?)),
    )?;
    series("staircases, both", most, |random, pieces| {
        Ok((staircase(random, pieces, 4)?, staircase(random, pieces, 4)?))
    })?;
    series(
        "general, and one of 100 elements",
        most,
        |random, pieces| Ok((drifting(random, pieces, 1)?, drifting(random, 100, 30)?)),
    )?;
    series("general, both", most, |random, pieces| {
        Ok((drifting(random, pieces, 1)?, drifting(random, pieces, 30)?))
    })?;
    series(
        "general with one large jump a period, and one of 100 elements",
        most,
        |random, pieces| {
            let (long, short) = (
                catching_up(random, pieces, 1)?,
                catching_up(random, 100, 30)?,
            );
            Ok((long, short))
        },
    )?;
    series(
        "general with one large jump a period, both",
        most,
        |random, pieces| {
            let (f, g) = (
                catching_up(random, pieces, 1)?,
                catching_up(random, pieces, 30)?,
            );
            Ok((f, g))
        },
    )?;
    Ok(())
}
