//! Trace files, read for the verbs.

use std::path::Path;

use metes_explore::{Events, EventsBuilder, Operation};
use metes_trace::{Op, Trace};

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
    let mut builder = EventsBuilder::new();
    for event in trace.iter() {
        let operation = match event.op {
            Op::Alloc => Operation::Allocate,
            Op::Free => Operation::Free,
            Op::Resize => Operation::Resize,
            Op::Access => continue,
        };
        builder
            .push(operation, event.block, event.size, u64::from(event.align))
            .map_err(|error| Failure::input(error.to_string()))?;
    }
    Ok(builder.finish())
}
