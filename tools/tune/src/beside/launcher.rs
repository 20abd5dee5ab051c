//! What runs a program and says what that took: a small process apart.
//!
//! A program has, among its peak resident set, that of the process it was forked from, also after it was executed; of the
//! command itself that would be more than most programs have. Hence `launch.c`, built once a tuning.
//!
//! Invariant: figures are those of the program and of the children that it waited for, never of what runs it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use metes_explore::report::Took;
use metes_trace::RecordError;
use metes_trace::record::run::run_command;
use metes_trace::record::{Ending, Stage, find_program};

use crate::capture::{Pass, Written, capture};
use crate::error::{Error, FileError};
use crate::tuning::Program;

const SOURCE: &str = include_str!("../../c/launch.c");

/// The built launcher.
pub(super) struct Launcher {
    program: PathBuf,
    report: PathBuf,
}

/// An allocator to run programs on.
pub(super) struct Preloaded {
    /// Keeps the link that is preloaded.
    stage: Option<Stage>,
    /// The heap of `metes`'s own library.
    heap: Option<String>,
}

/// A run that ended.
pub(super) struct Launched {
    pub(super) ending: Ending,
    /// It was killed, as it took too long.
    pub(super) late: bool,
    pub(super) took: Took,
    pub(super) written: Written,
}

impl Preloaded {
    /// The C library's own allocator, or what is preloaded here.
    pub(super) const NOTHING: Preloaded = Preloaded {
        stage: None,
        heap: None,
    };

    /// A library, and which heap of it where it has several.
    pub(super) fn library(path: &Path, heap: Option<String>) -> Result<Self, Error> {
        Ok(Preloaded {
            stage: Some(Stage::new(path, None)?),
            heap,
        })
    }

    /// The value of `LD_PRELOAD`; empty: as it is.
    fn value(&self) -> OsString {
        let preload = |stage: &Stage| {
            let [(_, preload), _] = stage.environment();
            preload
        };
        self.stage.as_ref().map(preload).unwrap_or_default()
    }
}

impl Launcher {
    /// Builds it in a directory.
    pub(super) fn build(directory: &Path) -> Result<Launcher, Error> {
        let source = directory.join("launch.c");
        let launcher = Launcher {
            program: directory.join("launch"),
            report: directory.join("took"),
        };
        std::fs::write(&source, SOURCE).map_err(|error| FileError::new("write", &source, error))?;
        metes_emit::build_program(&source, &launcher.program)?;
        Ok(launcher)
    }

    /// Whether the loader takes a library into programs, and it serves them.
    pub(super) fn serves(&self, library: &Path, preloaded: &Preloaded) -> bool {
        let tried = Command::new(&self.program)
            .arg(library)
            .env("LD_PRELOAD", preloaded.value())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    }

    /// Runs a program once, for so many seconds at most. None where nothing was measured.
    pub(super) fn run(
        &self,
        program: &Program<'_>,
        preloaded: &Preloaded,
        seconds: u32,
    ) -> Result<Option<Launched>, Error> {
        let name = program.command().first().ok_or(RecordError::NoCommand)?;
        let mut child = Command::new(&self.program);
        child
            .arg(&self.report)
            .arg(seconds.to_string())
            .arg(preloaded.value())
            .arg(find_program(name)?.path)
            .args(program.command())
            // Who reports counts each request.
            .env_remove("METES_REPORT");
        if let Some(heap) = &preloaded.heap {
            child.env("METES_HEAP", heap);
        }
        // What an earlier run said is not this one's.
        let _ = std::fs::remove_file(&self.report);
        let run = || run_command(child);
        let (ended, written) = capture(Pass::Away, || program.input.give(false, run))?;
        ended??;
        let said = std::fs::read_to_string(&self.report).unwrap_or_default();
        Ok(read(&said).map(|(ending, took, late)| Launched {
            ending,
            late,
            took,
            written,
        }))
    }
}

/// What the launcher's line says: ending, figures, whether the program was killed for its time.
fn read(line: &str) -> Option<(Ending, Took, bool)> {
    let numbers: Result<Vec<i64>, _> = line.split_whitespace().map(str::parse).collect();
    let [
        signal,
        status,
        micros,
        resident,
        minor,
        major,
        instructions,
        late,
    ] = numbers.ok()?[..]
    else {
        return None;
    };
    let count = |number: i64| u64::try_from(number).ok();
    let ending = match i32::try_from(signal).ok()? {
        0 => Ending::Exit(i32::try_from(status).ok()?),
        signal => Ending::Signal(signal),
    };
    let took = Took {
        peak_resident: count(resident)?.checked_mul(1024)?,
        cpu_seconds: count(micros)? as f64 / 1e6,
        minor_faults: count(minor)?,
        major_faults: count(major)?,
        instructions: count(instructions),
    };
    Some((ending, took, late != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_a_run_ended_and_what_it_took() {
        let (ending, took, late) = read("0 3 2500000 1024 300 1 -1 0\n").expect("a line");
        assert_eq!((ending, late), (Ending::Exit(3), false));
        assert_eq!(took.peak_resident, 1 << 20);
        assert_eq!((took.cpu_seconds, took.instructions), (2.5, None));
        let (ending, took, late) = read("9 0 1 1 1 1 77 1").expect("a line");
        assert_eq!((ending, late), (Ending::Signal(9), true));
        assert_eq!(took.instructions, Some(77));
        for bad in ["", "0 0 1 1", "0 0 -1 1 1 1 1 0", "a b c d e f g h"] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }

    /// A program that writes to so many MiB has so many, and one that does not has few, though this test has many.
    #[test]
    fn a_resident_set_is_the_programs_own() {
        let place = tempfile::tempdir().expect("a directory");
        let launcher = Launcher::build(place.path()).expect("a C compiler");
        let source = place.path().join("touch.c");
        let text = "#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n\
            int main(int count, char **words) { size_t bytes = (size_t)atoi(words[count - 1]) << 20;\n\
            char *block = malloc(bytes + 1); memset(block, 1, bytes + 1); printf(\"%d\\n\", block[bytes / 2]);\n\
            return 0; }\n";
        std::fs::write(&source, text).expect("written");
        let touch = place.path().join("touch");
        metes_emit::build_program(&source, &touch).expect("a C compiler");
        let own = vec![1_u8; 96 << 20];
        let resident = |mib: &str| {
            let report = place.path().join("report");
            let mut child = Command::new(&launcher.program);
            child
                .arg(&report)
                .args(["60", ""])
                .arg(&touch)
                .args(["touch", mib]);
            let status = child.stdout(Stdio::null()).status().expect("it runs");
            assert!(status.success());
            let line = std::fs::read_to_string(&report).expect("a report");
            let (ending, took, _) = read(&line).expect("a line");
            assert_eq!(ending, Ending::Exit(0));
            took.peak_resident
        };
        let (small, large) = (resident("0"), resident("40"));
        assert_eq!(
            own.iter().map(|&byte| u64::from(byte)).sum::<u64>(),
            96 << 20
        );
        assert!(small < 16 << 20, "{small}");
        let more = large - small;
        assert!(
            (39 << 20..=42 << 20).contains(&more),
            "{more} more for 40 MiB"
        );
    }

    #[test]
    fn who_takes_too_long_is_killed_and_said_so() {
        let place = tempfile::tempdir().expect("a directory");
        let launcher = Launcher::build(place.path()).expect("a C compiler");
        let report = place.path().join("report");
        let status = Command::new(&launcher.program)
            .arg(&report)
            .args(["1", "", "/bin/sleep", "sleep", "1000"])
            .status();
        assert!(status.expect("it runs").success());
        let line = std::fs::read_to_string(&report).expect("a report");
        let (ending, _, late) = read(&line).expect("a line");
        assert_eq!((ending, late), (Ending::Signal(libc::SIGKILL), true));
    }

    #[test]
    fn a_library_that_the_loader_passes_over_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let launcher = Launcher::build(place.path()).expect("a C compiler");
        let library = place.path().join("libjemalloc.so.2");
        std::fs::write(&library, "no library at all").expect("written");
        let preloaded = Preloaded::library(&library, None).expect("a place");
        assert!(!launcher.serves(&library, &preloaded));
    }
}
