//! A result folder: what an exploration left on disk.
//!
//! Invariant: a [`Folder`] that was read has the columns that every view needs,
//! one row a configuration, and is of the version that this release writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use metes_explore::Space;
use serde_json::{Map, Value};

use crate::columns::{Columns, Values};
use crate::error::Error;
use crate::read;

/// Version of the results that this release reads.
pub const SCHEMA_VERSION: u32 = 2;

/// Where a results file says its version.
const VERSION_KEY: &str = "metes.results_version";
/// Columns without which there is nothing to show.
const NEEDED: [&str; 5] = ["number", "status", "front", "footprint", "accesses"];

/// The results of an exploration.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it lies.
    pub directory: PathBuf,
    /// Every configuration.
    pub columns: Columns,
    /// `exploration.json`.
    pub exploration: Value,
    /// What the trace asks of a heap, where the folder says so.
    pub profile: Option<Value>,
    /// What the results file says about itself.
    pub provenance: Map<String, Value>,
    /// The heap that was recommended when the folder was filled, in words, and why; where one was.
    pub chosen: Option<(String, String)>,
}

impl Folder {
    /// Reads `results.parquet` and `exploration.json`. O(configurations).
    ///
    /// # Errors
    /// Any [`Error`] but those of writing and serving.
    pub fn read(directory: &Path) -> Result<Folder, Error> {
        let listed = fs::metadata(directory).map_err(Error::io("open", directory))?;
        if !listed.is_dir() {
            let kind = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(Error::io("open", directory)(kind));
        }
        let missing = |missing| Error::NoResults {
            directory: directory.to_owned(),
            missing,
        };
        let results = directory.join("results.parquet");
        if !results.exists() {
            return Err(missing("results.parquet"));
        }
        let (columns, said) = read::parquet(&results)?;
        let version = said.get(VERSION_KEY).map_or("none", String::as_str);
        if version.parse() != Ok(SCHEMA_VERSION) {
            return Err(Error::Version {
                path: results,
                found: version.to_owned(),
                supported: SCHEMA_VERSION,
            });
        }
        check(&results, &columns)?;
        let exploration = document(&directory.join("exploration.json"))?
            .ok_or_else(|| missing("exploration.json"))?;
        if !exploration.is_object() {
            let path = directory.join("exploration.json");
            return Err(Error::damaged(&path, "an object was expected"));
        }
        // A report beside a described space is another exploration's.
        let suggested = exploration["exploration"]["space"] == Space::SUGGESTED;
        let chosen = match suggested {
            true => chosen(directory)?,
            false => None,
        };
        let profile = profile(directory)?;
        let provenance = said
            .into_iter()
            .filter(|(key, _)| key.starts_with("metes."));
        Ok(Folder {
            directory: directory.to_owned(),
            columns,
            exploration,
            profile,
            provenance: provenance
                .map(|(key, text)| {
                    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                    (key, value)
                })
                .collect(),
            chosen,
        })
    }

    /// The `heap.toml` of a configuration, where the folder has it: those of the
    /// front and the named heaps.
    #[must_use]
    pub fn heap(&self, number: u64) -> Option<&str> {
        ["front", "named"]
            .iter()
            .filter_map(|list| self.exploration.get(list)?.as_array())
            .flatten()
            .find(|entry| entry.get("number").and_then(Value::as_u64) == Some(number))
            .and_then(|entry| entry.get("toml")?.as_str())
    }
}

/// What the trace asks of a heap, where the directory says so.
fn profile(directory: &Path) -> Result<Option<Value>, Error> {
    Ok(match document(&directory.join("profile.json"))? {
        Some(profile) => Some(profile),
        None => document(&directory.join("report.json"))?
            .and_then(|report| report.get("profile").cloned()),
    })
}

/// What the report in the directory recommends, and why.
fn chosen(directory: &Path) -> Result<Option<(String, String)>, Error> {
    let report = document(&directory.join("report.json"))?;
    let chosen = report.as_ref().and_then(|report| report.get("chosen"));
    let word = |key: &str| chosen?.get(key)?.as_str().map(str::to_owned);
    Ok(word("spec").zip(word("why")))
}

fn check(path: &Path, columns: &Columns) -> Result<(), Error> {
    for name in NEEDED {
        let text = name == "status";
        match columns.get(name) {
            None => return Err(Error::damaged(path, format!("column {name} is missing"))),
            Some(Values::Words { .. }) if text => {}
            Some(Values::Integers(values)) if !text => {
                if name != "footprint" && name != "accesses" && values.contains(&None) {
                    return Err(Error::damaged(path, format!("column {name} has gaps")));
                }
            }
            Some(_) => {
                let reason = format!("column {name} is of another type");
                return Err(Error::damaged(path, reason));
            }
        }
    }
    match columns.rows() {
        0 => Err(Error::damaged(path, "it holds no configuration")),
        _ => Ok(()),
    }
}

/// A JSON document, `None` where there is no such file.
fn document(path: &Path) -> Result<Option<Value>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Error::damaged(path, error))
}
