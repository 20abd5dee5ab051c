//! Trace files, read for the verbs.

use std::path::{Path, PathBuf};

use metes_explore::Events;
use metes_trace::Trace;

use crate::error::Failure;

/// Reads a trace; one without events is of no use to any verb.
pub(crate) fn read(path: &Path) -> Result<Trace, Failure> {
    let trace = metes_trace::read_parquet(path)?;
    if trace.is_empty() {
        return Err(metes_trace::TraceError::Empty {
            path: path.to_owned(),
        }
        .into());
    }
    Ok(trace)
}

/// The traces that arguments name: files, and those of directories, each directory's by name.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |error| Failure::io("read directory", path, error);
        let mut own = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if is_trace(&file) && file.is_file() {
                own.push(file);
            }
        }
        if own.is_empty() {
            return Err(Failure::input(format!(
                "directory {} holds no trace: files whose names end in .trace.parquet are taken",
                path.display()
            )));
        }
        own.sort();
        files.extend(own);
    }
    Ok(files)
}

/// Whether a file is called as a recording is, or as that of a child (`.trace.1.parquet`).
fn is_trace(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    name.strip_suffix(".parquet").is_some_and(|stem| {
        let number = |(rest, last): (&str, &str)| {
            rest.ends_with(".trace") && last.bytes().all(|byte| byte.is_ascii_digit())
        };
        stem.ends_with(".trace") || stem.rsplit_once('.').is_some_and(number)
    })
}

/// The form that a replay streams.
pub(crate) fn events(trace: &Trace) -> Result<Events, Failure> {
    Events::try_from(trace).map_err(|error| Failure::input(error.to_string()))
}
