//! Convolves the published pairs of curves, set by set, on one thread, beside the published times.
//!
//!     cargo run --release -p metes-curve --example published_pairs
//!
//! That the results are right is tested in `tests/published.rs`.

use std::time::Instant;

use metes_curve::Curve;
use serde_json::Value;

const PAIRS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/published_pairs.json"
);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let document: Value = serde_json::from_str(&std::fs::read_to_string(PAIRS)?)?;
    let sets = document["sets"].as_object().ok_or("no sets")?;
    println!("set: pairs, milliseconds of all (of the longest), published best of all");
    for (name, pairs) in sets {
        let mut curves = Vec::new();
        let mut published = 0.0;
        for pair in pairs.as_array().ok_or("no pairs")? {
            let read = |name: &str| Curve::from_json(&pair[name].to_string());
            curves.push((read("f")?, read("g")?));
            let times = pair["published_ms"].as_object().ok_or("no times")?;
            published += times
                .values()
                .filter_map(Value::as_f64)
                .fold(f64::MAX, f64::min);
        }
        let (mut all, mut longest) = (0.0, 0.0_f64);
        for (f, g) in &curves {
            let begin = Instant::now();
            f.convolution(g)?;
            let taken = begin.elapsed().as_secs_f64() * 1e3;
            (all, longest) = (all + taken, longest.max(taken));
        }
        println!(
            "{name}: {}, {all:.1} ({longest:.1}), {published:.0}",
            curves.len()
        );
    }
    Ok(())
}
