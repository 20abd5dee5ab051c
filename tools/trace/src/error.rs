//! What can be wrong with a trace. Each message names the cause, where it is,
//! and what to do.

use std::io;
use std::path::PathBuf;

use crate::event::Op;
use crate::pytorch::{PickleError, SnapshotError};
use crate::rmm::LogError;
use crate::touches::TouchError;

/// Why an event cannot follow those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inconsistency {
    /// A free, resize or access of a block that never was.
    #[error("{} of block {block}, which was never allocated", .op.name())]
    UnknownBlock {
        /// What was to be done.
        op: Op,
        /// The block as the input names it.
        block: u64,
    },
    /// A free of a block already freed.
    #[error("block {block} is freed a second time")]
    DoubleFree {
        /// The block as the input names it.
        block: u64,
    },
    /// A resize or access of a block already freed.
    #[error("{} of block {block}, which is already freed", .op.name())]
    DeadBlock {
        /// What was to be done.
        op: Op,
        /// The block as the input names it.
        block: u64,
    },
    /// An allocation of a block that is live.
    #[error("block {block} is allocated while it is live")]
    LiveBlock {
        /// The block as the input names it.
        block: u64,
    },
    /// Serial numbers must count the allocations.
    #[error("allocation of block {block} where serial number {expected} is due")]
    NotDense {
        /// The block found.
        block: u64,
        /// The serial number due.
        expected: u64,
    },
    /// Larger than any object can be.
    #[error("size {size} is larger than any object can be ({})", isize::MAX)]
    SizeTooLarge {
        /// The size found.
        size: u64,
    },
    /// Alignments are powers of two.
    #[error("alignment {align} is no power of two")]
    BadAlign {
        /// The alignment found.
        align: u32,
    },
    /// Sequence numbers count the rows.
    #[error("sequence number {seq} where {expected} is due")]
    BadSequence {
        /// The number found.
        seq: u64,
        /// The number due.
        expected: u64,
    },
    /// More than 2^32 - 1 blocks.
    #[error("more than 4294967295 blocks")]
    TooManyBlocks,
}

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, read or written.
    #[error("cannot {action} {}: {source}{}", .path.display(), remedy(action, .source))]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not a Parquet file at all, or one cut off.
    #[error(
        "{} is no whole Parquet file ({reason}): it is cut off, damaged or of another kind; \
         record it again, or import text with `metes trace import`", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
    /// A Parquet file that is compressed by a method that is not known here.
    #[error(
        "{} is compressed by {codec}, which is not read: write it again with Zstandard, Snappy, gzip or \
         LZ4, as by `pyarrow.parquet.write_table(table, path, compression=\"zstd\")`", .path.display()
    )]
    Codec {
        /// The file.
        path: PathBuf,
        /// The method.
        codec: String,
    },
    /// A small file that claims very many events.
    #[error(
        "{} holds {events} events in {bytes} bytes, and at most {most} are read of a file so small, as each \
         takes memory: if that is meant, set METES_MOST_EVENTS={events}", .path.display()
    )]
    TooManyEvents {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The events that it says to hold.
        events: u64,
        /// Those that are read.
        most: u64,
    },
    /// A page that would become very long.
    #[error(
        "{} has a page of {bytes} bytes when decompressed, and pages of at most {most} are read: write the file \
         with pages of a megabyte, as most writers do unless told otherwise", .path.display()
    )]
    LongPage {
        /// The file.
        path: PathBuf,
        /// What the page claims.
        bytes: u64,
        /// What is decompressed.
        most: u64,
    },
    /// A Parquet file of another schema.
    #[error(
        "{} is Parquet but no trace: {reason}; a trace has the columns seq, time_ns, thread, op, \
         block, size, align, reads, writes, site, and may have read_bytes, write_bytes", .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Which column is missing or of which type.
        reason: String,
    },
    /// A trace of a schema version that this build does not know.
    #[error(
        "{} has trace schema version {found}, this build reads version {supported}: use the \
         version of Metes that wrote it, or record it again", .path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that this build reads.
        supported: u32,
    },
    /// A row that cannot follow those before it.
    #[error(
        "{}, row {row}: {cause}; if rows were filtered or sorted by another tool, bring the \
         trace in with `metes trace import`, which numbers blocks anew", .path.display()
    )]
    Row {
        /// The file.
        path: PathBuf,
        /// The row, from 0.
        row: u64,
        /// What is wrong with it.
        cause: RowError,
    },
    /// A line of text that is no event, or cannot follow those before it.
    #[error("{}, line {line}: {cause}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: LineError,
    },
    /// A line of a replay log that is no event, or cannot follow those before it.
    #[error("{}, line {line}: {cause}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: LogError,
    },
    /// No recording of a target in a file.
    #[error(
        "{}: {reason}; give what metes_record_send sent, or the memory that metes_record_ring (Rust: the Recorder) lies in",
        .path.display()
    )]
    Target {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A line of a touch trace that is no operation, or cannot follow those before it.
    #[error("{}, line {line}: {cause}", .path.display())]
    Touch {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: TouchError,
    },
    /// A pickle that cannot be read.
    #[error("{}, byte {offset}: {cause}", .path.display())]
    Pickle {
        /// The file.
        path: PathBuf,
        /// Where it is wrong.
        offset: usize,
        /// What is wrong.
        cause: PickleError,
    },
    /// A pickle that is no snapshot.
    #[error("{} is no memory snapshot of PyTorch: {cause}", .path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        cause: SnapshotError,
    },
    /// No event at all.
    #[error("{} holds no event: a trace needs at least one", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// What is wrong with a row of a Parquet trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// See [`Inconsistency`].
    #[error(transparent)]
    Inconsistent(#[from] Inconsistency),
    /// An operation that is none of the four.
    #[error("unknown op {0:?}")]
    UnknownOp(String),
    /// A null, or a number outside its column's range.
    #[error("no valid value in column {0}")]
    BadValue(&'static str),
}

/// What is wrong with a line of a text trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// See [`Inconsistency`].
    #[error(transparent)]
    Inconsistent(#[from] Inconsistency),
    /// The first field is none of a, f, r, x.
    #[error("unknown op {0:?}; a (allocate), f (free), r (resize) and x (access) are known")]
    UnknownOp(String),
    /// Too few fields.
    #[error(
        "field {0} is missing; a line is \
             op,block,size[,align[,thread[,reads,writes[,read_bytes,write_bytes]]]]"
    )]
    Missing(&'static str),
    /// Too many fields.
    #[error(
        "more than 9 fields; a line is \
             op,block,size[,align[,thread[,reads,writes[,read_bytes,write_bytes]]]]"
    )]
    TooMany,
    /// A field that should be a number.
    #[error("field {field} is {text:?}, not a whole number in its range")]
    NotANumber {
        /// The field.
        field: &'static str,
        /// What it holds.
        text: String,
    },
    /// Longer than any event.
    #[error("longer than {0} bytes, so no event; is this a text file?")]
    TooLong(usize),
}

/// What to do about an error of the system, if that is clear.
fn remedy(action: &str, error: &io::Error) -> &'static str {
    match (error.kind(), action) {
        (io::ErrorKind::NotFound, "read") => "; check the path",
        (io::ErrorKind::NotFound, _) => "; make its directory first, or choose another place",
        (io::ErrorKind::IsADirectory, "read") => "; name the file in it",
        (io::ErrorKind::IsADirectory, _) => "; this is a directory, choose another name",
        (io::ErrorKind::PermissionDenied, "read") => "; choose a file that you may read",
        (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem, _) => {
            "; choose a place that you may write to"
        }
        (io::ErrorKind::NotADirectory, _) => "; a part of the path is no directory",
        (io::ErrorKind::StorageFull, _) => "; free some space or choose another disk",
        _ => "",
    }
}
