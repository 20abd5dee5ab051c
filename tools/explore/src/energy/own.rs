//! The levels of a `heap.toml` that gives energies and latencies itself.
//!
//! Invariant: a figure of such a hierarchy is one of the file, to the femtojoule
//! and picosecond; nothing is taken from a table.

use metes_config::Config;

use super::error::EnergyError;
use super::read::{DEFAULT_CLOCK, DEFAULT_WORD};
use super::table::{Leakage, MOST, Measures};
use crate::hierarchy::{Hierarchy, Level, Memory};

/// Bytes of a level without a size: the most that a heap is laid out for.
const LARGEST: u64 = 1 << 36;

impl Hierarchy {
    /// The levels of a heap, where its file gives them energies and latencies:
    /// joules a word of 32 bits, nanoseconds an access, at 200 MHz and without
    /// leakage, of which the file knows nothing. `None` where it gives none.
    /// `name` is what sources and errors call the heap.
    ///
    /// # Errors
    /// [`EnergyError::Incomplete`] where some are given and others are not, and
    /// [`EnergyError::Absurd`] for what no memory takes.
    pub fn of_heap(config: &Config, name: &str) -> Result<Option<Self>, EnergyError> {
        let figures = |level: &metes_config::Level| {
            [
                ("read_energy", level.read_energy),
                ("write_energy", level.write_energy),
                ("latency", level.latency),
            ]
        };
        let given = |level| figures(level).iter().any(|(_, figure)| figure.is_some());
        if !config.levels.iter().any(given) {
            return Ok(None);
        }
        let mut levels = Vec::with_capacity(config.levels.len());
        for level in &config.levels {
            let missing = figures(level)
                .into_iter()
                .find(|(_, given)| given.is_none());
            let (Some(read), Some(write), Some(latency)) =
                (level.read_energy, level.write_energy, level.latency)
            else {
                return Err(EnergyError::Incomplete {
                    heap: name.to_owned(),
                    level: level.name.clone(),
                    figure: missing.map_or("latency", |(key, _)| key),
                });
            };
            for ((key, _), (value, most)) in figures(level).iter().zip([
                (read * 1e9, MOST[0]),
                (write * 1e9, MOST[0]),
                (latency, MOST[1]),
            ]) {
                if value > most {
                    return Err(EnergyError::Absurd {
                        heap: name.to_owned(),
                        level: level.name.clone(),
                        figure: key,
                    });
                }
            }
            let measures = Measures {
                read_nj: read * 1e9,
                write_nj: write * 1e9,
                latency_ns: Some(latency),
                leakage_mw: Some(0.0),
            };
            levels.push(Level {
                name: level.name.clone(),
                word_bits: DEFAULT_WORD,
                memories: vec![Memory {
                    size: level.size.map_or(LARGEST, |size| size as u64),
                    figures: measures.figures(name)?,
                    source: format!("{name}, level `{}`", level.name),
                }],
            });
        }
        Ok(Some(Hierarchy {
            levels,
            clock_hz: DEFAULT_CLOCK,
            leakage: Leakage::None,
        }))
    }
}
