//! What operators take on this machine, by tier: between the least and the most that kernels of their class
//! have shown.
//!
//! *Invariant:* each rate is of a run on this machine; the least is never above the most.

use std::time::Duration;

use crate::cost::kernels::{self, Class};
use crate::cost::{CostError, Counts};
use crate::engine::Engine;
use crate::limits::{Limits, Tiers};
use crate::outcome::Tier;
use crate::worker::Worker;

/// Nanoseconds between two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// At least.
    pub least: f64,
    /// At most.
    pub most: f64,
}

impl Span {
    fn seen(&mut self, value: f64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    const NOTHING: Span = Span {
        least: f64::INFINITY,
        most: 0.0,
    };
}

/// Nanoseconds an operator, by class, for one tier on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Whose code.
    pub tier: Tier,
    /// A call of nothing: entering and leaving.
    pub entry: f64,
    /// Loads and stores.
    pub memory: Span,
    /// Divisions, remainders and square roots.
    pub division: Span,
    /// Calls.
    pub call: Span,
    /// All others.
    pub other: Span,
    /// Bytes that are filled or copied at once.
    pub bytes: Span,
}

/// How often a kernel runs; the least of its times counts.
const RUNS: usize = 25;
/// More than any kernel takes.
const LIMIT: u64 = 1 << 32;

impl Table {
    /// Measures this machine: fourteen loops of some ten thousand operators.
    ///
    /// # Errors
    ///
    /// The engine has no slot of two pages left.
    pub fn measure(engine: &Engine, tier: Tier) -> Result<Table, CostError> {
        let tiers = if tier == Tier::Baseline {
            Tiers::Baseline
        } else {
            Tiers::Optimised
        };
        let limits = Limits {
            tiers,
            ..Limits::default()
        };
        let mut worker = Worker::new(engine);
        let mut seen: Vec<(Class, Counts, f64)> = Vec::new();
        for (class, wasm) in kernels::all() {
            let module = engine.compile(&wasm, &limits)?;
            let counts = engine.count(&module, &[], LIMIT)?.counts;
            let least = (0..RUNS)
                .map(|_| {
                    worker
                        .invoke(&module, &[], &mut Vec::new(), Duration::from_secs(10))
                        .time_ns
                })
                .min()
                .unwrap_or(0);
            worker.remove(&module);
            seen.push((class, counts, least as f64));
        }
        let empty = [
            0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 7, 10, 1, 6, b'_',
            b's', b't', b'a', b'r', b't', 0, 0, 10, 4, 1, 2, 0, 0x0b,
        ];
        let module = engine.compile(&empty, &limits)?;
        let entry = (0..RUNS)
            .map(|_| {
                worker
                    .invoke(&module, &[], &mut Vec::new(), Duration::from_secs(10))
                    .time_ns
            })
            .min()
            .unwrap_or(0) as f64;
        let mut table = Table {
            tier,
            entry,
            memory: Span::NOTHING,
            division: Span::NOTHING,
            call: Span::NOTHING,
            other: Span::NOTHING,
            bytes: Span::NOTHING,
        };
        for (class, counts, time) in &seen {
            if *class == Class::Other {
                table
                    .other
                    .seen((time - entry).max(0.0) / counts.other as f64);
            }
        }
        for (class, counts, time) in &seen {
            let (span, count) = match class {
                Class::Other => continue,
                Class::Memory => (&mut table.memory, counts.memory),
                Class::Division => (&mut table.division, counts.division),
                Class::Call => (&mut table.call, counts.call),
                Class::Bytes => (&mut table.bytes, counts.bytes),
            };
            // The others around it take something between their own least and most.
            for rate in [table.other.least, table.other.most] {
                span.seen((time - entry - rate * counts.other as f64).max(0.0) / count as f64);
            }
        }
        Ok(table)
    }

    /// An estimate of the time that so many operators take: between all at their least and all at their most.
    pub fn span(&self, counts: &Counts) -> Span {
        let rows = [
            (self.memory, counts.memory),
            (self.division, counts.division),
            (self.call, counts.call),
            (self.other, counts.other),
            (self.bytes, counts.bytes),
        ];
        let mut sum = Span {
            least: self.entry,
            most: self.entry,
        };
        for (rate, count) in rows {
            sum.least += rate.least * count as f64;
            sum.most += rate.most * count as f64;
        }
        sum
    }
}
