//! Why a program cannot be recorded. Each message names the cause and what to
//! do.

use std::io;
use std::path::PathBuf;

/// What keeps the dynamic loader from loading the recorder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// No dynamic loader takes part.
    #[error(
        "it is statically linked, so no library can be loaded before it: link it dynamically, or \
         bring a trace of its own in with `metes trace import`"
    )]
    Static,
    /// Runs with rights other than the caller's.
    #[error(
        "it runs with the rights of another user or group ({0}), for which the loader ignores \
         preloaded libraries: record a copy without those rights, or record as that user"
    )]
    Privileged(&'static str),
    /// Another word size or processor.
    #[error("it is made for another kind of processor than this Metes: use a Metes of that kind")]
    Machine,
    /// Another C library.
    #[error(
        "it uses the C library musl, and the recorder works on top of glibc: build the program \
         against glibc"
    )]
    Musl,
    /// Neither ELF nor a script.
    #[error("it is neither an ELF program nor a script that begins with #!")]
    Format,
}

/// Why a program cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// An empty command.
    #[error("no command to record; give one after --")]
    NoCommand,
    /// No such program.
    #[error("program {program} is not found{}; check its name", .searched)]
    NotFound {
        /// As it was given.
        program: String,
        /// Where it was looked for.
        searched: &'static str,
    },
    /// There, but no program.
    #[error("{} cannot be run: {reason}", .path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Cannot be recorded by preloading.
    #[error("{} cannot be recorded: {obstacle}", .path.display())]
    CannotPreload {
        /// The file that would be loaded: the program or its interpreter.
        path: PathBuf,
        /// What is in the way.
        obstacle: Obstacle,
    },
    /// The recording library is not there.
    #[error(
        "recording library {} cannot be read: {source}; build it with `cargo build --release \
         -p metes-record`", .path.display()
    )]
    Library {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No place for the raw files.
    #[error("cannot use directory {} for the recording: {reason}; set TMPDIR", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No room for the raw files.
    #[error(
        "there is no room for the recording in {}: free some space there, or set TMPDIR to a \
         directory on another disk", .path.display()
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
    },
    /// The system did not start the program.
    #[error("cannot run {}: {source}", .path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The emulator is not there.
    #[error(
        "counting accesses runs the program in {qemu}, which is not found: install it (package \
         qemu-user of Debian, version 7.2 or later), or name it with --qemu"
    )]
    NoEmulator {
        /// The program looked for.
        qemu: String,
    },
    /// The program's accesses cannot be counted.
    #[error("accesses of {} cannot be counted: {reason}", .path.display())]
    CannotCount {
        /// The program.
        path: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// Call stacks need more of the C library.
    #[error(
        "call stacks cannot be recorded: the C library does not say where code lies \
         (_dl_find_object), which glibc does since 2.35: leave --sites out, or record on a newer system"
    )]
    NoStacks,
    /// No process recorded anything.
    #[error(
        "{} made no request that could be recorded: it uses no malloc, brings its own, or clears \
         LD_PRELOAD; recording also needs Linux 4.14 and leave to write files (ulimit -f)", .program.display()
    )]
    NothingRecorded {
        /// The program.
        program: PathBuf,
    },
    /// What was recorded cannot be written.
    #[error(
        "{} cannot be written: {reason}: free some space there, or name another file with -o", .path.display()
    )]
    Output {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A file is not to be written, as its owner was told.
    #[error("a file of the recording may not be written")]
    Refused,
    /// The program ended before its recording began.
    #[error(
        "{} ended before it was to be recorded: send the signal to Metes while it runs", .program.display()
    )]
    NeverBegun {
        /// The program.
        program: PathBuf,
    },
    /// A process that runs cannot be recorded.
    #[error("process {pid} cannot be recorded: {reason}")]
    Attach {
        /// Its number.
        pid: u32,
        /// Why not, and what to do.
        reason: String,
    },
    /// A raw file cannot be understood.
    #[error("raw recording {}: {reason}; record again", .path.display())]
    Raw {
        /// The raw file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// [`super::Choice`] names none of the processes.
    #[error("no recorded process fits; there are {there_are}")]
    NoSuchProcess {
        /// Those there are.
        there_are: String,
    },
}
