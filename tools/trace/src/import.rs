//! A trace from a file of any foreign form that is known.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::TraceError;
use crate::trace::Trace;
use crate::{csv, pytorch, rmm, target};

/// A foreign form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text lines, see [`import_csv`](crate::import_csv).
    Text,
    /// A memory snapshot of PyTorch, see [`import_pytorch`](crate::import_pytorch).
    PyTorch,
    /// A replay log of RMM, see [`import_rmm`](crate::import_rmm).
    Rmm,
    /// What a recorder on a target left, see [`target::import`].
    Target,
}

impl Format {
    /// The form of a file that begins with `head`: a pickle, a log by its header, a ring or a batch of a target, or else
    /// text.
    #[must_use]
    pub fn of(head: &[u8]) -> Format {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        if head.first() == Some(&0x80) {
            Format::PyTorch
        } else if head.starts_with(rmm::HEADER.as_bytes()) {
            Format::Rmm
        } else if target::begins(head) {
            Format::Target
        } else {
            Format::Text
        }
    }

    /// The form of the file `path`, by its beginning.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_file(path: &Path) -> Result<Format, TraceError> {
        head(path).map(|head| Format::of(&head))
    }
}

/// Reads the file `path` in the form that it begins with, or in `format`. `device` chooses among
/// the devices of a snapshot; other forms have none.
///
/// # Errors
/// As the import of that form.
pub fn import_file(
    path: &Path,
    format: Option<Format>,
    device: Option<usize>,
) -> Result<Trace, TraceError> {
    let format = match format {
        Some(format) => format,
        None => Format::of_file(path)?,
    };
    match format {
        Format::Text => csv::import_csv_file(path),
        Format::PyTorch => pytorch::import_pytorch_file(path, device),
        Format::Rmm => rmm::import_rmm_file(path),
        Format::Target => target::import_file(path).map(|recording| recording.trace),
    }
}

/// The first bytes of a file.
fn head(path: &Path) -> Result<Vec<u8>, TraceError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.map_err(|source| TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    Ok(head)
}
