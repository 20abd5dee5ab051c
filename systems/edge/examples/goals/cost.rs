//! Estimates of time from operators, beside the time that the same invocation took.
//!
//! *Invariant:* the functions here are none of those that the rates come of.

use std::time::Duration;

use metes_edge::{Engine, Limits, Options, Table, Tier, Tiers, Worker};

pub(crate) fn measure() {
    let options = Options {
        slots: 4,
        slot_bytes: 1 << 20,
        lock: false,
        ..Options::default()
    };
    let engine = Engine::new(options).expect("an engine");
    let functions = [
        (
            "work",
            wat::parse_str(crate::invoke::work()).expect("a module of ours"),
        ),
        ("many functions", crate::tiers::module()),
    ];
    for (tier, tiers) in [
        (Tier::Baseline, Tiers::Baseline),
        (Tier::Optimised, Tiers::Optimised),
    ] {
        let table = Table::measure(&engine, tier).expect("there is room");
        let name = tier.name();
        println!(
            "{name}: ns an operator, least to most: entry {:.0}",
            table.entry
        );
        for (class, span) in [
            ("memory", table.memory),
            ("division", table.division),
            ("call", table.call),
            ("other", table.other),
            ("byte", table.bytes),
        ] {
            println!("  {class:<10} {:.3} to {:.3}", span.least, span.most);
        }
        let mut worker = Worker::new(&engine);
        for (function, wasm) in &functions {
            let module = engine
                .compile(
                    wasm,
                    &Limits {
                        tiers,
                        ..Limits::default()
                    },
                )
                .expect("a module of ours");
            let counts = engine.count(&module, &[], 1 << 32).expect("it ends").counts;
            let mut times: Vec<_> = (0..1000)
                .map(|_| {
                    worker
                        .invoke(&module, &[], &mut Vec::new(), Duration::from_secs(1))
                        .time_ns
                })
                .collect();
            times.sort_unstable();
            let span = table.span(&counts);
            println!(
                "  {function:<16} {} operators: estimate {:.1} to {:.1} us, seen p50 {:.1} max {:.1} us",
                counts.operators(),
                span.least / 1e3,
                span.most / 1e3,
                times[500] as f64 / 1e3,
                times[999] as f64 / 1e3
            );
            worker.remove(&module);
        }
    }
}
