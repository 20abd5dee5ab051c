//! How late the end of an endless loop is.
//!
//! *Invariant:* lateness is from the end of the budget until the host has the thread again.

use std::time::Duration;

use metes_edge::{Engine, Limits, Options, Outcome, Tiers, Worker};

use crate::samples::Samples;

const SPIN: &str =
    r#"(module (memory (export "memory") 1) (func (export "_start") (loop $again (br $again))))"#;

pub(crate) fn measure(trials: u32) {
    let engine = Engine::new(Options {
        slots: 4,
        slot_bytes: 1 << 20,
        lock: false,
        housekeeping: vec![0],
        ..Options::default()
    })
    .expect("an engine");
    for tiers in [Tiers::Baseline, Tiers::Optimised] {
        let wasm = wat::parse_str(SPIN).expect("a module of ours");
        let module = engine
            .compile(
                &wasm,
                &Limits {
                    tiers,
                    ..Limits::default()
                },
            )
            .expect("a module of ours");
        let mut worker = Worker::new(&engine);
        let mut output = Vec::new();
        let late = (0..trials)
            .map(|_| {
                // The class of the measuring thread may use 95 % of its processor, and this loop uses all of it.
                std::thread::sleep(Duration::from_micros(500));
                match worker
                    .invoke(&module, &[], &mut output, Duration::from_micros(500))
                    .outcome
                {
                    Outcome::Overrun { late_ns } => late_ns,
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        let class = if engine.watch_real_time() {
            "watched by a FIFO thread"
        } else {
            "watched by an ordinary thread"
        };
        Samples::of(late).row(&format!("{tiers:?}").to_lowercase(), class);
    }
}
