//! Results on disk, such that nothing is lost and nothing half-written is seen.
//!
//! Invariant: a file that a reader finds under its own name is complete. While
//! it is being written it bears another name, and replaces an earlier one only
//! when it is done; if that fails, the earlier one is as it was.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_trace::whole;
use serde::Serialize;

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}; choose a directory that can be written to, with room left")]
pub struct OutputError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl OutputError {
    fn of(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| OutputError {
            path: path.to_owned(),
            source,
        }
    }
}

/// Writes a file whole or not at all.
///
/// # Errors
/// [`OutputError`]; an earlier file of that name is then intact.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), OutputError> {
    let written = whole::replace(path, |part| {
        let mut file = File::create(part)?;
        file.write_all(content)?;
        match file.sync_all() {
            // What is no regular file keeps nothing that could be lost.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    });
    written.map_err(OutputError::of(path))
}

/// The file of a heap that nothing beats, by its place in the front.
pub fn heap_file(directory: &Path, index: usize) -> PathBuf {
    directory
        .join("pareto")
        .join(format!("{:03}.toml", index + 1))
}

/// Writes the heaps of a front below `directory`, a `heap.toml` each, in their order; their paths.
///
/// # Errors
/// [`OutputError`]; files that were written are whole.
pub fn write_front(directory: &Path, front: &[Config]) -> Result<Vec<PathBuf>, OutputError> {
    let place = directory.join("pareto");
    fs::create_dir_all(&place).map_err(OutputError::of(&place))?;
    let file = |index| heap_file(directory, index);
    let mut paths = Vec::with_capacity(front.len());
    for (index, config) in front.iter().enumerate() {
        write_whole(&file(index), config.to_toml().as_bytes())?;
        paths.push(file(index));
    }
    // Files of an earlier, larger set would be taken for part of this one.
    let mut index = front.len();
    while fs::remove_file(file(index)).is_ok() {
        index += 1;
    }
    Ok(paths)
}

/// Writes a document as indented JSON, whole or not at all.
///
/// # Errors
/// [`OutputError`]; an earlier file of that name is then intact.
pub fn write_json(path: &Path, document: &impl Serialize) -> Result<(), OutputError> {
    let text = serde_json::to_string_pretty(document)
        .map_err(io::Error::from)
        .map_err(OutputError::of(path))?;
    write_whole(path, (text + "\n").as_bytes())
}
