//! What can go wrong with a board.

use std::io;
use std::path::PathBuf;

/// Why there is no board, or nothing to be read from it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The board would be larger than this process may write files.
    #[error(
        "a board of {wanted} bytes exceeds the size of files that this process may write, \
         {limit}: raise `ulimit -f`"
    )]
    Limit {
        /// Bytes of the board.
        wanted: u64,
        /// Bytes that a file may have.
        limit: u64,
    },
    /// A heap that no board describes.
    #[error("a heap of {pages} pages of {page} bytes has no board: {why}")]
    Plan {
        /// Pages of its addresses.
        pages: u64,
        /// Bytes of a page.
        page: u64,
        /// What is wrong with them.
        why: &'static str,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}{}", .path.display(), remedy(.source))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Something else.
    #[error(
        "{} is no board of a device heap: name a process, or a board below /proc/PID/fd",
        .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A board of another release.
    #[error(
        "{} is a board of version {found}, and this Metes reads version {supported}: use the \
         release that the program runs with", .path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u64,
        /// What is read here.
        supported: u64,
    },
    /// A board with values that no heap writes.
    #[error(
        "{} is damaged or cut short: {what}; if it is a copy, take it again while the heap is \
         idle", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A heap that was faster than the reader, each time.
    #[error(
        "the heap of {} changes faster than it can be read here: try again when this machine is \
         less busy", .path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    pub(crate) fn system(action: &'static str) -> Self {
        Error::System {
            action,
            source: io::Error::last_os_error(),
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; the process has ended, or the path is wrong",
        io::ErrorKind::PermissionDenied => "; look as the user whose process it is, or as root",
        _ => "",
    }
}
