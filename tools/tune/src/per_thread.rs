//! A program with threads on a heap for each thread.
//!
//! Where it puts a block depends on how threads are scheduled, so nothing of it is predicted: it is run and measured.
//!
//! Invariant: every figure was measured in this run.

use std::path::Path;

use metes_config::ThreadHeap;
use metes_explore::Replay;

use crate::check::{of_process, run};
use crate::error::Error;
use crate::tuning::{Program, Recorded};

/// What a run on a heap for each thread measured. Bytes.
#[derive(Clone, Debug)]
pub struct PerThread {
    /// The heap.
    pub heap: ThreadHeap,
    /// Most bytes of slots in use at once, and of larger blocks.
    pub peak_live: u64,
    /// Most bytes that the heaps had from the system.
    pub footprint: u64,
}

/// Runs the program on it; nothing where it ends otherwise than when it was recorded, or leaves no report.
pub(crate) fn measure(
    program: &Program<'_>,
    recorded: &Recorded,
    predicted: &Replay,
    preload: &Path,
) -> Result<Option<PerThread>, Error> {
    if recorded.process.replaced_by.is_some() {
        return Ok(None);
    }
    let heap = ThreadHeap::default();
    let (ended, _) = run(program, preload, Some(&heap.to_string()))?;
    let reports = program.scratch.reports();
    let report = of_process(&reports, predicted, recorded.process.is_main, &ended);
    Ok(report
        .filter(|_| ended.ending == recorded.ending)
        .map(|report| PerThread {
            heap,
            peak_live: report.peak_live,
            footprint: report.footprint,
        }))
}
