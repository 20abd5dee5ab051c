//! Results on disk, such that nothing is lost and nothing half-written is seen.
//!
//! Invariant: a file that a reader finds under its own name is complete. While
//! it is being written it bears another name, and replaces an earlier one only
//! when it is done; if that fails, the earlier one is as it was.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_trace::whole;
use serde::Serialize;

use crate::outcome::Outcome;
use crate::search::{Exploration, Observer};

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

/// The directory that an exploration leaves its results in: `results.jsonl`, one
/// outcome a line in the order of evaluation, and `pareto.json`, what was found.
#[derive(Debug)]
pub struct Results {
    directory: PathBuf,
    part: whole::Part,
    lines: BufWriter<File>,
    failed: Option<io::Error>,
}

impl Results {
    /// Makes the directory and begins a file of results beside earlier ones.
    ///
    /// # Errors
    /// [`OutputError`] when the directory cannot be written to; better known
    /// before a search than after it.
    pub fn create(directory: &Path) -> Result<Self, OutputError> {
        fs::create_dir_all(directory).map_err(OutputError::of(directory))?;
        let path = directory.join("results.jsonl");
        let part = whole::Part::begin(&path).map_err(OutputError::of(&path))?;
        let file = File::create(part.path()).map_err(OutputError::of(&path))?;
        Ok(Results {
            directory: directory.to_owned(),
            part,
            lines: BufWriter::new(file),
            failed: None,
        })
    }

    /// Ends the file of results, puts it and `pareto.json` in place of earlier ones.
    ///
    /// # Errors
    /// [`OutputError`], also when a line could not be written before.
    pub fn finish(self, exploration: &Exploration) -> Result<(), OutputError> {
        let Results {
            directory,
            part,
            lines,
            failed,
        } = self;
        let closed = match failed {
            Some(error) => Err(error),
            None => lines.into_inner().map_err(io::IntoInnerError::into_error),
        };
        let path = directory.join("results.jsonl");
        let done = closed
            .and_then(|file| file.sync_all())
            .and_then(|()| part.put());
        done.map_err(OutputError::of(&path))?;
        write_json(&directory.join("pareto.json"), exploration)
    }

    fn line(&mut self, outcome: &Outcome) -> io::Result<()> {
        serde_json::to_writer(&mut self.lines, outcome)?;
        self.lines.write_all(b"\n")
    }
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

impl Observer for Results {
    fn outcome(&mut self, outcome: &Outcome) {
        if self.failed.is_none() {
            self.failed = self.line(outcome).err();
        }
    }

    fn progress(&mut self, _configurations: u64, _pareto: usize) {
        // What was found is on disk after every batch, whatever comes.
        if self.failed.is_none() {
            self.failed = self.lines.flush().err();
        }
    }
}
