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

use crate::error::Failure;

/// A directory for reports.
pub(crate) struct Scratch {
    directory: PrivateDirectory,
}

/// What a process said at its exit.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) pid: u32,
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) resizes: u64,
    pub(crate) failures: u64,
    pub(crate) peak_live: u64,
    pub(crate) live: u64,
    pub(crate) footprint: u64,
    pub(crate) placements: String,
    pub(crate) requests: String,
    pub(crate) events: u64,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Failure> {
        let parent = std::env::temp_dir();
        let directory = PrivateDirectory::new_in(&parent, "metes-reports.")
            .map_err(|error| Failure::io("make a directory in", &parent, error))?;
        Ok(Scratch { directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What makes processes report here.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let pattern = self.path().join("%p.report").into_os_string();
        vec![(OsString::from("METES_REPORT"), pattern)]
    }

    /// The reports so far, by process; a process that runs several programs in
    /// a row has several.
    pub(crate) fn reports(&self) -> Vec<Report> {
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
    pub(crate) fn clear(&self) {
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
pub(crate) fn launch(
    command: &[OsString],
    library: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Run, Failure> {
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
pub(crate) struct SteadyLayout(libc::c_int);

/// Asks `personality` for the present value.
const PRESENT: libc::c_ulong = 0xffff_ffff;

impl SteadyLayout {
    pub(crate) fn begin() -> SteadyLayout {
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
