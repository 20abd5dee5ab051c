//! Any bytes as a table of measurements, samples of a meter, markers, or a replay: accepted or refused; a small table is
//! fitted and judged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metes_power::fit::fit;
use metes_power::machine::meter::{Samples, markers};
use metes_power::model::{Point, Quantity, Term};
use metes_power::predict::{Assumptions, Prediction};
use metes_power::suspects::suspects;
use metes_power::table::Table;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(spans) = markers(&text) {
        assert!(spans.iter().all(|(from, to)| from < to));
    }
    if let Ok(samples) = Samples::parse(&text) {
        let _ = samples.energies(&[(0.0, 1.0)]);
    }
    let nominal = Point::mhz(200.0, 100.0);
    let assumptions = Assumptions { cycles: 1.0, nominal, memory: Vec::new() };
    if let Ok(foretold) = Prediction::from_replay(&text, &assumptions) {
        let _ = foretold.time.at(nominal);
    }
    let Ok(table) = Table::parse(&text) else {
        return;
    };
    if table.rows.len() > 64 {
        return;
    }
    for (quantity, terms) in [(Quantity::Time, Term::TIME), (Quantity::Power, Term::POWER)] {
        let data = table.of(quantity);
        if let Ok(fit) = fit(quantity, &terms, &data, 0.95) {
            assert!(suspects(&fit, &data).len() <= data.len());
            let _ = fit.foretell(nominal);
        }
    }
});
