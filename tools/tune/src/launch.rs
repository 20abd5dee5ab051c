//! Running a program on a preloaded heap, and reading the reports it leaves.
//!
//! The program gets the same variables, of the same lengths, as under the
//! recorder: programs copy their environment into their heap, so that only then
//! two runs ask for the same.
//!
//! Invariant: scratch files are gone when the scratch is dropped.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use metes_trace::RecordError;
use metes_trace::private::PrivateDirectory;
use metes_trace::record::run::run_command;
use metes_trace::record::{Run, Stage, find_program};
use serde::{Deserialize, Serialize};

use crate::error::{Error, FileError};

/// A directory for reports.
#[derive(Debug)]
pub struct Scratch {
    directory: PrivateDirectory,
}

/// What a process said at its exit.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Report {
    /// The process.
    pub pid: u32,
    /// Blocks that it was given.
    pub allocations: u64,
    /// Blocks that it gave back.
    pub frees: u64,
    /// Blocks that it had resized.
    pub resizes: u64,
    /// Requests that were refused.
    pub failures: u64,
    /// Most requested bytes live at once.
    pub peak_live: u64,
    /// Requested bytes live at its end.
    pub live: u64,
    /// Most bytes that the heap had from the system.
    pub footprint: u64,
    /// Hash of every event with the offset at which the heap placed it.
    pub placements: String,
    /// Hash of the requests alone.
    pub requests: String,
    /// Events in the hashes.
    pub events: u64,
    /// What became of the pages of mapped blocks, where a manager of regions has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<ManagedPages>,
}

/// What became of the pages of mapped blocks that were freed. None of it is part of the footprint, which is
/// what the heap holds.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ManagedPages {
    /// When they go back, as a heap says it.
    pub policy: String,
    /// Most bytes at once that no block had and that were not back yet.
    pub most_waiting: u64,
    /// Such bytes at the end.
    pub waiting: u64,
    /// Bytes that are back.
    pub released: u64,
    /// Regions unmapped.
    pub unmaps: u64,
    /// Of these, those that were to be buried and were returned at once.
    pub at_once: u64,
    /// Most nanoseconds of processor time that unmapping a region took the program.
    pub worst_unmap_cpu_ns: u64,
    /// Most nanoseconds that passed while a region was unmapped.
    pub worst_unmap_ns: u64,
    /// Most nanoseconds of processor time that mapping a region took the program.
    pub worst_map_cpu_ns: u64,
    /// Most nanoseconds that passed while a region was mapped.
    pub worst_map_ns: u64,
}

impl Scratch {
    /// A directory that nobody else has.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn new() -> Result<Scratch, FileError> {
        let parent = std::env::temp_dir();
        let directory = PrivateDirectory::new_in(&parent, "metes-reports.")
            .map_err(|error| FileError::new("make a directory in", &parent, error))?;
        Ok(Scratch { directory })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What makes processes report here.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let pattern = self.path().join("%p.report").into_os_string();
        vec![(OsString::from("METES_REPORT"), pattern)]
    }

    /// The reports so far, by process; a process that runs several programs in
    /// a row has several.
    pub fn reports(&self) -> Vec<Report> {
        let Ok(entries) = std::fs::read_dir(self.path()) else {
            return Vec::new();
        };
        let mut reports = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            if path
                .extension()
                .is_none_or(|extension| extension != "report")
            {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap_or_default();
            // A line cut off by a process that was killed is no report.
            reports.extend(
                text.lines()
                    .filter_map(|line| serde_json::from_str(line).ok()),
            );
        }
        reports.sort_by_key(|report: &Report| report.pid);
        reports
    }

    /// Forgets the reports so far.
    pub fn clear(&self) {
        for entry in std::fs::read_dir(self.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "report")
            {
                // One that stays is overruled by the number of its process.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Runs `command` with `library` preloaded and waits for its end.
///
/// # Errors
/// When the program is not found, preloads nothing, or could not be started.
pub fn launch(
    command: &[OsString],
    library: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Run, Error> {
    let name = command.first().ok_or(RecordError::NoCommand)?;
    let program = find_program(name)?;
    program.check_preload()?;
    let stage = Stage::new(library, None)?;
    let mut child = Command::new(&program.path);
    child
        .arg0(name)
        .args(&command[1..])
        .envs(environment.iter().cloned())
        .envs(stage.environment());
    Ok(run_command(child)?)
}

/// Programs started while it lives get the same address layout each time, as
/// far as the system allows it (some containers do not). Programs hash and sort
/// by address, so only then two runs ask for the same.
#[derive(Debug)]
pub struct SteadyLayout(libc::c_int);

/// Asks `personality` for the present value.
const PRESENT: libc::c_ulong = 0xffff_ffff;

impl SteadyLayout {
    /// From now on, until dropped.
    pub fn begin() -> SteadyLayout {
        // SAFETY: reads and sets flags of this process; they matter for the
        // programs that it starts.
        let before = unsafe { libc::personality(PRESENT) };
        if before >= 0 {
            let steady = (before | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong;
            // SAFETY: as above. Where it is refused, the layout stays random.
            unsafe { libc::personality(steady) };
        }
        SteadyLayout(before)
    }
}

impl Drop for SteadyLayout {
    fn drop(&mut self) {
        if self.0 >= 0 {
            // SAFETY: as above, the value from before.
            unsafe { libc::personality(self.0 as libc::c_ulong) };
        }
    }
}
