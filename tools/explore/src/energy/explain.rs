//! A price with where its numbers come from, for people and JSON.
//!
//! Invariant: in a level, `energy` is `reads × read_nj + writes × write_nj` of
//! the figures beside it, and their sum over the levels the energy of the run.

use serde::Serialize;

use super::{Leakage, Price, Pricer, RECORD_WORD};
use metes_heap::description::LEVELS;

use crate::hierarchy::Counts;

/// A price by level, in joule and seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriceReport {
    /// Energy of all accesses, joule.
    pub energy: f64,
    /// Energy that leaks over the run, joule; no part of `energy`.
    pub leakage: f64,
    /// Time of the run, seconds.
    pub time: f64,
    /// The part of it in which the processor computes, seconds.
    pub compute_time: f64,
    /// Energy of all accesses as the integer that was added up: femtojoule.
    pub energy_fj: u64,
    /// Femtojoule that leak.
    pub leakage_fj: u64,
    /// Picoseconds.
    pub time_ps: u64,
    /// Cycles of the processor in a second.
    pub clock_hz: u64,
    /// The levels, the nearest first.
    pub levels: Vec<LevelReport>,
    /// What the numbers suppose.
    pub assumptions: Vec<String>,
}

/// A level of a [`PriceReport`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelReport {
    /// Its name.
    pub name: String,
    /// Its size, bytes.
    pub size: u64,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// Accesses that read, in words of the level.
    pub reads: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Energy of a read, nanojoule.
    pub read_nj: f64,
    /// Energy of a write, nanojoule.
    pub write_nj: f64,
    /// Time of an access, nanoseconds.
    pub latency_ns: f64,
    /// Power that leaks, milliwatt.
    pub leakage_mw: f64,
    /// Energy of the accesses, joule.
    pub energy: f64,
    /// Energy that leaks, joule.
    pub leakage: f64,
    /// Time of the accesses, seconds.
    pub time: f64,
    /// Which rows of which table the figures come from.
    pub source: String,
}

impl Pricer<'_> {
    /// Says what a price of this pricer is made of.
    pub fn explain(&self, counts: &[Counts; LEVELS], price: &Price) -> PriceReport {
        let joule = |femto: u64| femto as f64 / 1e15;
        let seconds = |pico: u64| pico as f64 / 1e12;
        let mut levels = Vec::with_capacity(self.levels.len());
        for (number, priced) in self.levels.iter().enumerate() {
            let own = &price.levels[number];
            let level = &self.hierarchy.levels[number];
            let step = priced.steps.iter().find(|step| step.size == own.size);
            let Some(step) = step else { continue };
            levels.push(LevelReport {
                name: level.name.clone(),
                size: own.size,
                counts: counts[number],
                reads: own.reads,
                writes: own.writes,
                read_nj: step.figures.read_fj as f64 / 1e6,
                write_nj: step.figures.write_fj as f64 / 1e6,
                latency_ns: step.figures.latency_ps as f64 / 1e3,
                leakage_mw: step.figures.leakage_uw as f64 / 1e3,
                energy: joule(own.energy_fj),
                leakage: joule(own.leakage_fj),
                time: seconds(own.time_ps),
                source: level.memories[step.memory].source.clone(),
            });
        }
        PriceReport {
            energy: joule(price.energy_fj),
            leakage: joule(price.leakage_fj),
            time: seconds(price.time_ps),
            compute_time: seconds(price.compute_ps),
            energy_fj: price.energy_fj,
            leakage_fj: price.leakage_fj,
            time_ps: price.time_ps,
            clock_hz: self.clock_hz,
            levels,
            assumptions: self.assumptions(),
        }
    }

    fn assumptions(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (level, priced) in self.hierarchy.levels.iter().zip(&self.levels) {
            all.push(format!(
                "`{}` is accessed by words of {} bits: a record word of {RECORD_WORD} bytes takes \
                 {} accesses",
                level.name, level.word_bits, priced.per_record
            ));
        }
        all.push(format!(
            "accesses follow one another, none overlaps with another or with computing, and the \
             processor runs an instruction a cycle at {} MHz",
            self.clock_hz as f64 / 1e6
        ));
        all.push(
            match self.hierarchy.leakage {
                Leakage::Interpolated => {
                    "leakage is interpolated between 180 and 90 nm on a logarithmic axis where \
                     the table has that: take it to a factor of three"
                }
                Leakage::Tool => {
                    "leakage is what the tool says: take it to a factor of three, rather less"
                }
                Leakage::None => "leakage is left out",
            }
            .to_owned(),
        );
        all
    }
}
