//! Each optimisation switched off in turn: how much longer sets of convolutions take, and how many
//! pairs of pieces they meet.
//!
//!     cargo run --release -p metes-curve --example switches [LIMIT]
//!
//! A convolution that is predicted to take more than `LIMIT` pairs, by default 100000, is refused;
//! refused ones are counted, and then ratios leave them out on both sides.

use std::time::{Duration, Instant};

use metes_curve::{Algebra, Curve, Element, Optimisations, Rational, Value, published};

const PAIRS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/published_pairs.json"
);

/// A curve of pieces (length, rise to behind the point, slope) that rises by `step` every period, or
/// goes on with its last slope.
fn curve(
    pieces: impl IntoIterator<Item = (i64, i64, i64)>,
    step: Option<i64>,
) -> Result<Curve, metes_curve::Error> {
    let number = Rational::from;
    let (mut time, mut value) = (0, 0);
    let mut last = (0, 0);
    let mut elements = Vec::new();
    for (length, rise, slope) in pieces {
        elements.push(Element::Point {
            time: number(time),
            value: Value::Finite(number(value)),
        });
        value += rise;
        elements.push(Element::Segment {
            start: number(time),
            end: number(time + length),
            value: Value::Finite(number(value)),
            slope: number(slope),
        });
        last = (time, slope * length);
        value += slope * length;
        time += length;
    }
    let (transient, step) = match step {
        Some(step) => (0, step),
        None => last,
    };
    Curve::new(
        &elements,
        &number(transient),
        &number(time - transient),
        &number(step),
    )
}

/// A set's name, and its pairs.
type Set = (String, Vec<(Curve, Curve)>);

fn sets() -> Result<Vec<Set>, Box<dyn std::error::Error>> {
    let document = std::fs::read_to_string(PAIRS)?;
    let mut sets: Vec<Set> = published::pairs(&document)?.into_iter().collect();
    let stairs = |period, step| curve([(period, step, 0)], Some(step));
    sets.push((
        "close slopes".into(),
        vec![(stairs(100, 60)?, stairs(101, 61)?)],
    ));
    sets.push((
        "equal slopes".into(),
        vec![(stairs(200, 120)?, stairs(205, 123)?)],
    ));
    sets.push((
        "convex".into(),
        vec![(
            curve((0..150).map(|k| (2, 0, 2 * k)), None)?,
            curve((0..150).map(|k| (3, 0, 3 * k)), None)?,
        )],
    ));
    sets.push((
        "concave".into(),
        vec![(
            curve((0..150).map(|k| (2, 0, 301 - 2 * k)), None)?,
            curve((0..150).map(|k| (3, 0, 451 - 3 * k)), None)?,
        )],
    ));
    // Neither staircases nor convex: what is left to the envelope of lines.
    let zigzag = |pieces: i64, shift: i64, step: i64| {
        let pieces = (0..pieces).map(|k| {
            let rise = (k * 7919 + shift) % 11 - 5;
            (1 + (k + shift) % 5, rise, (k * 31 + shift) % 7 - 3)
        });
        curve(pieces, Some(step))
    };
    sets.push((
        "general".into(),
        vec![(zigzag(60, 3, 180)?, zigzag(40, 5, 1800)?)],
    ));
    // About slopes that they have all the time, one a little steeper.
    let wandering = |pieces: u64, mut state: u64, slope: i64| {
        let pieces: Vec<_> = (0..pieces)
            .map(|_| {
                // Knuth's multiplier and increment.
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let drawn = |below: i64, bits: u32| (state >> bits & 0xffff) as i64 % below;
                (1 + drawn(7, 48), drawn(9, 32) - 4, slope + drawn(7, 16) - 3)
            })
            .collect();
        let step = pieces
            .iter()
            .map(|(length, rise, slope)| rise + slope * length);
        let step = step.sum();
        curve(pieces, Some(step))
    };
    sets.push((
        "wandering".into(),
        vec![(wandering(1000, 3, 1)?, wandering(1000, 5, 3)?)],
    ));
    Ok(sets)
}

/// What each pair takes, the least of five runs if it is predicted to be short; `None` if it is refused.
fn times(pairs: &[(Curve, Curve)], algebra: &Algebra) -> Vec<Option<Duration>> {
    let taken = |(f, g): &(Curve, Curve)| {
        let run = |_| {
            let begin = Instant::now();
            algebra.convolution(f, g).ok().map(|_| begin.elapsed())
        };
        // What takes long is not disturbed by much.
        let runs = match algebra.predict(f, g).work {
            0..20_000 => 5,
            _ => 1,
        };
        (0..runs).filter_map(run).min()
    };
    pairs.iter().map(taken).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = match std::env::args().nth(1) {
        Some(limit) => limit.parse()?,
        None => 100_000,
    };
    let without = |optimisations| Algebra {
        limit,
        optimisations,
        ..Algebra::default()
    };
    println!("set; switched off: times as long (times as many pairs; refused)");
    for (name, pairs) in sets()? {
        let all = without(Optimisations::all());
        let base = times(&pairs, &all);
        let total: Duration = base.iter().flatten().sum();
        println!(
            "{name}; {} convolutions, {:.3} ms",
            pairs.len(),
            total.as_secs_f64() * 1e3
        );
        let names = Optimisations::NAMES.iter().map(|&name| {
            let off = Optimisations::all().without(name);
            (name, off.unwrap_or_else(Optimisations::none))
        });
        for (name, off) in names.chain([("all of them", Optimisations::none())]) {
            let algebra = without(off);
            let taken = times(&pairs, &algebra);
            let (mut with, mut wanting) = (0.0, 0.0);
            let (mut met, mut met_wanting) = (0.0, 0.0);
            let mut refused = 0;
            for ((base, taken), (f, g)) in base.iter().zip(&taken).zip(&pairs) {
                let (Some(base), Some(taken)) = (base, taken) else {
                    refused += 1;
                    continue;
                };
                with += base.as_secs_f64();
                wanting += taken.as_secs_f64();
                met += all.predict(f, g).work as f64;
                met_wanting += algebra.predict(f, g).work as f64;
            }
            if refused == pairs.len() {
                println!("  {name}: refused");
                continue;
            }
            let (ratio, pairs_ratio) = (wanting / with, met_wanting / met);
            if refused > 0 || pairs_ratio != 1.0 || !(0.9..1.1).contains(&ratio) {
                println!("  {name}: {ratio:.2} ({pairs_ratio:.2}; {refused})");
            }
        }
    }
    Ok(())
}
