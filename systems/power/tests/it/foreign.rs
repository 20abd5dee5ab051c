//! Foreign bytes: every parser accepts or refuses, and what it accepts is fitted or refused, without a panic.

use metes_power::fit::fit;
use metes_power::fragment::system;
use metes_power::machine::meter::{Samples, align, markers};
use metes_power::model::{Point, Quantity, Term};
use metes_power::predict::{Assumptions, Prediction};
use metes_power::suspects::suspects;
use metes_power::table::Table;
use proptest::prelude::*;

const SEEDS: [&str; 4] = [
    "cpu_mhz,memory_mhz,time_ms,power_w,energy_mj,voltage_v\n600,200,3.5,2.4,,1.1\n700,300,3,2.5,,1.1\n800,400,2.7,,7,1.2\n900,200,2.5,2.6,,1.2\n1e30,1e-27,9,1,1,1\n",
    "time_s,current_ma,voltage_v\n0,500,5\n1,400,5\n2,1e300,1e300\n",
    "begin 0.5\nend 1.5\nbegin 1e308\nend 1.7e308\n",
    "{\"heap\":\"tlsf\",\"footprint\":1,\"price\":{\"clock_hz\":1e9,\"compute_time\":1,\"levels\":[{\"name\":\"a\",\"reads\":1,\"writes\":2,\"latency_ns\":3,\"leakage_mw\":1,\"energy\":1e300}]}}",
];

fn all(text: &str) {
    if let Ok(spans) = markers(text) {
        assert!(spans.iter().all(|(from, to)| from < to));
        let _ = align(&spans, &spans);
    }
    if let Ok(samples) = Samples::parse(text) {
        let _ = samples.energies(&[(0.0, 1.0), (0.5, 1.5)]);
    }
    let assumptions = Assumptions {
        cycles: 1.0,
        nominal: Point::mhz(200.0, 100.0),
        memory: Vec::new(),
    };
    if let Ok(foretold) = Prediction::from_replay(text, &assumptions) {
        let _ = system(&foretold.time, &foretold.time, &[assumptions.nominal]);
    }
    let Ok(table) = Table::parse(text) else {
        return;
    };
    let sets = [
        (Quantity::Time, Term::TIME),
        (Quantity::Power, Term::POWER),
        (Quantity::Power, Term::POWER_BY_VOLTAGE),
    ];
    for (quantity, terms) in sets {
        for terms in [&terms[..1], &terms[..2], &terms[..]] {
            let data = table.of(quantity);
            if let Ok(fit) = fit(quantity, terms, &data, 0.95) {
                assert!(suspects(&fit, &data).len() <= data.len());
                let _ = (fit.foretell(Point::mhz(1.0, 1e9)), fit.doubts());
                let _ = system(&fit.model(), &fit.model(), &[Point::mhz(1.0, 1e9)]);
            }
        }
    }
}

#[test]
fn the_seeds_themselves() {
    SEEDS.into_iter().for_each(all);
}

proptest! {
    #[test]
    fn mutated_text_never_panics(seed in 0..SEEDS.len(), edits in prop::collection::vec((any::<prop::sample::Index>(), "[-0-9a-z.,_ \n\"{}eE+]{0,3}"), 0..6)) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (at, new) in edits {
            let at = at.index(text.len().max(1)).min(text.len());
            let end = (at + 1).min(text.len());
            text.splice(at..end, new.chars());
        }
        all(&text.into_iter().collect::<String>());
    }

    #[test]
    fn any_text_never_panics(text in ".{0,200}") {
        all(&text);
    }
}
