//! A task's time and energy before there is hardware: from what `metes replay --levels --json` counted.
//!
//! Cycles of computing and accesses by memory level are the replay's; a level's latency is so many cycles of the clock that
//! drives it. Accesses cost energy each, whatever the frequencies; leakage is a power as long as the task runs. What the
//! core itself draws no count tells: it comes from a power model.
//!
//! Invariant: nothing is foretold that was not counted or given; what is assumed is said.

use serde::{Deserialize, Serialize};

use crate::model::{Model, Point};

/// Why nothing is foretold.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// No such document.
    #[error("no answer of `metes replay TRACE --heap H --levels L --json`: {0}")]
    Document(String),
    /// A replay without a price.
    #[error("the replay has no price: requests failed, or --levels was left out")]
    NoPrice,
    /// No level of a name.
    #[error("there is no level {wanted}: {}", .names.join(", "))]
    NoLevel {
        /// What was looked for.
        wanted: String,
        /// What there is.
        names: Vec<String>,
    },
    /// A figure that cannot be.
    #[error("{what} of {value} cannot be")]
    Value {
        /// Which figure.
        what: &'static str,
        /// Its value.
        value: f64,
    },
}

/// What drives a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The processor's: caches, scratchpads.
    Cpu,
    /// The memory's.
    Memory,
}

/// A replay's answer, as far as it is needed.
#[derive(Deserialize)]
struct Replay {
    price: Option<Price>,
    #[serde(default)]
    heap: Option<String>,
    #[serde(default)]
    footprint: Option<u64>,
}

#[derive(Deserialize)]
struct Price {
    clock_hz: f64,
    compute_time: f64,
    levels: Vec<Level>,
}

#[derive(Deserialize)]
struct Level {
    name: String,
    reads: f64,
    writes: f64,
    latency_ns: f64,
    leakage_mw: f64,
    energy: f64,
}

/// A level's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The level's name.
    pub name: String,
    /// What drives it.
    pub clock: Clock,
    /// Its accesses.
    pub accesses: f64,
    /// Cycles of its clock that they take, in millions.
    pub megacycles: f64,
    /// Their energy, mJ.
    pub energy: f64,
    /// What it leaks, W.
    pub leakage: f64,
}

/// A task foretold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The heap that was replayed.
    pub heap: Option<String>,
    /// Bytes that it took.
    pub footprint: Option<u64>,
    /// Its time.
    pub time: Model,
    /// Millions of cycles of computing.
    pub computing: f64,
    /// By level.
    pub parts: Vec<Part>,
    /// Energy of all accesses, mJ.
    pub access_energy: f64,
    /// What all levels leak, W.
    pub leakage: f64,
}

/// How counts become cycles.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumptions {
    /// Cycles of the processor for each that the replay counted as one.
    pub cycles: f64,
    /// At which pair the latencies hold.
    pub nominal: Point,
    /// Levels that the memory's clock drives, by name; empty: the last one.
    pub memory: Vec<String>,
}

impl Prediction {
    /// From a replay's JSON.
    ///
    /// # Errors
    /// [`PredictError`] if it is no such document, or has no price.
    pub fn from_replay(json: &str, assumptions: &Assumptions) -> Result<Prediction, PredictError> {
        let replay: Replay = serde_json::from_str(json)
            .map_err(|error| PredictError::Document(error.to_string()))?;
        let price = replay.price.ok_or(PredictError::NoPrice)?;
        let names: Vec<String> = price
            .levels
            .iter()
            .map(|level| level.name.clone())
            .collect();
        let wanted = match (assumptions.memory.as_slice(), names.last()) {
            ([], Some(last)) => std::slice::from_ref(last),
            (wanted, _) => wanted,
        };
        if let Some(wanted) = wanted.iter().find(|wanted| !names.contains(wanted)) {
            return Err(PredictError::NoLevel {
                wanted: wanted.clone(),
                names,
            });
        }
        let sound = |what, value: f64| match value.is_finite() && value >= 0.0 {
            true => Ok(value),
            false => Err(PredictError::Value { what, value }),
        };
        let mut parts = Vec::new();
        for level in &price.levels {
            let clock = match wanted.contains(&level.name) {
                true => Clock::Memory,
                false => Clock::Cpu,
            };
            let nominal = match clock {
                Clock::Cpu => assumptions.nominal.cpu,
                Clock::Memory => assumptions.nominal.memory,
            };
            let accesses = sound("accesses", level.reads + level.writes)?;
            parts.push(Part {
                name: level.name.clone(),
                clock,
                accesses,
                megacycles: accesses * sound("a latency", level.latency_ns)? * nominal / 1e6,
                energy: sound("an energy", level.energy)? * 1e3,
                leakage: sound("a leakage", level.leakage_mw)? / 1e3,
            });
        }
        let computing = sound("a compute time", price.compute_time * price.clock_hz)?
            * sound("cycles", assumptions.cycles)?
            / 1e6;
        let of = |clock| {
            let driven = parts.iter().filter(move |part| part.clock == clock);
            driven.map(|part| part.megacycles).sum::<f64>()
        };
        Ok(Prediction {
            heap: replay.heap,
            footprint: replay.footprint,
            time: Model::time(computing + of(Clock::Cpu), of(Clock::Memory), 0.0),
            computing,
            access_energy: parts.iter().map(|part| part.energy).sum(),
            leakage: parts.iter().map(|part| part.leakage).sum(),
            parts,
        })
    }

    /// Energy at a pair, mJ: accesses, leakage, and what the power model draws for the time. None where that needs a
    /// voltage.
    #[must_use]
    pub fn energy(&self, core: &Model, point: Point) -> Option<f64> {
        let time = self.time.at(point)?;
        Some(self.access_energy + (self.leakage + core.at(point)?) * time)
    }
}

/// Of energies and memories those that none of the others is no worse in both and better in one, in their order. Equal ones
/// stay together. O(n log n).
#[must_use]
pub fn pareto(of: &[(f64, u64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..of.len()).collect();
    order.sort_by(|&a, &b| of[a].0.total_cmp(&of[b].0).then(of[a].1.cmp(&of[b].1)));
    let mut least: Option<usize> = None;
    order.retain(|&index| {
        let stays = least.is_none_or(|least| of[index].1 < of[least].1 || of[index] == of[least]);
        if stays {
            least = Some(index);
        }
        stays
    });
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLAY: &str = r#"{"heap": "tlsf", "footprint": 4096, "price": {"clock_hz": 200000000, "compute_time": 0.01, "energy": 0.1, "levels": [
        {"name": "near", "reads": 600000, "writes": 400000, "latency_ns": 2, "leakage_mw": 1, "energy": 0.0001},
        {"name": "main", "reads": 100000, "writes": 0, "latency_ns": 50, "leakage_mw": 9, "energy": 0.0002}]}}"#;

    fn assumptions() -> Assumptions {
        Assumptions {
            cycles: 1.0,
            nominal: Point::mhz(500.0, 400.0),
            memory: Vec::new(),
        }
    }

    #[test]
    fn counts_become_cycles_of_the_clock_that_drives_them() {
        let foretold = Prediction::from_replay(REPLAY, &assumptions()).expect("a replay");
        // 2 M of computing; 10⁶ × 2 ns at 500 MHz are 1 M; 10⁵ × 50 ns at 400 MHz are 2 M.
        assert_eq!(foretold.time, Model::time(3.0, 2.0, 0.0));
        assert_eq!(
            (foretold.heap.as_deref(), foretold.footprint),
            (Some("tlsf"), Some(4096))
        );
        assert!((foretold.access_energy - 0.3).abs() < 1e-12);
        // 3 / 1 + 2 / 0.5 = 7 ms at 10 mW of leakage and 1 W of the core.
        let energy = foretold.energy(&Model::power(1.0, 0.0, 0.0), Point::mhz(1000.0, 500.0));
        assert!((energy.expect("no voltage") - (0.3 + 7.0 * 1.01)).abs() < 1e-9);
    }

    #[test]
    fn the_front_is_what_no_other_beats() {
        let of = [
            (1.0, 9),
            (2.0, 9),
            (2.0, 5),
            (3.0, 5),
            (4.0, 1),
            (1.0, 9),
            (0.5, 10),
        ];
        let naive: Vec<usize> = (0..of.len())
            .filter(|&i| {
                let beats = |a: (f64, u64), b: (f64, u64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
                !of.iter().any(|other| beats(*other, of[i]))
            })
            .collect();
        assert_eq!(pareto(&of), naive);
        assert_eq!(pareto(&of), [0, 2, 4, 5, 6]);
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        let of = |json: &str| Prediction::from_replay(json, &assumptions());
        assert!(matches!(of("x"), Err(PredictError::Document(_))));
        assert_eq!(of("{\"price\": null}"), Err(PredictError::NoPrice));
        assert!(matches!(
            of(&REPLAY.replace("600000", "-600000000")),
            Err(PredictError::Value { .. })
        ));
        let named = Assumptions {
            memory: vec!["dram".to_owned()],
            ..assumptions()
        };
        let error = Prediction::from_replay(REPLAY, &named).expect_err("no such level");
        assert_eq!(error.to_string(), "there is no level dram: near, main");
    }
}
