//! What can go wrong with a result folder.
//!
//! Invariant: each sentence names the cause and a remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Why a folder cannot be shown, served or exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory that the system does not give.
    #[error("cannot {action} {}: {source}{}", .path.display(), remedy(.source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A folder in which no exploration has ended.
    #[error(
        "{} holds no results of an exploration: {missing} is missing; run `metes explore TRACE -o {0}`, \
         again with the same options if it was interrupted, and join parts (--shard) with \
         `metes merge {0} -o DIR`", .directory.display()
    )]
    NoResults {
        /// The folder.
        directory: PathBuf,
        /// The file that is missing.
        missing: &'static str,
    },
    /// Results that another release of Metes wrote.
    #[error(
        "{} is of version {found}, and this Metes reads version {supported}; explore again, or \
         use the release that wrote it", .path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says of itself.
        found: String,
        /// What is read here.
        supported: u32,
    },
    /// A file that is no result of an exploration, or only part of one.
    #[error(
        "{} is damaged or cut short: {reason}; explore again into an empty directory",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A page or table that cannot be written as it should be.
    #[error("{0}")]
    Content(String),
    /// A port that another program listens on.
    #[error("port {port} of this machine is in use; choose another with --port, or 0 for any")]
    PortInUse {
        /// The port.
        port: u16,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Error {
        let reason = reason.to_string();
        let reason = reason.strip_prefix("Parquet error: ").unwrap_or(&reason);
        Error::Damaged {
            path: path.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check the path",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a place that you may read and write"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => "; choose another name",
        io::ErrorKind::StorageFull => "; free some space or choose another disk",
        _ => "",
    }
}
