//! Allocation traces: what a program asked of its heap, event by event.
//!
//! - [`Trace`] holds the events of one process in memory, [`TraceBuilder`]
//!   makes one and refuses what no program could have done;
//! - [`read_parquet`] and [`write_parquet`] keep traces in files that any Arrow
//!   tool opens; [`import_csv`] and [`export_csv`] exchange them as text;
//! - [`import_pytorch`] reads memory snapshots of PyTorch, [`import_rmm`] replay logs of RMM,
//!   [`target::import`] what a recorder on a target left, and [`import_file`] whatever of these a file is;
//! - [`TouchReader`] reads touch traces, which also say where blocks are touched;
//! - [`profile`](profile()) condenses a trace into the figures that a heap is
//!   chosen by;
//! - [`record`](record()) runs an unmodified program under the recording
//!   library and gives the traces of it and its children, [`record_firmware`] an
//!   image for LEON3 in the simulator.
//!
//! Sizes are bytes, times nanoseconds. A block is named by its serial number,
//! never by an address: block `k` is the one that the `k`-th allocation made.

mod blocks;
#[cfg(feature = "files")]
pub mod caught;
mod csv;
mod error;
mod event;
mod import;
pub mod lines;
mod numbers;
#[cfg(feature = "files")]
mod parquet;
#[cfg(feature = "files")]
pub mod private;
pub mod profile;
mod pytorch;
#[cfg(feature = "files")]
pub mod record;
mod rmm;
pub mod stacks;
pub mod target;
mod touches;
mod trace;
#[cfg(feature = "files")]
pub mod whole;

pub use csv::{CsvExport, export_csv, import_csv, import_csv_file};
pub use error::{Inconsistency, TraceError};
pub use event::{Event, Op};
pub use import::{Format, import_file};
pub use numbers::Numbers;
#[cfg(feature = "files")]
pub use parquet::{
    MOST_EVENTS, MOST_EVENTS_VARIABLE, MOST_PAGE, SCHEMA_VERSION, page_beyond, read_parquet,
    write_parquet,
};
pub use profile::{Profile, profile};
pub use pytorch::{PickleError, SnapshotError, import_pytorch, import_pytorch_file};
#[cfg(feature = "files")]
pub use record::access::{Access, AccessOptions, count_accesses, read_accesses};
#[cfg(feature = "files")]
pub use record::emulated::{
    Board, EmulatedError, EmulatedRecording, need_emulator, record_emulated, run_emulated,
};
#[cfg(feature = "firmware")]
pub use record::firmware::{
    CallCount, Findings, FirmwareError, FirmwareOptions, FirmwareRecording, record_firmware,
};
#[cfg(feature = "files")]
pub use record::{RecordError, RecordOptions, Recording, record, record_files};
pub use rmm::{LogError, import_rmm, import_rmm_file};
pub use stacks::{Stacks, StacksBuilder};
pub use target::{HeapState, Spent, TargetRecording};
pub use touches::{
    TOUCHES_MARK, TouchError, TouchOperation, TouchProfile, TouchReader, open_touches,
};
pub use trace::{Beginning, Provenance, Trace, TraceBuilder};
