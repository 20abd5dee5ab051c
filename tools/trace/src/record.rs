//! Recording: runs an unmodified program under the recording library, and
//! gives the trace of it and of each of its children.
//!
//! The library (crate `metes-record`) is preloaded by the dynamic loader and
//! writes one raw file for each process image into a temporary directory. The
//! driver checks beforehand that preloading can work, waits for the program,
//! and turns the raw files, which hold addresses, into traces.
//!
//! What a recording does not have: children that are statically linked, of
//! another word size, or started without `LD_PRELOAD` in their environment;
//! requests that failed; what the dynamic loader asks of its own little
//! allocator. Times are good to some 500 ns; their order is exact.
//!
//! Recording changes the program's requests in two ways, and so does running it
//! on an emitted heap: programs copy their environment (see [`Stage`]), and the
//! C library sizes a thread's table of thread-local storage by the number of
//! libraries that have some.
//!
//! Invariant: what the program printed and returned is untouched, the raw files
//! are gone at the end, and whatever ended the program, what it had recorded is
//! in the result.

pub mod access;
mod check;
pub mod emulated;
mod error;
#[cfg(feature = "firmware")]
pub mod firmware;
mod live;
mod mapped;
mod parts;
mod process;
mod raw;
pub mod run;
mod segments;
mod stage;
mod tables;

use std::ffi::OsString;
use std::path::PathBuf;

pub use check::{Program, find_program};
pub use error::{Obstacle, RecordError};
pub use live::{
    Control, FileOptions, Progress, RecordedFile, RecordedFiles, Rotation, attach_files,
    become_dormant, beside, part_of, record_files,
};
pub use parts::FileFacts;
pub use process::{Loaded, ProcessTrace};
pub use run::{Ending, Run, run_command};
pub use stage::Stage;

use metes_layout::recording as layout;

use crate::trace::Trace;

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The recording library, `libmetes_record.so`.
    pub library: PathBuf,
    /// Where the raw files grow, some 12 bytes an event. None takes shared
    /// memory if it has plenty of room (half the cost), else the directory for
    /// temporary files.
    pub directory: Option<PathBuf>,
    /// Variables to add to the program's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Also record the call stack of each request. The stacks have no names: who wants some finds
    /// them by module and address.
    pub sites: bool,
}

impl RecordOptions {
    /// Recording with `library`, all else as usual.
    #[must_use]
    pub fn new(library: impl Into<PathBuf>) -> RecordOptions {
        RecordOptions {
            library: library.into(),
            directory: None,
            environment: Vec::new(),
            sites: false,
        }
    }
}

/// What a recording gave.
#[derive(Debug)]
pub struct Recording {
    /// The trace of the command itself: of its process, as the last program
    /// that ran in it (`env` and shells replace themselves by another).
    pub main: Trace,
    /// The process of `main`; None if it made no request at all.
    pub main_process: Option<ProcessTrace>,
    /// All other recorded processes, and earlier programs of the main one, in
    /// the order in which they began.
    pub children: Vec<ProcessTrace>,
    /// Processes that found no room for a single request, and are missing.
    pub without_room: u64,
    /// How the program ended.
    pub ending: Ending,
    /// Processor time, user and system, of the program and the children it
    /// waited for, seconds.
    pub cpu_seconds: f64,
    /// Time that passed, seconds.
    pub wall_seconds: f64,
    /// Owns the raw files that `children` read.
    #[allow(dead_code, reason = "removes the raw files when dropped")]
    stage: Stage,
}

/// Which process of a recording is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The command itself.
    Main,
    /// The process with the most to replay.
    Largest,
    /// The process with this number.
    Pid(u32),
    /// The first process whose program has this file name.
    Program(String),
}

impl Recording {
    /// Every recorded process, the main one first.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessTrace> {
        self.main_process.iter().chain(&self.children)
    }

    /// The trace of the process that `choice` names. A compiler driver, say,
    /// does nothing itself: its largest child is the one to look at.
    ///
    /// # Errors
    /// [`RecordError::NoSuchProcess`] lists those there are; the others are of
    /// reading the raw file.
    pub fn choose(&self, choice: &Choice) -> Result<Trace, RecordError> {
        let found = match choice {
            Choice::Main => return Ok(self.main.clone()),
            // The first of equals, so that equal recordings choose equally.
            Choice::Largest => self.processes().reduce(|best, process| {
                if process.raw_words > best.raw_words {
                    process
                } else {
                    best
                }
            }),
            Choice::Pid(pid) => self.processes().find(|process| process.pid == *pid),
            Choice::Program(name) => self.processes().find(|process| process.name() == name),
        };
        let process = found.ok_or_else(|| RecordError::NoSuchProcess {
            there_are: self
                .processes()
                .map(|process| format!("{} ({})", process.pid, process.name()))
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        if self
            .main_process
            .as_ref()
            .is_some_and(|main| std::ptr::eq(main, process))
        {
            return Ok(self.main.clone());
        }
        Ok(process.load()?.trace)
    }
}

/// Whether the C library says where code lies, which the recorder's walk of stacks needs.
fn finds_modules() -> bool {
    // SAFETY: a string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    !found.is_null()
}

/// Runs `command`, with the standard streams of this process, and records it.
/// While it runs, this process ignores SIGINT and SIGQUIT unless it handles
/// them: they end the program, and what it recorded is kept. The program does
/// not outlive this process.
///
/// # Errors
/// [`RecordError`]: what stands in the way of running or of recording. A
/// program that fails or dies is no error; see [`Recording::ending`].
pub fn record(command: &[OsString], options: &RecordOptions) -> Result<Recording, RecordError> {
    let (program, stage) = prepare(command, options)?;
    let run = run::run(
        &program.path,
        command,
        &stage,
        &options.environment,
        &|_| {},
    )?;
    let process::Processes {
        recorded: mut processes,
        without_room,
    } = process::find(stage.directory(), &run)?;
    // Of the programs that ran in the main process the last one counts.
    let main = processes
        .iter()
        .rposition(|process| process.pid == run.pid && !process.forked);
    let main_process = main.map(|index| processes.remove(index));
    if main_process.is_none() && processes.is_empty() {
        if without_room > 0 {
            let path = stage.directory().parent().unwrap_or(stage.directory());
            return Err(RecordError::NoRoom {
                path: path.to_owned(),
            });
        }
        return Err(RecordError::NothingRecorded {
            program: program.path,
        });
    }
    let main = match &main_process {
        Some(process) => process.load()?.trace,
        None => Trace::default(),
    };
    Ok(Recording {
        main,
        main_process,
        children: processes,
        without_room,
        ending: run.ending,
        cpu_seconds: run.cpu_seconds,
        wall_seconds: run.wall_seconds,
        stage,
    })
}

/// The program of `command`, which can be recorded, and the place of its run.
fn prepare(command: &[OsString], options: &RecordOptions) -> Result<(Program, Stage), RecordError> {
    let program = recordable(command, options)?;
    let stage = Stage::new(&options.library, options.directory.as_deref())?;
    ask_for_sites(&stage, options)?;
    Ok((program, stage))
}

/// The same, of a program that records nothing yet and outlives this process.
fn prepare_dormant(
    command: &[OsString],
    options: &RecordOptions,
) -> Result<(Program, Stage), RecordError> {
    let program = recordable(command, options)?;
    let stage = Stage::dormant(&options.library, options.directory.as_deref())?;
    ask_for_sites(&stage, options)?;
    mark(&stage, layout::PAUSED_FILE)?;
    Ok((program, stage))
}

fn recordable(command: &[OsString], options: &RecordOptions) -> Result<Program, RecordError> {
    let (name, _) = command.split_first().ok_or(RecordError::NoCommand)?;
    let program = find_program(name)?;
    program.check_preload()?;
    if options.sites && !finds_modules() {
        return Err(RecordError::NoStacks);
    }
    Ok(program)
}

fn ask_for_sites(stage: &Stage, options: &RecordOptions) -> Result<(), RecordError> {
    match options.sites {
        true => mark(stage, layout::SITES_FILE),
        false => Ok(()),
    }
}

/// Puts an empty file of that name into the stage.
fn mark(stage: &Stage, name: &str) -> Result<(), RecordError> {
    let path = stage.directory().join(name);
    std::fs::write(&path, []).map_err(|error| RecordError::Directory {
        path: stage.directory().to_owned(),
        reason: error.to_string(),
    })
}
