//! Convolves the published pairs of curves, set by set, on one thread, beside the published times.
//!
//!     cargo run --release -p metes-curve --example published_pairs [WITHOUT...]
//!
//! Optimisations that are named are switched off. Each result is checked.

use metes_curve::{Algebra, published};

const PAIRS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/published_pairs.json"
);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut algebra = Algebra::default();
    for name in std::env::args().skip(1) {
        let without = algebra.optimisations.without(&name);
        algebra.optimisations = without.ok_or(format!("there is no optimisation `{name}`"))?;
    }
    println!("set: pairs, milliseconds of all (of the longest), published best of all, wrong");
    for set in published::bench(&std::fs::read_to_string(PAIRS)?, &algebra)? {
        println!(
            "{}: {}, {:.1} ({:.1}), {:.0}, {}",
            set.name,
            set.pairs,
            set.taken.as_secs_f64() * 1e3,
            set.longest.as_secs_f64() * 1e3,
            set.published.as_secs_f64() * 1e3,
            set.wrong
        );
    }
    Ok(())
}
