//! Why a program was not tuned.
//!
//! Invariant: an error names the cause and, where there is one, the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// A file, directory or stream that the system does not give.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}{}", .path.display(), remedy(.source))]
pub struct FileError {
    /// What was to be done with it, as in "cannot *read* this.toml".
    pub action: &'static str,
    /// Its name.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl FileError {
    /// That `action` on `path` failed.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        FileError {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check the path",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a place that you may write to"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; something that is no directory has this name, choose another"
        }
        io::ErrorKind::StorageFull => "; free some space or choose another disk",
        _ => "",
    }
}

/// Why a step of a tuning failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be found, started or recorded.
    #[error("{0}")]
    Record(#[from] metes_trace::RecordError),
    /// A trace could not be written.
    #[error("{0}")]
    Trace(#[from] metes_trace::TraceError),
    /// A trace is none that a heap could serve.
    #[error("{0}")]
    Events(#[from] metes_explore::EventError),
    /// No heap can guarantee what is asked for, or of what is not known.
    #[error("{0}")]
    Terms(#[from] metes_explore::TermsError),
    /// Results could not be written.
    #[error("{0}")]
    Output(#[from] metes_explore::OutputError),
    /// What an earlier search left could not be gone on with, or replaced.
    #[error("{0}")]
    Engine(#[from] metes_explore::engine::EngineError),
    /// The heap has no code.
    #[error("{0}")]
    Emit(#[from] metes_emit::EmitError),
    /// The code could not be built.
    #[error("{0}")]
    Build(#[from] metes_emit::BuildError),
    /// A file, directory or stream.
    #[error(transparent)]
    File(#[from] FileError),
    /// The page of the report does not render: a fault of this library.
    #[error("the report cannot be rendered: {0}")]
    Page(String),
    /// A signal ended the program while it was recorded.
    #[error("the program was ended by signal {0} while it was recorded")]
    Died(i32),
    /// A signal asked for the end of the tuning ([`Watch::asked_to_end`](crate::Watch::asked_to_end)).
    #[error("ended by signal {0}")]
    Ended(i32),
    /// Anything else: one sentence with cause and remedy.
    #[error("{0}")]
    Input(String),
}

impl Error {
    pub(crate) fn input(text: impl Into<String>) -> Self {
        Error::Input(text.into())
    }
}
