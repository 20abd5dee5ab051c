//! Trace files, read for the verbs.

use std::path::Path;

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

/// The form that a replay streams.
pub(crate) fn events(trace: &Trace) -> Result<Events, Failure> {
    Events::try_from(trace).map_err(|error| Failure::input(error.to_string()))
}
