//! Why an image was not tuned.
//!
//! Invariant: an error names the cause and, where there is one, the remedy.

use std::path::PathBuf;

use metes_explore::EventError;
use metes_trace::{EmulatedError, FirmwareError, RecordError, TraceError};

use crate::error::FileError;

/// Why an image was not tuned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was not run or not recorded.
    #[error(transparent)]
    Emulated(#[from] EmulatedError),
    /// Some of its events are missing.
    #[error(
        "{}: {lost} events found no room in the ring, and {others} are missing or damaged otherwise; a heap is predicted \
         from all of them: give the ring more room (METES_RECORD_EVENTS), or send more often",
        .path.display()
    )]
    Lacking {
        /// The image.
        path: PathBuf,
        /// Those that found no room.
        lost: u64,
        /// The others.
        others: u64,
    },
    /// Its recording did not come to its end.
    #[error(
        "{}: QEMU ended before the recording did, so its last events are not known: let the image end by `exit`, or call \
         metes_record_close before it ends; a recorder that an earlier version wrote does not say so (metes emit --recorder)",
        .path.display()
    )]
    Unended {
        /// The image.
        path: PathBuf,
    },
    /// A signal ended its emulator.
    #[error("{}: signal {signal} ended QEMU before the image had come to its end", .path.display())]
    Died {
        /// The image.
        path: PathBuf,
        /// The signal.
        signal: i32,
    },
    /// It does not run in the simulator.
    #[error(transparent)]
    Firmware(#[from] FirmwareError),
    /// It did not end.
    #[error(
        "{} has not ended within {seconds} s: let it come to its end (`ta 0` with traps off), or give it more time \
         (--run-seconds)",
        .path.display()
    )]
    Endless {
        /// The image.
        path: PathBuf,
        /// How long it ran.
        seconds: f64,
    },
    /// It failed.
    #[error("{} failed: {how}; `metes leon3 run` shows more", .path.display())]
    Failed {
        /// The image.
        path: PathBuf,
        /// How.
        how: String,
    },
    /// It asked for nothing.
    #[error("{} asked for no block, so there is nothing to tune", .path.display())]
    Nothing {
        /// The image.
        path: PathBuf,
    },
    /// Whoever had it run wanted it to end.
    #[error("ended before the image had come to its end")]
    Stopped,
    /// Its requests are none that a heap could serve.
    #[error("{0}")]
    Events(#[from] EventError),
    /// The command failed.
    #[error("the command of --build {how}: {command}{}{said}", if .said.is_empty() { "" } else { "\n" })]
    Build {
        /// The command.
        command: String,
        /// How it ended.
        how: String,
        /// The end of what it said.
        said: String,
    },
    /// The command left no image.
    #[error(
        "the command of --build left no image at {}: {command}; have it write the image where the environment variable \
         METES_IMAGE says",
        .path.display()
    )]
    NoImage {
        /// The command.
        command: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// The image that was built is not on the heap.
    #[error(
        "the image that the command of --build linked is not on the emitted heap: have it compile bare.c and heap.c of the \
         folder that the environment variable METES_HEAP_CODE names, for each call anew, with the recorder of METES_RECORDER \
         unless that is empty"
    )]
    NotLinked,
    /// The image that was built is on a heap of other memory.
    #[error(
        "the image that the command of --build linked has a heap of {linked} bytes, and the emitted one has {emitted}: it \
         was linked with an earlier one, or HEAP_RANGES was given; have it compile bare.c and heap.c of METES_HEAP_CODE anew"
    )]
    OtherHeap {
        /// Bytes in the image.
        linked: u64,
        /// Bytes as emitted.
        emitted: u64,
    },
    /// The image with the heap does not run.
    #[error("linked with the emitted heap: {0}")]
    OnHeap(Box<Error>),
    /// What is proved to suffice is more than indexes of this tuning reach.
    #[error(
        "the guarantee of {heap} needs a pool of {bytes} bytes, and its index was laid out for {span}: ask for a smaller \
         guarantee, as in --guarantee 8x"
    )]
    Span {
        /// The heap.
        heap: String,
        /// Bytes that suffice.
        bytes: u64,
        /// Bytes of the span.
        span: u64,
    },
    /// A step that is that of any tuning.
    #[error(transparent)]
    Tune(#[from] crate::Error),
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        Error::Tune(error.into())
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Error::Tune(error.into())
    }
}
