//! Meters of energy and power, temperatures, and counts of throttling.
//!
//! Powercap zones and hwmon's energies count microjoules, powercap up to a range from which they begin again; hwmon's
//! powers are microwatts of the moment, which whoever reads them has to integrate.
//!
//! Invariant: a counter that fell has wrapped once, or, where no range is known, says nothing.

use std::path::{Path, PathBuf};

use super::{MachineError, entries, name_of, number, read_if_there};

/// A meter.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Its name: zone and domain, or device and channel.
    pub name: String,
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Microjoules, up to a range; whether it is a zone of its own or a part of one.
    Zone { range: u64, whole: bool },
    /// Microjoules.
    Energy,
    /// Microwatts.
    Power,
}

/// What a meter said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A count of microjoules.
    Energy(u64),
    /// Microwatts at the moment.
    Power(u64),
}

impl Meter {
    /// What it says now.
    ///
    /// # Errors
    /// [`MachineError`] if it cannot be read.
    pub fn read(&self) -> Result<Reading, MachineError> {
        let value = number(&self.path)?;
        Ok(match self.kind {
            Kind::Power => Reading::Power(value),
            Kind::Zone { .. } | Kind::Energy => Reading::Energy(value),
        })
    }

    /// Joules between two counts; none if it fell and has no range, or counts nothing.
    fn between(&self, before: Reading, after: Reading) -> Option<f64> {
        let (Reading::Energy(before), Reading::Energy(after)) = (before, after) else {
            return None;
        };
        let counted = match (after.checked_sub(before), self.kind) {
            (Some(counted), _) => counted,
            (None, Kind::Zone { range, .. }) => range.checked_sub(before)?.checked_add(after)?,
            (None, _) => return None,
        };
        Some(counted as f64 / 1e6)
    }

    /// Joules since the first of some readings, by time in s: counts as they are, powers by trapezoids. None if a counter
    /// fell that has no range.
    #[must_use]
    pub fn joules(&self, readings: &[(f64, Reading)]) -> Option<Vec<(f64, f64)>> {
        let mut sum = 0.0;
        let mut course = Vec::with_capacity(readings.len());
        for (number, &(time, reading)) in readings.iter().enumerate() {
            if let Some(&(from, before)) = number.checked_sub(1).map(|last| &readings[last]) {
                sum += match (before, reading) {
                    (Reading::Power(a), Reading::Power(b)) => {
                        (time - from) * (a as f64 + b as f64) / 2e6
                    }
                    _ => self.between(before, reading)?,
                };
            }
            course.push((time, sum));
        }
        Some(course)
    }
}

/// Joules of a span on a course of [`Meter::joules`], interpolated; none if the course does not cover it.
#[must_use]
pub fn joules_of(course: &[(f64, f64)], from: f64, to: f64) -> Option<f64> {
    let at = |time: f64| {
        let after = course.partition_point(|(at, _)| *at <= time);
        let (before, sum) = *course.get(after.checked_sub(1)?)?;
        match course.get(after) {
            Some(&(next, more)) => Some(sum + (more - sum) * (time - before) / (next - before)),
            None => (time == before).then_some(sum),
        }
    };
    Some(at(to)? - at(from)?)
}

pub(super) fn meters(root: &Path) -> Result<Vec<Meter>, MachineError> {
    let mut found = Vec::new();
    for zone in entries(&root.join("class/powercap"), "") {
        let path = zone.join("energy_uj");
        if !path.exists() {
            continue;
        }
        let directory = name_of(&zone);
        // intel-rapl:0 is a package, intel-rapl:0:1 a part of it.
        let whole = directory.matches(':').count() == 1;
        let said = read_if_there(&zone.join("name")).unwrap_or_default();
        found.push(Meter {
            name: format!("{directory} {said}").trim().to_owned(),
            kind: Kind::Zone {
                range: number(&zone.join("max_energy_range_uj"))?,
                whole,
            },
            path,
        });
    }
    for device in entries(&root.join("class/hwmon"), "hwmon") {
        let said = read_if_there(&device.join("name")).unwrap_or_else(|| name_of(&device));
        for (prefix, kind) in [("energy", Kind::Energy), ("power", Kind::Power)] {
            for path in entries(&device, prefix) {
                let channel = name_of(&path);
                if let Some(channel) = channel.strip_suffix("_input") {
                    found.push(Meter {
                        name: format!("{said} {channel}"),
                        path: path.clone(),
                        kind,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// Whole zones of powercap; without any, the first energy of hwmon, or the first power.
pub(super) fn whole(meters: &[Meter]) -> Vec<&Meter> {
    let whole = |meter: &&Meter| matches!(meter.kind, Kind::Zone { whole: true, .. });
    let zones: Vec<_> = meters.iter().filter(whole).collect();
    if !zones.is_empty() {
        return zones;
    }
    let first = |kind| meters.iter().find(|meter| meter.kind == kind);
    first(Kind::Energy)
        .or_else(|| first(Kind::Power))
        .into_iter()
        .collect()
}

/// Temperatures, and counts of throttling.
#[derive(Debug)]
pub struct Sensors {
    temperatures: Vec<PathBuf>,
    throttles: Vec<PathBuf>,
}

impl Sensors {
    pub(super) fn find(root: &Path) -> Sensors {
        let below = |directory: &str, prefix: &str, file: &str| {
            let found = entries(&root.join(directory), prefix).into_iter();
            found
                .map(|path| path.join(file))
                .filter(|path| path.exists())
                .collect::<Vec<_>>()
        };
        Sensors {
            temperatures: below("class/thermal", "thermal_zone", "temp"),
            throttles: below(
                "devices/system/cpu",
                "cpu",
                "thermal_throttle/core_throttle_count",
            ),
        }
    }

    /// The highest temperature, °C; none if no zone tells.
    #[must_use]
    pub fn temperature(&self) -> Option<f64> {
        let told = self.temperatures.iter().filter_map(|path| {
            // Thousandths, below zero too.
            read_if_there(path)?.parse::<i64>().ok()
        });
        told.max().map(|thousandths| thousandths as f64 / 1e3)
    }

    /// How often cores were throttled so far; none if no core counts it.
    #[must_use]
    pub fn throttled(&self) -> Option<u64> {
        let told = self.throttles.iter().filter_map(|path| number(path).ok());
        told.reduce(u64::saturating_add)
    }
}
