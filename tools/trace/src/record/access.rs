//! Counting accesses: runs a program under QEMU's user-mode emulation with the
//! access counter (crate `metes-access`) as a plug-in, and gives a trace whose
//! rows carry the program's reads and writes of each block.
//!
//! A dynamically linked program of this machine announces its blocks through
//! the recording library; a static one, of any machine that QEMU emulates, has
//! `announce.c` linked into it. The events come from that one run. [`agree`]
//! compares them with those of a light recording, and [`join`] gives them its
//! times where both made the same requests.
//!
//! Invariant: a count in the trace was counted in this run; children are not in
//! it, and how many there were is said.

mod agreement;
mod map;
mod raw;
mod stream;
mod target;
mod touches;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use agreement::{Agreement, agree, join};
pub use stream::{Access, read_accesses};

use metes_layout::accesses as layout;

use super::check::find_program;
use super::error::{Obstacle, RecordError};
use super::run::{self, Ending};
use super::stage::Stage;
use crate::error::TraceError;
use crate::touches::TouchProfile;
use crate::trace::Trace;

/// How to count.
#[derive(Clone, Debug)]
pub struct AccessOptions {
    /// The plug-in, `libmetes_access.so`.
    pub plugin: PathBuf,
    /// The recording library, `libmetes_record.so`.
    pub recorder: PathBuf,
    /// Bytes of the words to count in: 4 or 8.
    pub word: u32,
    /// Keep every access, for [`Counted::write_every_access`].
    pub every: bool,
    /// Keep the first access to each slice of so many bytes of each block, for
    /// [`Counted::write_touches`]: a power of two from 16 on.
    pub slice: Option<u64>,
    /// Where raw files grow; see [`super::RecordOptions::directory`].
    pub directory: Option<PathBuf>,
    /// Variables to add to the program's environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// A program whose accesses can be counted, and what runs it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command, with the interpreter in front if it is a script.
    pub command: Vec<OsString>,
    /// The file that is run.
    pub program: PathBuf,
    /// The emulator.
    pub qemu: PathBuf,
    /// It is linked dynamically and runs on this machine, so that a light
    /// recording can check the count.
    pub native: bool,
}

/// What a counted run gave.
#[derive(Debug)]
pub struct Counted {
    /// The trace, with counts and without times.
    pub trace: Trace,
    /// How the program ended.
    pub ending: Ending,
    /// Processor time of emulator and program, seconds.
    pub cpu_seconds: f64,
    /// Time that passed, seconds.
    pub wall_seconds: f64,
    /// Instructions executed in malloc and its kin.
    pub allocator_instructions: u64,
    /// Children that the program forked; their accesses are not counted.
    pub forks: u64,
    /// Programs that such children ran.
    pub child_programs: u64,
    /// Owns the raw files.
    stage: Stage,
}

/// Looks at `command`: what it runs, and in which emulator: `qemu`, or else the
/// `qemu-…` of the program's machine in PATH.
///
/// # Errors
/// [`RecordError`]: no such program, one that cannot announce its blocks, or no
/// emulator for it.
pub fn plan(command: &[OsString], qemu: Option<&OsStr>) -> Result<Plan, RecordError> {
    let (name, _) = command.split_first().ok_or(RecordError::NoCommand)?;
    let program = find_program(name)?;
    let (program, command) = target::resolve(program, command)?;
    let target = target::look(&program.path)?;
    let native = target.native && target.dynamic;
    if native {
        program.check_preload()?;
    } else if target.dynamic {
        return Err(RecordError::CannotCount {
            path: program.path,
            reason: format!(
                "it is linked dynamically for another machine ({}), where nothing tells of its \
                 blocks: link it statically with announce.c of crate metes-access (docs/accesses.md)",
                target.machine
            ),
        });
    } else if let Err(RecordError::CannotPreload {
        path,
        obstacle: obstacle @ Obstacle::Privileged(_),
    }) = program.check_preload()
    {
        return Err(RecordError::CannotPreload { path, obstacle });
    }
    let wanted = qemu.map_or_else(|| OsString::from(&target.qemu), OsStr::to_owned);
    let qemu = find_program(&wanted).map_err(|_| RecordError::NoEmulator {
        qemu: wanted.to_string_lossy().into_owned(),
    })?;
    Ok(Plan {
        command,
        program: program.path,
        qemu: qemu.path,
        native,
    })
}

/// Runs the planned command with the standard streams of this process, and
/// counts its accesses.
///
/// # Errors
/// [`RecordError`]: what stands in the way. A program that fails or dies is no
/// error; see [`Counted::ending`].
pub fn count_accesses(plan: &Plan, options: &AccessOptions) -> Result<Counted, RecordError> {
    let stage = Stage::new(&options.recorder, options.directory.as_deref())?;
    let unusable = |path: &Path, reason: &str| RecordError::Directory {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let directory = stage.directory().to_owned();
    let plugin = std::fs::canonicalize(&options.plugin).map_err(|source| RecordError::Library {
        path: options.plugin.clone(),
        source,
    })?;
    // QEMU takes lists with commas.
    for path in [directory.as_path(), plugin.as_path()] {
        if path.as_os_str().as_bytes().contains(&b',') {
            return Err(unusable(path, "QEMU cannot take a path with a comma"));
        }
    }
    std::fs::write(directory.join(layout::ANNOUNCE_FILE), [])
        .map_err(|error| unusable(&directory, &error.to_string()))?;
    let run = run::run_command(emulation(plan, options, &stage, &plugin))?;
    let read = raw::read(&directory, plan, run.ending, options)?;
    Ok(Counted {
        trace: read.trace,
        ending: run.ending,
        cpu_seconds: run.cpu_seconds,
        wall_seconds: run.wall_seconds,
        allocator_instructions: read.allocator_instructions,
        forks: read.forks,
        child_programs: read.child_programs,
        stage,
    })
}

/// `qemu -plugin … -E … program arguments`.
fn emulation(plan: &Plan, options: &AccessOptions, stage: &Stage, plugin: &Path) -> Command {
    let mut command = Command::new(&plan.qemu);
    let mut loaded = plugin.as_os_str().to_owned();
    loaded.push(",directory=");
    loaded.push(stage.directory());
    loaded.push(format!(
        ",word={},every={}",
        options.word,
        u32::from(options.every)
    ));
    if let Some(slice) = options.slice {
        loaded.push(format!(",slice={}", slice.trailing_zeros()));
    }
    command.arg("-plugin").arg(loaded);
    // The variables are the guest's: QEMU itself must not preload the library.
    for (name, value) in stage.environment() {
        let mut pair = name;
        pair.push("=");
        pair.push(value);
        command.arg("-E").arg(pair);
    }
    command.envs(options.environment.iter().cloned());
    command.arg("-0").arg(&plan.command[0]);
    command.arg(&plan.program).args(&plan.command[1..]);
    command
}

impl Counted {
    /// Writes every access of the run, if it was kept, to the file `path`; how
    /// many there are. O(accesses).
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn write_every_access(&self, path: &Path) -> Result<u64, TraceError> {
        let events = self.stage.directory().join(layout::EVENT_FILE);
        stream::write(&events, path, self.trace.provenance.access_word)
    }

    /// Writes the touches of the run as a touch trace to the file `path`, if first accesses or all were
    /// kept: of each slice of `slice` bytes of a block, counted from the block's first, the first access.
    /// `slice` is a power of two, that of the run or a multiple. A resize is a new block, the copying of
    /// what both have, and the free of the old block. O(records + bytes copied / slice).
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn write_touches(&self, path: &Path, slice: u64) -> Result<TouchProfile, TraceError> {
        let events = self.stage.directory().join(layout::EVENT_FILE);
        touches::write(&events, path, slice, &self.trace.provenance.command)
    }
}
