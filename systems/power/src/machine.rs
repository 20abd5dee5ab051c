//! The frequencies that a Linux machine offers, its meters and sensors, all below one root: `/sys`, or a recorded tree.
//!
//! Processors: `devices/system/cpu/cpufreq/policy*`. Memory: the device of `class/devfreq` that is named, or the one whose
//! name says so. What was set before is kept, in memory and in a file, until it has been restored.
//!
//! Invariant: nothing below the root is written but by [`Machine::set`] and [`Saved::restore`]; what a file says beyond its
//! form is an error with its path, and a machine without controls is said to have none.

mod domain;
pub mod meter;
mod saved;
mod sensors;

use std::io;
use std::path::{Path, PathBuf};

pub use domain::{Applied, Domain};
pub use saved::{Restored, Saved};
pub use sensors::{Meter, Reading, Sensors, joules_of};

/// Why a machine cannot be used so.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A file that cannot be read or written.
    #[error("cannot {action} {path}: {source}{}", remedy(.source))]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that says what it cannot say.
    #[error("{path} says '{text}', which is no {what}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it says, shortened.
        text: String,
        /// What it should be.
        what: &'static str,
    },
    /// No processor whose frequency can be set.
    #[error(
        "{path} has no policy: this machine lets nobody set its processor's frequency, as virtual machines and containers \
         seldom do; run on hardware with cpufreq, or name a recorded tree by --sysfs"
    )]
    NoProcessor {
        /// Where policies would be.
        path: PathBuf,
    },
    /// No such memory.
    #[error("no device of {path} is {wanted}: {}", there(.names))]
    NoMemory {
        /// Where devices would be.
        path: PathBuf,
        /// What was looked for.
        wanted: String,
        /// What there is.
        names: Vec<String>,
    },
    /// A frequency that is not offered.
    #[error("{domain} does not offer {asked} kHz: {offered:?} kHz")]
    NotOffered {
        /// The domain's name.
        domain: String,
        /// What was asked for, kHz.
        asked: u64,
        /// What there is, kHz.
        offered: Vec<u64>,
    },
    /// No meter of a name.
    #[error("there is no meter {wanted}: {}", there(.names))]
    NoMeter {
        /// What was looked for.
        wanted: String,
        /// What there is.
        names: Vec<String>,
    },
    /// A file of settings that is none.
    #[error("{path} is no file of saved settings: {why}")]
    NotSaved {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => ": root may",
        _ => "",
    }
}

fn there(names: &[String]) -> String {
    match names {
        [] => "there is none".to_owned(),
        names => format!("there are {}", names.join(", ")),
    }
}

/// Longest file of sysfs, bytes.
const LONGEST: usize = 1 << 16;

pub(crate) fn read(path: &Path) -> Result<String, MachineError> {
    let bytes = std::fs::read(path).map_err(|source| MachineError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
    Ok(text.trim().to_owned())
}

/// As [`read`], of a file that need not be there.
pub(crate) fn read_if_there(path: &Path) -> Option<String> {
    read(path).ok()
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), MachineError> {
    std::fs::write(path, text).map_err(|source| MachineError::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn number(path: &Path) -> Result<u64, MachineError> {
    let text = read(path)?;
    text.parse()
        .map_err(|_| foreign(path, &text, "whole number"))
}

pub(crate) fn foreign(path: &Path, text: &str, what: &'static str) -> MachineError {
    MachineError::Foreign {
        path: path.to_owned(),
        text: text.chars().take(60).collect(),
        what,
    }
}

/// Entries of a directory whose names begin so, in order; none if it is not there.
pub(crate) fn entries(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found
        .filter(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with(prefix)
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

pub(crate) fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// What can be set and read.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    /// Processors, a domain each.
    pub processors: Vec<Domain>,
    /// The memory, if its frequency can be set.
    pub memory: Option<Domain>,
    /// Meters of energy and power.
    pub meters: Vec<Meter>,
    /// Temperature and throttling.
    pub sensors: Sensors,
}

/// What names of memory controllers contain.
const MEMORY_NAMES: [&str; 6] = ["dmc", "memory", "emc", "ddr", "dram", "mem"];

impl Machine {
    /// Looks below `root` (`/sys`) for processors, for the memory (named, or by its name) and for meters.
    ///
    /// # Errors
    /// [`MachineError`] if no processor's frequency can be set, if a named memory is not there, or on a foreign file.
    pub fn find(root: &Path, memory: Option<&str>) -> Result<Machine, MachineError> {
        // What is saved is restored from anywhere.
        let whole = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let root = whole.as_path();
        let policies = root.join("devices/system/cpu/cpufreq");
        let processors = entries(&policies, "policy")
            .iter()
            .map(|path| Domain::cpufreq(path))
            .collect::<Result<Vec<_>, _>>()?;
        if processors.is_empty() {
            return Err(MachineError::NoProcessor { path: policies });
        }
        Ok(Machine {
            root: root.to_owned(),
            processors,
            memory: find_memory(&root.join("class/devfreq"), memory)?,
            meters: sensors::meters(root)?,
            sensors: Sensors::find(root),
        })
    }

    /// Frequencies in kHz that every processor offers, rising.
    #[must_use]
    pub fn cpu_frequencies(&self) -> Vec<u64> {
        let mut common = self.processors[0].offered.clone();
        for domain in &self.processors[1..] {
            common.retain(|khz| domain.offers(*khz));
        }
        common
    }

    /// Frequencies in kHz of the memory, rising; empty if nobody sets them.
    #[must_use]
    pub fn memory_frequencies(&self) -> Vec<u64> {
        self.memory
            .as_ref()
            .map_or(Vec::new(), |memory| memory.offered.clone())
    }

    /// What is set now, to be restored later.
    ///
    /// # Errors
    /// [`MachineError`] if it cannot be read.
    pub fn save(&self) -> Result<Saved, MachineError> {
        let mut settings = Vec::new();
        for domain in self.domains() {
            settings.extend(domain.settings()?);
        }
        Ok(Saved::new(self.root.clone(), settings))
    }

    /// Sets all processors, and the memory if asked for; says what became of it.
    ///
    /// # Errors
    /// [`MachineError`] if a frequency is not offered, or the kernel refuses.
    pub fn set(&self, cpu: u64, memory: Option<u64>) -> Result<Vec<Applied>, MachineError> {
        let mut wanted: Vec<(&Domain, u64)> =
            self.processors.iter().map(|domain| (domain, cpu)).collect();
        if let Some(khz) = memory {
            let domain = self.memory.as_ref().ok_or_else(|| MachineError::NoMemory {
                path: self.root.join("class/devfreq"),
                wanted: "the memory".to_owned(),
                names: Vec::new(),
            })?;
            wanted.push((domain, khz));
        }
        // All are asked before the first is set.
        for (domain, khz) in &wanted {
            domain.check(*khz)?;
        }
        for (domain, khz) in &wanted {
            domain.set(*khz)?;
        }
        wanted
            .into_iter()
            .map(|(domain, khz)| domain.applied(khz))
            .collect()
    }

    /// What each domain runs at now, beside what was asked for.
    ///
    /// # Errors
    /// [`MachineError`] if it cannot be read.
    pub fn applied(&self, cpu: u64, memory: Option<u64>) -> Result<Vec<Applied>, MachineError> {
        let of_memory = self.memory.iter().zip(memory);
        let domains = self.processors.iter().map(|domain| (domain, cpu));
        domains
            .chain(of_memory)
            .map(|(domain, khz)| domain.applied(khz))
            .collect()
    }

    /// Meters by name, or those that count the processor's whole package, or whatever there is of one kind.
    ///
    /// # Errors
    /// [`MachineError`] if there is none of that name.
    pub fn meters_named(&self, name: Option<&str>) -> Result<Vec<&Meter>, MachineError> {
        let Some(name) = name else {
            return Ok(sensors::whole(&self.meters));
        };
        let found: Vec<_> = self
            .meters
            .iter()
            .filter(|meter| meter.name == name)
            .collect();
        if found.is_empty() {
            return Err(MachineError::NoMeter {
                wanted: name.to_owned(),
                names: self.meters.iter().map(|meter| meter.name.clone()).collect(),
            });
        }
        Ok(found)
    }

    fn domains(&self) -> impl Iterator<Item = &Domain> {
        self.processors.iter().chain(&self.memory)
    }
}

fn find_memory(directory: &Path, wanted: Option<&str>) -> Result<Option<Domain>, MachineError> {
    let devices = entries(directory, "");
    let names: Vec<String> = devices.iter().map(|path| name_of(path)).collect();
    let found = match wanted {
        Some(wanted) => names.iter().position(|name| name == wanted),
        None => names.iter().position(|name| {
            let name = name.to_ascii_lowercase();
            MEMORY_NAMES.iter().any(|known| name.contains(known))
        }),
    };
    match (found, wanted) {
        (Some(found), _) => Domain::devfreq(&devices[found]).map(Some),
        (None, None) => Ok(None),
        (None, Some(wanted)) => Err(MachineError::NoMemory {
            path: directory.to_owned(),
            wanted: wanted.to_owned(),
            names,
        }),
    }
}
