//! What an exploration leaves when it is done: `results.parquet`,
//! `exploration.json` and a `heap.toml` for each heap that nothing beats.
//!
//! Invariant: a function of the rows and of what the exploration is of.

use std::path::Path;

use super::document::{Found, describe_front};
use super::evaluate::Evaluator;
use super::folder::{EngineError, Manifest};
use super::results::{Source, Summary, write_results};
use crate::output::{write_front, write_json};

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
    write_front(directory, &describe_front(evaluator, &summary))?;
    Ok((summary, found))
}
