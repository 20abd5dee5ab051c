//! The directory of an exploration: what it is of, and which units are done.
//!
//! `units/manifest.json` says of what trace, space and options the units are;
//! `units/seed` and `units/NNNNNN` hold rows. Files appear whole or not at all.
//!
//! Invariant: a unit that is read back is the one that was written, by the same
//! version for the same exploration; a damaged one counts as not done.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::row::{Form, Row, decode_rows, encode_rows};
use crate::events::Events;
use crate::output::{OutputError, write_json, write_whole};
use crate::space::Space;
use crate::terms::Wanted;

/// What an exploration is of. Two are the same when all of this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of Metes whose heaps were replayed.
    pub metes: String,
    /// Version of the form of rows and units.
    pub format: u32,
    /// Hash of the trace, in hexadecimal.
    pub trace: String,
    /// Its events.
    pub events: u64,
    /// The values of the space's parameters.
    pub space: String,
    /// Different configurations in it.
    pub size: u64,
    /// What is minimised.
    pub objectives: String,
    /// Arena and cost model, as JSON.
    pub options: Value,
    /// The memory levels that replays are priced on, as JSON; null without.
    #[serde(default)]
    pub hierarchy: Value,
    /// What heaps guarantee, and for which demand; null where nobody asked.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub guarantee: Value,
    /// How configurations are chosen, with the seed of what chance decides.
    pub search: String,
    /// Whether replays of beaten heaps end early.
    pub end_early: bool,
}

/// Version of the form of rows and units.
const FORMAT: u32 = 3;
/// The same where rows have what heaps guarantee.
const GUARANTEED_FORMAT: u32 = 4;
const MAGIC: &[u8; 8] = b"METESROW";

impl Manifest {
    /// Version of Metes and of a form.
    pub(super) fn versions(form: Form) -> (String, u32) {
        let format = match form {
            Form::Measured => FORMAT,
            Form::Guaranteed => GUARANTEED_FORMAT,
        };
        (env!("CARGO_PKG_VERSION").to_owned(), format)
    }

    /// What its rows have.
    pub(super) fn form(&self) -> Form {
        match self.format == GUARANTEED_FORMAT {
            true => Form::Guaranteed,
            false => Form::Measured,
        }
    }

    /// What differs from another one, in words; empty when they are the same.
    fn differences(&self, other: &Manifest) -> Vec<&'static str> {
        // Another form may spell the same options otherwise.
        let known = |own: &Manifest| [FORMAT, GUARANTEED_FORMAT].contains(&own.format);
        let same_form = self.format == other.format || known(self) && known(other);
        let mut found = Vec::new();
        let mut note = |same: bool, what| {
            if !same {
                found.push(what);
            }
        };
        note(self.metes == other.metes && same_form, "version of Metes");
        note(
            self.trace == other.trace && self.events == other.events,
            "trace",
        );
        note(
            self.space == other.space && self.size == other.size,
            "space",
        );
        note(self.objectives == other.objectives, "objectives");
        note(!same_form || self.options == other.options, "options");
        note(
            !same_form || self.hierarchy == other.hierarchy,
            "memory levels",
        );
        note(
            !same_form || self.guarantee == other.guarantee,
            "what is to be guaranteed",
        );
        note(self.search == other.search, "method of search");
        note(self.end_early == other.end_early, "way of ending replays");
        found
    }

    /// From what size on blocks were mapped.
    pub fn mapped(&self) -> Option<usize> {
        let bytes = self.options.get("arena")?.get("mapped")?.as_u64();
        usize::try_from(bytes?).ok()
    }

    /// Tells explorations apart.
    pub fn fingerprint(&self) -> u64 {
        let text = serde_json::to_string(self).unwrap_or_default();
        fnv(text.bytes())
    }
}

/// Where an exploration's trace and space came from, to find them again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The trace file.
    pub trace: PathBuf,
    /// What errors call the space.
    pub space_name: String,
    /// The text of the space.
    pub space: String,
    /// The memory levels, if replays are priced.
    pub levels: Option<String>,
    /// What was asked of guarantees, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Wanted>,
}

/// Why units cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The system does not let it.
    #[error("{0}")]
    Output(#[from] OutputError),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}; check the path")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The directory holds another exploration.
    #[error(
        "{path} holds the units of another exploration ({differences} differ{s}); choose another directory, or begin anew with --fresh", s = if .many.to_owned() { "" } else { "s" }
    )]
    Other {
        /// The directory.
        path: PathBuf,
        /// What differs.
        differences: String,
        /// Whether several things do.
        many: bool,
    },
    /// The directory holds no exploration.
    #[error(
        "{path} holds no units of an exploration: {why}; give a directory that `metes explore --shard` wrote"
    )]
    NoUnits {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// Units are missing where all are needed.
    #[error(
        "{missing} of {units} units are missing, the first of them is {first}; run the shard that they belong to again: it does only what is missing"
    )]
    Missing {
        /// How many.
        missing: u64,
        /// Of how many.
        units: u64,
        /// The first.
        first: u64,
    },
    /// The columns could not be encoded.
    #[error("cannot write {path} as Parquet: {message}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
}

/// A directory with units.
#[derive(Clone, Debug)]
pub struct Folder {
    directory: PathBuf,
    fingerprint: u64,
    form: Form,
}

impl Folder {
    /// Opens the directory of an exploration, or makes it. With `fresh`, what
    /// another exploration left is removed.
    ///
    /// # Errors
    /// [`EngineError::Other`] where it holds units of another exploration.
    pub fn open(directory: &Path, manifest: &Manifest, fresh: bool) -> Result<Self, EngineError> {
        let folder = Folder {
            directory: directory.to_owned(),
            fingerprint: manifest.fingerprint(),
            form: manifest.form(),
        };
        let units = folder.units();
        let path = units.join("manifest.json");
        match fs::read(&path) {
            Ok(bytes) => {
                let own = serde_json::from_slice::<Manifest>(&bytes).ok();
                if own.as_ref() != Some(manifest) {
                    if !fresh {
                        return Err(other(directory, own.as_ref(), manifest));
                    }
                    folder.remove()?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(EngineError::Read { path, source }),
        }
        fs::create_dir_all(&units).map_err(|source| OutputError {
            path: units.clone(),
            source,
        })?;
        write_json(&path, manifest)?;
        Ok(folder)
    }

    /// Opens the directory of a search among suggested heaps, or makes it. What such a search of
    /// another trace left is replaced; with `fresh`, whatever an exploration left.
    ///
    /// # Errors
    /// [`EngineError::Other`] where it holds units of a described space.
    pub fn open_suggested(
        directory: &Path,
        manifest: &Manifest,
        fresh: bool,
    ) -> Result<Self, EngineError> {
        if !fresh {
            Folder::may_be_suggested(directory)?;
        }
        Folder::open(directory, manifest, true)
    }

    /// Makes sure that a directory may be used for a search among suggested heaps: that it holds no
    /// units but those of another one.
    ///
    /// # Errors
    /// [`EngineError::Other`] where it does.
    pub fn may_be_suggested(directory: &Path) -> Result<(), EngineError> {
        let is_there = directory.join("units").join("manifest.json").exists();
        match Folder::read(directory) {
            Err(_) if !is_there => Ok(()),
            Ok((_, manifest)) if manifest.space == Space::SUGGESTED => Ok(()),
            _ => Err(EngineError::Other {
                path: directory.to_owned(),
                differences: "space".to_owned(),
                many: false,
            }),
        }
    }

    /// Opens a directory that must hold an exploration, to read it.
    ///
    /// # Errors
    /// [`EngineError::NoUnits`] where it holds none.
    pub fn read(directory: &Path) -> Result<(Self, Manifest), EngineError> {
        let path = directory.join("units").join("manifest.json");
        let no_units = |why: String| EngineError::NoUnits {
            path: directory.to_owned(),
            why,
        };
        let bytes = fs::read(&path).map_err(|error| no_units(error.to_string()))?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| no_units(error.to_string()))?;
        let folder = Folder {
            directory: directory.to_owned(),
            fingerprint: manifest.fingerprint(),
            form: manifest.form(),
        };
        Ok((folder, manifest))
    }

    /// Notes where trace and space came from.
    ///
    /// # Errors
    /// [`OutputError`] when the system does not let it.
    pub fn note_origin(&self, origin: &Origin) -> Result<(), OutputError> {
        write_json(&self.units().join("origin.json"), origin)
    }

    /// Where trace and space came from.
    ///
    /// # Errors
    /// [`EngineError::NoUnits`] where that was not noted.
    pub fn origin(&self) -> Result<Origin, EngineError> {
        let path = self.units().join("origin.json");
        let read = fs::read(&path).map_err(|error| error.to_string());
        let origin = read
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        origin.map_err(|why| EngineError::NoUnits {
            path: self.directory.clone(),
            why,
        })
    }

    /// Takes over the sound units of another folder of the same exploration,
    /// and its seed phase.
    ///
    /// # Errors
    /// [`EngineError::Other`] for a folder of another exploration.
    pub fn take_over(
        &self,
        other: &Folder,
        own: &Manifest,
        theirs: &Manifest,
        units: u64,
    ) -> Result<(), EngineError> {
        if own != theirs {
            return Err(self::other(&other.directory, Some(theirs), own));
        }
        for unit in (0..units).map(Some).chain([None]) {
            if self.rows(unit).is_none()
                && let Some(rows) = other.rows(unit)
            {
                self.write(unit, &rows)?;
            }
        }
        Ok(())
    }

    /// Makes sure that all units are there and sound.
    ///
    /// # Errors
    /// [`EngineError::Missing`] with how many are not.
    pub fn all_there(&self, units: u64) -> Result<(), EngineError> {
        let mut missing = (0..units).filter(|&unit| self.rows(Some(unit)).is_none());
        match missing.next() {
            None => Ok(()),
            Some(first) => Err(EngineError::Missing {
                missing: 1 + missing.count() as u64,
                units,
                first,
            }),
        }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn units(&self) -> PathBuf {
        self.directory.join("units")
    }

    fn file(&self, unit: Option<u64>) -> PathBuf {
        match unit {
            Some(unit) => self.units().join(format!("{unit:06}")),
            None => self.units().join("seed"),
        }
    }

    /// Writes the rows of a unit, or of the seed phase.
    ///
    /// # Errors
    /// [`OutputError`]; the unit then counts as not done.
    pub fn write(&self, unit: Option<u64>, rows: &[Row]) -> Result<(), OutputError> {
        write_whole(
            &self.file(unit),
            &self.seal(unit, &encode_rows(rows, self.form)),
        )
    }

    /// The rows of a unit, or of the seed phase, if they are there and sound.
    pub fn rows(&self, unit: Option<u64>) -> Option<Vec<Row>> {
        let bytes = fs::read(self.file(unit)).ok()?;
        decode_rows(self.unseal(unit, &bytes)?, self.form)
    }

    /// Whether a unit is there, by its name alone.
    pub fn has(&self, unit: u64) -> bool {
        self.file(Some(unit)).is_file()
    }

    fn seal(&self, unit: Option<u64>, rows: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.fingerprint.to_le_bytes());
        bytes.extend(unit.unwrap_or(u64::MAX).to_le_bytes());
        bytes.extend_from_slice(rows);
        let sum = fnv(bytes.iter().copied());
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    fn unseal<'b>(&self, unit: Option<u64>, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        let rows = body.get(24..)?;
        let sound = body.starts_with(MAGIC)
            && body[8..16] == self.fingerprint.to_le_bytes()
            && body[16..24] == unit.unwrap_or(u64::MAX).to_le_bytes()
            && u64::from_le_bytes(*sum) == fnv(body.iter().copied());
        sound.then_some(rows)
    }

    /// Removes the units; the results that were made of them stay, and so does what is none of Metes.
    ///
    /// # Errors
    /// [`OutputError`] when the system does not let it.
    pub fn remove(&self) -> Result<(), OutputError> {
        let units = self.units();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| OutputError { path, source }
        };
        let entries = match fs::read_dir(&units) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed(&units))?,
        };
        for entry in entries {
            let entry = entry.map_err(failed(&units))?;
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_file && is_ours(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path()).map_err(failed(&entry.path()))?;
            }
        }
        // Empty, or it stays.
        let _ = fs::remove_dir(&units);
        Ok(())
    }
}

/// Whether a file among the units is named as Metes names its own.
fn is_ours(name: &str) -> bool {
    // Half written by a Metes that was killed.
    let name = name
        .split_once(".part-metes-")
        .map_or(name, |(name, _)| name);
    let unit = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    unit || ["manifest.json", "origin.json", "seed"].contains(&name)
}

/// The error for a directory with something else in it.
pub(super) fn other(path: &Path, own: Option<&Manifest>, wanted: &Manifest) -> EngineError {
    let differences = match own {
        Some(own) => own.differences(wanted),
        None => vec!["version of Metes"],
    };
    EngineError::Other {
        path: path.to_owned(),
        many: differences.len() != 1,
        differences: differences.join(" and "),
    }
}

/// FNV-1a, 64 bits.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A hash of all that replays see of a trace.
pub(crate) fn trace_hash(events: &Events) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3);
        hash ^= hash >> 29;
    };
    for event in events.as_slice() {
        add(event.operation() as u64 | u64::from(event.slot()) << 8);
        add(event.size() as u64);
        add(event.align() as u64);
    }
    for accesses in events.accesses() {
        add(accesses.reads);
        add(accesses.writes);
    }
    for (slot, accesses) in events.left() {
        add(u64::from(*slot));
        add(accesses.reads);
        add(accesses.writes);
    }
    add(u64::from(events.access_word()));
    add(events.instructions());
    format!("{hash:016x}")
}
