//! Recording firmware that has the recorder for targets in it ([`target`](crate::target)): runs its image on a board that
//! QEMU emulates, and takes what the image sends by semihosting.
//!
//! Time is that of QEMU's `-icount`, so that the same image does the same each time.
//!
//! Invariant: the image runs in a private directory that is gone afterwards. Whatever ended it, what it sent until then is
//! read.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use super::check::find_program;
use super::error::RecordError;
use super::run::{Ending, pass_on, run_command};
use crate::error::TraceError;
use crate::private::PrivateDirectory;
use crate::target::{TargetRecording, import_file};

/// What the port for semihosting calls its file.
const FILE: &str = "metes.record";
const PREFIX: &str = "metes-target.";

/// A board that QEMU emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// Arm Cortex-M3: MPS2 with AN385, 4 MiB from 0 and 4 MiB from 0x2000_0000 on.
    CortexM3,
}

impl Board {
    /// Nanoseconds of virtual time that an instruction takes, by which all clocks of the board go.
    pub const NS_PER_INSTRUCTION: u64 = 128;

    /// QEMU's program, and the Debian package that has it.
    #[must_use]
    pub fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Board::CortexM3 => ("qemu-system-arm", "qemu-system-arm"),
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Board::CortexM3 => &["-M", "mps2-an385"],
        }
    }

    /// How ELF calls its processor.
    fn machine(self) -> [u8; 2] {
        match self {
            Board::CortexM3 => [40, 0],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Board::CortexM3 => "Cortex-M3, MPS2 AN385",
        }
    }
}

/// A recording of an image on a board.
pub struct EmulatedRecording {
    /// What it sent.
    pub recording: TargetRecording,
    /// How QEMU ended: as the image told it, or by a signal.
    pub ending: Ending,
}

/// Why an image is not recorded on a board.
#[derive(Debug, thiserror::Error)]
pub enum EmulatedError {
    /// No QEMU.
    #[error("{program} is not found in PATH: install it, `apt-get install {package}`")]
    NoEmulator {
        /// The program.
        program: &'static str,
        /// The Debian package.
        package: &'static str,
    },
    /// It is not there, or cannot be read.
    #[error("image {} cannot be read: {source}; check the path", .path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No image, or one for another machine.
    #[error("{} is no image for {board}: give an ELF file of 32 bits that is linked for it", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The board.
        board: &'static str,
    },
    /// No place to run in.
    #[error("cannot use directory {} for the recording: {source}; set TMPDIR", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// QEMU was not started.
    #[error(transparent)]
    Run(#[from] RecordError),
    /// It sent nothing.
    #[error(
        "{} sent no recording ({how}): link it with metes_record.c, metes_record_libc.c and metes_record_semihosting.c, \
         which `metes emit --recorder -o DIR` writes",
        .path.display()
    )]
    Silent {
        /// The image.
        path: PathBuf,
        /// How it ended.
        how: String,
    },
    /// It did not end.
    #[error(
        "{} has not ended within {seconds} s under QEMU: let it come to its end (`exit`, which ends QEMU by \
         semihosting), or give it more time (--run-seconds)", .path.display()
    )]
    Endless {
        /// The image.
        path: PathBuf,
        /// How long it ran.
        seconds: f64,
    },
    /// What it sent is no recording.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Runs the image in the file `path` on `board`, for as long as it likes, or no longer than `limit`. It has the standard
/// streams of this process.
///
/// # Errors
/// [`EmulatedError`]. An image that fails is none; see [`EmulatedRecording::ending`].
pub fn record_emulated(
    path: &Path,
    board: Board,
    limit: Option<Duration>,
) -> Result<EmulatedRecording, EmulatedError> {
    let (directory, ending) = emulate(path, board, limit)?;
    let file = directory.path().join(FILE);
    if !file.exists() {
        let how = match ending {
            Ending::Exit(status) => format!("QEMU ended with status {status}"),
            Ending::Signal(signal) => format!("signal {signal} ended QEMU"),
        };
        return Err(EmulatedError::Silent {
            path: path.to_owned(),
            how,
        });
    }
    let mut recording = import_file(&file)?;
    let provenance = &mut recording.trace.provenance;
    provenance.command = vec![path.display().to_string()];
    provenance.host = format!("{}, emulated by QEMU", board.name());
    Ok(EmulatedRecording { recording, ending })
}

/// Runs an image that need not have a recorder: how it ended.
///
/// # Errors
/// [`EmulatedError`], as of [`record_emulated`].
pub fn run_emulated(
    path: &Path,
    board: Board,
    limit: Option<Duration>,
) -> Result<Ending, EmulatedError> {
    emulate(path, board, limit).map(|(_, ending)| ending)
}

/// Runs an image; the directory with what it sent, and how it ended.
fn emulate(
    path: &Path,
    board: Board,
    limit: Option<Duration>,
) -> Result<(PrivateDirectory, Ending), EmulatedError> {
    let unread = |source| EmulatedError::Image {
        path: path.to_owned(),
        source,
    };
    let image = std::fs::canonicalize(path).map_err(unread)?;
    let mut head = Vec::new();
    let read = File::open(&image).and_then(|file| file.take(20).read_to_end(&mut head));
    read.map_err(unread)?;
    // ELF of 32 bits, low bytes first, for the machine.
    if !head.starts_with(b"\x7fELF\x01\x01") || head.get(18..) != Some(&board.machine()) {
        return Err(EmulatedError::Foreign {
            path: path.to_owned(),
            board: board.name(),
        });
    }
    let emulator = need_emulator(board)?;
    let parent = std::env::temp_dir();
    let directory =
        PrivateDirectory::new_in(&parent, PREFIX).map_err(|source| EmulatedError::Directory {
            path: parent,
            source,
        })?;
    let mut command = Command::new(emulator);
    command
        .args(board.arguments())
        .args(["-display", "none", "-monitor", "none", "-serial", "none"])
        // 2^7 ns an instruction.
        .args(["-icount", "shift=7,sleep=off"])
        .args(["-semihosting-config", "enable=on,target=native"])
        .arg("-kernel")
        .arg(image)
        .current_dir(directory.path());
    let (run, too_long) = within(limit, || run_command(command));
    match limit {
        Some(limit) if too_long => Err(EmulatedError::Endless {
            path: path.to_owned(),
            seconds: limit.as_secs_f64(),
        }),
        _ => Ok((directory, run?.ending)),
    }
}

/// Runs a program, and has it end after `limit`; whether it had to.
fn within<R>(limit: Option<Duration>, run: impl FnOnce() -> R) -> (R, bool) {
    let Some(limit) = limit else {
        return (run(), false);
    };
    std::thread::scope(|scope| {
        let (ended, ends) = mpsc::channel::<()>();
        let watch = scope.spawn(move || {
            let too_long = ends.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
            too_long && pass_on(libc::SIGTERM) > 0
        });
        let result = run();
        drop(ended);
        (result, watch.join().unwrap_or(false))
    })
}

/// QEMU's program for a board.
///
/// # Errors
/// [`EmulatedError::NoEmulator`].
pub fn need_emulator(board: Board) -> Result<PathBuf, EmulatedError> {
    let (program, package) = board.emulator();
    find_program(OsStr::new(program))
        .map(|found| found.path)
        .map_err(|_| EmulatedError::NoEmulator { program, package })
}
