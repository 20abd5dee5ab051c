//! The machines that images are tuned for: how they are run, and what a run shows.
//!
//! *Invariant:* a recording that is given back is of all events of a run that came to its end.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use metes_explore::Target;
use metes_trace::record::Ending;
use metes_trace::{
    Board, HeapState, Spent, TargetRecording, Trace, need_emulator, record_emulated, run_emulated,
};
use serde::Serialize;

use super::{Error, leon3};

/// A machine without an operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Arm Cortex-M3 under QEMU; the image has the recorder.
    CortexM3,
    /// LEON3 in the simulator, which records any image.
    Leon3,
}

/// Calls of heap functions, and what they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Instructions {
    /// Calls.
    pub calls: u64,
    /// Instructions of all.
    pub all: u64,
    /// Instructions of the longest.
    pub most: u64,
}

/// Those of allocations, frees and resizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Of malloc, calloc and their like.
    pub allocate: Instructions,
    /// Of free.
    pub free: Instructions,
    /// Of realloc.
    pub resize: Instructions,
}

/// A recorded run.
#[derive(Debug)]
pub struct Recording {
    /// What the image asked for.
    pub trace: Trace,
    /// Of each event, the address of its block.
    pub places: Vec<u32>,
    /// The emitted heap, if it has that one.
    pub heap: Option<HeapState>,
    /// What its heap functions took, where there is a clock.
    pub counted: Option<Counted>,
    /// The exit status.
    pub status: i32,
}

/// How long a run may take, and what ends it earlier.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    pub(super) limit: Duration,
    pub(super) stop: &'a AtomicBool,
}

impl Machine {
    /// As it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Machine::CortexM3 => "cortex-m3",
            Machine::Leon3 => "leon3",
        }
    }

    /// What blocks look like there.
    pub const fn target(self) -> Target {
        match self {
            Machine::CortexM3 | Machine::Leon3 => Target::Bare32,
        }
    }

    /// Whether an image is recorded by a recorder in it.
    pub const fn has_recorder(self) -> bool {
        match self {
            Machine::CortexM3 => true,
            Machine::Leon3 => false,
        }
    }

    /// What counts instructions, in words.
    pub const fn clock(self) -> &'static str {
        match self {
            Machine::CortexM3 => {
                "the recorder's clock, which QEMU drives by 128 ns an instruction; a call with the two looks at it"
            }
            Machine::Leon3 => {
                "the simulator, from the first instruction of a function to the first behind its call"
            }
        }
    }

    /// That images of this machine can be run here.
    ///
    /// # Errors
    /// [`EmulatedError::NoEmulator`](metes_trace::EmulatedError::NoEmulator).
    pub fn need(self) -> Result<(), Error> {
        match self {
            Machine::CortexM3 => Ok(need_emulator(Board::CortexM3).map(drop)?),
            Machine::Leon3 => Ok(()),
        }
    }

    /// Runs an image, and gives what it asked for.
    pub(super) fn record(self, image: &Path, patience: Patience<'_>) -> Result<Recording, Error> {
        match self {
            Machine::CortexM3 => {
                let found = record_emulated(image, Board::CortexM3, Some(patience.limit))?;
                let status = status(found.ending, image)?;
                whole(&found.recording, image)?;
                let TargetRecording {
                    trace,
                    places,
                    told,
                    ..
                } = found.recording;
                Ok(Recording {
                    trace,
                    places,
                    heap: told.heap,
                    counted: told.spent.and_then(counted),
                    status,
                })
            }
            Machine::Leon3 => leon3::record(image, patience),
        }
    }

    /// Runs an image without a recorder; its exit status.
    pub(super) fn run(self, image: &Path, patience: Patience<'_>) -> Result<i32, Error> {
        match self {
            Machine::CortexM3 => {
                let ending = run_emulated(image, Board::CortexM3, Some(patience.limit))?;
                status(ending, image)
            }
            Machine::Leon3 => Ok(leon3::record(image, patience)?.status),
        }
    }
}

fn status(ending: Ending, image: &Path) -> Result<i32, Error> {
    match ending {
        Ending::Exit(status) => Ok(status),
        Ending::Signal(signal) => Err(Error::Died {
            path: image.to_owned(),
            signal,
        }),
    }
}

/// Refuses a recording of which something is missing: nothing could be predicted from it.
fn whole(recording: &TargetRecording, image: &Path) -> Result<(), Error> {
    let findings = &recording.findings;
    let lacking = findings.lost + findings.missing + findings.unfinished + findings.damaged;
    match lacking {
        0 if recording.told.ended => Ok(()),
        0 => Err(Error::Unended {
            path: image.to_owned(),
        }),
        _ => Err(Error::Lacking {
            path: PathBuf::from(image),
            lost: findings.lost,
            others: lacking - findings.lost,
        }),
    }
}

/// Times as instructions. `None` where the clock stood still.
fn counted(spent: [Spent; 3]) -> Option<Counted> {
    let instructions = |ns: u64| {
        let one = Board::NS_PER_INSTRUCTION;
        (ns + one / 2) / one
    };
    let [allocate, free, resize] = spent.map(|spent| Instructions {
        calls: spent.calls,
        all: instructions(spent.nanoseconds),
        most: instructions(spent.most),
    });
    let counted = Counted {
        allocate,
        free,
        resize,
    };
    let all = allocate.all + free.all + resize.all;
    (all > 0).then_some(counted)
}
