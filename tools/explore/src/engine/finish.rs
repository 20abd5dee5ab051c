//! What an exploration leaves when it is done: `results.parquet`,
//! `exploration.json` and a `heap.toml` for each heap that nothing beats.
//!
//! Invariant: a function of the rows and of what the exploration is of.

use std::fs;
use std::path::{Path, PathBuf};

use super::document::{Found, describe_front};
use super::evaluate::Evaluator;
use super::folder::{EngineError, Manifest};
use super::results::{Source, Summary, write_results};
use crate::output::{OutputError, write_json, write_whole};

/// File of all rows.
pub const RESULTS: &str = "results.parquet";
/// File of what was found.
pub const EXPLORATION: &str = "exploration.json";

/// Writes the results of rows into `directory`.
///
/// # Errors
/// [`EngineError`] for a missing unit and where files cannot be written.
pub fn finish(
    directory: &Path,
    manifest: &Manifest,
    evaluator: &Evaluator<'_>,
    source: Source<'_>,
) -> Result<(Summary, Found), EngineError> {
    let path = directory.join(RESULTS);
    let (space, objectives) = (evaluator.space(), evaluator.objectives());
    let summary = write_results(&path, manifest, space, objectives, source)?;
    let found = Found::new(evaluator, manifest.clone(), &summary);
    write_json(&directory.join(EXPLORATION), &found)?;
    let place = directory.join("pareto");
    fs::create_dir_all(&place).map_err(|source| OutputError {
        path: place.clone(),
        source,
    })?;
    let front = describe_front(evaluator, &summary);
    for (index, config) in front.iter().enumerate() {
        write_whole(&heap_file(directory, index), config.to_toml().as_bytes())?;
    }
    // Files of an earlier, larger set would be taken for part of this one.
    let mut index = front.len();
    while fs::remove_file(heap_file(directory, index)).is_ok() {
        index += 1;
    }
    Ok((summary, found))
}

/// The file of a heap that nothing beats, by its place in the front.
pub fn heap_file(directory: &Path, index: usize) -> PathBuf {
    directory
        .join("pareto")
        .join(format!("{:03}.toml", index + 1))
}
