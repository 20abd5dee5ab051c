//! Whose a file is: what Metes did not write it replaces only when told to.
//!
//! A file that is named on the command line is known by how Metes begins such
//! files. In a directory of results a list says more: see [`crate::results`].
//!
//! Invariant: looks only; a file that cannot be read is not ours.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Failure;

/// Bytes of a file's beginning and of its end that tell whose it is.
const LOOKED_AT: u64 = 1 << 16;

/// What is about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A trace or a list of accesses, in Parquet.
    Trace,
    /// A page of Metes.
    Page,
    /// A plot.
    Svg,
    /// A trace as text.
    TraceText,
    /// A touch trace.
    Touches,
    /// Configurations as CSV, a gnuplot script or its data.
    Table,
    /// Configurations as a workbook.
    Workbook,
    /// A manual page.
    Manual,
    /// A machine in a file.
    Snapshot,
    /// Anything without a mark: only an equal file is replaced.
    Plain,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Trace | Form::Touches => "trace",
            Form::Page => "page",
            Form::Svg => "plot",
            Form::TraceText | Form::Table | Form::Workbook => "export",
            Form::Manual => "manual page",
            Form::Snapshot => "snapshot",
            Form::Plain => "file",
        }
    }

    /// How such files begin, any of these.
    fn beginnings(self) -> &'static [&'static str] {
        match self {
            Form::Page => &["<meta name=\"generator\" content=\"Metes\">"],
            Form::Svg => &["<!-- Metes -->"],
            Form::Touches => &[metes_trace::TOUCHES_MARK],
            Form::TraceText => &["op,block,size,align,thread"],
            Form::Table => &[
                "number,named,status,front,",
                "# Configurations of an exploration: gnuplot",
                "# number named status front",
                metes_edge_lab::CSV_BEGINNING,
                "heap,footprint,cpu,memory,energy,feasible,pareto,",
            ],
            Form::Manual => &[".\\\" Metes "],
            Form::Snapshot => &["METESL3\n"],
            Form::Trace | Form::Workbook | Form::Plain => &[],
        }
    }
}

static REPLACE: AtomicBool = AtomicBool::new(false);

/// Lets files be replaced that Metes did not write (`--replace`).
pub(crate) fn replace_all() {
    REPLACE.store(true, Ordering::Relaxed);
}

/// Whether the command line has `--replace`.
pub(crate) fn may_replace_all() -> bool {
    REPLACE.load(Ordering::Relaxed)
}

/// That a file of this form may stand at `path`: nothing is there, or nothing
/// that would be lost. `contents` where they are known already.
pub(crate) fn may_write(path: &Path, form: Form, contents: Option<&[u8]>) -> Result<(), Failure> {
    let Ok(found) = fs::metadata(path) else {
        return Ok(());
    };
    // Devices and pipes take what is written; of directories the system tells.
    if !found.is_file() || found.len() == 0 || may_replace_all() {
        return Ok(());
    }
    if is_ours(path, form) || contents.is_some_and(|contents| holds(path, contents)) {
        return Ok(());
    }
    Err(Failure::input(format!(
        "{} is there and is no {} that Metes wrote: give another name, or add --replace",
        path.display(),
        form.name()
    )))
}

fn holds(path: &Path, contents: &[u8]) -> bool {
    let same_length = fs::metadata(path).is_ok_and(|found| found.len() == contents.len() as u64);
    same_length && fs::read(path).is_ok_and(|found| found == contents)
}

fn is_ours(path: &Path, form: Form) -> bool {
    match form {
        Form::Trace => is_parquet_of_metes(path).unwrap_or(false),
        Form::Workbook => metes_explorer::export::is_workbook(path),
        _ => {
            let head = head(path).unwrap_or_default();
            let head = String::from_utf8_lossy(&head);
            let mut known = form.beginnings().iter();
            match form {
                // A page and a plot have a line or two before their mark.
                Form::Page | Form::Svg => known.any(|mark| head.contains(mark)),
                _ => known.any(|mark| head.starts_with(mark)),
            }
        }
    }
}

fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(LOOKED_AT).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether the description at the end of a Parquet file names Metes.
fn is_parquet_of_metes(path: &Path) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOOKED_AT)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    // Who wrote a file stands behind all else that it says of itself.
    let described = end.windows(6).any(|window| window == b"metes ");
    Ok(head(path)?.starts_with(b"PAR1") && end.ends_with(b"PAR1") && described)
}
