//! One clock that can be set: a policy of cpufreq or a device of devfreq.
//!
//! With a governor `userspace` the frequency is set by it; without one, least and most are made the same, in the order in
//! which the kernel takes them: never a least above the most.
//!
//! Invariant: frequencies are in kHz here, whatever the files say; a domain is set only to what it offers.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{MachineError, foreign, name_of, number, read, read_if_there, write};

/// Names of the files of a kind of domain, and kHz of their unit.
#[derive(Debug)]
struct Files {
    offered: &'static str,
    least: &'static str,
    most: &'static str,
    now: &'static str,
    governor: &'static str,
    governors: &'static str,
    set: &'static str,
    /// Units of the files in a kHz.
    per_khz: u64,
}

const CPUFREQ: Files = Files {
    offered: "scaling_available_frequencies",
    least: "scaling_min_freq",
    most: "scaling_max_freq",
    now: "scaling_cur_freq",
    governor: "scaling_governor",
    governors: "scaling_available_governors",
    set: "scaling_setspeed",
    per_khz: 1,
};

const DEVFREQ: Files = Files {
    offered: "available_frequencies",
    least: "min_freq",
    most: "max_freq",
    now: "cur_freq",
    governor: "governor",
    governors: "available_governors",
    set: "userspace/set_freq",
    per_khz: 1000,
};

/// The governor that takes a frequency as it is given.
const USERSPACE: &str = "userspace";

/// A clock that can be set.
#[derive(Debug)]
pub struct Domain {
    /// The directory's name.
    pub name: String,
    /// What it offers, kHz, rising; where the kernel lists nothing, the least and the most.
    pub offered: Vec<u64>,
    /// Whether anything between the least and the most will do.
    continuous: bool,
    directory: PathBuf,
    files: &'static Files,
}

/// What became of a frequency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The domain.
    pub domain: String,
    /// What was asked for, kHz.
    pub asked: u64,
    /// What it runs at, kHz; none if the machine does not say.
    pub is: Option<u64>,
}

impl Applied {
    /// Whether it runs at what was asked for, to a hundredth: clocks are multiples of others.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.is
            .is_none_or(|is| is.abs_diff(self.asked) <= self.asked / 100)
    }
}

impl Domain {
    pub(super) fn cpufreq(directory: &Path) -> Result<Domain, MachineError> {
        // Hardware limits, as the scaling ones may be narrowed just now.
        let limits = ["cpuinfo_min_freq", "cpuinfo_max_freq"];
        Domain::of(directory, &CPUFREQ, limits)
    }

    pub(super) fn devfreq(directory: &Path) -> Result<Domain, MachineError> {
        Domain::of(directory, &DEVFREQ, [DEVFREQ.least, DEVFREQ.most])
    }

    fn of(
        directory: &Path,
        files: &'static Files,
        limits: [&str; 2],
    ) -> Result<Domain, MachineError> {
        let list = directory.join(files.offered);
        let listed = read_if_there(&list).unwrap_or_default();
        let mut offered = Vec::new();
        for word in listed.split_whitespace() {
            let unit: u64 = word
                .parse()
                .map_err(|_| foreign(&list, word, "frequency"))?;
            offered.push(unit / files.per_khz);
        }
        let continuous = offered.is_empty();
        if continuous {
            for limit in limits {
                offered.push(number(&directory.join(limit))? / files.per_khz);
            }
        }
        offered.sort_unstable();
        offered.dedup();
        if offered.first() == Some(&0) {
            return Err(foreign(&list, "0", "frequency"));
        }
        Ok(Domain {
            name: name_of(directory),
            offered,
            continuous,
            directory: directory.to_owned(),
            files,
        })
    }

    /// Whether it can be set to this, kHz.
    #[must_use]
    pub fn offers(&self, khz: u64) -> bool {
        let inside = || {
            let (least, most) = (self.offered.first(), self.offered.last());
            least.is_some_and(|least| *least <= khz) && most.is_some_and(|most| khz <= *most)
        };
        self.offered.contains(&khz) || self.continuous && inside()
    }

    pub(super) fn check(&self, khz: u64) -> Result<(), MachineError> {
        if self.offers(khz) {
            return Ok(());
        }
        Err(MachineError::NotOffered {
            domain: self.name.clone(),
            asked: khz,
            offered: self.offered.clone(),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Files with what they say now, in the order in which they are to be restored.
    pub(super) fn settings(&self) -> Result<Vec<(PathBuf, String)>, MachineError> {
        let Files {
            least,
            most,
            governor,
            set,
            ..
        } = self.files;
        let mut settings = Vec::new();
        for name in [least, most] {
            let path = self.file(name);
            let text = read(&path)?;
            settings.push((path, text));
        }
        if let Some(text) = read_if_there(&self.file(governor)) {
            let userspace = text == USERSPACE;
            settings.push((self.file(governor), text));
            if userspace && let Some(text) = read_if_there(&self.file(set)) {
                settings.push((self.file(set), text));
            }
        }
        Ok(settings)
    }

    pub(super) fn set(&self, khz: u64) -> Result<(), MachineError> {
        let unit = (khz * self.files.per_khz).to_string();
        let governors = read_if_there(&self.file(self.files.governors)).unwrap_or_default();
        let userspace = governors.split_whitespace().any(|name| name == USERSPACE);
        // A limit narrower than the frequency would clip it, whoever governs.
        bounds(
            &self.file(self.files.least),
            &self.file(self.files.most),
            &unit,
            &unit,
        )?;
        if userspace {
            write(&self.file(self.files.governor), USERSPACE)?;
            write(&self.file(self.files.set), &unit)?;
        }
        Ok(())
    }

    pub(super) fn applied(&self, khz: u64) -> Result<Applied, MachineError> {
        let now = self.file(self.files.now);
        let is = match now.exists() {
            true => Some(number(&now)? / self.files.per_khz),
            false => None,
        };
        Ok(Applied {
            domain: self.name.clone(),
            asked: khz,
            is,
        })
    }
}

/// Writes least and most, the one first that leaves them in order meanwhile.
pub(super) fn bounds(
    least: &Path,
    most: &Path,
    new_least: &str,
    new_most: &str,
) -> Result<(), MachineError> {
    let value = |text: &str| text.parse::<u64>().unwrap_or(0);
    if value(new_most) >= number(least)? {
        write(most, new_most)?;
        write(least, new_least)
    } else {
        write(least, new_least)?;
        write(most, new_most)
    }
}
