//! Emitted code in a directory of its own.
//!
//! Invariant: what is in a directory is replaced whole or not at all.

use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_emit::EmittedFile;
use metes_emit::recorder::FILES;
use metes_tune::Emission;

use crate::error::Failure;
use crate::output;
use crate::results::{Kind, Results};

/// Emits a heap into a directory of its own, and builds it if asked to; the
/// files there.
pub(crate) fn into(config: &Config, place: &Path, build: bool) -> Result<Vec<PathBuf>, Failure> {
    let Emission { files, remarks } = metes_tune::emit(config)?;
    for remark in remarks {
        output::note(remark);
    }
    written(&files, place, build)
}

/// Writes the recorder for firmware into a directory of its own; the files there.
pub(crate) fn recorder(place: &Path) -> Result<Vec<PathBuf>, Failure> {
    let files = FILES.map(|(name, text)| EmittedFile {
        path: PathBuf::from(name),
        contents: text.to_owned(),
    });
    written(&files, place, false)
}

fn written(files: &[EmittedFile], place: &Path, build: bool) -> Result<Vec<PathBuf>, Failure> {
    let kind = Kind {
        verb: "emit",
        files: &metes_tune::names(files),
    };
    let results = Results::open(place, kind)?;
    let mut paths = metes_tune::write(files, results.gathered())?;
    if build {
        paths.push(metes_tune::build(results.gathered())?);
    }
    let paths = paths.iter().map(|path| results.shown(path)).collect();
    results.replace()?;
    Ok(paths)
}
