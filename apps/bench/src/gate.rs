//! The gate: figures of our heaps must not grow unnoticed.
//!
//! A committed table holds, per heap, the arena ratio on every workload and the
//! ceilings of instructions; and of device heaps the instructions that no call can exceed. All are deterministic for one source and one
//! compiler, so a figure above the table is a change of the heap, not noise.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, arena, instructions};

/// Instruction ceilings of one heap on one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ceiling {
    /// Longest allocation.
    pub(crate) allocate: u64,
    /// Longest free.
    pub(crate) free: u64,
}

/// The committed figures: heap, then workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    /// Smallest arena over peak live bytes, to four places.
    #[serde(default)]
    pub(crate) arena: BTreeMap<String, BTreeMap<String, f64>>,
    /// Longest calls.
    #[serde(default)]
    pub(crate) instructions: BTreeMap<String, BTreeMap<String, Ceiling>>,
    /// Longest paths through the code of device heaps.
    #[serde(default)]
    pub(crate) bounds: BTreeMap<String, Ceiling>,
}

impl Figures {
    /// Collects what was measured.
    pub(crate) fn new(
        arenas: &[arena::Measurement],
        instructions: &[instructions::Measurement],
        bounds: BTreeMap<String, Ceiling>,
    ) -> Self {
        let mut figures = Figures {
            bounds,
            ..Figures::default()
        };
        for measurement in arenas {
            // A heap that fails outright is worse than any ratio.
            let ratio = measurement.ratio.unwrap_or(f64::INFINITY);
            figures
                .arena
                .entry(measurement.heap.clone())
                .or_default()
                .insert(measurement.workload.clone(), (ratio * 1e4).round() / 1e4);
        }
        for measurement in instructions {
            let ceiling = match measurement.failure {
                None => Ceiling {
                    allocate: measurement.allocate.instructions.maximum,
                    free: measurement.free.instructions.maximum,
                },
                Some(_) => Ceiling {
                    allocate: u64::MAX,
                    free: u64::MAX,
                },
            };
            figures
                .instructions
                .entry(measurement.heap.clone())
                .or_default()
                .insert(measurement.workload.clone(), ceiling);
        }
        figures
    }

    /// The arena ratio of a heap on a workload.
    pub(crate) fn arena_ratio(&self, heap: &str, workload: &str) -> Option<f64> {
        let ratio = *self.arena.get(heap)?.get(workload)?;
        ratio.is_finite().then_some(ratio)
    }

    /// Reads a committed table.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let bad = |why: String| Error::Table {
            path: path.to_owned(),
            why,
        };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        toml::from_str(&text).map_err(|error| bad(error.to_string()))
    }

    /// Writes the table.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let bad = |why: String| Error::Table {
            path: path.to_owned(),
            why,
        };
        let body = toml::to_string(self).map_err(|error| bad(error.to_string()))?;
        let text = format!(
            "# Written by `metes-bench gate --update`. The gate fails when a figure grows.\n\n{body}"
        );
        std::fs::write(path, text).map_err(|error| bad(error.to_string()))
    }

    /// What has grown beyond `committed`, or is not in it; one line each.
    pub(crate) fn growth(&self, committed: &Figures) -> Vec<String> {
        let mut lines = Vec::new();
        for (heap, ratios) in &self.arena {
            for (workload, ratio) in ratios {
                let limit = committed.arena.get(heap).and_then(|row| row.get(workload));
                match limit {
                    Some(limit) if ratio <= limit => {}
                    Some(limit) => lines.push(format!(
                        "{heap} on {workload}: arena ratio {ratio} above {limit}"
                    )),
                    None => lines.push(format!("{heap} on {workload}: no arena ratio committed")),
                }
            }
        }
        for (heap, ceilings) in &self.instructions {
            for (workload, found) in ceilings {
                let row = committed.instructions.get(heap);
                let Some(limit) = row.and_then(|row| row.get(workload)) else {
                    lines.push(format!("{heap} on {workload}: no instructions committed"));
                    continue;
                };
                for (verb, found, limit) in found.above(limit) {
                    lines.push(format!(
                        "{heap} on {workload}: longest {verb} {found} instructions, above {limit}"
                    ));
                }
            }
        }
        for (heap, found) in &self.bounds {
            let Some(limit) = committed.bounds.get(heap) else {
                lines.push(format!("{heap}: no bound on instructions committed"));
                continue;
            };
            for (verb, found, limit) in found.above(limit) {
                lines.push(format!(
                    "{heap}: the longest path of {verb} has {found} instructions, above {limit}"
                ));
            }
        }
        lines
    }
}

impl Ceiling {
    /// What is above a limit: the operation, its figure and its limit.
    fn above(&self, limit: &Ceiling) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let both = [
            ("allocate", self.allocate, limit.allocate),
            ("free", self.free, limit.free),
        ];
        both.into_iter().filter(|(_, found, limit)| found > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ratio: f64, allocate: u64) -> Figures {
        let ceiling = Ceiling { allocate, free: 50 };
        let row = |name: &str| name.to_owned();
        Figures {
            arena: BTreeMap::from([(row("h"), BTreeMap::from([(row("w"), ratio)]))]),
            instructions: BTreeMap::from([(row("h"), BTreeMap::from([(row("w"), ceiling)]))]),
            bounds: BTreeMap::from([(row("d"), ceiling)]),
        }
    }

    #[test]
    fn growth_in_space_or_time_is_reported_and_shrinking_is_not() {
        let committed = figures(1.1, 90);
        assert!(figures(1.1, 90).growth(&committed).is_empty());
        assert!(figures(1.05, 80).growth(&committed).is_empty());
        assert_eq!(figures(1.1001, 90).growth(&committed).len(), 1);
        assert_eq!(figures(1.1, 91).growth(&committed).len(), 2);
        assert_eq!(figures(f64::INFINITY, 91).growth(&committed).len(), 3);
        assert_eq!(figures(1.0, 1).growth(&Figures::default()).len(), 3);
    }

    #[test]
    fn the_table_survives_being_written() {
        let path = std::env::temp_dir().join(format!("metes-gate-{}.toml", std::process::id()));
        let written = figures(1.2345, 77);
        written.write(&path).unwrap();
        let read = Figures::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), written);
    }
}
