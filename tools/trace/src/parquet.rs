//! Traces as Parquet files: one row an event, the columns of the schema, zstd;
//! schema version and provenance in the file's key-value metadata.
//!
//! Invariant: what is written is read back the same, and a file that is not
//! such a trace gives an error that says why, whatever its bytes are.

mod dictionary;
mod pages;
mod read;
mod write;

pub use pages::{MOST_PAGE, page_beyond};
pub use read::{MOST_EVENTS, MOST_EVENTS_VARIABLE, read_parquet};
pub(crate) use write::TraceWriter;
pub use write::write_parquet;

/// Version of the schema that this build writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// Metadata key of the schema version.
const VERSION_KEY: &str = "metes.schema_version";
/// Metadata key of the provenance, a JSON object.
const PROVENANCE_KEY: &str = "metes.provenance";
/// Metadata key of the call stacks, where they were recorded.
const STACKS_KEY: &str = "metes.stacks";

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
